"""The network between the replicas and the API server: the place where faults of requests and watches are injected."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson

from tests.dst.faults import Fault, Faults
from tests.dst.processes import Process
from tests.dst.server import ApiServer, HttpRequest
from tests.dst.virtual import PROCESS, chance
from volcano_py.kube import transport as product
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import Silent, Unreachable, from_response

SERVER = "http://simulated"
_GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
EXPIRED = orjson.dumps({"type": "ERROR", "object": _GONE}) + b"\n"
"""The last line of a watch whose version is too old."""


class Place(NamedTuple):
    """What a path names."""

    plural: str
    namespace: str
    name: str
    sub: str


def place_of(path: str) -> Place:
    """The resource of a path such as /api/v1/namespaces/a/pods/b/binding."""
    parts = path.partition("?")[0].strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces" and parts[2] not in ("status", "finalize"):
        namespace, parts = parts[1], parts[2:]
    parts += [""] * 3
    return Place(parts[0], namespace, parts[1], parts[2])


def verb_of(method: str, place: Place) -> str:
    """The verb in the table of faults."""
    if place.sub in ("binding", "eviction", "status"):
        return f"{method} {place.sub}"
    return "LIST" if method == "GET" and not place.name else method


async def _nothing(place: Place) -> None:
    pass


class Network:
    """Connections of all replicas to one API server."""

    def __init__(self, server: ApiServer, faults: Faults, log: Callable[[str], None], seed: str) -> None:
        self.server = server
        self.faults = faults
        self.log = log
        self.seed = seed
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.streams: list[Stream] = []
        self.requests: Callable[[str, str, Place, int], None] = lambda process, verb, place, status: None
        self.sent: Callable[[Process, str, Place], None] = lambda process, verb, place: None
        self.ended: Callable[[Place, bool], None] = lambda place, late: None
        """Called when a write that was sent is answered or lost; `late`: without an answer in time."""
        self.at_bind: Callable[[Process, Place, str], Awaitable[Fault]] | None = None
        """Called when a bind to a node is sent; returns what happens to it."""
        self.recreate: Callable[[Place], Awaitable[None]] = _nothing
        """Called before a bind reaches the API server, to put another pod in the place of its pod."""

    def latency(self, *key: object) -> float:
        """Seconds of one way: short, and sometimes long."""
        drawn = chance(self.seed, "latency", *key)
        return 0.0003 + 0.004 * drawn if drawn < 0.95 else 0.02 + 0.2 * (drawn - 0.95) * 20


class SimulatedTransport:
    """Stands in for `kube.transport.Transport`."""

    network: Network

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int,
        user_agent: str,
        gate: Callable[[], None] | None,
        lean: bool,
    ) -> None:
        process = PROCESS.get()
        assert process is not None, "a client outside of a simulated process"
        self.credentials = credentials
        self._process: Process = process
        self._agent = user_agent
        self._gate = gate

    def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def exchange(self, request: product.Request) -> product.Answer:
        net, process = self.network, self._process
        place = place_of(request.path)
        verb = verb_of(request.method, place)
        where = (process.name, verb, place.plural)
        net.counts[where] += 1
        number = net.counts[where]
        about = f"{process.name} {verb} {'/'.join(part for part in place if part)}"
        await asyncio.sleep(net.latency(*where, number, "there"))
        if self._gate is not None:
            self._gate()
        if not process.alive:
            raise self._lost(request, "the process is gone", sent=False)
        if process.component != "dispatcher" or request.method == "GET":
            return await self._answer(request, place, verb, number, about)
        net.sent(process, verb, place)
        late = False
        try:
            return await self._answer(request, place, verb, number, about)
        except Unreachable as error:
            late = "no response in time" in str(error)
            raise
        finally:
            net.ended(place, late)

    async def _answer(
        self, request: product.Request, place: Place, verb: str, number: int, about: str
    ) -> product.Answer:
        """The answer to a request that has left, or the fault that it meets."""
        net, process = self.network, self._process
        where = (process.name, verb, place.plural)
        fault = net.faults.of_request(process, verb, place, number)
        if verb == "POST binding" and not fault.name and not process.cut_off and net.at_bind is not None:
            fault = await net.at_bind(process, place, orjson.loads(request.body or b"{}")["target"]["name"])
        if process.cut_off or fault.kind in ("hang", "refuse"):
            sent = fault.kind != "refuse"
            net.log(f"{about}: {fault.name or 'network lost'}")
            if sent:
                await asyncio.sleep(request.seconds)
            raise self._lost(request, "no response in time" if sent else "connection refused", sent=sent)
        if fault.kind == "answer":
            net.log(f"{about}: {fault.status} ({fault.name})")
            net.requests(process.name, verb, place, fault.status)
            return fault.status, fault.retry_after, fault.body(place)
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        elif fault.kind == "recreate":
            await net.recreate(place)
        target = product._target(request.path, request.params)
        headers = {**request.headers, "User-Agent": self._agent}
        http = HttpRequest(request.method, target, headers, request.body or b"")
        served = net.server.begin(process.component, http, process.name)
        spent = fault.seconds if fault.kind == "delay" else 0.0
        try:
            async with asyncio.timeout(max(0.001, request.seconds - spent)):
                answer = await asyncio.shield(served)
        except TimeoutError:
            net.log(f"{about}: time-out")
            raise self._lost(request, "no response in time", sent=True) from None
        if request.method != "GET" or fault.name:
            net.log(f"{about}: {answer.status}{f' ({fault.name})' if fault.name else ''}")
        net.requests(process.name, verb, place, answer.status)
        if process.cut_off or fault.kind in ("lose answer", "reset"):
            if fault.kind != "reset":
                await asyncio.sleep(request.seconds)
            raise self._lost(request, "no response in time" if fault.kind != "reset" else "connection reset", sent=True)
        if fault.kind == "late answer":
            return fault.status, None, fault.body(place)
        await asyncio.sleep(net.latency(*where, number, "back") + (fault.seconds if fault.kind == "slow body" else 0))
        return answer.status, product.retry_after(answer.status, answer.headers.get("Retry-After")), bytes(answer.body)

    def _lost(self, request: product.Request, why: str, sent: bool) -> Unreachable:
        return Unreachable(f"{request.method} {SERVER}{request.path}: {why}", sent=sent)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, Any] | None, headers: dict[str, str], inactivity: float | None
    ) -> AsyncIterator[Stream]:
        net, process = self.network, self._process
        place = place_of(path)
        where = (process.name, "WATCH", place.plural)
        net.counts[where] += 1
        number = net.counts[where]
        await asyncio.sleep(net.latency(*where, number))
        if self._gate is not None:
            self._gate()
        request = product.Request("GET", path, params, None, headers, 10.0)
        if not process.alive:
            raise self._lost(request, "the process is gone", sent=False)
        fault = net.faults.of_request(process, "WATCH", place, number)
        if process.cut_off or fault.kind in ("hang", "refuse"):
            await asyncio.sleep(10.0 if fault.kind != "refuse" else 0.0)
            raise self._lost(request, "connection refused", sent=False)
        if fault.kind == "answer":
            raise from_response(fault.status, fault.body(place), fault.retry_after)
        stream = Stream(net, process, place, number, inactivity)
        http = HttpRequest(
            "GET", product._target(path, params), {**headers, "User-Agent": self._agent}, b"", stream.push
        )
        served = net.server.begin(process.component, http)
        served.add_done_callback(stream.answered)
        net.streams.append(stream)
        try:
            yield stream
        except TimeoutError as failure:
            raise Silent(f"GET {SERVER}{path}: no data for {inactivity} s") from failure
        finally:
            net.streams.remove(stream)
            http.transport = None
            stream.over = True
            served.cancel()


class Stream:
    """One watch: the lines that the server has sent, and when the client may read them."""

    def __init__(self, network: Network, process: Process, place: Place, number: int, inactivity: float | None) -> None:
        self.network = network
        self.process = process
        self.place = place
        self.number = number
        self._inactivity = inactivity
        self._queue: deque[tuple[float, bytes | None]] = deque()
        self._last = 0.0
        self._pushed = 0
        self._wake = asyncio.Event()
        self._failure: Exception | None = None
        self.over = False
        self._delivered = b""
        """What was read last."""

    @property
    def idle(self) -> bool:
        """Whether everything was read."""
        return not self._queue

    def answered(self, task: asyncio.Task[Any]) -> None:
        """The server has ended the response; a failure is one that came before the stream."""
        if task.cancelled() or self.over:
            return
        error = task.exception()
        if error is None and task.result().status >= 400:
            self._failure = from_response(task.result().status, bytes(task.result().body))
        self._queue.append((0.0, None))
        self._wake.set()

    def push(self, data: bytes | None) -> None:
        """Bytes from the server; None at the end."""
        if self.over:
            return
        net, now = self.network, self.process.loop.now
        self._pushed += 1
        where = (self.process.name, self.place.plural, self.number, self._pushed)
        due = now + net.latency("watch", *where)
        if data is not None:
            fault = net.faults.of_watch(self.process, self.place, where)
            if fault.kind == "delay":
                due += fault.seconds
            elif fault.kind == "bookmarks":
                due += fault.seconds
                self._later(5.0, now, due)
            elif fault.kind == "drop":
                self._put(due, None)
                return
            elif fault.kind == "cut":
                self._put(due, data[: len(data) // 2])
                self._put(due, None)
                return
            elif fault.kind == "gone":
                self._put(due, EXPIRED)
                self._put(due, None)
                return
            elif fault.kind == "twice":
                lines = [line + b"\n" for line in data.split(b"\n") if line]
                data = b"".join(line + line for line in lines)
            if fault.name:
                net.log(f"{self.process.name} WATCH {self.place.plural}: {fault.name}")
        self._put(due, data)

    def _later(self, pause: float, now: float, until: float) -> None:
        """Bookmarks of the version that was delivered last, while events are held."""
        at = now + pause
        while at < until and self._delivered:
            self.process.loop.call_at(at, self._remind)
            at += pause

    def _remind(self) -> None:
        if not self.over and (version := self._version()):
            mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}
            self._queue.appendleft((0.0, orjson.dumps(mark) + b"\n"))
            self._wake.set()

    def _put(self, due: float, data: bytes | None) -> None:
        self._last = max(self._last, due)
        self._queue.append((self._last, data))
        self._wake.set()

    def hold(self, until: float) -> None:
        """Deliver nothing new before `until`; bookmarks of the version that was delivered last keep the watch alive."""
        now = self.process.loop.now
        self._last = max(self._last, until)
        self._later(5.0, now, until)

    def expire(self, at: float) -> None:
        """Deliver nothing more, and end with 410 at a time: the client lists again."""
        self._queue.clear()
        self._last = 0.0
        self._put(at, EXPIRED)
        self._put(at, None)

    def hasten(self) -> None:
        """Deliver what is held: the faults are over."""
        self._queue = deque((0.0, data) for _, data in self._queue)
        self._last = 0.0
        self._wake.set()

    async def readany(self) -> bytes:
        """The next bytes; empty at the end of the stream. TimeoutError when nothing arrives."""
        loop = self.process.loop
        deadline = loop.now + (self._inactivity or 1e9)
        while True:
            now = loop.now
            if self.process.cut_off or not self._queue or self._queue[0][0] > now:
                until = deadline
                if self._queue and not self.process.cut_off:
                    until = min(until, self._queue[0][0])
                self._wake.clear()
                try:
                    async with asyncio.timeout_at(until):
                        await self._wake.wait()
                except TimeoutError:
                    if loop.now >= deadline:
                        raise
                continue
            _, data = self._queue.popleft()
            if data is None:
                if self._failure is not None:
                    raise self._failure
                return b""
            if data.endswith(b"\n"):
                self._delivered = data
            return data

    def _version(self) -> str:
        """The version of the event that was delivered last."""
        line = self._delivered.rstrip(b"\n").rpartition(b"\n")[2]
        return str(orjson.loads(line)["object"].get("metadata", {}).get("resourceVersion", ""))
