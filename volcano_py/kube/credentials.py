"""Credentials of a client: server address, TLS and request headers.

From a kubeconfig (`kubeconfig`): certificates, tokens and their files, basic auth, programs (`exec_credentials`); or
from the service account of the pod. Not a client library: importing one takes 200 ms for every command.
"""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from volcano_py.kube import kubeconfig
from volcano_py.kube.errors import KubeError
from volcano_py.kube.exec_credentials import ExecCredentials
from volcano_py.kube.tls import Material, Tls, material

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_LIFE = 60.0
"""Seconds for which a token from a file is cached; bound tokens rotate."""


def _no_headers() -> dict[str, str]:
    return {}


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Credentials:
    """`server` is a URL without a trailing slash.

    `headers()` returns the current Authorization header. Call `rejected()` when the API server rejects the credentials:
    it reloads them, and logs the cause if it is known.
    """

    server: str
    tls: Tls | None = None
    headers: Callable[[], dict[str, str]] = field(default=_no_headers)
    namespace: str = "default"
    proxy: str | None = None
    server_hostname: str | None = None
    rejected: Callable[[], None] = field(default=_nothing)
    compressed: bool = True
    """Whether the server may compress responses. On the same machine that only takes processor time."""

    @property
    def ssl(self) -> ssl.SSLContext | None:
        """The current TLS context; None without settings. Connections of an earlier context are no longer used."""
        return self.tls.context() if self.tls is not None else None


def in_kubeconfig_environment() -> bool:
    """Whether KUBECONFIG is set."""
    return bool(os.environ.get("KUBECONFIG"))


def inside_cluster() -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def from_kubeconfig(
    path: str | os.PathLike[str] | None = None, context: str | None = None, server: str | None = None
) -> Credentials:
    """Credentials for a kubeconfig's context; `server` (the --master flag) overrides its address.

    Raises KubeError with the file and the missing entry.
    """
    files = kubeconfig.paths(path)
    existing = [file for file in files if file.exists()]
    if not existing:
        raise KubeError(f"kubeconfig {files[0]} does not exist; name one with --kubeconfig or KUBECONFIG")
    where = f"kubeconfig {os.pathsep.join(str(file) for file in existing)}"
    chosen, cluster, user = _chosen(existing, context, where)
    if user.get("auth-provider"):
        raise KubeError(f"{where}: user {chosen['user']!r} has an auth-provider, which Kubernetes removed; use exec")
    address = with_scheme(server or cluster.get("server") or "http://localhost:8080", cluster)

    def load() -> Material:
        _, cluster, user = _chosen(existing, context, where)
        return material(cluster, user, where)

    try:
        tls = Tls(load, existing, material(cluster, user, where)) if address.startswith("https") else None
    except (OSError, ValueError) as error:
        raise KubeError(
            f"{where}: the certificates of cluster {chosen.get('cluster')!r} or user {chosen.get('user')!r} "
            f"cannot be used: {error}"
        ) from error
    program = ExecCredentials(user["exec"], where, cluster, tls) if user.get("exec") else None
    return Credentials(
        server=address.rstrip("/"),
        tls=tls,
        headers=program.headers if program else _headers(user),
        rejected=program.rejected if program else tls.rejected if tls else _nothing,
        namespace=chosen.get("namespace") or "default",
        proxy=cluster.get("proxy-url") or _environment_proxy(address),
        server_hostname=cluster.get("tls-server-name"),
        compressed=not (cluster.get("disable-compression") or _is_local(address)),
    )


def in_cluster() -> Credentials:
    """Credentials of the pod's service account. Raises KubeError outside a cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise KubeError("not inside a cluster (KUBERNETES_SERVICE_HOST is not set); name a kubeconfig")
    host = f"[{host}]" if ":" in host else host
    namespace = SERVICE_ACCOUNT / "namespace"
    try:
        authority = {"certificate-authority": str(SERVICE_ACCOUNT / "ca.crt")}
        tls = Tls(lambda: material(authority, {}, "the service account"))
    except (OSError, ValueError) as error:
        raise KubeError(f"the service account's ca.crt cannot be read: {error}") from error
    return Credentials(
        server=f"https://{host}:{port}",
        tls=tls,
        headers=_token_file(SERVICE_ACCOUNT / "token"),
        proxy=_environment_proxy(f"https://{host}:{port}"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def _environment_proxy(server: str) -> str | None:
    """The proxy of a server in HTTPS_PROXY, HTTP_PROXY and NO_PROXY; none for this machine, as in client-go."""
    scheme, _, rest = server.partition("://")
    proxy = os.environ.get(f"{scheme.upper()}_PROXY") or os.environ.get(f"{scheme}_proxy")
    if not proxy:
        return None
    from urllib.request import proxy_bypass

    return None if _is_local(server) or proxy_bypass(rest.partition("/")[0]) else proxy


def _is_local(server: str) -> bool:
    """Whether a server is reached by the loopback address."""
    host = urlsplit(server).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _chosen(files: Sequence[Path], context: str | None, where: str) -> tuple[dict[str, Any], ...]:
    """The context, its cluster and its user, from files that are read on each call. Raises KubeError."""
    document = kubeconfig.load(files)
    name = context or document["current-context"]
    if not name:
        raise KubeError(f"{where} has no current-context; name one with --context")
    chosen = _entry(document, "contexts", "context", name, where)
    cluster = _entry(document, "clusters", "cluster", chosen.get("cluster"), where)
    user = _entry(document, "users", "user", chosen["user"], where) if chosen.get("user") else {}
    return chosen, cluster, user


def _entry(document: dict[str, Any], plural: str, key: str, name: str | None, where: str) -> dict[str, Any]:
    for entry in document[plural]:
        if entry["name"] == name:
            found: dict[str, Any] = entry[key]
            return found
    known = ", ".join(sorted(str(entry["name"]) for entry in document[plural])) or "none"
    raise KubeError(f"{where} has no {key} {name!r}; {plural} there: {known}")


def _headers(user: dict[str, Any]) -> Callable[[], dict[str, str]]:
    if user.get("token"):
        fixed = {"Authorization": f"Bearer {user['token']}"}
    elif user.get("tokenFile"):
        return _token_file(Path(user["tokenFile"]))
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
    """The address as a URL: the default scheme is https if the cluster has TLS settings, as in kubectl."""
    if "://" in server:
        return server
    tls = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
    return f"{'https' if any(cluster.get(key) for key in tls) else 'http'}://{server}"
