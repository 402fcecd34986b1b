"""Our own HTTP client, against servers that behave in every allowed way and in some that are not."""

import asyncio
import contextlib
import socket
import ssl

import pytest
from fake_api import PODS, pod
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.kube import Client, Unreachable
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.http1 import Answer, Connection, Pool

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Script:
    """A server that plays answers: each item is what one request gets; None closes without an answer."""

    def __init__(self, *answers, pause=0.0, piece=0, context=None):
        self.answers = list(answers)
        self.pause = pause
        self.piece = piece
        self.context = context
        self.connections = 0
        self.requests = 0

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        scheme = "https" if self.context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc):
        self.server.close()

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                await asyncio.sleep(self.pause)
                if answer is None:
                    break
                step = self.piece or len(answer)
                for i in range(0, len(answer), step):
                    writer.write(answer[i : i + step])
                    await writer.drain()
                    if self.piece:
                        await asyncio.sleep(0)
                if b"Connection: close" in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def length(body, *headers, status="200 OK"):
    lines = [f"HTTP/1.1 {status}".encode(), b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\n\r\n"
TRAILER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n"
TO_THE_END = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (length(b"hello"), b"hello"),
        (length(b""), b""),
        (CHUNKED, b"abcdefgh"),
        (TRAILER, b"a"),
        (TO_THE_END, b"to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + length(b"late"), b"late"),
    ],
)
@pytest.mark.parametrize("piece", [0, 1, 7])
async def test_answers_in_every_form(answer, body, piece):
    async with Script(answer, piece=piece) as server:
        pool = Pool(server.url, None, None, 2)
        for _ in range(3):
            assert (await pool.request(REQUEST, 5)).body == body
        assert server.connections == (3 if b"Connection: close" in answer else 1)
        pool.close()


async def test_headers_are_kept_by_their_lower_case_names():
    async with Script(length(b"{}", b"ReTrY-AfTeR:  7 ", status="429 Slow")) as server:
        pool = Pool(server.url, None, None, 1)
        answer = await pool.request(REQUEST, 5)
        assert answer.status == 429 and answer.headers[b"retry-after"] == b"7"
        pool.close()


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"x" * 200_000, None])
async def test_what_is_no_http_is_unreachable(answer):
    async with Script(answer) as server:
        pool = Pool(server.url, None, None, 1)
        with pytest.raises(Unreachable) as caught:
            await pool.request(REQUEST, 5)
        assert caught.value.sent
        pool.close()


@pytest.mark.parametrize("form", [b"Content-Length: 10", b"Transfer-Encoding: chunked"])
async def test_a_truncated_body_is_an_error_and_not_half_an_answer(form):
    async with Script(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + form + b"\r\n\r\n4\r\nhalf") as server:
        pool = Pool(server.url, None, None, 1)
        with pytest.raises(Unreachable, match="closed"):
            await pool.request(REQUEST, 2)
        pool.close()


CHUNK_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [b"-1\r\nabc\r\n", b"+3\r\nabc\r\n", b"0x3\r\nabc\r\n", b"3_0\r\n", b" \r\n", b"1" * 40 + b"\r\n"],
    ids=["negative", "plus", "prefix", "underscore", "blank", "huge"],
)
async def test_a_chunk_size_is_hex_digits_only(body):
    async with Script(CHUNK_HEAD + body) as server:
        pool = Pool(server.url, None, None, 1)
        with pytest.raises(Unreachable, match=r"not an HTTP/1\.1 response"):
            await pool.request(REQUEST, 5)
        pool.close()


@pytest.mark.parametrize("answer", [length(b"x" * 5000), CHUNK_HEAD + b"3;" + b"x" * 5000 + b"\r\nabc\r\n0\r\n\r\n"])
async def test_an_answer_has_a_limit(answer, monkeypatch):
    monkeypatch.setattr("volcano_py.kube.http1.MAX_ANSWER", 1000)
    async with Script(answer, piece=500) as server:
        pool = Pool(server.url, None, None, 1)
        with pytest.raises(Unreachable, match="too large"):
            await pool.request(REQUEST, 5)
        pool.close()


async def test_a_gated_request_is_written_at_once_or_never():
    received = bytearray()
    reading = asyncio.Event()

    async def stalled(reader, writer):
        await reading.wait()
        while block := await reader.read(1 << 20):
            received.extend(block)
        writer.close()

    server = await asyncio.start_server(stalled, "127.0.0.1", 0, limit=1024)
    pool = Pool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None, None, 1)
    request = REQUEST + b"x" * (1 << 26)
    with pytest.raises(Unreachable, match="does not read") as caught:
        await pool.request(request, 5, gate=lambda: None)
    assert caught.value.sent
    reading.set()
    await asyncio.sleep(0.1)
    assert len(received) < len(request)
    pool.close()
    server.close()


async def test_a_request_that_is_given_up_is_not_delivered_later():
    """The kernel has accepted all of it, but the server's buffer holds only a part."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        pool = Pool(f"http://127.0.0.1:{listening.getsockname()[1]}", None, None, 1)
        request = REQUEST + b"x" * 60_000
        task = asyncio.create_task(pool.request(request, 5, gate=lambda: None))
        await asyncio.sleep(0.1)
        assert not task.done(), "the kernel has not accepted the whole request"
        task.cancel()
        await asyncio.wait([task])
        accepted, _ = listening.accept()
        received = bytearray()
        with accepted, contextlib.suppress(ConnectionResetError):
            accepted.settimeout(2)
            while block := accepted.recv(1 << 16):
                received.extend(block)
        assert len(received) < len(request)
        pool.close()


async def test_time_out_frees_the_place():
    async with Script(length(b"slow"), pause=3.0) as server:
        pool = Pool(server.url, None, None, 1)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable, match="no response in time"):
            await pool.request(REQUEST, 0.2)
        assert asyncio.get_running_loop().time() - begun < 1.5
        server.pause = 0.0
        assert (await pool.request(REQUEST, 2)).body == b"slow"
        pool.close()


async def test_a_cancelled_request_takes_its_connection_along():
    async with Script(length(b"first"), length(b"second"), pause=0.2) as server:
        pool = Pool(server.url, None, None, 1)
        task = asyncio.create_task(pool.request(REQUEST, 5))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await pool.request(REQUEST, 5)).body == b"second"
        pool.close()


async def test_no_more_connections_than_allowed_and_each_request_gets_an_answer():
    async with Script(length(b"x"), pause=0.002) as server:
        pool = Pool(server.url, None, None, 3)
        answers = await asyncio.gather(*(pool.request(REQUEST, 5) for _ in range(100)))
        assert [a.body for a in answers] == [b"x"] * 100
        assert server.connections == 3
        pool.close()


async def test_who_waits_in_line_gives_up_in_time():
    async with Script(length(b"x"), pause=1.0) as server:
        pool = Pool(server.url, None, None, 1)
        first = asyncio.create_task(pool.request(REQUEST, 5))
        await asyncio.sleep(0)
        with pytest.raises(Unreachable) as caught:
            await pool.request(REQUEST, 0.1)
        assert not caught.value.sent
        assert (await first).body == b"x"
        pool.close()


async def test_connections_that_the_server_closed_are_replaced():
    async with Script(length(b"x")) as server:
        pool = Pool(server.url, None, None, 1)
        await pool.request(REQUEST, 5)
        for connection in pool._free:
            connection.transport.close()
        await asyncio.sleep(0.05)
        assert (await pool.request(REQUEST, 5)).body == b"x"
        assert server.connections == 2
        pool.close()


async def test_a_port_without_a_server():
    async with Script(length(b"x")) as server:
        pass
    pool = Pool(server.url, None, None, 2)
    for _ in range(3):
        with pytest.raises(Unreachable) as caught:
            await pool.request(REQUEST, 2)
        assert not caught.value.sent
    pool.close()


async def test_tls_is_verified(tmp_path):
    from test_credentials import make_pair

    certificate, key = make_pair("127.0.0.1")
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    async with Script(length(b"safe"), context=serving) as server:
        trusting = ssl.create_default_context(cafile=tmp_path / "crt")
        pool = Pool(server.url, trusting, None, 1)
        assert (await pool.request(REQUEST, 5)).body == b"safe"
        pool.close()
        suspicious = Pool(server.url, ssl.create_default_context(), None, 1)
        with pytest.raises(Unreachable, match=r"(?i)certificate") as caught:
            await suspicious.request(REQUEST, 5)
        assert not caught.value.sent
        suspicious.close()


async def test_paths_with_a_prefix_and_escaped_names(api):
    api.put("pods", pod("a b"))
    async with Client(Credentials(server=api.url), lean=True) as client:
        assert (await client.get(PODS, "a b", "default"))["metadata"]["name"] == "a b"
    pool = Pool("https://host:1234/k8s/clusters/c-1", None, None, 1)
    assert pool.base == "/k8s/clusters/c-1" and pool.host_header == "host:1234"


async def run_through(answers, cuts):
    """Feed answers, cut anywhere, to one connection; the bodies that come out."""
    connection, loop = Connection(), asyncio.get_running_loop()

    class Transport:
        def write(self, data): ...
        def abort(self): ...
        def close(self): ...

    connection.connection_made(Transport())
    bodies = []
    for answer in answers:
        future = connection.send(b"", loop.time() + 1)
        begin = 0
        for cut in sorted({c % (len(answer) + 1) for c in cuts} | {len(answer)}):
            if cut > begin:
                connection.data_received(answer[begin:cut])
                begin = cut
        assert future.done()
        made: Answer = future.result()
        bodies.append(made.body)
    return bodies


@settings(max_examples=200, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
    chunked=st.lists(st.booleans(), min_size=4, max_size=4),
    cuts=st.lists(st.integers(0, 500), max_size=8),
)
def test_any_cut_gives_the_same_answers(bodies, chunked, cuts):
    answers = []
    for body, in_chunks in zip(bodies, chunked, strict=False):
        if in_chunks:
            parts = [body[i : i + 7] for i in range(0, len(body), 7)]
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts)
            answers.append(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        else:
            answers.append(length(body))
    assert asyncio.run(run_through(answers, cuts)) == bodies
