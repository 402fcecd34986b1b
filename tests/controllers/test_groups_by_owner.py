"""Gangs of pods of JobSet, LeaderWorkerSet, RayCluster and SparkApplication."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.controllers.podgroup.owners import (
    JOBSET,
    LEADERWORKERSET,
    RAYCLUSTER,
    RAYJOB,
    Stated,
    deadline_of,
    family_of,
    rayjob_of,
    size_of,
    with_deadline,
)
from volcano_py.controllers.podgroup.reconcile import podgroup_name, reconcile


def pod(name: str, owner: tuple[str, str, str] | None = None, labels: dict[str, str] | None = None) -> Pod:
    """`owner`: apiVersion, kind and UID of the controller."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or {}}
    if owner is not None:
        version, kind, uid = owner
        reference = {"apiVersion": version, "kind": kind, "name": f"the-{kind.lower()}", "uid": uid, "controller": True}
        metadata["ownerReferences"] = [reference]
    found: Pod = from_manifest(Pod, {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": []}})
    return found


def job(uid: str) -> tuple[str, str, str]:
    return "batch/v1", "Job", uid


NINE = Stated(9, {}, None)
JOBSET_LABELS = {"jobset.sigs.k8s.io/jobset-uid": "js-1", "jobset.sigs.k8s.io/jobset-name": "train"}
LWS_LABELS = {"leaderworkerset.sigs.k8s.io/group-key": "3e23", "leaderworkerset.sigs.k8s.io/name": "serve"}


def test_pods_of_one_batch_job_are_one_group() -> None:
    assert podgroup_name(pod("a", job("j1"))) == podgroup_name(pod("b", job("j1"))) == "podgroup-j1"


def test_all_jobs_of_a_jobset_are_one_group() -> None:
    pods = [pod("a", job("j1"), JOBSET_LABELS), pod("b", job("j2"), JOBSET_LABELS)]
    assert [podgroup_name(p) for p in pods] == ["podgroup-js-1"] * 2
    found = family_of(pods[0])
    assert found is not None and (found.kind, found.name) == (JOBSET, "train")


def test_the_leader_and_the_workers_of_a_replica_are_one_group() -> None:
    leader = pod("s-0", ("apps/v1", "StatefulSet", "leaders"), LWS_LABELS)
    worker = pod("s-0-1", ("apps/v1", "StatefulSet", "workers-0"), LWS_LABELS)
    other = pod("s-1", ("apps/v1", "StatefulSet", "leaders"), LWS_LABELS | {next(iter(LWS_LABELS)): "77aa"})
    assert podgroup_name(leader) == podgroup_name(worker) == "podgroup-3e23"
    assert podgroup_name(other) == "podgroup-77aa"


def test_the_head_and_the_workers_of_a_ray_cluster_are_one_group() -> None:
    head = pod("head", ("ray.io/v1", "RayCluster", "ray-1"), {"ray.io/node-type": "head"})
    found = family_of(head)
    assert found is not None and (found.kind, found.name) == (RAYCLUSTER, "the-raycluster")
    assert podgroup_name(head) == "podgroup-ray-1"


def test_executors_join_the_group_of_their_driver_which_starts_alone() -> None:
    app = {"spark-app-selector": "spark-1a2b"}
    driver = pod("driver", ("sparkoperator.k8s.io/v1beta2", "SparkApplication", "app"), app)
    executor = pod("exec-1", ("v1", "Pod", "uid-driver"), app)
    assert podgroup_name(driver) == podgroup_name(executor) == "podgroup-spark-1a2b"
    create = reconcile(driver, None, [])[0]
    assert create.obj["spec"]["minMember"] == 1  # type: ignore[union-attr]


def test_a_label_that_is_no_name_does_not_count() -> None:
    assert podgroup_name(pod("p", job("j1"), {"spark-app-selector": "My_App"})) == "podgroup-j1"


def replicated(replicas: int, parallelism: int, **more: Any) -> dict[str, Any]:
    return {"replicas": replicas, "template": {"spec": {"parallelism": parallelism}}, **more}


@pytest.mark.parametrize(
    ("kind", "spec", "size"),
    [
        (JOBSET, {"replicatedJobs": [replicated(1, 1), replicated(2, 4)]}, 9),
        (JOBSET, {"replicatedJobs": [{"template": {"spec": {"parallelism": 4, "completions": 3}}}]}, 3),
        (
            JOBSET,
            {
                "startupPolicy": {"startupPolicyOrder": "InOrder"},
                "replicatedJobs": [replicated(1, 2), replicated(2, 4)],
            },
            2,
        ),
        (JOBSET, {"replicatedJobs": [replicated(1, 2), replicated(2, 4, dependsOn=[{"name": "first"}])]}, 2),
        (LEADERWORKERSET, {"leaderWorkerTemplate": {"size": 4}}, 4),
        (LEADERWORKERSET, {"leaderWorkerTemplate": {"size": 4}, "startupPolicy": "LeaderReady"}, 1),
        (LEADERWORKERSET, {"leaderWorkerTemplate": {}}, 1),
        (RAYCLUSTER, {"workerGroupSpecs": [{"replicas": 2}, {"replicas": 1, "numOfHosts": 4}]}, 7),
        (RAYCLUSTER, {"enableInTreeAutoscaling": True, "workerGroupSpecs": [{"replicas": 5, "minReplicas": 1}]}, 2),
        (RAYCLUSTER, {"workerGroupSpecs": [{"replicas": 5, "suspend": True}]}, 1),
    ],
)
def test_how_many_pods_start_together(kind: Any, spec: dict[str, Any], size: int) -> None:
    assert size_of(kind, {"spec": spec}) == size


def test_pods_that_differ_have_no_common_min_resources() -> None:
    create = reconcile(pod("a", job("j1"), JOBSET_LABELS), None, [], of_owner=NINE)[0]
    spec = create.obj["spec"]  # type: ignore[union-attr]
    assert spec["minMember"] == 9 and not spec.get("minResources")


def test_the_annotation_of_an_owner_wins() -> None:
    annotation = {"scheduling.volcano.sh/group-min-member": "3"}
    create = reconcile(pod("a", job("j1"), JOBSET_LABELS), None, [annotation], of_owner=NINE)[0]
    assert create.obj["spec"]["minMember"] == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("deadlines", "order", "expected"),
    [
        ((60, 90), {}, 90),
        ((60, None), {}, None),
        ((60, None), {"startupPolicyOrder": "InOrder"}, 60),
        ((), {}, None),
    ],
)
def test_the_deadline_of_a_jobset(deadlines: tuple[int | None, ...], order: dict[str, str], expected: int) -> None:
    jobs = [
        {"replicas": 1, "template": {"spec": {"activeDeadlineSeconds": d} if d is not None else {}}} for d in deadlines
    ]
    assert deadline_of({"replicatedJobs": jobs, "startupPolicy": order}) == expected


def test_an_annotation_of_the_owner_wins_over_its_deadline() -> None:
    assert with_deadline({"a": "b"}, 60) == {"a": "b", "volcano.sh/max-run-time": "60s"}
    assert with_deadline({"volcano.sh/max-run-time": "1h"}, 60) == {"volcano.sh/max-run-time": "1h"}
    assert with_deadline({}, None) == {}


async def test_the_group_of_a_job_states_its_deadline(world: Any) -> None:
    spec = {"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 600}
    annotations = {"scheduling.volcano.sh/group-min-member": "2"}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "annotations": annotations}}
    uid = world.api.put({**manifest, "spec": spec})["metadata"]["uid"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    metadata = {"name": "p", "ownerReferences": [reference]}
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
    world.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await world.until(lambda: bool(world.podgroups()))
    assert world.podgroups()[0]["metadata"]["annotations"]["volcano.sh/max-run-time"] == "600s"


def ray_cluster(**reference: Any) -> dict[str, Any]:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "fit", "uid": "1", "controller": True, **reference}
    return {"metadata": {"name": "fit-x1", "uid": "u", "ownerReferences": [owner]}, "spec": {}}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({}, "fit"),
        ({"apiVersion": "ray.io/v1alpha1"}, "fit"),
        ({"controller": False}, ""),
        ({"kind": "RayService"}, ""),
        ({"apiVersion": "other.io/v1"}, ""),
    ],
)
def test_the_rayjob_of_a_raycluster(reference: dict[str, Any], expected: str) -> None:
    assert rayjob_of(ray_cluster(**reference)) == expected


@pytest.mark.parametrize(("deadline", "limit"), [(600, "600s"), (None, None)])
async def test_the_group_of_a_rayjob_states_its_deadline(
    world: Any, monkeypatch: pytest.MonkeyPatch, deadline: int | None, limit: str | None
) -> None:
    for kind in (RAYCLUSTER, RAYJOB):
        monkeypatch.setitem(kinds.BY_KIND, (kind.api_version, kind.kind), kind)
        monkeypatch.setitem(kinds.BY_PLURAL, (kind.api_version, kind.plural), kind)
    made = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "fit"}}
    world.api.put({**made, "spec": {"activeDeadlineSeconds": deadline} if deadline else {}})
    cluster = world.api.put({"apiVersion": "ray.io/v1", "kind": "RayCluster", **ray_cluster()})
    reference = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "fit-x1", "controller": True}
    reference["uid"] = cluster["metadata"]["uid"]
    metadata = {"name": "head", "ownerReferences": [reference]}
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
    world.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await world.until(lambda: bool(world.podgroups()))
    annotations = world.podgroups()[0]["metadata"].get("annotations") or {}
    assert annotations.get("volcano.sh/max-run-time") == limit


async def test_the_minimum_and_the_owner_come_from_the_jobset(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.BY_KIND, (JOBSET.api_version, JOBSET.kind), JOBSET)
    monkeypatch.setitem(kinds.BY_PLURAL, (JOBSET.api_version, JOBSET.plural), JOBSET)
    spec = {"replicatedJobs": [replicated(2, 2)]}
    meta = {"name": "train", "annotations": {"volcano.sh/preemptable": "true"}}
    owner = world.api.put({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec})
    uid = owner["metadata"]["uid"]
    labels = {"jobset.sigs.k8s.io/jobset-uid": uid, "jobset.sigs.k8s.io/jobset-name": "train"}
    for name, of in (("a", "j1"), ("b", "j2"), ("c", "unknown")):
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": of, "controller": True}
        tied = labels if name != "c" else dict.fromkeys(labels, "gone")
        metadata = {"name": name, "labels": tied, "ownerReferences": [reference]}
        spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
        world.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await world.until(lambda: len(world.podgroups()) == 2)
    await world.quiet()
    groups = {g["metadata"]["name"]: g for g in world.podgroups()}
    made = groups[f"podgroup-{uid}"]
    assert made["spec"]["minMember"] == 4
    assert made["metadata"]["ownerReferences"][0]["kind"] == "JobSet"
    assert made["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert groups["podgroup-gone"]["spec"]["minMember"] == 1, "an owner that cannot be read"


async def test_one_worker_creates_the_group_of_many_pods(world: Any) -> None:
    owner = world.api.put(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 8}}
    )
    uid = owner["metadata"]["uid"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": True}
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
    for i in range(8):
        metadata = {"name": f"p{i}", "ownerReferences": [reference]}
        world.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    annotated = "scheduling.k8s.io/group-name"
    await world.until(lambda: all(annotated in (p["metadata"].get("annotations") or {}) for p in world.pods().values()))
    (group,) = world.podgroups()
    assert group["metadata"]["name"] == f"podgroup-{uid}"
    created = [write for write in world.api.writes if write.startswith("POST") and write.endswith("/podgroups")]
    assert len(created) == 1
