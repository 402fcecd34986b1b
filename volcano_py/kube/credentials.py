"""Credentials of a client: server address, TLS and request headers.

A kubeconfig with certificates, tokens or basic auth is resolved here (it must be fast: every CLI call does
it). All else (exec plugins, auth providers, several files in KUBECONFIG) goes to the official `kubernetes`
package, imported only then because that costs 220 ms.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from volcano_py.kube.errors import KubeError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_LIFE = 60.0
"""Seconds for which a token read from a file is used before the file is read again; bound tokens rotate."""


def _no_headers() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Credentials:
    """`server` is a URL without a trailing slash.

    `headers()` gives the Authorization header of this moment.
    """

    server: str
    ssl: ssl.SSLContext | None = None
    headers: Callable[[], dict[str, str]] = field(default=_no_headers)
    namespace: str = "default"
    proxy: str | None = None
    server_hostname: str | None = None


def kubeconfig_paths(path: str | os.PathLike[str] | None) -> list[Path]:
    """The files a kubeconfig is read from: the argument, else KUBECONFIG, else ~/.kube/config."""
    if path:
        return [Path(path)]
    listed = [Path(p) for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    return listed or [Path.home() / ".kube" / "config"]


def in_kubeconfig_environment() -> bool:
    """Whether KUBECONFIG is set."""
    return bool(os.environ.get("KUBECONFIG"))


def inside_cluster() -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def from_kubeconfig(
    path: str | os.PathLike[str] | None = None, context: str | None = None, server: str | None = None
) -> Credentials:
    """Credentials of a kubeconfig's context; `server` (the --master flag) overrides its address.

    Raises KubeError naming the file and the missing entry.
    """
    paths = kubeconfig_paths(path)
    existing = [p for p in paths if p.exists()]
    if not existing:
        raise KubeError(f"kubeconfig {paths[0]} does not exist; name one with --kubeconfig or KUBECONFIG")
    if len(existing) > 1:
        return _official(os.pathsep.join(str(p) for p in existing), context, server)
    file = existing[0]
    try:
        document = yaml.load(file.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except OSError as error:
        raise KubeError(f"kubeconfig {file} cannot be read: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        raise KubeError(f"kubeconfig {file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise KubeError(f"kubeconfig {file} is not a mapping; is it a kubeconfig?")
    name = context or document.get("current-context")
    if not name:
        raise KubeError(f"kubeconfig {file} has no current-context; name one with --context")
    chosen = _entry(document, "contexts", "context", name, file)
    cluster = _entry(document, "clusters", "cluster", chosen.get("cluster"), file)
    user = _entry(document, "users", "user", chosen["user"], file) if chosen.get("user") else {}
    if user.get("exec") or user.get("auth-provider"):
        return _official(str(file), name, server, (user.get("exec") or {}).get("command", ""))
    base = file.parent
    address = with_scheme(server or cluster.get("server") or "http://localhost:8080", cluster)
    try:
        for part, key in ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key")):
            if part.get(key) and not part.get(f"{key}-data"):
                (base / part[key]).read_bytes()  # OpenSSL's own errors do not name the file
        tls = _tls(cluster, user, base) if address.startswith("https") else None
    except (OSError, ValueError) as error:
        raise KubeError(
            f"kubeconfig {file}: the certificates of cluster {chosen.get('cluster')!r} or user {chosen.get('user')!r} "
            f"cannot be used: {error}"
        ) from error
    return Credentials(
        server=address.rstrip("/"),
        ssl=tls,
        headers=_headers(user, base),
        namespace=chosen.get("namespace") or "default",
        proxy=cluster.get("proxy-url"),
        server_hostname=cluster.get("tls-server-name"),
    )


def in_cluster() -> Credentials:
    """Credentials of the pod's service account. Raises KubeError outside a cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise KubeError("not inside a cluster (KUBERNETES_SERVICE_HOST is not set); name a kubeconfig")
    host = f"[{host}]" if ":" in host else host
    namespace = SERVICE_ACCOUNT / "namespace"
    try:
        context = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    except OSError as error:
        raise KubeError(f"the service account's ca.crt cannot be read: {error}") from error
    return Credentials(
        server=f"https://{host}:{port}",
        ssl=context,
        headers=_token_file(SERVICE_ACCOUNT / "token"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def _entry(document: dict[str, Any], plural: str, key: str, name: str | None, file: Path) -> dict[str, Any]:
    listed = document.get(plural) or []
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise KubeError(f"kubeconfig {file}: {plural} must be a list of maps with name and {key}")
    for entry in listed:
        if entry.get("name") == name:
            found = entry.get(key) or {}
            if not isinstance(found, dict):
                raise KubeError(f"kubeconfig {file}: {plural} {name!r}: {key} must be a map")
            return found
    known = ", ".join(sorted(str(e.get("name")) for e in listed)) or "none"
    raise KubeError(f"kubeconfig {file} has no {key} {name!r}; {plural} there: {known}")


def _tls(cluster: dict[str, Any], user: dict[str, Any], base: Path) -> ssl.SSLContext:
    if cluster.get("certificate-authority-data"):
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=ca)
    elif cluster.get("certificate-authority"):
        context = ssl.create_default_context(cafile=str(base / cluster["certificate-authority"]))
    else:
        context = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if user.get("client-certificate-data") and user.get("client-key-data"):
        _load_pair(
            context,
            base64.b64decode(user["client-certificate-data"]),
            base64.b64decode(user["client-key-data"]),
        )
    elif user.get("client-certificate") and user.get("client-key"):
        context.load_cert_chain(str(base / user["client-certificate"]), str(base / user["client-key"]))
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL's Python binding reads pairs from files only; the directory is private and exists during this call.
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("tls.crt", certificate), ("tls.key", key)):
            (Path(folder) / name).write_bytes(content)
        context.load_cert_chain(str(Path(folder) / "tls.crt"), str(Path(folder) / "tls.key"))


def _headers(user: dict[str, Any], base: Path) -> Callable[[], dict[str, str]]:
    if user.get("token"):
        fixed = {"Authorization": f"Bearer {user['token']}"}
    elif user.get("tokenFile"):
        return _token_file(base / user["tokenFile"])
    elif user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        fixed = {"Authorization": "Basic " + base64.b64encode(pair).decode()}
    else:
        return _no_headers
    return lambda: fixed


def _token_file(path: Path) -> Callable[[], dict[str, str]]:
    cached: dict[str, str] = {}
    read_at = float("-inf")

    def headers() -> dict[str, str]:
        nonlocal cached, read_at
        now = time.monotonic()
        if now - read_at > TOKEN_LIFE:
            try:
                cached = {"Authorization": f"Bearer {path.read_text().strip()}"}
            except OSError as error:
                if not cached:
                    raise KubeError(f"token file {path} cannot be read: {error}") from error
            read_at = now
        return cached

    return headers


def with_scheme(server: str, cluster: dict[str, Any]) -> str:
    """The address as a URL: without a scheme it is https if the cluster has TLS settings, as in kubectl."""
    if "://" in server:
        return server
    tls = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
    return f"{'https' if any(cluster.get(key) for key in tls) else 'http'}://{server}"


def _official(config_file: str, context: str | None, server: str | None, command: str = "") -> Credentials:
    """`command`: the exec plugin that must give credentials."""
    from kubernetes import client, config

    configuration = client.Configuration()
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=config_file, context=context, client_configuration=configuration, persist_config=False
        )
    except Exception as error:
        raise KubeError(f"kubeconfig {config_file} cannot be used: {error}") from error
    if command and not (configuration.api_key or configuration.cert_file):
        raise KubeError(f"kubeconfig {config_file}: {command} gave no credentials; run it by hand to see why")
    tls = None
    if configuration.host.startswith("https"):
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if not configuration.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)

    def headers() -> dict[str, str]:
        token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            return {"Authorization": token}
        if configuration.username:
            return {"Authorization": configuration.get_basic_auth_token() or ""}
        return {}

    return Credentials(
        server=(server or configuration.host).rstrip("/"),
        ssl=tls,
        headers=headers,
        proxy=configuration.proxy,
        server_hostname=getattr(configuration, "tls_server_name", None),
    )
