"""The network delivers what its sender has not withdrawn, also after a loss."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.faults.controlling import until
from tests.ha.network import Network


@asynccontextmanager
async def received() -> AsyncIterator[tuple[list[bytes], Network]]:
    """What a server behind a network has received, and the network."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            got.append(data)
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, Network(server.sockets[0].getsockname()[1]) as network:
        yield got, network


async def test_both_directions() -> None:
    async with received() as (got, network):
        reader, writer = await asyncio.open_connection("127.0.0.1", network.port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"ONE" and got == [b"one"]
        writer.close()


async def test_what_is_sent_during_a_loss_is_delivered_unless_it_is_withdrawn() -> None:
    async with received() as (got, network):
        _, kept = await asyncio.open_connection("127.0.0.1", network.port)
        _, withdrawn = await asyncio.open_connection("127.0.0.1", network.port)
        for writer in (kept, withdrawn):
            writer.write(b"first")
        await until(lambda: len(got) == 2, lambda: f"{got}")
        network.lose()
        kept.write(b"kept")
        withdrawn.write(b"withdrawn")
        sock = withdrawn.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        withdrawn.transport.abort()
        kept.close()  # in order: the bytes, and then the end
        await asyncio.sleep(0.05)
        assert len(got) == 2
        network.restore()
        await until(lambda: b"kept" in got, lambda: f"{got}")
        await asyncio.sleep(0.05)
        assert b"withdrawn" not in got
