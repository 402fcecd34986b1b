"""Conditions of pods that no session places: without their PodGroup, or without an action for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "capacity": {"cpu": "4", "pods": "10"}},
}
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
    "status": {"state": "Open"},
}


CREATED = "2026-01-01T00:00:00Z"


def pod(group: str = "not-there", owner: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "lost", "namespace": "default", "uid": "u", "creationTimestamp": CREATED}
    if group:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
        ]
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def conditions(
    one: dict[str, Any],
    actions: str = "enqueue, allocate, backfill",
    deviations: str = "{}",
    now: float | None = None,
    more: Sequence[dict[str, Any]] = (),
) -> list[str]:
    """The messages of the conditions that four cycles write about a pod: 3 s, within which watches catch up."""
    simulation = Simulation([NODE, QUEUE, one, *more], registry=REGISTRY, now=now)
    plugins = "tiers: [{plugins: [{name: gang}, {name: predicates}]}]"
    conf = load(f'actions: "{actions}"\n{plugins}\ndeviations: {deviations}', REGISTRY.actions)
    results = [simulation.cycle(conf) for _ in range(4)]
    assert not any(result.bound for result in results) or "backfill" in actions
    found = simulation.objects["Pod", "default/lost"]["status"].get("conditions") or ()
    return [one["message"] for one in found if (one["type"], one["status"]) == ("PodScheduled", "False")]


def test_a_missing_pod_group_is_named() -> None:
    assert conditions(pod()) == [
        "waiting for PodGroup default/not-there, which does not exist: create it, or correct the annotation "
        "scheduling.k8s.io/group-name"
    ]
    assert conditions(pod(), deviations="parity") == []


def test_a_group_that_arrives_after_its_pod_is_not_reported() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "not-there", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default"},
    }
    simulation = Simulation([NODE, QUEUE, pod()], registry=REGISTRY)
    conf = load("actions: allocate\ntiers: [{plugins: [{name: gang}]}]", REGISTRY.actions)
    simulation.cycle(conf)
    assert "conditions" not in simulation.objects["Pod", "default/lost"]["status"]
    simulation.put(group)
    simulation.cycle(conf)
    assert "does not exist" not in str(simulation.objects["Pod", "default/lost"]["status"])


@pytest.mark.parametrize(("age", "reported"), [(1.0, 0), (10.0, 1)])
def test_a_controller_has_time_to_create_the_group(age: float, reported: int) -> None:
    assert len(conditions(pod(owner="Job"), now=parse_time(CREATED) + age)) == reported


def test_a_missing_queue_is_named_on_the_pod() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "qeue"},
        "status": {"phase": "Inqueue"},
    }
    expected = "queue qeue does not exist; create it or name another in spec.queue"
    assert conditions(pod(group="g"), more=[group]) == [expected]
    assert conditions(pod(group="g"), more=[group], deviations="parity") == []


def test_a_pod_without_requests_says_which_action_is_missing() -> None:
    [text] = conditions(pod(group=""), actions="enqueue, allocate")
    assert "the action backfill, which places such pods, is not configured" in text
    assert conditions(pod(group="")) == []
