"""The network between one replica and the API server: TCP on loopback, which can be lost, restored and slow.

What a client has sent and not withdrawn is delivered when the network is back, as the kernel of a real machine does;
what it has withdrawn with a reset is not.
"""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType

_PART = 1 << 16


class Network:
    """Forwards connections to `port` of this machine while it is up. `delay`: seconds for each part of a request."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.delay = 0.0
        self._target = port
        self._up = asyncio.Event()
        self._up.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = socket.socket()

    def lose(self) -> None:
        """Carry nothing from now on; connections stay as they are."""
        self._up.clear()

    def restore(self) -> None:
        """Deliver what has been sent meanwhile, and carry everything again."""
        self._up.set()

    async def __aenter__(self) -> Network:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(256)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listener.close()

    def _start(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(self._listener)
            client.setblocking(False)
            self._start(self._carry(client))

    async def _carry(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        server = socket.socket()
        server.setblocking(False)
        try:
            await self._up.wait()
            if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return
            await loop.sock_connect(server, ("127.0.0.1", self._target))
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ways = [
                asyncio.ensure_future(self._one_way(client, server, requests=True)),
                asyncio.ensure_future(self._one_way(server, client, requests=False)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # one end is gone, and so is the connection
        finally:
            client.close()
            server.close()

    async def _one_way(self, source: socket.socket, sink: socket.socket, *, requests: bool) -> None:
        loop = asyncio.get_running_loop()
        while True:
            data = await loop.sock_recv(source, _PART)
            if self.delay and requests:
                await asyncio.sleep(self.delay)
            if not self._up.is_set():
                await self._up.wait()
                if source.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    return  # reset: the sender has withdrawn it
            if not data:
                return
            await loop.sock_sendall(sink, data)
