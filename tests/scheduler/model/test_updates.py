"""Which updates of a running pod change its job."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from tests.scheduler.trial import Manifest
from volcano_py.api.codec import decoder
from volcano_py.api.meta import parse_time
from volcano_py.api.scheduling import PodGroupCondition, PodGroupStatus
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Event
from volcano_py.simulate.manifests import STRUCTS

SPREAD = [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
POD: Manifest = {
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "d",
        "uid": "u",
        "resourceVersion": "1",
        "annotations": {"scheduling.k8s.io/group-name": "g"},
        "labels": {"app": "x"},
    },
    "spec": {
        "schedulerName": "volcano",
        "nodeName": "n",
        "affinity": AFFINITY,
        "topologySpreadConstraints": SPREAD,
        "tolerations": [{"key": "t", "operator": "Exists"}],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    },
    "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "restartCount": 1}]},
}

GROUP: Manifest = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "d"}, "spec": {"minMember": 1}}


def running() -> Cluster:
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}}
    model = Cluster()
    for manifest in (node, GROUP, POD):
        put(model, manifest)
    model.dirty = model.jobs_moved = False
    return model


def put(model: Cluster, manifest: Manifest) -> None:
    model.upsert(manifest["kind"], decoder(STRUCTS[manifest["kind"]]).decode(orjson.dumps(manifest)))


def update(model: Cluster, path: str, value: Any) -> None:
    """An event with one field changed, and a new version."""
    pod = copy.deepcopy(POD)
    pod["metadata"]["resourceVersion"] = "2"
    at: Any = pod
    *parts, last = path.split(".")
    for part in parts:
        at = at[int(part)] if part.isdigit() else at[part]
    at[last] = value
    put(model, pod)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.resourceVersion", "7"),
        ("metadata.managedFields", [{"manager": "kubelet"}]),
        ("status.containerStatuses.0.restartCount", 5),
        ("status.containerStatuses.0.ready", False),
        ("status.containerStatuses", []),
        ("status.conditions", [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}]),
        ("status.podIP", "10.0.0.1"),
        ("status.message", "text"),
    ],
)
def test_fields_that_scheduling_does_not_read_change_nothing(path: str, value: Any) -> None:
    model = running()
    task = model.tasks["d/p"]
    update(model, path, value)
    assert model.tasks["d/p"] is task and not (model.dirty or model.jobs_moved)
    assert task.pod.metadata.resource_version == ("7" if path.endswith("Version") else "2")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.labels.app", "y"),
        ("metadata.annotations.any", "thing"),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
        ("metadata.finalizers", ["example.com/x"]),
        ("spec.containers.0.resources.requests.cpu", "2"),
        ("spec.topologySpreadConstraints.0.maxSkew", 2),
        ("spec.tolerations", []),
        ("status.phase", "Succeeded"),
        ("status.conditions", [{"type": "DisruptionTarget", "status": "True"}]),
        ("status.nominatedNodeName", "m"),
        ("status.containerStatuses.0.allocatedResources", {"cpu": "2"}),
        ("status.initContainerStatuses", [{"name": "i", "resources": {"requests": {"cpu": "1"}}}]),
    ],
)
def test_fields_that_scheduling_reads_change_the_job(path: str, value: Any) -> None:
    model = running()
    task = model.tasks["d/p"]
    update(model, path, value)
    assert model.tasks["d/p"] is not task and model.jobs_moved


def test_a_pod_group_with_the_assumed_status_changes_nothing() -> None:
    model = running()
    job = model.jobs["d/g"]
    put(model, {**GROUP, "metadata": {**GROUP["metadata"], "resourceVersion": "8"}})
    assert not model.jobs_moved and job.pod_group is not None and job.pod_group.metadata.resource_version == "8"
    put(model, {**GROUP, "status": {"phase": "Inqueue"}})
    assert model.jobs_moved and job.pod_group.status.phase == "Inqueue"


def test_a_decided_status_changes_the_job_only_by_its_phase() -> None:
    model = running()
    waiting = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="text")
    for phase, changed in (("Inqueue", {"d/g"}), ("Inqueue", set[str]())):
        position = model.job_changes.position
        model.assume_status("d/g", PodGroupStatus(phase=phase, conditions=[waiting]))
        assert model.job_changes.since(position) == changed
        assert (group := model.jobs["d/g"].pod_group) is not None and group.status.conditions == [waiting]


def test_the_newest_pod_of_a_job() -> None:
    model, job = running(), "d/g"

    def newest(name: str, created: str) -> float:
        put(model, {**POD, "metadata": {**POD["metadata"], "name": name, "uid": name, "creationTimestamp": created}})
        return model.jobs[job].newest

    assert newest("old", "2026-01-01T00:00:00Z") == parse_time("2026-01-01T00:00:00Z")
    assert newest("new", "2026-01-01T00:00:05Z") == parse_time("2026-01-01T00:00:05Z")
    assert newest("new", "2026-01-01T00:00:03Z") == parse_time("2026-01-01T00:00:03Z")
    model.remove("Pod", "d", "new")
    assert model.jobs[job].newest == parse_time("2026-01-01T00:00:00Z")


def test_what_was_reported_about_an_object_is_forgotten_with_it() -> None:
    cluster = Cluster(shadow_schedulers=frozenset({"volcano"}))
    for kind, namespace in (("Pod", "default"), ("Queue", ""), ("HyperNode", ""), ("PodGroup", "default")):
        cluster.assume(Event(kind, namespace, "a", "uid", "Warning", "Reason", "text"))
        assert cluster.reported.events
        cluster.remove(kind, namespace, "a")
        assert not cluster.reported.events
