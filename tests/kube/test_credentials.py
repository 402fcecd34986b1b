import base64
import json
import re
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from tests import waiting
from volcano_py.kube import KubeError
from volcano_py.kube import credentials as module
from volcano_py.kube.credentials import from_kubeconfig, in_cluster


def write(folder, user=None, cluster=None, **extra):
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **extra,
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(document))
    return file


def make_pair(address=None):
    """A self-signed certificate (for an IP address) and its key."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address(address))] if address else [x509.DNSName("test")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


@pytest.fixture
def pair():
    return make_pair()


def test_a_token(tmp_path):
    found = from_kubeconfig(write(tmp_path, {"token": "t"}))
    assert found.headers() == {"Authorization": "Bearer t"}
    assert (found.server, found.namespace, found.ssl) == ("http://127.0.0.1:6443", "team", None)


@pytest.mark.parametrize(
    ("cluster", "compressed"),
    [
        ({"server": "https://api.example:6443"}, True),
        ({"server": "https://api.example:6443", "disable-compression": True}, False),
        ({"server": "https://127.0.0.1:6443"}, False),
    ],
)
def test_responses_are_not_compressed_on_the_same_machine(tmp_path, cluster, compressed):
    assert from_kubeconfig(write(tmp_path, cluster=cluster)).compressed is compressed


def test_basic_auth(tmp_path):
    found = from_kubeconfig(write(tmp_path, {"username": "u", "password": "p"}))
    assert found.headers() == {"Authorization": "Basic " + base64.b64encode(b"u:p").decode()}


def test_a_token_file_is_read_again_after_a_while(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("one\n")
    found = from_kubeconfig(write(tmp_path, {"tokenFile": "token"}))
    assert found.headers() == {"Authorization": "Bearer one"}
    (tmp_path / "token").write_text("two")
    assert found.headers() == {"Authorization": "Bearer one"}
    monkeypatch.setattr(module, "TOKEN_LIFE", -1.0)
    assert found.headers() == {"Authorization": "Bearer two"}


def test_client_certificate_data(tmp_path, pair):
    certificate, key = (base64.b64encode(x).decode() for x in pair)
    file = write(
        tmp_path,
        {"client-certificate-data": certificate, "client-key-data": key},
        {"server": "https://127.0.0.1:6443", "certificate-authority-data": certificate},
    )
    found = from_kubeconfig(file)
    assert found.ssl.verify_mode == ssl.CERT_REQUIRED
    assert found.ssl.cert_store_stats()["x509"] == 1


def test_insecure_skip_tls_verify(tmp_path):
    file = write(tmp_path, cluster={"server": "https://x", "insecure-skip-tls-verify": True})
    assert from_kubeconfig(file).ssl.verify_mode == ssl.CERT_NONE


def exec_plugin(tmp_path, status, **more):
    """A user whose credentials come from a program that prints the status it finds in a file."""
    (tmp_path / "status").write_text(json.dumps(status))
    script = tmp_path / "plugin"
    script.write_text(
        f'#!/bin/sh\nprintf \'{{"status": %s}}\' "$(cat {tmp_path}/status)"\necho run >> {tmp_path}/runs\n'
    )
    script.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), **more}}


def test_a_token_of_a_program_is_kept_until_it_expires(tmp_path):
    found = from_kubeconfig(write(tmp_path, exec_plugin(tmp_path, {"token": "one"})))
    assert found.headers() == found.headers() == {"Authorization": "Bearer one"}
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_token_that_expired_is_replaced_before_it_is_sent(tmp_path):
    ended = {"token": "one", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    found = from_kubeconfig(write(tmp_path, exec_plugin(tmp_path, ended)))
    (tmp_path / "status").write_text('{"token": "two"}')
    assert found.headers() == {"Authorization": "Bearer two"}


def test_a_token_is_replaced_early_without_a_wait(tmp_path):
    soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
    found = from_kubeconfig(write(tmp_path, exec_plugin(tmp_path, {"token": "one", "expirationTimestamp": soon})))
    (tmp_path / "status").write_text('{"token": "two"}')
    assert found.headers() == {"Authorization": "Bearer one"}
    for thread in threading.enumerate():
        if thread.name == "credentials":
            thread.join(waiting.budget())
    assert found.headers() == {"Authorization": "Bearer two"}


def test_a_certificate_of_a_program(tmp_path, pair):
    certificate, key = (text.decode() for text in pair)
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    found = from_kubeconfig(write(tmp_path, exec_plugin(tmp_path, status), {"server": "https://127.0.0.1:1"}))
    assert found.ssl is not None and found.headers() == {}


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        ({"command": "no-such-tool", "installHint": "get it from example.com"}, "get it from example.com"),
        ({"command": "sh", "args": ["-c", "echo expired >&2; exit 3"]}, "sh exited with code 3: expired"),
        ({"command": "true"}, "true returned no credentials; run it manually"),
        ({"command": "true", "apiVersion": "x/v1"}, "user.exec.apiVersion 'x/v1' is none of"),
    ],
)
def test_a_program_that_fails_is_named(tmp_path, plugin, message):
    with pytest.raises(KubeError, match=re.escape(message)):
        from_kubeconfig(write(tmp_path, {"exec": plugin}))


def test_several_files_are_merged(tmp_path, monkeypatch):
    """The first file that has an entry wins, and its paths are relative to it."""
    for name, token in (("a", "first"), ("b", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(token)
    one = write(tmp_path / "a", {"tokenFile": "token"}, clusters=[])
    two = write(tmp_path / "b", {"tokenFile": "token"})
    monkeypatch.setenv("KUBECONFIG", f"{one}:{tmp_path}/missing:{two}")
    found = from_kubeconfig()
    assert found.headers() == {"Authorization": "Bearer first"} and found.server == "http://127.0.0.1:6443"


def test_a_master_overrides_the_server(tmp_path):
    assert from_kubeconfig(write(tmp_path), server="http://other:1/").server == "http://other:1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": "nowhere"}, "no context 'nowhere'; contexts there: here"),
        ({"current-context": ""}, "no current-context"),
        ({"clusters": []}, "no cluster 'c'"),
    ],
)
def test_what_is_missing_is_named(tmp_path, change, message):
    with pytest.raises(KubeError, match=message):
        from_kubeconfig(write(tmp_path, **change))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(KubeError, match=r"nothing.yaml does not exist"):
        from_kubeconfig(tmp_path / "nothing.yaml")


def test_in_cluster(tmp_path, monkeypatch, pair):
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "ca.crt").write_bytes(pair[0])
    (tmp_path / "token").write_text("sa")
    (tmp_path / "namespace").write_text("volcano-system")
    found = in_cluster()
    assert found.server == "https://[fd00::1]:443" and found.namespace == "volcano-system"
    assert found.headers() == {"Authorization": "Bearer sa"}
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(KubeError, match="not inside a cluster"):
        in_cluster()
