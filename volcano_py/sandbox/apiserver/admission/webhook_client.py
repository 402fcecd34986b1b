"""Calls admission webhooks over HTTPS, and validates their responses. Kubernetes: k8s.io/apiserver/pkg/util/webhook."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

Object = dict[str, Any]


class CallError(Exception):
    """The webhook could not be called, or its response is invalid; the text is sent to the client."""


@dataclass(slots=True)
class WebhookClient:
    """One session for each authority.

    endpoint: returns address and port for namespace, name and port of a Service; LookupError without a running pod.
    """

    endpoint: Callable[[str, str, int], tuple[str, int]]
    _sessions: dict[str, aiohttp.ClientSession] = field(default_factory=dict)

    def _session(self, bundle: str) -> aiohttp.ClientSession:
        session = self._sessions.get(bundle)
        if session is None or session.closed:
            authority = base64.b64decode(bundle).decode() if bundle else None
            try:
                context = ssl.create_default_context(cadata=authority)
            except ssl.SSLError as error:
                raise CallError(f"failed to call webhook: unable to load root certificates: {error}") from None
            connector = aiohttp.TCPConnector(ssl=context, limit=0)  # a webhook that hangs must not delay others
            session = self._sessions[bundle] = aiohttp.ClientSession(connector=connector)
        return session

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    def _url(self, config: Object, timeout: int) -> tuple[str, str, str | None]:
        """The URL to call, the URL in messages, and the name in the certificate if it differs."""
        if config.get("url"):
            url = config["url"]
            return f"{url}?timeout={timeout}s", f"{url}?timeout={timeout}s", None
        service = config.get("service") or {}
        namespace, name, port = service.get("namespace", ""), service.get("name", ""), service.get("port", 443)
        path = "/" + service.get("path", "").lstrip("/")
        shown = f"https://{name}.{namespace}.svc:{port}{path}?timeout={timeout}s"
        try:
            address, number = self.endpoint(namespace, name, port)
        except LookupError as error:
            raise CallError(f'failed to call webhook: Post "{shown}": {error.args[0]}') from None
        return f"https://{address}:{number}{path}?timeout={timeout}s", shown, f"{name}.{namespace}.svc"

    async def review(self, config: Object, request: Object, timeout: int) -> Object:
        """The response of a webhook to an AdmissionReview; CallError without one."""
        url, shown, host = self._url(config, timeout)
        body = orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
        try:
            async with asyncio.timeout(timeout):
                session = self._session(config.get("caBundle", ""))
                async with session.post(url, data=body, headers=headers, server_hostname=host) as answer:
                    text = await answer.read()
                    status = answer.status
        except TimeoutError:
            raise CallError(f'failed to call webhook: Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CallError(f'failed to call webhook: Post "{shown}": {_go_text(error)}') from None
        if status == 404:
            raise CallError("failed to call webhook: the server could not find the requested resource")
        if not 200 <= status < 300:
            why = 'an error on the server ("unknown") has prevented the request from succeeding'
            raise CallError(f"failed to call webhook: {why}")
        return _checked(text, request["uid"])


def _go_text(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {error.host}:{error.port}: connect: {(error.os_error.strerror or 'failed').lower()}"
    return str(error) or type(error).__name__


def _checked(text: bytes, uid: str) -> Object:
    try:
        review = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CallError(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise CallError("failed to call webhook: the response is not an AdmissionReview")
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallError("received invalid webhook response: webhook response was absent")
    if response.get("uid") != uid:
        got = response.get("uid", "")
        raise CallError(f'received invalid webhook response: expected response.uid="{uid}", got "{got}"')
    return response
