"""One operation as API calls."""

import json

import pytest
from aiohttp import web
from fake_api import NATIVE_GROUPS, pod, status

from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.scheduler.dispatch.follow_ups import follow_ups
from volcano_py.scheduler.dispatch.writes import NotLeading, Writer
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Nomination,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
    RemoveGate,
)

BIND = Bind("default", "a", "u", "n1", "default/g", {"k": "v"})
EVICT = Evict("default", "a", "u", "default/g", "preempt")


@pytest.fixture
async def client(api):
    async with Client(Credentials(server=api.url), timeout=0.5, retries=0) as made:
        yield made


@pytest.fixture
def writer(client):
    return Writer(client, "volcano", "here", lambda: 1_700_000_000.0)


def put_pod(api, uid="u", **spec):
    made = pod("a", spec={"schedulerName": "volcano", **spec})
    made["metadata"]["uid"] = uid
    return api.put("pods", made)


def stored(api, plural="pods", name="a", namespace="default"):
    return api.objects[(plural, namespace, name)]


async def test_a_bind_is_a_binding_with_uid_and_annotations(api, writer):
    put_pod(api)
    assert await writer.write(BIND) is None
    assert api.bodies[-1] == (
        "POST /api/v1/namespaces/default/pods/a/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "default", "name": "a", "uid": "u", "annotations": {"k": "v"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        },
    )
    assert stored(api)["spec"]["nodeName"] == "n1"


async def test_binding_twice_to_the_same_node_succeeds(api, writer):
    put_pod(api)
    assert await writer.write(BIND) is None
    assert await writer.write(BIND) is None


async def test_binding_a_pod_on_another_node_fails_with_that_node(api, writer):
    put_pod(api)
    assert await writer.write(BIND) is None
    failure = await writer.write(Bind("default", "a", "u", "n2", "default/g"))
    assert failure.kind == "rejected" and "already on node n1" in failure.message
    assert not failure.pod_gone


async def test_a_pod_with_another_uid_counts_as_deleted(api, writer):
    put_pod(api)
    await writer.write(BIND)
    failure = await writer.write(Bind("default", "a", "former", "n1", "default/g"))
    assert failure.kind == "rejected" and failure.pod_gone


async def test_a_missing_pod_counts_as_deleted(writer):
    failure = await writer.write(BIND)
    assert failure.kind == "rejected" and failure.pod_gone


async def test_an_eviction_sets_volcanos_conditions_then_deletes_with_the_uid(api, writer):
    put_pod(api, nodeName="n1")
    assert await writer.write(EVICT) is None
    assert ("pods", "default", "a") not in api.objects
    (patched,) = [body for call, body in api.bodies if call.startswith("PATCH")]
    ready, target = patched["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "Evict")
    assert ready["message"] == "Pod is evicted, because of preempt"
    assert (target["type"], target["status"], target["reason"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
    )
    assert target["message"] == "volcano: preempting to accommodate a higher priority pod"
    (options,) = [body for call, body in api.bodies if call.startswith("DELETE")]
    assert options["preconditions"]["uid"] == "u" and options["preconditions"]["resourceVersion"]


async def test_evicting_a_deleted_or_terminating_pod_succeeds(api, writer):
    assert await writer.write(EVICT) is None
    put_pod(api, uid="another")
    assert await writer.write(EVICT) is None
    made = pod("a")
    made["metadata"] |= {"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    api.put("pods", made)
    assert await writer.write(EVICT) is None
    assert not [call for call in api.log if call.startswith(("PATCH", "DELETE"))]


async def test_a_pod_on_no_node_is_not_evicted(api, writer):
    """Its bind was in flight when the eviction was decided, and has failed. Found by the simulation."""
    put_pod(api)
    failure = await writer.write(EVICT)
    assert failure.kind == "rejected" and failure.message == "pod default/a is not evicted, because it is on no node"
    assert [entry.split()[0] for entry in api.log] == ["GET"]


async def test_a_pod_that_changes_meanwhile_is_deleted(api, writer):
    put_pod(api, nodeName="n1")

    def meanwhile(request):
        put_pod(api, nodeName="n1", other=1)
        return status(409, "Conflict")

    api.fault("DELETE ", meanwhile, times=2)
    assert await writer.write(EVICT) is None
    assert ("pods", "default", "a") not in api.objects


@pytest.mark.parametrize("code", [409, 404])
async def test_an_eviction_whose_status_is_rejected_is_not_reported_as_done(api, writer, code):
    """Neither a conflict without a newer version nor a 404 shows that the pod is gone."""
    put_pod(api, nodeName="n1")
    api.fault("PATCH ", lambda r: status(code, {409: "Conflict", 404: "NotFound"}[code], "not now"), times=2)
    assert await writer.write(EVICT) is None
    assert ("pods", "default", "a") not in api.objects
    put_pod(api, nodeName="n1")
    api.fault("PATCH ", lambda r: status(code, {409: "Conflict", 404: "NotFound"}[code], "not now"), times=3)
    failure = await writer.write(EVICT)
    assert failure.kind == "rejected" and not failure.pod_gone
    assert failure.message == "pod default/a is not evicted, its status cannot be written: not now"
    assert ("pods", "default", "a") in api.objects


async def test_an_eviction_of_a_pod_that_is_replaced_during_a_conflict_succeeds(api, writer):
    put_pod(api, nodeName="n1")

    def replaced(request):
        put_pod(api, uid="another")
        return status(409, "Conflict")

    api.fault("PATCH ", replaced)
    assert await writer.write(EVICT) is None
    assert stored(api)["metadata"]["uid"] == "another" and not [c for c in api.log if c.startswith("DELETE")]


@pytest.mark.parametrize(
    "op",
    [
        PodCondition("default", "a", "u", "Unschedulable", "m"),
        Nomination("default", "a", "u", "n1"),
        RemoveGate("default", "a", "u"),
        NativeGroupStatus("default", "a", "u", [{"type": "PodGroupScheduled", "status": "False"}]),
        BIND,
    ],
    ids=lambda op: type(op).__name__,
)
async def test_a_conflict_is_compared_with_the_object_as_it_is_now(api, writer, op):
    api.native_gangs = True
    plural = NATIVE_GROUPS if isinstance(op, NativeGroupStatus) else "pods"
    made = pod("a", spec={"schedulerName": "volcano"})
    for uid, gone in (("u", False), ("another", True), ("", True)):
        api.objects.clear()
        if uid:
            made["metadata"]["uid"] = uid
            api.put(plural, made)
        api.fault(("POST " if op is BIND else "PATCH "), lambda r: status(409, "Conflict", "not now"))
        failure = await writer.write(op)
        assert (failure.kind, failure.pod_gone) == ("rejected", gone), uid


async def test_after_a_conflict_the_version_that_was_written_last_is_not_assumed(api, writer):
    """For example, because the API server has been restored from a backup."""
    first = api.put("podgroups", GROUP)["metadata"]["resourceVersion"]

    def decided(phase):
        return PodGroupStatus("default", "g", "u", {"phase": phase}, False, first)

    assert await writer.write(decided("Inqueue")) is None
    api.objects[("podgroups", "default", "g")] = {**GROUP, "metadata": {**GROUP["metadata"], "resourceVersion": first}}
    assert (await writer.write(decided("Running"))).kind == "conflict"
    assert await writer.write(decided("Running")) is None


async def test_a_condition_keeps_the_others_and_its_first_transition_time(api, writer):
    put_pod(api)
    stored(api)["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert await writer.write(PodCondition("default", "a", "u", "Unschedulable", "no room")) is None
    assert await writer.write(PodCondition("default", "a", "u", "Unschedulable", "none", "n7")) is None
    found = stored(api)["status"]
    assert found["nominatedNodeName"] == "n7"
    assert found["conditions"] == [
        {"type": "Ready", "status": "False"},
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "none",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        },
    ]


async def test_a_nomination_is_written_and_removed(api, writer):
    put_pod(api)
    before = stored(api).get("status", {})
    assert await writer.write(Nomination("default", "a", "u", "n7")) is None
    assert stored(api)["status"]["nominatedNodeName"] == "n7"
    assert await writer.write(Nomination("default", "a", "u", "")) is None
    assert stored(api)["status"] == before


async def test_a_condition_for_an_earlier_pod_of_that_name_is_rejected(api, writer):
    put_pod(api, uid="another")
    failure = await writer.write(PodCondition("default", "a", "u", "r", "m"))
    assert failure.kind == "rejected" and "status" not in stored(api)


async def test_a_pod_group_status_replaces_the_old_one(api, writer):
    group = {
        "metadata": {"name": "g", "namespace": "default", "uid": "u"},
        "status": {"phase": "Pending", "running": 3},
    }
    api.put("podgroups", group)
    assert await writer.write(PodGroupStatus("default", "g", "u", {"phase": "Inqueue"})) is None
    assert stored(api, "podgroups", "g")["status"] == {"phase": "Inqueue"}
    failure = await writer.write(PodGroupStatus("default", "g", "another", {"phase": "Running"}))
    assert failure.kind == "rejected"
    assert "/status" not in api.log[0].split("?")[0].removeprefix("PATCH ")


async def test_a_queue_status_replaces_allocated_only(api, writer):
    for queue in ({"status": {"state": "Open", "allocated": {"gpu": "1"}}}, {}):
        api.put("queues", {"metadata": {"name": "q"}, **queue})
        assert await writer.write(QueueStatus("q", {"cpu": "2"})) is None
        assert stored(api, "queues", "q", "")["status"]["allocated"] == {"cpu": "2"}
        api.objects.clear()
    assert all("/queues/q/status" in call for call in api.log)


async def test_an_event_has_the_kind_of_its_object(api, writer):
    event = Event("PodGroup", "default", "g", "", "Warning", "Unschedulable", "no room")
    assert await writer.write(event) is None
    (made,) = [o for (p, _, _), o in api.objects.items() if p == "events"]
    assert made["involvedObject"] == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "namespace": "default",
        "name": "g",
    }
    assert made["source"]["component"] == "volcano"


@pytest.mark.parametrize("applied", [True, False])
async def test_an_event_whose_response_was_lost_is_counted_once(api, writer, applied):
    """The server may have stored it or not; the next one is counted on it."""
    event = Event("Pod", "default", "a", "uid-a", "Warning", "Quarantined", "it cannot be decoded")

    async def lost(request: web.Request) -> web.Response:
        if applied:
            api.put("events", api.bodies[-1][1])
        return status(503, "ServiceUnavailable", "the connection to the storage was lost")

    def events() -> list[int]:
        return [o["count"] for (p, _, _), o in api.objects.items() if p == "events"]

    api.fault("POST /api/v1/namespaces/default/events", lost)
    assert await writer.write(event) is not None
    assert events() == [1] * applied
    assert await writer.write(event) is None
    assert events() == [1]
    api.fault("PATCH /api/v1/namespaces/default/events", status(503, "ServiceUnavailable", "again"))
    for expected in (1, 2, 3):
        assert (await writer.write(event) is None) is (expected > 1)
        assert events() == [expected]


async def test_the_event_of_an_eviction_contains_the_evictor(api, writer):
    first, *_ = follow_ups(Evict("default", "a", "uid-a", "default/g", "reclaim", "other/starving"))
    assert await writer.write(first) is None
    (made,) = [o for (p, _, _), o in api.objects.items() if p == "events"]
    assert made["message"] == "Pod is evicted, because of reclaim"
    assert made["related"] == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "namespace": "other",
        "name": "starving",
    }


@pytest.mark.parametrize(
    ("served", "expected"),
    [(version, f"scheduling.k8s.io/{version}") for version in ("v1alpha2", "v1alpha3", "v1beta1")],
)
async def test_events_about_native_groups_name_the_version_that_is_served(api, writer, served, expected):
    api.native_gangs, api.native_version = True, served
    group = "default/podgroup.scheduling.k8s.io/gang"
    for event in follow_ups(Evict("default", "a", "uid-a", group, "reclaim", group)):
        assert await writer.write(event) is None
    made = {o["involvedObject"]["kind"]: o for (p, _, _), o in api.objects.items() if p == "events"}
    assert made["PodGroup"]["involvedObject"]["apiVersion"] == made["Pod"]["related"]["apiVersion"] == expected
    discovery = "GET /apis/scheduling.k8s.io"
    assert [line for line in api.log if line.startswith(discovery)] == [discovery]


async def test_events_about_native_groups_do_not_fail_with_the_discovery(api, writer):
    api.fault("GET /apis/scheduling.k8s.io", status(503, "ServiceUnavailable", "again"), times=9)
    group = "default/podgroup.scheduling.k8s.io/gang"
    for event in follow_ups(Evict("default", "a", "uid-a", group, "reclaim", group)):
        assert await writer.write(event) is None
    assert len([1 for (p, _, _) in api.objects if p == "events"]) == 2


@pytest.mark.parametrize(
    ("code", "headers", "kind", "sent", "after"),
    [
        (500, {}, "busy", True, 0.0),
        (503, {"Retry-After": "3"}, "busy", True, 3.0),
        (429, {"Retry-After": "2"}, "busy", False, 2.0),
        (403, {}, "rejected", True, 0.0),
        (422, {}, "rejected", True, 0.0),
    ],
)
async def test_error_responses_become_failures(api, writer, code, headers, kind, sent, after):
    put_pod(api)
    api.fault("POST ", lambda r: status(code, "", "why", headers=headers))
    failure = await writer.write(BIND)
    assert (failure.kind, failure.sent, failure.message, failure.retry_after) == (kind, sent, "why", after)


async def test_no_server(api, writer):
    await api.stop()
    failure = await writer.write(BIND)
    assert (failure.kind, failure.sent) == ("unreachable", False)


async def test_the_gate_stops_a_request_before_it_is_sent(api):
    def gate():
        raise NotLeading("the Lease may have expired")

    put_pod(api)
    async with Client(Credentials(server=api.url), gate=gate) as client:
        failure = await Writer(client, "volcano", "here", lambda: 0.0).write(BIND)
    assert (failure.kind, failure.sent) == ("not-leading", False)
    assert api.log == []


GROUP = {"metadata": {"name": "g", "namespace": "default", "uid": "u"}, "status": {"phase": "Pending"}}


async def test_a_status_is_written_only_on_the_version_that_it_was_decided_from(api, writer):
    for plural, made, decided in (
        ("podgroups", GROUP, lambda v: PodGroupStatus("default", "g", "u", {"phase": "Running"}, False, v)),
        ("queues", {"metadata": {"name": "q"}, "status": {}}, lambda v: QueueStatus("q", {"cpu": "2"}, v)),
        ("queues", {"metadata": {"name": "q"}}, lambda v: QueueStatus("q", {"cpu": "2"}, v)),
    ):
        api.objects.clear()
        version = api.put(plural, made)["metadata"]["resourceVersion"]
        api.put(plural, {**made, "spec": {"changed": True}})
        failure = await writer.write(decided(version))
        assert (failure.kind, failure.pod_gone) == ("conflict", False)
        (kept,) = api.objects.values()
        assert kept.get("status") == made.get("status")


async def test_an_own_write_is_not_a_conflict(api, writer):
    first = api.put("podgroups", GROUP)["metadata"]["resourceVersion"]

    def decided(phase, version):
        return PodGroupStatus("default", "g", "u", {"phase": phase}, False, version)

    assert await writer.write(decided("Inqueue", first)) is None
    second = stored(api, "podgroups", "g")["metadata"]["resourceVersion"]
    assert await writer.write(decided("Running", first)) is None, "the watch has not returned the second version yet"
    assert await writer.write(decided("Unknown", second)) is None
    api.put("podgroups", {**stored(api, "podgroups", "g"), "spec": {"changed": True}})
    for version in (first, second):
        assert (await writer.write(decided("Pending", version))).kind == "conflict"
    newest = stored(api, "podgroups", "g")["metadata"]["resourceVersion"]
    assert await writer.write(decided("Pending", newest)) is None


async def test_a_conflict_of_anything_else_is_a_rejection(api, writer):
    put_pod(api, uid="another")
    failure = await writer.write(PodCondition("default", "a", "u", "Unschedulable", "m"))
    assert failure.kind == "rejected"


def undecodable(obj):
    """JSON of the object, nested too deeply to be decoded."""
    shown = json.loads(json.dumps(obj))
    shown["metadata"]["managedFields"] = "@"
    return json.dumps(shown).replace('"@"', '{"f:a":' * 1_200 + "1" + "}" * 1_200).encode()


def answers(api, match, body):
    api.fault(match, lambda r: web.Response(body=body, content_type="application/json"), times=10)


async def test_a_pod_that_cannot_be_decoded_is_still_written(api, writer):
    made = put_pod(api, nodeName="n1")
    answers(api, "PATCH ", undecodable(made))
    answers(api, "GET ", undecodable(made))
    answers(api, "DELETE ", undecodable(made))
    assert await writer.write(PodCondition("default", "a", "u", "Unschedulable", "m")) is None
    assert await writer.write(EVICT) is None
    assert [entry.split()[0] for entry in api.log] == ["PATCH", "GET", "PATCH", "DELETE"]
    delete = api.bodies[-1][1]
    assert delete["preconditions"] == {"uid": "u", "resourceVersion": made["metadata"]["resourceVersion"]}


async def test_a_bound_pod_that_cannot_be_decoded_is_bound(api, writer):
    made = put_pod(api, nodeName="n1")
    api.bindings[("default", "a")] = "n1"
    answers(api, "GET ", undecodable(made))
    assert await writer.write(BIND) is None
    api.faults.clear()
    answers(api, "GET ", undecodable({**made, "spec": {"nodeName": "n2"}}))
    assert (await writer.write(BIND)).message == "pod default/a: it is already on node n2"


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", "half"])
async def test_only_the_write_with_an_invalid_response_is_repeated(api, writer, body):
    made = put_pod(api)
    whole = undecodable(made)
    answers(api, "PATCH ", whole[: len(whole) // 2] if body == "half" else body)
    failure = await writer.write(PodCondition("default", "a", "u", "Unschedulable", "m"))
    assert (failure.kind, failure.sent) == ("busy", True)
