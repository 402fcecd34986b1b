"""Kubeconfigs of other kinds of clusters, at a real TLS server: IPv6, proxies, rotating tokens, certificates."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import waiting
from volcano_py.api.resource_types import NAMESPACE
from volcano_py.kube import certificates, credentials
from volcano_py.kube.client import Client
from volcano_py.kube.errors import Unauthorized, Unreachable
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

SMALL: dict[str, Any] = {"hollow": False, "controllers": None, "crds": False, "first_queues": False}


def changed(sandbox: Sandbox, folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """A copy of the sandbox's kubeconfig with other credentials."""
    document = yaml.safe_load(Path(sandbox.kubeconfig).read_text())
    document["users"][0]["user"] = user or document["users"][0]["user"]
    document["clusters"][0]["cluster"] |= cluster
    path = folder / "changed"
    path.write_text(yaml.safe_dump(document))
    return path


async def names(kubeconfig: Path, **options: Any) -> list[str]:
    async with Client.from_kubeconfig(kubeconfig, **options) as client:
        return [one["metadata"]["name"] for one in await client.list(NAMESPACE)]


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("lean", [False, True])
async def test_ipv6(lean: bool) -> None:
    async with Sandbox(0, host="::1", **SMALL) as sandbox:
        assert "://[::1]:" in sandbox.url
        assert "default" in await names(Path(sandbox.kubeconfig), lean=lean)


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """An HTTP proxy: its URL, and the addresses that it was asked to connect to."""
    asked: list[str] = []

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
            target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, address, _ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert method == b"CONNECT"
        asked.append(address.decode())
        host, _, port = address.decode().rpartition(":")
        far, out = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy(reader, out), copy(far, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


async def test_the_proxy_of_a_kubeconfig(tmp_path: Path) -> None:
    async with Sandbox(0, **SMALL) as sandbox, proxy() as (url, asked):
        through = changed(sandbox, tmp_path, {}, **{"proxy-url": url})
        assert "default" in await names(through)
        assert "default" in await names(through, lean=True)
        assert asked == [f"127.0.0.1:{sandbox.server.port}"] * 2


@pytest.mark.parametrize(
    ("server", "variables", "wanted"),
    [
        ("https://cluster.example:6443", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://cluster.example:6443", {"https_proxy": "http://p:3128"}, "http://p:3128"),
        ("https://cluster.example:6443", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": ".example"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://cluster.example:6443", {"HTTP_PROXY": "http://p:3128"}, None),
    ],
)
def test_the_proxy_of_the_environment(
    server: str, variables: dict[str, str], wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "kubeconfig"
    clusters = [{"name": "c", "cluster": {"server": server}}]
    contexts = [{"name": "c", "context": {"cluster": "c"}}]
    path.write_text(yaml.safe_dump({"clusters": clusters, "contexts": contexts, "current-context": "c"}))
    assert credentials.from_kubeconfig(path).proxy == wanted


async def test_a_token_that_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = User("volcano", ("system:masters", "system:authenticated"))
    file = tmp_path / "token"
    file.write_text("first")
    async with Sandbox(0, users={"first": user}, **SMALL) as sandbox:
        monkeypatch.setattr(credentials, "TOKEN_LIFE", 0.0)
        async with Client.from_kubeconfig(changed(sandbox, tmp_path, {"tokenFile": str(file)})) as client:
            await client.list(NAMESPACE)
            tokens = sandbox.api.extensions["authenticator"].tokens
            tokens["second"] = tokens.pop("first")
            file.write_text("second")
            await client.list(NAMESPACE)


@pytest.mark.parametrize("lean", [False, True])
async def test_a_client_certificate(tmp_path: Path, lean: bool) -> None:
    async with Sandbox(0, **SMALL) as sandbox:
        authority = sandbox.identity.authority
        certificate, key = certificates.make_client("admin", ("system:masters",), authority)
        user = {
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
        assert "default" in await names(changed(sandbox, tmp_path, user), lean=lean)


@pytest.mark.parametrize("lean", [False, True])
async def test_a_client_certificate_that_expires(tmp_path: Path, lean: bool) -> None:
    """As kube-apiserver: TLS accepts it, and each request is answered with 401, also on an older connection."""
    async with Sandbox(0, **SMALL) as sandbox:
        files = {"client-certificate": str(tmp_path / "crt"), "client-key": str(tmp_path / "key")}

        def put(lifetime: timedelta) -> None:
            pair = certificates.make_client("admin", ("system:masters",), sandbox.identity.authority, lifetime)
            for name, content in zip(("crt", "key"), pair, strict=True):
                (tmp_path / name).write_bytes(content)

        put(timedelta(seconds=1))
        async with Client.from_kubeconfig(changed(sandbox, tmp_path, files), lean=lean) as client:

            async def rejected() -> bool:
                try:
                    await client.list(NAMESPACE)
                except Unauthorized:
                    return True
                return False

            await waiting.until(rejected, "the certificate does not expire")
            put(timedelta(hours=1))
            await waiting.until(lambda: negated(rejected()), "the new certificate is not used")


async def negated(holds: Awaitable[bool]) -> bool:
    return not await holds


class Expired(Sandbox):
    """An API server whose certificate has expired."""

    async def _listen(self, tls: ssl.SSLContext) -> None:
        made = certificates.make(authority=self.identity.authority, lifetime=timedelta(minutes=-1))
        await super()._listen(made.context())


@pytest.mark.parametrize("lean", [False, True])
async def test_an_expired_certificate_of_the_server(lean: bool) -> None:
    async with Expired(0, **SMALL) as sandbox:
        with pytest.raises(Unreachable, match=r"certificate has expired.*; renew the API server's certificate"):
            await names(Path(sandbox.kubeconfig), lean=lean)
