"""Jobs of plain pods without a PodGroup: their queue, minimum and phase, and what becomes of them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tests.scheduler.model.test_awaited_groups import CREATED, Manifest, cluster, decided, pod
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Namespace, ReplicaSet
from volcano_py.scheduler.dispatch.follow_ups import follow_ups
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, Event, Evict, PodCondition, PodGroupStatus
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.manifests import as_struct

QUEUE = "scheduling.volcano.sh/queue-name"
REPLICASET = ("apps/v1", "ReplicaSet")


def queue(name: str, state: str = "Open", **spec: Any) -> Any:
    manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return as_struct({**manifest, "spec": {"weight": 1, **spec}, "status": {"state": state, "allocated": {}}})


def owner(**annotations: str) -> ReplicaSet:
    metadata = {"name": "o", "namespace": "default", "uid": "uid-o", "annotations": annotations}
    return from_manifest(ReplicaSet, {"metadata": metadata})


def namespace(**annotations: str) -> Namespace:
    return from_manifest(Namespace, {"metadata": {"name": "default", "annotations": annotations}})


def queues_of(made: Cluster) -> dict[str, str]:
    return {uid: job.queue for uid, job in made.jobs.items()}


def test_pods_of_one_owner_are_one_job_and_others_are_jobs_of_their_own() -> None:
    made = cluster(pod(REPLICASET, 0), pod(REPLICASET, 1), pod(number=2))
    tasks = {uid: sorted(job.tasks) for uid, job in made.jobs.items()}
    assert tasks == {
        "default/podgroup-uid-o": ["default/p0", "default/p1"],
        "default/podgroup-uid-2": ["default/p2"],
    }


def test_the_queue_is_that_of_the_pod_its_owner_or_its_namespace_in_any_order_of_events() -> None:
    own = pod(REPLICASET, 0)
    own["metadata"]["annotations"] = {QUEUE: "mine"}
    for stated, of_owner, of_namespace, expected in (
        ({QUEUE: "mine"}, {QUEUE: "theirs"}, {QUEUE: "all"}, "mine"),
        ({}, {QUEUE: "theirs"}, {QUEUE: "all"}, "theirs"),
        ({}, {}, {QUEUE: "all"}, "all"),
        ({QUEUE: "default"}, {}, {QUEUE: "all"}, "all"),
        ({}, {}, {}, "default"),
    ):
        one = pod(REPLICASET, 0)
        one["metadata"]["annotations"] = stated
        events = [("Pod", as_struct(one)), ("ReplicaSet", owner(**of_owner)), ("Namespace", namespace(**of_namespace))]
        for order in permutations(events):
            made = cluster()
            for kind, obj in order:
                made.upsert(kind, obj)
            assert queues_of(made) == {"default/podgroup-uid-o": expected}, (stated, of_owner, of_namespace)


def test_nothing_is_written_about_a_pod_but_its_bind() -> None:
    made = cluster(pod())
    assert [type(operation) for operation in decided(made, CREATED)] == [Bind]
    assert made.jobs["default/podgroup-uid-0"].shadow
    assert decided(made, CREATED + 1) == []


def test_a_placed_pod_is_admitted_already_also_after_a_restart() -> None:
    running = pod()
    running["spec"]["nodeName"] = "n0"
    running["status"]["phase"] = "Running"
    made = cluster(running)
    group = made.jobs["default/podgroup-uid-0"].pod_group
    assert group is not None and group.status.phase == "Running"
    running["status"]["phase"] = "Succeeded"
    made.upsert("Pod", as_struct(running))
    group = made.jobs["default/podgroup-uid-0"].pod_group
    assert group is not None and group.status.phase == "Completed"


def test_admission_holds_a_pod_as_it_would_hold_its_group() -> None:
    conf = load(
        'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n',
        REGISTRY.actions,
    )

    def bound(made: Cluster) -> list[str]:
        emitted: list[Any] = []
        assert run_once(made, conf, CREATED, emit=emitted.extend).faults == []
        return [operation.name for operation in emitted if isinstance(operation, Bind)]

    limited = cluster(pod())
    limited.upsert("Queue", queue("default", capability={"cpu": "2"}))  # the pod requests 3
    assert bound(limited) == []
    closed = cluster(pod())
    closed.upsert("Queue", queue("default", state="Closed"))
    assert bound(closed) == []
    assert bound(cluster(pod())) == ["p0"]


def test_a_waiting_pod_is_reported_once_although_numbers_change() -> None:
    large = pod()
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    made = cluster(large)
    (condition,) = decided(made, CREATED)
    assert isinstance(condition, PodCondition) and condition.reason == "Unschedulable"
    reported: Manifest = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    large["status"]["conditions"] = [{**reported, "message": condition.message}]
    made.upsert("Pod", as_struct(large))  # what the API server has then
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    made.upsert("Node", as_struct({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}, "status": status}))
    assert decided(made, CREATED + 5) == [], "four nodes instead of three reject it for the same reason"


def test_a_group_replaces_the_shadow_and_its_deletion_brings_it_back() -> None:
    made = cluster(pod())
    group: Manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "podgroup-uid-0", "namespace": "default", "uid": "g"},
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": "Pending"},
    }
    made.upsert("PodGroup", as_struct(group))
    assert not made.jobs["default/podgroup-uid-0"].shadow
    kinds = {type(operation) for operation in decided(made, CREATED)}
    assert {Bind, PodGroupStatus} <= kinds, "the status of a group is written"
    made.remove("PodGroup", "default", "podgroup-uid-0")
    assert made.jobs["default/podgroup-uid-0"].shadow
    made.remove("Pod", "default", "p0")
    assert made.jobs == {} and made.shadow_groups._of_namespace == {}


def test_the_oldest_pod_describes_the_job() -> None:
    first, second = pod(REPLICASET, 1), pod(REPLICASET, 0)
    second["metadata"]["creationTimestamp"] = "2026-01-01T00:00:05Z"
    second["spec"]["priorityClassName"] = "later"
    for order in ((first, second), (second, first)):
        made = cluster(*order)
        group = made.jobs["default/podgroup-uid-o"].pod_group
        assert group is not None and group.spec.priority_class_name == ""
        made.remove("Pod", "default", "p1")
        group = made.jobs["default/podgroup-uid-o"].pod_group
        assert group is not None and group.spec.priority_class_name == "later"


def test_a_withdrawn_group_and_annotation_leave_the_shadow_in_any_order() -> None:
    """An API server that was restored from a backup has neither the PodGroup nor the annotation of the pod."""
    plain, annotated = pod(), pod()
    annotated["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "podgroup-uid-0"}
    for group_first in (True, False):
        made = cluster(annotated)
        if group_first:
            made.remove("PodGroup", "default", "podgroup-uid-0")
        made.upsert("Pod", as_struct(plain))
        if not group_first:
            made.remove("PodGroup", "default", "podgroup-uid-0")
        assert made.jobs["default/podgroup-uid-0"].shadow
        made.upsert("Pod", as_struct(annotated))
        assert made.jobs["default/podgroup-uid-0"].pod_group is None, "the PodGroup is about to be received"


def test_the_eviction_of_a_plain_pod_is_reported_on_the_pod_only() -> None:
    conf = load(
        'actions: "enqueue, allocate, preempt"\n'
        "tiers:\n- plugins:\n  - name: priority\n  - name: conformance\n"
        "- plugins:\n  - name: gang\n  - name: predicates\n",
        REGISTRY.actions,
    )
    running = [pod(number=i) for i in range(3)]
    for i, one in enumerate(running):
        one["spec"] |= {"nodeName": f"n{i}", "priority": 0}
        one["status"]["phase"] = "Running"
    urgent = pod(number=9)
    urgent["spec"] |= {"priority": 100, "priorityClassName": "high"}
    made = cluster(*running, urgent)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    made.upsert("PriorityClass", as_struct(high))
    emitted: list[Any] = []
    assert run_once(made, conf, CREATED + 60, emit=emitted.extend).faults == []
    (evicted,) = [operation for operation in emitted if isinstance(operation, Evict)]
    assert [(event.kind, event.reason) for event in follow_ups(evicted) if isinstance(event, Event)] == [
        ("Pod", "Evict")
    ]
