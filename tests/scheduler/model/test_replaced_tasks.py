"""A model in which pods were updated equals a model that received only their last versions."""

from __future__ import annotations

import copy
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.model.test_updates import GROUP, POD, put, running, update
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.plan import Bind, Evict
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.verification import differences

GATE = "scheduling.volcano.sh/queue-allocation-gate"
FIELDS: dict[str, list[Any]] = {
    "metadata.annotations": [
        {},
        {"scheduling.k8s.io/group-name": "g"},
        {"scheduling.k8s.io/group-name": "g", "example.com/step": "1"},
        {"scheduling.k8s.io/group-name": "g", GATE: "true"},
        {"scheduling.k8s.io/group-name": "h", "volcano.sh/vgpu-mode": "mig"},
        {"scheduling.volcano.sh/queue-name": "q"},
    ],
    "metadata.labels": [{}, {"app": "y"}],
    "metadata.uid": ["u", "v"],
    "metadata.deletionTimestamp": ["2026-01-01T00:00:00Z"],
    "spec.nodeName": ["n", "m", "unknown"],
    "spec.containers.0.resources.requests": [{}, {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}],
    "spec.schedulingGates": [[], [{"name": "gate"}]],
    "spec.schedulerName": ["volcano", "bare"],
    "status.phase": ["Pending", "Running", "Succeeded", "Failed"],
    "status.nominatedNodeName": ["", "n"],
    "status.conditions": [[], [{"type": "PodScheduled", "status": "False", "reason": "r", "message": "m"}]],
    "status.containerStatuses": [[], [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]],
}


def model() -> Cluster:
    cluster = Cluster(shadow_schedulers=frozenset(("bare",)))
    for name in ("n", "m"):
        put(cluster, {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}})
    put(cluster, GROUP)
    return cluster


def state(cluster: Cluster) -> dict[str, Any]:
    """All that depends on the pods, without the order in which they arrived."""
    count = len(cluster.nodes)
    shadows = {uid: job.pod_group for uid, job in cluster.jobs.items() if job.shadow}
    jobs = {
        uid: (job.counts, job.best_effort_counts, job.gated, job.gated_by_queue, sorted(job.tasks))
        for uid, job in cluster.jobs.items()
    }
    sums = {uid: (_held(job.allocated), _held(job.total_request)) for uid, job in cluster.jobs.items() if job.tasks}
    numbers = {
        name: getattr(cluster.nodes.numbers, name)[..., :count].tolist()
        for name in ("idle", "used", "releasing", "kube_requested", "foreign", "kube_nonzero", "kube_pods")
    }
    return {
        "pods": {key: (task.pod, task.job, task.status, task.node) for key, task in cluster.tasks.items()},
        "statuses": {key: cluster.statuses[task.slot] for key, task in cluster.tasks.items()},
        "placed": {name: sorted(here) for name, here in cluster.on_node.items()},
        "conditions": cluster.reported.conditions,
        "nominations": cluster.nominations.node_of,
        "numbers": numbers,
        "jobs": jobs,
        "sums": sums,
        "shadows": shadows,
    }


def _held(amounts: Resource) -> dict[str, float]:
    """Without amounts of 0, which stay in a sum."""
    return {name: amount for name, amount in amounts.as_dict().items() if amount}


UPDATES = st.lists(
    st.tuples(st.sampled_from(("p", "r")), st.sampled_from(sorted(FIELDS)), st.integers(0, 5)), max_size=12
)


@given(UPDATES)
def test_updated_pods_equal_new_ones(updates: list[tuple[str, str, int]]) -> None:
    cluster, pods = model(), {name: copy.deepcopy(POD) for name in ("p", "r")}
    pods["r"]["spec"]["nodeName"], pods["r"]["status"]["phase"] = "", "Pending"
    for name, pod in pods.items():
        pod["metadata"]["name"] = name
        put(cluster, pod)
    for name, path, pick in updates:
        at: Any = pods[name]
        *parts, last = path.split(".")
        for part in parts:
            at = at[int(part)] if part.isdigit() else at[part]
        at[last] = FIELDS[path][pick % len(FIELDS[path])]
        put(cluster, pods[name])
        assert not list(differences(cluster))
    new = model()
    for pod in pods.values():
        put(new, pod)
    found, expected = state(cluster), state(new)
    for each in (found, expected):
        # A job that once had a pod stays as long as its PodGroup or its pods.
        each["jobs"] = {uid: of for uid, of in each["jobs"].items() if of[-1]}
    assert found == expected


def test_an_update_of_annotations_moves_nothing() -> None:
    cluster = running()
    of_class = cluster.tasks["d/p"].spec_class
    with (
        patch.object(cluster.placed, "count", side_effect=AssertionError),
        patch.object(cluster.classes, "of", side_effect=AssertionError),
    ):
        update(cluster, "metadata.annotations.any", "thing")
    assert cluster.tasks["d/p"].annotations["any"] == "thing" and cluster.tasks["d/p"].spec_class is of_class
    with patch.object(cluster.classes, "of", side_effect=cluster.classes.of) as called:
        update(cluster, "spec.tolerations", [])
        assert called.call_count == 1


def at(version: int, pod: Any, **metadata: Any) -> Any:
    return {**pod, "metadata": {**pod["metadata"], **metadata, "resourceVersion": str(version)}}


WAITING = {**POD, "spec": {**POD["spec"], "nodeName": ""}, "status": {"phase": "Pending"}}


def test_a_bind_that_the_server_has_withdrawn() -> None:
    """The API server was restored from a backup: the pod waits again, and its capacity is free. Found by the
    simulation under faults."""
    cluster, fresh = model(), model()
    put(cluster, at(1, WAITING))
    cluster.assume(Bind("d", "p", "u", "n", "d/g"))
    put(cluster, at(2, WAITING))
    assert cluster.tasks["d/p"].node == "n", "an event that is older than the bind"
    put(cluster, at(5, {**POD, "status": {"phase": "Pending"}}))
    put(cluster, at(4, WAITING))
    assert cluster.tasks["d/p"].node == "n", "the watch is behind what was read"
    put(cluster, at(6, WAITING))
    put(fresh, at(6, WAITING))
    assert state(cluster) == state(fresh)


def test_a_deletion_that_the_server_has_withdrawn() -> None:
    """After the same restore: the pod runs, and nothing is being released."""
    cluster, fresh = model(), model()
    put(cluster, at(1, POD))
    cluster.assume(Evict("d", "p", "u", "d/g", "preempt"))
    put(cluster, at(2, POD))
    assert cluster.tasks["d/p"].status == status.RELEASING, "an event that is older than the eviction"
    put(cluster, at(5, POD, deletionTimestamp="2026-01-01T00:00:00Z"))
    behind = copy.deepcopy(cluster)
    put(behind, at(4, POD))
    assert behind.tasks["d/p"].status == status.RELEASING, "the watch is behind what was read"
    put(cluster, at(6, POD))
    put(fresh, at(6, POD))
    assert state(cluster) == state(fresh)
