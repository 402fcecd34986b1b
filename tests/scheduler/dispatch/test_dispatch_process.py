"""The dispatcher in its own process, with a pipe and an API server."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
import yaml
from fake_api import pod, status
from msgspec.structs import replace

from tests.waiting import budget
from volcano_py.scheduler.dispatch import handle, pipe
from volcano_py.scheduler.dispatch.frames import InvalidFrame, Reader, encode
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import (
    DispatcherSettings,
    FromDecider,
    Heartbeat,
    Plan,
    Result,
    Results,
    Revoke,
)
from volcano_py.scheduler.dispatch.pipe import Pipe
from volcano_py.scheduler.model.plan import Bind, Evict, PodGroupStatus

LEASE = ("leases", "volcano-system", "volcano")


def kubeconfig(tmp_path, api):
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "clusters": [{"name": "c", "cluster": {"server": api.url}}],
            }
        )
    )
    return str(file)


class Running:
    """A decider with nothing but a dispatcher."""

    def __init__(self, tmp_path, api, **options):
        quick = {"lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.2}
        self.results = {}
        self.leading = []
        self.handle = DispatcherHandle(
            DispatcherSettings(kubeconfig=kubeconfig(tmp_path, api), **{**quick, **options}),
            lambda op, result: self.results.setdefault(repr(op), []).append(result),
            self.leading.append,
        )

    async def __aenter__(self):
        self.task = asyncio.create_task(self.handle.run())
        await self.until(lambda: self.handle.leading)
        return self

    async def __aexit__(self, *exc):
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task

    async def until(self, test):
        async with asyncio.timeout(budget()):
            while not test():
                await asyncio.sleep(0.01)

    def outcome(self, op):
        return [r.outcome for r in self.results.get(repr(op), ())]


def put_pods(api, count):
    made = [api.put("pods", pod(f"p{i}", spec={"schedulerName": "volcano"})) for i in range(count)]
    return [Bind("default", p["metadata"]["name"], p["metadata"]["uid"], "n1", "default/g") for p in made]


async def test_binds_are_carried_out_and_acknowledged(tmp_path, api):
    binds = put_pods(api, 300)
    async with Running(tmp_path, api) as d:
        assert api.objects[LEASE]["spec"]["holderIdentity"]
        d.handle.emit(binds[:100])
        d.handle.emit(binds[100:])
        assert d.handle.unanswered == 300 and d.handle.credits > 0
        await d.until(lambda: not d.handle.unanswered)
        assert all(d.outcome(b) == ["done"] for b in binds)
        assert all(r[0].took > 0 for r in d.results.values())
        assert set(api.bindings.values()) == {"n1"} and len(api.bindings) == 300
        await d.until(lambda: any(o.get("reason") == "Scheduled" for o in api.objects.values()))
    assert api.objects[LEASE]["spec"]["holderIdentity"] == "", "the Lease is released"


async def test_many_operations_are_sent_in_several_frames(tmp_path, api, monkeypatch):
    monkeypatch.setattr(handle, "MAX_OPERATIONS", 3)
    binds = put_pods(api, 8)
    async with Running(tmp_path, api) as d:
        sent = []
        send = d.handle._pipe.send
        monkeypatch.setattr(d.handle._pipe, "send", lambda message: (sent.append(message), send(message)))
        d.handle.emit(binds)
        await d.until(lambda: not d.handle.unanswered)
        assert all(d.outcome(b) == ["done"] for b in binds)
        plans = [message for message in sent if isinstance(message, Plan)]
        assert [len(p.operations) for p in plans] == [3, 3, 2] and len({p.statement for p in plans}) == 1
        d.handle.emit([replace(b, barrier="b") for b in binds])
        assert len(sent[-1].operations) == 8, "binds that wait for each other are one plan"


async def test_a_gang_that_is_being_bound_is_bound_whole_before_a_regular_end(tmp_path, api):
    # more binds than are in flight at a time
    binds = put_pods(api, 400)
    async with Running(tmp_path, api, max_in_flight=2) as d:
        d.handle.emit(binds)
        await d.until(lambda: api.bindings)
    assert len(api.bindings) == 400
    assert all(d.outcome(b) == ["done"] for b in binds)
    assert api.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_the_decider_gets_the_counts_of_the_requests(tmp_path, api):
    binds = put_pods(api, 3)
    api.fault("POST /api/v1/namespaces/default/pods/p2/", lambda r: status(403, "Forbidden", "not you"))
    async with Running(tmp_path, api, heartbeat_timeout=2.0) as d:
        d.handle.emit(binds)
        counts = {}

        def counted():
            counts.update({(c.method, c.code): sum(c.durations) for c in d.handle.requests.series()})
            # the Lease, two bindings and their Events
            return ("POST", "403") in counts and counts.get(("POST", "201"), 0) >= 3

        await d.until(counted)
        assert counts["POST", "403"] == 1
        assert counts["GET", "404"] == 1, "the Lease did not exist"
        assert all(c.host == api.url.removeprefix("http://") for c in d.handle.requests.series())


async def test_a_failed_bind_is_reported_with_its_reason(tmp_path, api):
    (bind,) = put_pods(api, 1)
    api.fault("POST ", lambda r: status(403, "Forbidden", "not you"))
    async with Running(tmp_path, api, leader_elect=False) as d:
        d.handle.emit([bind])
        await d.until(lambda: d.results)
        assert d.results[repr(bind)][0].outcome == "failed" and d.results[repr(bind)][0].message == "not you"
        await d.until(lambda: "status" in api.objects[("pods", "default", "p0")])
        (condition,) = api.objects[("pods", "default", "p0")]["status"]["conditions"]
        assert condition["reason"] == "SchedulerError"
        assert condition["message"] == "failed to bind to node n1: not you"


async def test_the_log_level_is_changed_while_it_runs(tmp_path, api, capfd):
    binds = put_pods(api, 2)
    async with Running(tmp_path, api, leader_elect=False) as d:
        for bind, level in zip(binds, ("INFO", "DEBUG"), strict=True):
            api.fault("POST ", lambda r: status(403, "Forbidden", "not you"))
            d.handle.set_log_level(level)
            d.handle.emit([bind])
            await d.until(lambda bind=bind: d.outcome(bind) == ["failed"])
            assert ("DEBUG dispatcher: Bind default/" in capfd.readouterr().err) == (level == "DEBUG")


async def test_writes_continue_after_an_outage_and_nothing_is_bound_twice(tmp_path, api):
    binds = put_pods(api, 50)
    async with Running(tmp_path, api, leader_elect=False) as d:
        await api.stop()
        d.handle.emit(binds)
        await asyncio.sleep(1.0)
        assert not d.results
        await api.start(api.port)
        await d.until(lambda: not d.handle.unanswered)
        assert all(d.outcome(b) == ["done"] for b in binds)
        bound = [obj for _, p, _, _, obj in api.history if p == "pods" and obj.get("spec", {}).get("nodeName")]
        names = [o["metadata"]["name"] for o in bound if "status" not in o]
        assert len(names) == len(set(names)) == 50


async def test_writing_stops_and_starts_with_leadership(tmp_path, api):
    binds = put_pods(api, 2)
    async with Running(tmp_path, api) as d:
        stolen = {**api.objects[LEASE]["spec"], "holderIdentity": "thief", "leaseDurationSeconds": 1}
        api.put("leases", {**api.objects[LEASE], "spec": stolen})
        await d.until(lambda: not d.handle.leading)
        d.handle.emit([binds[0]])
        await d.until(lambda: d.results)
        assert d.outcome(binds[0]) == ["lost"] and not api.bindings
        await d.until(lambda: d.handle.leading)
        d.handle.emit([binds[1]])
        await d.until(lambda: d.outcome(binds[1]) == ["done"])
        assert d.leading == [True, False, True]


async def test_a_dispatcher_that_ends_is_replaced_and_its_operations_are_unknown(tmp_path, api):
    binds = put_pods(api, 3)

    async def silence(request):
        await asyncio.sleep(30)

    api.fault("POST ", silence, times=10)
    async with Running(tmp_path, api, leader_elect=False) as d:
        d.handle.emit(binds)
        await d.until(lambda: sum(entry.startswith("POST") for entry in api.log) == 3)
        os.kill(d.handle.pid, signal.SIGKILL)
        await d.until(lambda: len(d.results) == 3)
        assert all(d.outcome(b) == ["unknown"] for b in binds)
        assert not d.handle.leading
        d.handle.emit([Evict("default", "x", "u", "g", "r")])
        await d.until(lambda: len(d.results) == 4)
        assert d.outcome(Evict("default", "x", "u", "g", "r")) == ["lost"]
        api.faults.clear()
        await d.until(lambda: d.handle.leading)
        d.handle.emit(binds)
        await d.until(lambda: all(d.outcome(b) == ["unknown", "done"] for b in binds))


async def test_a_dispatcher_that_hangs_is_replaced_and_its_operations_are_unknown(tmp_path, api):
    binds = put_pods(api, 3)
    async with Running(tmp_path, api, leader_elect=False, heartbeat_timeout=2.0) as d:
        os.kill(d.handle.pid, signal.SIGSTOP)
        d.handle.emit(binds)
        await d.until(lambda: d.handle.problem())
        assert "no heartbeat" in d.handle.problem()
        await d.until(lambda: d.handle.restarts == 1 and d.handle.leading)
        await d.until(lambda: all(d.outcome(b) == ["unknown"] for b in binds))
        assert not api.bindings and d.handle.problem() == ""


async def test_a_dispatcher_that_starts_slowly_is_not_replaced(tmp_path, api, monkeypatch):
    spawn = subprocess.Popen

    def stopped(*arguments, **options):
        process = spawn(*arguments, **options)
        process.send_signal(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(1.5, process.send_signal, signal.SIGCONT)
        return process

    monkeypatch.setattr(subprocess, "Popen", stopped)
    async with Running(tmp_path, api, leader_elect=False, heartbeat_timeout=0.6) as d:
        assert d.handle.restarts == 0


async def test_a_long_cycle_does_not_count_as_a_missing_heartbeat(tmp_path, api):
    async with Running(tmp_path, api, leader_elect=False, heartbeat_timeout=3.0) as d:
        for _ in range(3):
            time.sleep(2.1)
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert d.handle.restarts == 0 and d.handle.problem() == ""


async def test_an_invalid_message_ends_the_dispatcher_and_loses_no_result(tmp_path, api, monkeypatch):
    (bind,) = put_pods(api, 1)
    async with Running(tmp_path, api, leader_elect=False) as d:
        real = d.handle._receive

        def failing(message):
            if isinstance(message, Results):
                monkeypatch.setattr(d.handle._pipe, "_on_message", real)
                raise KeyError("ours")
            real(message)

        d.handle._pipe._on_message = failing
        d.handle.emit([bind])
        await d.until(lambda: d.outcome(bind) == ["unknown"])
        await d.until(lambda: d.handle.restarts == 1 and d.handle.leading)


async def test_a_dispatcher_that_ends_repeatedly_is_unhealthy(tmp_path, api):
    async with Running(tmp_path, api, leader_elect=False) as d:
        for count in range(1, 6):
            assert d.handle.problem() == ""
            os.kill(d.handle.pid, signal.SIGKILL)
            await d.until(lambda count=count: d.handle.restarts == count)
            if count < 5:
                await d.until(lambda: d.handle.leading)
        assert "ended 5 times in a row" in d.handle.problem()


async def test_operations_that_wait_for_a_deleted_node_are_revoked(tmp_path, api):
    binds = put_pods(api, 200)

    async def slow(request):
        await asyncio.sleep(0.5)
        return status(403, "Forbidden")

    api.fault("POST ", slow, times=1000)
    async with Running(tmp_path, api, leader_elect=False, max_in_flight=4) as d:
        d.handle.emit(binds)
        d.handle.revoke(Revoke("Node", "n1"))
        await d.until(lambda: not d.handle.unanswered)
        outcomes = [d.outcome(b)[0] for b in binds]
        assert outcomes.count("revoked") == 196 and outcomes.count("failed") == 4


async def test_a_status_and_an_eviction_arrive(tmp_path, api):
    group = api.put("podgroups", {"metadata": {"name": "g", "namespace": "default"}})
    victim = api.put("pods", pod("v", spec={"schedulerName": "volcano", "nodeName": "n1"}))
    async with Running(tmp_path, api, leader_elect=False) as d:
        d.handle.emit(
            [
                PodGroupStatus("default", "g", group["metadata"]["uid"], {"phase": "Inqueue"}, True),
                Evict("default", "v", victim["metadata"]["uid"], "default/g", "reclaim"),
            ]
        )
        await d.until(lambda: len(d.handle._unanswered) == 0)
        assert api.objects[("podgroups", "default", "g")]["status"] == {"phase": "Inqueue"}
        assert ("pods", "default", "v") not in api.objects


DECIDER = """
    import asyncio, sys, time
    from volcano_py.scheduler.dispatch.handle import DispatcherHandle
    from volcano_py.scheduler.dispatch.messages import DispatcherSettings

    async def main():
        settings = DispatcherSettings(kubeconfig=sys.argv[1], heartbeat_timeout=1.0,
                            lease_duration=1.5, renew_deadline=1.0, retry_period=0.2)
        leading = asyncio.Event()
        handle = DispatcherHandle(settings, lambda *a: None, lambda on: leading.set())
        task = asyncio.create_task(handle.run())
        await leading.wait()
        print(handle.pid, flush=True)
        if sys.argv[2] == "hang":
            time.sleep(60)          # the event loop stands still, as in an endless cycle
        await task

    asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["hang", "kill"])
async def test_the_dispatcher_ends_with_its_decider(tmp_path, api, how):
    decider = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DECIDER), kubeconfig(tmp_path, api), how],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pid = int(await asyncio.to_thread(decider.stdout.readline))
        assert api.objects[LEASE]["spec"]["holderIdentity"]
        if how == "kill":
            decider.kill()
        code = await asyncio.wait_for(asyncio.to_thread(decider.wait), budget())
        assert code == (-signal.SIGTERM if how == "hang" else -signal.SIGKILL)
        async with asyncio.timeout(budget()):
            while api.objects[LEASE]["spec"]["holderIdentity"] or alive(pid):
                await asyncio.sleep(0.05)
    finally:
        decider.kill()
        decider.wait()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_frames_are_read_from_parts_of_any_length():
    messages = [Heartbeat(), Plan(1, 7, [Bind("a", "b", "c", "d", "e", {"f": "g"})]), Revoke("Node", "n")]
    data = b"".join(encode(m) for m in messages)
    for size in (1, 2, 3, 7, 100):
        reader, seen = Reader(FromDecider), []
        for i in range(0, len(data), size):
            seen += reader.feed(data[i : i + size])
        assert seen == messages


def test_invalid_frames_are_errors():
    with pytest.raises(InvalidFrame):
        list(Reader(FromDecider).feed(b"HTTP/1.1 200 OK\r\n"))
    with pytest.raises(InvalidFrame):
        list(Reader(FromDecider).feed(b"\x00\x00\x00\x02hi"))


async def test_a_full_pipe_never_blocks_and_loses_nothing():
    ours, theirs = socket.socketpair()
    got, closed = [], []
    reader = None
    writer = Pipe(ours, FromDecider, lambda m: None, closed.append)
    begun = time.monotonic()
    plan = Plan(1, 1, [Bind("namespace", f"pod-{i}", "uid", "node", "group") for i in range(1000)])
    for _ in range(200):
        writer.send(plan)
    assert time.monotonic() - begun < budget()
    reader = Pipe(theirs, FromDecider, got.append, closed.append)
    async with asyncio.timeout(budget()):
        while len(got) < 200:
            await asyncio.sleep(0.01)
    assert got[-1] == plan
    writer.close()
    async with asyncio.timeout(budget()):
        while not closed:
            await asyncio.sleep(0.01)
    assert reader.closed


async def test_a_pipe_that_is_not_read_is_closed_before_it_takes_all_memory(monkeypatch):
    monkeypatch.setattr(pipe, "MOST_BUFFERED", 1 << 20)
    ours, theirs = socket.socketpair()
    closed = []
    writer = Pipe(ours, FromDecider, lambda m: None, closed.append)
    for i in range(2_000_000):
        if writer.closed:
            break
        writer.send(Revoke("Pod", f"default/{'long-name' * 10}-{i}"))
    await asyncio.sleep(0)
    assert writer.closed and len(writer._out) < 2 << 20
    assert closed == ["the other end has not read 1 MiB"]
    theirs.close()


def test_results_are_small():
    assert len(encode(Results([Result(123456, "done", "", 0.25, 0.5)] * 1000))) < 50_000
