"""Which bare pods wait for their PodGroup: by their owner, never by which of scheduler and controller is faster."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod, ReplicaSet
from volcano_py.api.plain_pods import OTHER_OWNERS, WATCHED_OWNERS, needs_group
from volcano_py.controllers.podgroup.owners import family_of
from volcano_py.controllers.podgroup.reconcile import OWNER_KINDS
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, Operation, PodCondition, QueueStatus
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.manifests import as_struct

Manifest = dict[str, Any]
CREATED = 1_767_225_600.0
CONF = load(
    'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n',
    REGISTRY.actions,
)


def pod(owner: tuple[str, str] | None = None, number: int = 0, **labels: str) -> Manifest:
    """A bare pod with this apiVersion and kind of its controller."""
    references = (
        [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": "uid-o", "controller": True}] if owner else []
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "labels": labels,
            "ownerReferences": references,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}],
        },
        "status": {"phase": "Pending"},
    }


WAIT = [
    pod(("batch/v1", "Job")),
    pod(("apps/v1", "DaemonSet")),
    pod(("ray.io/v1", "RayCluster")),
    pod(("batch/v1", "Job"), **{"jobset.sigs.k8s.io/jobset-uid": "u", "jobset.sigs.k8s.io/jobset-name": "j"}),
    pod(
        ("apps/v1", "StatefulSet"),
        **{"leaderworkerset.sigs.k8s.io/group-key": "k", "leaderworkerset.sigs.k8s.io/name": "l"},
    ),
    pod(**{"spark-app-selector": "s"}),
    pod(("v1", "Pod"), **{"spark-app-selector": "s"}),
    pod(("apps/v1", "ReplicaSet")),
    pod(("apps/v1", "StatefulSet")),
]
AT_ONCE = [
    pod(),
    pod(("v1", "ReplicationController")),
    pod(("example.com/v1", "Job")),
    pod(("kubeflow.org/v1", "TFJob")),
]


@pytest.mark.parametrize(("manifest", "waits"), [*((m, True) for m in WAIT), *((m, False) for m in AT_ONCE)])
def test_the_owner_decides(manifest: Manifest, waits: bool) -> None:
    found = from_manifest(Pod, manifest)
    assert needs_group(found, None) is waits
    if family_of(found) is not None:
        assert waits, "the controller forms a gang of it"


def test_pods_of_the_default_scheduler_have_no_group_to_wait_for() -> None:
    plain = pod(("batch/v1", "Job"))
    plain["spec"]["schedulerName"] = "default-scheduler"
    made = cluster()
    made.shadow_schedulers = frozenset({"default-scheduler"})
    made.upsert("Pod", as_struct(plain))
    assert len([o for o in decided(made, CREATED) if isinstance(o, Bind)]) == 1


def test_every_owner_whose_annotations_the_controller_reads_is_known() -> None:
    assert set(OWNER_KINDS) <= {kind for _, kind in OTHER_OWNERS} | set(WATCHED_OWNERS)


@pytest.mark.parametrize(("annotation", "waits"), [(None, False), ("1", False), ("6", True), ("x", False)])
@pytest.mark.parametrize("kind", WATCHED_OWNERS)
def test_the_annotation_of_a_watched_owner_decides(kind: str, annotation: str | None, waits: bool) -> None:
    annotations = {} if annotation is None else {"scheduling.volcano.sh/group-min-member": annotation}
    assert needs_group(from_manifest(Pod, pod(("apps/v1", kind))), annotations) is waits


# ---- decisions ------------------------------------------------------------------------------------------------------


def cluster(*pods: Manifest) -> Cluster:
    """Three nodes of 4 cpus."""
    made = Cluster(shadow_schedulers=frozenset({"volcano"}))
    for i in range(3):
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        made.upsert(
            "Node", as_struct({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": status})
        )
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    made.upsert("Queue", as_struct({**queue, "spec": {"weight": 1}, "status": {"state": "Open", "allocated": {}}}))
    for one in pods:
        made.upsert("Pod", as_struct(one))
    return made


def decided(made: Cluster, now: float) -> list[Operation]:
    emitted: list[Operation] = []
    assert run_once(made, CONF, now, emit=emitted.extend).faults == []
    return [operation for operation in emitted if not isinstance(operation, QueueStatus)]


@pytest.mark.parametrize("owner", [("batch/v1", "Job"), ("ray.io/v1", "RayCluster")])
def test_a_gang_whose_group_the_controller_forms_never_starts_in_part(owner: tuple[str, str]) -> None:
    """Six pods of which three fit: none starts before its PodGroup exists, and none afterwards."""
    pods = [pod(owner, i) for i in range(6)]
    made = cluster(*pods)
    for second in range(3):
        assert decided(made, CREATED + second) == []
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "podgroup-uid-o",
            "namespace": "default",
            "uid": "g",
            "creationTimestamp": "2026-01-01T00:00:03Z",
        },
        "spec": {"minMember": 6, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    made.upsert("PodGroup", as_struct(group))
    for one in pods:
        one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "podgroup-uid-o"}
        made.upsert("Pod", as_struct(one))
        assert not [o for o in decided(made, CREATED + 4) if isinstance(o, Bind)], "while pods are annotated one by one"
    for node in range(3, 6):
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        made.upsert(
            "Node", as_struct({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{node}"}, "status": status})
        )
    assert len([o for o in decided(made, CREATED + 5) if isinstance(o, Bind)]) == 6


def test_pods_of_a_deployment_without_a_minimum_are_bound_at_once() -> None:
    made = cluster(*(pod(("apps/v1", "ReplicaSet"), i) for i in range(6)))
    made.upsert(
        "ReplicaSet", from_manifest(ReplicaSet, {"metadata": {"name": "o", "namespace": "default", "uid": "uid-o"}})
    )
    assert len([o for o in decided(made, CREATED) if isinstance(o, Bind)]) == 3


def test_a_missing_group_is_reported_after_a_while() -> None:
    made = cluster(pod(("batch/v1", "Job")))
    report = run_once(made, CONF, CREATED + 10)
    assert not report.bound and report.session.next_wake == CREATED + 30
    (condition,) = decided(made, CREATED + 30)
    assert isinstance(condition, PodCondition) and condition.reason == "Unschedulable"
    assert condition.message.startswith(
        "waiting for the PodGroup of Job o, which the PodGroup controller creates: there is"
    )
    assert decided(made, CREATED + 40) == [], "once"
