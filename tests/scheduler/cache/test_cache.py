"""Events of informers change the model, and results of operations confirm or undo what was assumed on it."""

import asyncio
import json
import os
import stat
import time

import pytest
from aiohttp import web
from fake_api import pod, status

from tests.waiting import budget
from volcano_py.api.kinds import SECRET
from volcano_py.kube import Client, Informer, KubeError
from volcano_py.kube.credentials import Credentials
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.dump import dump
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.cache.queues import ensure_queues
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import Bind, Event, Evict, Nomination, PodCondition, PodGroupStatus, QueueStatus
from volcano_py.scheduler.model.verification import differences
from volcano_py.scheduler.runtime.metrics import Metrics

PENDING = {"phase": "Pending"}


def our_pod(name, node="", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    made = pod(
        name,
        spec={"schedulerName": "volcano", "containers": [container], **spec},
        status={"phase": "Pending"},
    )
    made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    if node:
        made["spec"]["nodeName"] = node
    return made


def node(name, cpu="8"):
    capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": capacity, "capacity": capacity}}


class Live:
    """A cache over an API server."""

    def __init__(self, api):
        self.api = api
        self.events = []
        self.deleted = []
        self.added = []
        self.metrics = Metrics()
        self.leading = True
        self.changes = 0
        self.model = Cluster(shadow_schedulers=frozenset({"volcano"}))
        self.cache = Cache(
            self.model,
            ObjectFilters(["volcano"]),
            self.write_event,
            self.changed,
            lambda *deleted: self.deleted.append(deleted),
            request_grace=0.02,
            first_pause=0.1,
            on_new_pod=self.new_pod,
        )
        self.quarantine, self.resync = self.cache.quarantine, self.cache.resync

    def new_pod(self, pod):
        self.metrics.watched(pod, 2e9)
        self.added.append(pod.metadata.name)

    def write_event(self, event):
        if self.leading:
            self.events.append(event)
        return self.leading

    def changed(self):
        self.changes += 1

    async def __aenter__(self):
        self.client = await Client(Credentials(server=self.api.url)).__aenter__()
        self.cache.start(self.client)
        self.task = asyncio.create_task(self.cache.run())
        await asyncio.wait_for(self.cache.ready.wait(), budget())
        return self

    async def __aexit__(self, *exc):
        self.cache.close()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.client.close()

    async def until(self, test):
        async with asyncio.timeout(budget()):
            while not test():
                await asyncio.sleep(0.005)

    def state(self, name):
        return self.model.tasks[f"default/{name}"].status

    def idle(self, name):
        numbers, table = self.model.nodes.numbers, self.model.nodes
        return numbers.idle[0, table.index[name]]


def fill(api, pods=2):
    api.put("nodes", node("n1"))
    api.put("queues", {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1, "queue": "default"}}
    api.put("podgroups", group)
    return [api.put("pods", our_pod(f"p{i}")) for i in range(pods)]


def bind_of(stored, where="n1"):
    meta = stored["metadata"]
    return Bind("default", meta["name"], meta["uid"], where, "default/g")


async def test_the_model_is_complete_after_the_first_lists_and_follows_changes(api):
    fill(api)
    async with Live(api) as live:
        assert set(live.model.tasks) == {"default/p0", "default/p1"}
        assert live.model.jobs["default/g"].pod_group and "n1" in live.model.nodes.index
        before = live.changes
        api.put("pods", our_pod("p2"))
        api.put("nodes", node("n2"))
        api.remove("pods", "p0")
        api.remove("nodes", "n1", "")
        await live.until(lambda: "n1" not in live.model.nodes.index and "n2" in live.model.nodes.index)
        await live.until(lambda: set(live.model.tasks) == {"default/p1", "default/p2"})
        assert live.changes > before
        assert {(kind, name) for kind, _, name, _ in live.deleted} == {("Pod", "p0"), ("Node", "n1")}


async def test_nothing_is_ready_before_every_kind_is_listed(api):
    fill(api)
    held = asyncio.Event()

    async def hold(request):
        await held.wait()
        return status(500, "InternalError")

    api.fault("GET /statefulsets", hold)
    live = Live(api)
    entering = asyncio.create_task(live.__aenter__())
    await asyncio.sleep(0.3)
    assert not entering.done() and live.model.tasks
    held.set()
    await asyncio.wait_for(entering, budget())
    await live.__aexit__()


async def test_a_crd_that_is_not_installed_delays_nothing(api):
    fill(api)
    api.fault("GET /hypernodes", lambda r: status(404, "NotFound"), times=100)
    api.fault("GET /numatopologies", lambda r: status(403, "Forbidden"), times=100)
    async with Live(api) as live:
        assert live.model.tasks


async def test_foreign_pods_count_once_they_are_bound(api):
    fill(api, 0)
    foreign = our_pod("other", schedulerName="default-scheduler")
    api.put("pods", foreign)
    async with Live(api) as live:
        assert "default/other" not in live.model.tasks
        full = live.idle("n1")
        api.put("pods", our_pod("other", "n1", schedulerName="default-scheduler"))
        await live.until(lambda: "default/other" in live.model.tasks)
        assert live.idle("n1") < full
        api.remove("pods", "other")
        await live.until(lambda: live.idle("n1") == full)


async def test_an_object_that_does_not_decode_is_quarantined_alone(api):
    fill(api)
    api.put("podgroups", {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"minMember": "three"}})
    async with Live(api) as live:
        (event,) = live.events
        assert (event.kind, event.name, event.type) == ("PodGroup", "odd", "Warning")
        assert "minMember" in event.message
        assert live.quarantine.counts() == {"PodGroup": 1}
        assert len(live.model.tasks) == 2
        api.put("podgroups", {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"minMember": 3}})
        await live.until(lambda: "default/odd" in live.model.jobs)
        assert live.quarantine.counts() == {}


async def test_an_object_that_the_model_rejects_is_quarantined_alone(api):
    fill(api)
    api.put("nodes", node("bad", cpu="a lot"))
    async with Live(api) as live:
        (event,) = live.events
        assert (event.kind, event.name) == ("Node", "bad") and "cpu" in event.message
        assert "n1" in live.model.nodes.index and "bad" not in live.model.nodes.index
        api.put("nodes", {**node("bad", cpu="a lot"), "spec": {"unschedulable": True}})
        api.put("pods", our_pod("later"))
        await live.until(lambda: "default/later" in live.model.tasks)
        assert len(live.events) == 1, "the same reason is reported once"
        api.remove("nodes", "bad", "")
        await live.until(lambda: not live.quarantine.counts())


async def test_quarantine_is_reported_after_leadership_is_won(api):
    api.put("nodes", node("bad", cpu="a lot"))
    live = Live(api)
    live.leading = False
    async with live:
        assert live.events == []
        live.leading = True
        live.quarantine.report_again()
        (event,) = live.events
        live.cache.handle_result(event, Result(1, "lost"))
        live.quarantine.report_again()
        live.quarantine.report_again()
        assert live.events == [event, event]


@pytest.mark.parametrize("outcome", ["revoked", "lost", "failed"])
async def test_a_bind_that_was_not_written_is_forgotten(api, outcome):
    one, _ = fill(api)
    async with Live(api) as live:
        full = live.idle("n1")
        live.model.assume(bind_of(one))
        assert live.state("p0") == st.BINDING and live.idle("n1") < full
        live.cache.handle_result(bind_of(one), Result(1, outcome, "why"))
        if outcome == "failed":
            assert live.state("p0") == st.BINDING, "it is scheduled again only after a back-off"
        await live.until(lambda: live.state("p0") == st.PENDING)
        assert live.idle("n1") == full and live.model.dirty


async def test_a_bind_stays_assumed_until_the_watch_returns_it(api):
    one, _ = fill(api)
    async with Live(api) as live:
        live.model.assume(bind_of(one))
        live.cache.handle_result(bind_of(one), Result(1, "done"))
        api.put("pods", {**our_pod("p0"), "status": {"phase": "Pending", "note": "from before the bind"}})
        api.put("pods", our_pod("marker"))
        await live.until(lambda: "default/marker" in live.model.tasks)
        assert live.state("p0") == st.BINDING
        api.put("pods", our_pod("p0", "n1"))
        await live.until(lambda: live.state("p0") == st.BOUND)


async def test_an_unknown_bind_is_read(api):
    one, two = fill(api)
    async with Live(api) as live:
        for stored in (one, two):
            live.model.assume(bind_of(stored))
        bound = our_pod("p0", "n1")
        bound["metadata"]["uid"] = one["metadata"]["uid"]
        watch_is_late = api.objects[("pods", "default", "p0")] = {
            **bound,
            "metadata": {**one["metadata"], "resourceVersion": "100000"},
        }
        assert watch_is_late["spec"]["nodeName"] == "n1"
        api.fault("GET /pods/p0", lambda r: status(500, "InternalError"), times=1)
        for i, stored in enumerate((one, two)):
            live.cache.handle_result(bind_of(stored), Result(i, "unknown"))
        assert live.resync.unknown == 2 and live.state("p0") == live.state("p1") == st.BINDING
        await live.until(lambda: live.resync.unknown == 0)
        assert live.state("p0") == st.BOUND and live.state("p1") == st.PENDING


def undecodable(stored, node=""):
    """The pod in the API server, with managedFields nested too deeply to be decoded."""
    shown = json.loads(json.dumps(stored))
    shown["metadata"]["managedFields"] = "@"
    if node:
        shown["spec"]["nodeName"] = node
    return json.dumps(shown).replace('"@"', '{"f:a":' * 1_200 + "1" + "}" * 1_200).encode()


@pytest.mark.parametrize("bound", [True, False])
async def test_an_unknown_bind_of_a_pod_that_cannot_be_decoded(api, bound):
    one, _ = fill(api)
    async with Live(api) as live:
        full = live.idle("n1")
        live.model.assume(bind_of(one))
        body = undecodable(one, "n1" if bound else "")
        api.fault("GET /pods/p0", lambda r: web.Response(body=body, content_type="application/json"))
        live.cache.handle_result(bind_of(one), Result(1, "unknown"))
        await live.until(lambda: live.resync.unknown == 0)
        assert live.state("p0") == (st.BOUND if bound else st.PENDING)
        assert (live.idle("n1") == full) is not bound, "its capacity is used exactly if it is on the node"
        assert live.quarantine.counts() == {"Pod": 1}
        (event,) = live.events
        assert event.name == "p0" and "nested too deep" in event.message
        live.cache.refresh("Pod", "default/p0")
        assert live.quarantine.counts() == {"Pod": 1}, "an older version does not end the quarantine"


async def test_a_read_is_retried_after_an_invalid_response(api):
    one, _ = fill(api)
    async with Live(api) as live:
        live.model.assume(bind_of(one))
        whole = undecodable(one, "n1")
        for body in (b"<html>", whole[: len(whole) // 2]):
            answer = web.Response(body=body, content_type="application/json")
            api.fault("GET /pods/p0", lambda r, answer=answer: answer)
        live.cache.handle_result(bind_of(one), Result(1, "unknown"))
        await live.until(lambda: live.resync.unknown == 0)
        assert sum(entry.startswith("GET /api/v1/namespaces/default/pods/p0") for entry in api.log) == 3
        assert live.state("p0") == st.PENDING and live.quarantine.counts() == {}


async def test_a_read_is_retried_after_an_unexpected_error(api, monkeypatch):
    one, _ = fill(api)
    async with Live(api) as live:
        live.model.assume(bind_of(one))
        real, failures = live.model.forget, ["once"]

        def failing(op):
            if failures:
                raise KeyError(failures.pop())
            real(op)

        monkeypatch.setattr(live.model, "forget", failing)
        live.cache.handle_result(bind_of(one), Result(1, "unknown"))
        await live.until(lambda: live.resync.unknown == 0)
        assert live.state("p0") == st.PENDING and not failures


async def test_a_conflict_waits_for_the_watch(api):
    fill(api)
    async with Live(api) as live:
        uid = live.model.jobs["default/g"].pod_group.metadata.uid
        wrote = PodGroupStatus("default", "g", uid, {"phase": "Running"})
        live.model.assume(wrote)
        live.model.dirty = live.model.jobs_moved = False
        live.cache.handle_result(wrote, Result(1, "conflict"))
        assert not (live.model.dirty or live.model.jobs_moved), (
            "nothing is decided again before the watch returns a newer object"
        )
        group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1, "queue": "default"}}
        api.put("podgroups", {**group, "status": {"phase": "Inqueue"}})
        await live.until(lambda: live.model.jobs["default/g"].pod_group.status.phase == "Inqueue")
        assert live.model.jobs_moved


@pytest.mark.parametrize("kind", ["PodGroup", "Queue"])
async def test_a_conflict_without_a_newer_version_is_decided_again(api, kind):
    fill(api)
    api.put("queues", {"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"allocated": {"cpu": "1"}}})
    async with Live(api) as live:
        group = live.model.jobs["default/g"].pod_group
        queue = live.model.queues["q"].object
        wrote = (
            PodGroupStatus(
                "default", "g", group.metadata.uid, {"phase": "Running"}, False, group.metadata.resource_version
            )
            if kind == "PodGroup"
            else QueueStatus("q", {"cpu": "2"}, queue.metadata.resource_version)
        )

        def state():
            phase = live.model.jobs["default/g"].pod_group.status.phase
            return phase, live.model.queues["q"].object.status.allocated

        before = state()
        live.model.assume(wrote)
        assert state() != before
        live.model.dirty = False
        live.cache.handle_result(wrote, Result(1, "conflict"))
        await live.until(lambda: live.model.dirty)
        assert state() == before


async def test_a_nomination_that_was_not_written_is_written_again(api):
    """The profile that decided it looks at the pod again only when something changes. Found by the simulation."""
    uid = fill(api)[0]["metadata"]["uid"]
    written = []
    async with Live(api) as live:
        live.cache.emit_later = written.extend
        for node, of in (("n1", uid), ("n1", "another pod"), ("", uid)):
            live.cache.handle_result(Nomination("default", "p0", of, node), Result(1, "failed", "no"))
            await asyncio.sleep(0.5)
        assert [(op.node, op.uid) for op in written] == [("n1", uid)]  # the pod has no nomination to clear


async def test_a_pod_is_not_doubted_while_one_of_its_operations_rests(api):
    """The cache audit reported a drift that the end of the second pause corrects. Found by the simulation."""
    stored = fill(api)[0]
    uid = stored["metadata"]["uid"]
    bind, evict = bind_of(stored), Evict("default", "p0", uid, "default/g", "preempt")
    async with Live(api) as live:
        forgotten = []
        live.model.forget = forgotten.append
        for op in (bind, evict):
            live.cache.handle_result(op, Result(1, "failed", "no"))
        live.cache.handle_result(evict, Result(2, "lost"))  # forgotten at once
        await live.until(lambda: forgotten == [evict, bind])
        assert live.cache.waits_for("default/p0", uid)
        await live.until(lambda: forgotten == [evict, bind, evict])
        assert not live.cache.waits_for("default/p0", uid)


async def test_the_back_off_of_a_pod_ends_with_the_pod(api):
    one, two = fill(api)
    async with Live(api) as live:
        for stored in (one, two):
            live.cache.handle_result(bind_of(stored), Result(1, "failed", "no"))
        assert len(live.cache._results._failures) == 2
        api.remove("pods", "p0")
        await live.until(lambda: len(live.cache._results._failures) == 1)
        live.cache.handle_result(bind_of(two), Result(2, "done"))
        assert live.cache._results._failures == {}


async def test_an_informer_that_ends_ends_the_cache(api, monkeypatch):
    fill(api)
    live = Live(api)

    async def ends(self):
        if self.rt.plural == "nodes":
            raise RuntimeError("dead")
        await asyncio.Event().wait()

    monkeypatch.setattr(Informer, "run", ends)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await live.__aenter__()
    with pytest.raises(RuntimeError, match="dead"):
        await live.task
    assert live.cache.ended >= {"Node"}
    await live.client.close()


async def test_an_unknown_bind_of_a_deleted_pod(api):
    one, _ = fill(api)
    async with Live(api) as live:
        live.model.assume(bind_of(one))
        live.cache.handle_result(bind_of(one), Result(1, "unknown"))
        api.remove("pods", "p0")
        await live.until(lambda: "default/p0" not in live.model.tasks and live.resync.unknown == 0)


async def test_an_eviction_that_failed_is_forgotten(api):
    fill(api)
    running = our_pod("r", "n1")
    running["status"] = {"phase": "Running"}
    stored = api.put("pods", running)
    evict = Evict("default", "r", stored["metadata"]["uid"], "default/g", "preempt")
    async with Live(api) as live:
        live.model.assume(evict)
        assert live.state("r") == st.RELEASING
        live.cache.handle_result(evict, Result(1, "failed", "forbidden"))
        await live.until(lambda: live.state("r") == st.RUNNING)


async def test_a_failed_status_write_restores_the_status_of_the_watch(api):
    fill(api)
    async with Live(api) as live:
        uid = live.model.jobs["default/g"].pod_group.metadata.uid
        wrote = PodGroupStatus("default", "g", uid, {"phase": "Running"})
        live.model.assume(wrote)
        assert live.model.jobs["default/g"].pod_group.status.phase == "Running"
        live.cache.handle_result(wrote, Result(1, "lost"))
        assert live.model.jobs["default/g"].pod_group.status.phase != "Running"


async def test_a_report_that_was_not_written_may_be_repeated(api):
    fill(api)
    async with Live(api) as live:
        event = Event("PodGroup", "default", "g", "u", "Warning", "Unschedulable", "no capacity")
        condition = PodCondition("default", "p0", live.model.tasks["default/p0"].uid, "r", "m")
        for op in (event, condition):
            live.model.assume(op)
            live.cache.handle_result(op, Result(1, "lost"))
        assert ("PodGroup", "default/g") not in live.model.reported.events
        assert "default/p0" not in live.model.reported.conditions


async def test_a_queue_that_cannot_be_decoded_exists(api):
    async with Client(Credentials(server=api.url)) as client:
        for name in ("root", "default"):
            body = undecodable({"metadata": {"name": name, "uid": name}, "spec": {}})
            answer = web.Response(body=body, content_type="application/json")
            api.fault(f"GET /queues/{name}", lambda r, answer=answer: answer)
        await ensure_queues(client, "default", pause=0.01)
        assert not any(entry.startswith("POST") for entry in api.log)


async def test_queues_are_created_once(api):
    async with Client(Credentials(server=api.url)) as client:
        api.fault("GET /queues", lambda r: status(500, "InternalError"), times=2)
        await ensure_queues(client, "default", pause=0.01)
        assert api.objects[("queues", "", "root")]["spec"] == {"reclaimable": False, "weight": 1}
        assert api.objects[("queues", "", "default")]["spec"] == {"reclaimable": True, "weight": 1}
        version = api.revision
        await ensure_queues(client, "default", pause=0.01)
        assert api.revision == version


async def test_queues_that_cannot_be_created_are_tried_ever_less_often(api):
    """Each of several replicas tries for a minute, while a permission is missing."""
    async with Client(Credentials(server=api.url)) as client:
        api.fault("GET /queues", lambda r: status(403, "Forbidden"), times=100)
        begun = time.monotonic()
        with pytest.raises(KubeError, match="kubectl create clusterrole"):
            await ensure_queues(client, "default", pause=0.01)
        assert time.monotonic() - begun > 0.01 * 60 / 2
        assert 10 <= sum(entry.startswith("GET") for entry in api.log) <= 20


async def test_an_invalid_pod_is_not_reported_as_new(api, caplog):
    """Its creation time may be no time."""
    async with Live(api) as live:
        invalid, running = pod("invalid"), pod("running", spec={"nodeName": "n1"})
        invalid["metadata"]["creationTimestamp"] = "yesterday"
        for manifest in (invalid, running, pod("valid")):
            api.put("pods", {**manifest, "spec": {"schedulerName": "volcano", **manifest.get("spec", {})}})
        await live.until(lambda: "default/valid" in live.model.tasks)
        assert live.added == ["valid"] and "default/invalid" not in live.model.tasks
        assert "a handler of pods failed" not in caplog.text


async def test_a_dump_follows_no_link_and_overwrites_nothing(api, tmp_path, monkeypatch):
    fill(api)
    monkeypatch.setattr("secrets.token_hex", lambda size: "known")
    monkeypatch.setattr("time.time", lambda: 1.0)
    target = tmp_path / "target"
    (tmp_path / "snapshot-1-known.json").symlink_to(target)
    async with Live(api) as live:
        with pytest.raises(FileExistsError):
            dump(live.cache.informers.values(), tmp_path)
    assert not target.exists()


async def test_a_dump_is_a_list_of_objects_with_kinds(api, tmp_path):
    fill(api)
    async with Live(api) as live:
        file = dump(live.cache.informers.values(), tmp_path)
        again = dump(live.cache.informers.values(), tmp_path)
        assert again != file, "a name is never used twice"
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        live.cache.informers["Node"].rt = SECRET
        assert "n1" not in dump(live.cache.informers.values(), tmp_path).read_text()
    items = json.loads(file.read_bytes())["items"]
    kinds = sorted((item["apiVersion"], item["kind"]) for item in items)
    assert kinds == [
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        ("v1", "Node"),
        ("v1", "Pod"),
        ("v1", "Pod"),
    ]


async def test_a_model_that_is_built_again_has_all_objects_and_what_is_not_known_yet(api):
    sent, read, idle = (api.put("pods", our_pod(name)) for name in ("sent", "read", "idle"))
    fill(api, pods=0)
    async with Live(api) as live:
        for stored in (sent, read, idle):
            live.model.assume(bind_of(stored))
        live.resync.client = None  # its read fails, and is repeated
        live.resync.add(bind_of(read))
        live.model.jobs["default/g"].counts[st.BINDING] = 17
        live.model.upsert("ConfigMap", live.cache.informers["Node"].store["n1"])
        cycle = live.model.cycle = 5
        live.cache.rebuild([bind_of(sent)])
        assert (live.state("sent"), live.state("read"), live.state("idle")) == (st.BINDING, st.BINDING, st.PENDING)
        assert live.idle("n1") == 6000 and live.model.cycle == cycle
        assert live.model.others["ConfigMap"] and "default" in live.model.queues
        assert not list(differences(live.model))
