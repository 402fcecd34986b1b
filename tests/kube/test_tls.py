"""Certificates that are replaced while a client runs, at a TLS server on loopback that requires client certificates."""

import asyncio
import base64
import json
import logging
import os
import ssl
from datetime import timedelta
from functools import partial

import pytest
import yaml

from tests import waiting
from volcano_py.kube import Client, tls, transport
from volcano_py.kube.certificates import make, make_client, new_authority
from volcano_py.kube.credentials import from_kubeconfig
from volcano_py.kube.errors import Unauthorized, Unreachable
from volcano_py.kube.remedies import for_tls

NO_CHECK_TIME = 0x200000  # as kube-apiserver: TLS accepts what has expired


class Server:
    """Answers 200 to the users in `accepted`, and 401 to others; counts the connections of each."""

    def __init__(self, authority):
        self.authority = authority
        self.accepted = {"first"}
        self.connections = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def __aenter__(self):
        context = make(authority=self.authority).context()
        context.load_verify_locations(cadata=self.authority.certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= NO_CHECK_TIME
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def connected(self, times):
        return len(self.connections) == times

    async def _serve(self, reader, writer):
        subject = writer.get_extra_info("peercert")["subject"]
        user = next(value for row in subject for key, value in row if key == "commonName")
        self.connections.append(user)
        try:
            while (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
                await self.hold.wait()
                status, body = (b"200 OK", b'"x"') if user in self.accepted else (b"401 No", b"no")
                writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()


@pytest.fixture
async def server():
    async with Server(new_authority()) as running:
        yield running


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """The files are looked at before each request."""
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(tls, "LOOK_SECONDS_REJECTED", 0.0)


def put(folder, user, authority, lifetime=timedelta(hours=1)):
    """Replace the files of a client's certificate and key, as a program that renews them does."""
    for name, content in zip(("tls.crt", "tls.key"), make_client(user, (), authority, lifetime), strict=True):
        (folder / "new").write_bytes(content)
        os.replace(folder / "new", folder / name)


def kubeconfig(folder, server, user):
    (folder / "ca.crt").write_bytes(server.authority.certificate)
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


FILES = {"client-certificate": "tls.crt", "client-key": "tls.key"}


def data(pair):
    names = ("client-certificate-data", "client-key-data")
    return {name: base64.b64encode(text).decode() for name, text in zip(names, pair, strict=True)}


@pytest.mark.parametrize("lean", [False, True])
async def test_files_that_are_replaced(server, tmp_path, lean):
    put(tmp_path, "first", server.authority)
    async with Client.from_kubeconfig(kubeconfig(tmp_path, server, FILES), lean=lean) as client:
        await client.raw("GET", "/")
        await client.raw("GET", "/")
        assert server.connections == ["first"]
        server.accepted = {"second"}
        with pytest.raises(Unauthorized):
            await client.raw("GET", "/")
        put(tmp_path, "second", server.authority)
        await client.raw("GET", "/")
        await client.raw("GET", "/")
        assert server.connections == ["first", "second"]


@pytest.mark.parametrize("lean", [False, True])
async def test_a_rejection_makes_it_look_at_once(server, tmp_path, monkeypatch, lean):
    """Without a rejection the files would not be looked at for an hour."""
    monkeypatch.setattr(tls, "LOOK_SECONDS", 3600.0)
    put(tmp_path, "first", server.authority)
    async with Client.from_kubeconfig(kubeconfig(tmp_path, server, FILES), lean=lean) as client:
        put(tmp_path, "second", server.authority)
        await client.raw("GET", "/")
        server.accepted = {"second"}
        with pytest.raises(Unauthorized):
            await client.raw("GET", "/")
        await client.raw("GET", "/")


@pytest.mark.parametrize("lean", [False, True])
async def test_data_in_the_kubeconfig(server, tmp_path, lean):
    path = kubeconfig(tmp_path, server, data(make_client("first", (), server.authority)))
    async with Client.from_kubeconfig(path, lean=lean) as client:
        await client.raw("GET", "/")
        server.accepted = {"second"}
        kubeconfig(tmp_path, server, data(make_client("second", (), server.authority)))
        await client.raw("GET", "/")


@pytest.mark.parametrize("lean", [False, True])
async def test_an_authority_that_is_replaced(server, tmp_path, lean):
    put(tmp_path, "first", server.authority)
    path = kubeconfig(tmp_path, server, FILES)
    (tmp_path / "ca.crt").write_bytes(new_authority().certificate)
    async with Client.from_kubeconfig(path, lean=lean) as client:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.raw("GET", "/")
        (tmp_path / "ca.crt").write_bytes(server.authority.certificate)
        await client.raw("GET", "/")


@pytest.mark.parametrize("lean", [False, True])
async def test_a_request_under_way_is_not_broken(server, tmp_path, lean):
    server.accepted = {"first", "second"}
    put(tmp_path, "first", server.authority)
    async with Client.from_kubeconfig(kubeconfig(tmp_path, server, FILES), lean=lean) as client:
        server.hold.clear()
        early = asyncio.create_task(client.raw("GET", "/"))
        await waiting.until(partial(server.connected, 1), "no connection")
        put(tmp_path, "second", server.authority)
        late = asyncio.create_task(client.raw("GET", "/"))
        await waiting.until(partial(server.connected, 2), "no second connection")
        server.hold.set()
        assert await early == await late == b'"x"'
        await client.raw("GET", "/")
        assert server.connections == ["first", "second"]


@pytest.mark.parametrize("lean", [False, True])
async def test_a_program_that_gives_another_certificate(server, tmp_path, lean):
    def write(user, lifetime):
        pair = make_client(user, (), server.authority)
        status = dict(zip(("clientCertificateData", "clientKeyData"), (x.decode() for x in pair), strict=True))
        (tmp_path / "answer").write_text(json.dumps({"status": {**status, "expirationTimestamp": lifetime}}))

    write("first", "2020-01-01T00:00:00Z")
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [str(tmp_path / "answer")]}
    async with Client.from_kubeconfig(kubeconfig(tmp_path, server, {"exec": program}), lean=lean) as client:
        await client.raw("GET", "/")
        server.accepted = {"second"}
        write("second", "2100-01-01T00:00:00Z")
        await client.raw("GET", "/")
        assert server.connections == ["first", "second"]


async def test_files_that_do_not_fit_together_yet(server, tmp_path, caplog):
    put(tmp_path, "first", server.authority)
    found = from_kubeconfig(kubeconfig(tmp_path, server, FILES))
    before, key = found.ssl, (tmp_path / "tls.key").read_bytes()
    put(tmp_path, "second", server.authority)
    later, _ = (tmp_path / "tls.key").read_bytes(), (tmp_path / "tls.key").write_bytes(key)
    assert found.ssl is found.ssl is before
    assert caplog.text.count("the previous ones stay in use") == 1
    (tmp_path / "tls.key").write_bytes(later)
    assert found.ssl is not before


@pytest.mark.parametrize(
    ("lifetime", "message"),
    [
        (timedelta(seconds=-5), "expired at"),
        (timedelta(seconds=20), "expires at"),
        (timedelta(days=1, hours=1), ""),
    ],
)
def test_what_is_logged(server, tmp_path, caplog, lifetime, message):
    """Once: that it expired, or expires within a day and a tenth of its lifetime; and how to replace it."""
    put(tmp_path, "first", server.authority, lifetime)
    found = from_kubeconfig(kubeconfig(tmp_path, server, FILES))
    found.rejected()
    found.rejected()
    assert found.ssl is found.ssl
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == bool(message)
    for line in lines:
        assert f"client certificate {tmp_path / 'tls.crt'} {message} 20" in line
        assert f"put a new certificate into {tmp_path / 'tls.crt'} and its key into {tmp_path / 'tls.key'}" in line


def test_within_a_day(tmp_path, caplog):
    """A year's certificate is reported on its last day, and again when the next one is about to expire."""
    authority, now = new_authority(), [0.0]
    _, end = tls.validity((first := make_client("u", (), authority, timedelta(days=365)))[0])
    use = partial(tls.Material, None, True)
    material = [use(tls.Pair(*first), "X", "replace it")]
    found = tls.Tls(lambda: material[0], [tmp_path / "file"], clock=lambda: now[0])
    for before, lines in ((timedelta(hours=25), 0), (timedelta(hours=23), 1), (timedelta(hours=1), 1)):
        now[0] = (end - before).timestamp()
        found.context()
        assert caplog.text.count("client certificate X expires at") == lines
    material[0] = use(tls.Pair(*make_client("u", (), authority, timedelta(days=365))), "X", "replace it")
    (tmp_path / "file").touch()
    now[0] = end.timestamp()
    found.context()
    assert caplog.text.count("client certificate X expires at") == 2


async def test_a_client_without_requests_looks(server, tmp_path, caplog, monkeypatch):
    """A program that only watches reports the expired certificate, too."""
    monkeypatch.setattr(transport, "LOOK_SECONDS", 0.01)
    put(tmp_path, "first", server.authority, timedelta(seconds=-5))

    async def reported():
        return f"client certificate {tmp_path / 'tls.crt'} expired at" in caplog.text

    async with Client.from_kubeconfig(kubeconfig(tmp_path, server, FILES)):
        await waiting.until(reported, "the expired certificate is not reported")
    assert not server.connections


def test_the_problem_of_a_client_certificate_is_named(tmp_path):
    authority = new_authority()
    put(tmp_path, "first", authority, timedelta(seconds=-5))
    names = {"client-certificate": str(tmp_path / "tls.crt"), "client-key": str(tmp_path / "tls.key")}
    made = tls.Tls(lambda: tls.material({}, names, "kubeconfig"))
    assert made.problem().startswith(f"client certificate {tmp_path / 'tls.crt'} expired at ")
    assert "put a new certificate into" in made.problem()
    put(tmp_path, "first", authority)
    assert tls.Tls(lambda: tls.material({}, names, "kubeconfig")).problem() == ""


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("certificate verify failed: unable to get local issuer certificate", "set certificate-authority"),
        ("certificate verify failed: self-signed certificate in certificate chain", "set certificate-authority"),
        ("certificate verify failed: certificate has expired", "kubeadm certs renew apiserver"),
        ("connection refused", ""),
    ],
)
def test_the_remedy_for_the_certificate_of_the_server(text, remedy):
    found = for_tls(text)
    assert remedy in found and bool(found) is bool(remedy)
