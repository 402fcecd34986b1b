"""An invalid label selector makes its own pod unusable, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
BAD = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": BAD}
REQUIRED, PREFERRED = (f"{what}DuringSchedulingIgnoredDuringExecution" for what in ("required", "preferred"))
SPECS: dict[str, Manifest] = {
    "spec.affinity.podAffinity": {"affinity": {"podAffinity": {REQUIRED: [TERM]}}},
    "spec.affinity.podAntiAffinity": {
        "affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}
    },
    "spec.affinity.podAffinity: of namespaces": {
        "affinity": {"podAffinity": {REQUIRED: [{**TERM, "labelSelector": {}, "namespaceSelector": BAD}]}}
    },
    "spec.topologySpreadConstraints": {
        "topologySpreadConstraints": [{**TERM, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
    },
}


def node(name: str) -> Manifest:
    labels = {"kubernetes.io/hostname": name}
    have = {"cpu": 4, "memory": "8Gi", "pods": 9}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": have}}


def pod(name: str, **spec: Any) -> Manifest:
    spec["containers"] = [{"name": "main", "resources": {"requests": {"cpu": 1}}}]
    return {"kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec}


@pytest.mark.parametrize("where", SPECS)
def test_the_pod_is_reported_and_the_others_are_scheduled(where: str) -> None:
    simulation = Simulation([node("a"), node("b"), pod("good"), pod("bad", **SPECS[where])])
    result = simulation.cycle(configuration(DEFAULT_TEXT, False))
    (messages,) = simulation.rejected
    assert (
        messages.startswith(f"Pod default/bad: {where.partition(': ')[0]}: ")
        and "'Like' is unknown; use In" in messages
    )
    assert set(result.bound) == {"default/good"} and not result.faults


def test_an_invalid_selector_of_an_owner_is_ignored() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": {"selector": BAD}}
    owned = pod("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    ]
    simulation = Simulation([node("a"), node("b"), owner, owned])
    result = simulation.cycle(configuration(DEFAULT_TEXT, False))
    assert set(result.bound) == {"default/owned"} and not result.faults
