"""Transport: one HTTP exchange with an API server, through aiohttp or through the small client of `kube.http1`.

client-go: rest.HTTPClientFor. Retries, rates and verbs are the client's.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import Silent, Unreachable, from_response
from volcano_py.kube.http1 import Pool
from volcano_py.kube.remedies import for_tls
from volcano_py.kube.tls import LOOK_SECONDS

_SSL_SETTING = re.compile(r" ssl:(<[^>]*>|\w+)")
"""In messages of aiohttp: the repr of a setting, which means nothing to users."""


class Request(NamedTuple):
    """One request, with a time limit for the response in `seconds`."""

    method: str
    path: str
    params: Mapping[str, Any] | None
    body: bytes | None
    headers: dict[str, str]
    seconds: float


UNAUTHORIZED = 401

Answer = tuple[int, float | None, bytes]
"""Status, seconds of Retry-After if present, body."""


class Transport:
    """Connections to one server. `lean`: requests through `kube.http1`, unless there is a proxy."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int,
        user_agent: str,
        gate: Callable[[], None] | None,
        lean: bool,
    ) -> None:
        self.credentials = credentials
        self._connections = connections
        self._user_agent = user_agent
        self._gate = gate
        self._lean = lean and not credentials.proxy
        self._pool_: Pool | None = None
        self._session_: aiohttp.ClientSession | None = None
        self._look: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Create the parts that need a running event loop."""
        self._session()
        if self.credentials.tls is not None:
            self._look_later()

    def _look_later(self) -> None:
        """Check the certificates regularly: watches send no requests for a long time."""
        self._look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_later)
        assert self.credentials.tls is not None
        self.credentials.tls.context()

    async def close(self) -> None:
        """Close the connections."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self._pool_ is not None:
            self._pool_.close()
            self._pool_ = None
        if self._session_ is not None:
            await self._session_.close()
            self._session_ = None

    async def exchange(self, request: Request) -> Answer:
        """Send one request. Raises Unreachable, and exceptions of the gate."""
        answer = await (self._through_pool(request) if self._lean else self._through_aiohttp(request))
        if answer[0] == UNAUTHORIZED:
            self.credentials.rejected()
        return answer

    async def _through_aiohttp(self, request: Request) -> Answer:
        try:
            # aiohttp's own limit for a request loses a cancellation that comes at the same time.
            async with (
                asyncio.timeout(request.seconds),
                self._session().request(
                    request.method,
                    self._url(request.path, request.params),
                    data=request.body,
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                    **self._tls(),
                ) as response,
            ):
                answer = await response.read()
                return response.status, retry_after(response.status, response.headers.get("Retry-After")), answer
        except (TimeoutError, aiohttp.ClientError, OSError) as failure:
            raise self._unreachable(request.method, request.path, failure) from failure

    async def _through_pool(self, request: Request) -> Answer:
        pool = self._pool()
        lines = [
            f"{request.method} {pool.base}{_target(request.path, request.params)} HTTP/1.1",
            f"Host: {pool.host_header}",
        ]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        lines.append(f"User-Agent: {self._user_agent}")
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        head = "\r\n".join(lines) + "\r\n\r\n"
        try:
            answer = await pool.request(head.encode("latin-1") + (request.body or b""), request.seconds, self._gate)
        except Unreachable as failure:
            raise self._unreachable(request.method, request.path, failure) from failure
        after = answer.headers.get(b"retry-after")
        return answer.status, retry_after(answer.status, after.decode() if after else None), answer.body

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, Any] | None, headers: dict[str, str], inactivity: float | None
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """A GET with a streamed response; it ends after `inactivity` seconds without data.

        Raises ApiError and Unreachable; errors while reading are aiohttp's and are translated by `unreachable`.
        """
        try:
            response = await self._session().get(
                self._url(path, params),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=inactivity),
                **self._tls(),
            )
        except (TimeoutError, aiohttp.ClientError, OSError) as failure:
            raise self._unreachable("GET", path, failure) from failure
        try:
            if response.status == UNAUTHORIZED:
                self.credentials.rejected()
            if response.status >= 400:
                raise from_response(response.status, await response.read())
            yield response.content
        except TimeoutError as failure:
            raise Silent(f"GET {self.credentials.server}{path}: no data for {inactivity} s") from failure
        except (aiohttp.ClientError, OSError) as failure:
            raise self._unreachable("GET", path, failure) from failure
        finally:
            response.close()

    def _pool(self) -> Pool:
        c = self.credentials
        if self._pool_ is None:
            self._pool_ = Pool(c.server, c.ssl, c.server_hostname, self._connections)
        elif c.tls is not None:
            self._pool_.use(c.tls.context())
        return self._pool_

    def _session(self) -> aiohttp.ClientSession:
        if self._session_ is None:
            connector = aiohttp.TCPConnector(limit=self._connections)
            headers = {"User-Agent": self._user_agent}
            if not self.credentials.compressed:
                headers["Accept-Encoding"] = "identity"
            self._session_ = aiohttp.ClientSession(
                connector=connector,
                headers=headers,
                read_bufsize=1 << 20,
                request_class=aiohttp.ClientRequest if self._gate is None else _gated(self._gate),
            )
        return self._session_

    def _url(self, path: str, params: Mapping[str, Any] | None) -> URL:
        return URL(self.credentials.server + _target(path, params), encoded=True)

    def _tls(self) -> dict[str, Any]:
        """The current settings. aiohttp does not reuse connections of another SSL context."""
        options: dict[str, Any] = {"ssl": self.credentials.ssl or True}
        if self.credentials.server_hostname:
            options["server_hostname"] = self.credentials.server_hostname
        if self.credentials.proxy:
            options["proxy"] = self.credentials.proxy
        return options

    def _unreachable(self, method: str, path: str, failure: BaseException) -> Unreachable:
        why = "no response in time" if isinstance(failure, asyncio.TimeoutError) else str(failure) or repr(failure)
        why = _SSL_SETTING.sub("", why) + for_tls(why)
        if _certificate_rejected(why):
            self.credentials.rejected()
        sent = (
            failure.sent if isinstance(failure, Unreachable) else not isinstance(failure, aiohttp.ClientConnectorError)
        )
        return Unreachable(f"{method} {self.credentials.server}{path}: {why}", sent=sent)


def _certificate_rejected(text: str) -> bool:
    """Whether a server, or a proxy in front of it, ended TLS because of the client certificate."""
    return "alert" in text.lower() and "certificate" in text


def _gated(gate: Callable[[], None]) -> type[aiohttp.ClientRequest]:
    """Requests that call `gate` when they have a connection, possibly seconds after their creation."""

    class GatedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            gate()
            return await super().send(conn)

    return GatedRequest


def _target(path: str, params: Mapping[str, Any] | None) -> str:
    path, _, own = path.partition("?")
    path = quote(path, safe="/:@~!$&'()*+,;=%")
    query = "&".join(part for part in (own, urlencode(params) if params else "") if part)
    return f"{path}?{query}" if query else path


def retry_after(status: int, value: str | None) -> float | None:
    """Seconds of a Retry-After header on 429 or 5xx; None without one (a date counts as one second)."""
    if value is None or not (status == 429 or status >= 500):
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        return 1.0
