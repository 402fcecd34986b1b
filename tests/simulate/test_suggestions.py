"""Suggestions for a waiting job do no harm: nothing that lies about a machine, and nothing that breaks other pods."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.explained import explained
from volcano_py.simulate.unblock.search import suggestions
from volcano_py.simulate.unblock.trials import Trials
from volcano_py.testing.table import configuration, manifests

CONF = configuration({"plugins": [["priority", "gang"], ["predicates", "nodeorder"]]})


def found(**cluster: Any) -> dict[str, str]:
    """Kind → text of what is suggested for the job `g`."""
    simulation = Simulation(manifests(cluster))
    trials = Trials(simulation.cluster, load(CONF, REGISTRY.actions), simulation.now)
    blockers = explained(trials, "default/g").blockers
    return {s.kind: s.text for s in suggestions(trials, "default/g", blockers)}


def job(**spec: Any) -> dict[str, Any]:
    return {"phase": "Inqueue", "each": {"cpu": 1, "spec": spec}}


def node(**labels: str) -> dict[str, Any]:
    return {"cpu": 4, "labels": labels}


AMD = {"kubernetes.io/arch": "amd64"}


@pytest.mark.parametrize(
    "selector",
    [
        {"kubernetes.io/arch": "arm64"},
        {"kubernetes.io/os": "windows"},
        {"beta.kubernetes.io/arch": "arm64"},
    ],
)
def test_nodes_of_another_machine_type(selector: dict[str, str]) -> None:
    assert set(found(nodes={"n1": node(**AMD)}, jobs={"g": job(nodeSelector=selector)})) <= {"add-nodes"}


@pytest.mark.parametrize(
    "selector",
    [
        {"kubernetes.io/hostname": "other"},
        {"topology.kubernetes.io/zone": "b"},
        {"node.kubernetes.io/instance-type": "large"},
        {"kubernetes.io/arch": "arm64", "team": "red"},
    ],
)
def test_labels_that_kubernetes_sets_are_not_suggested(selector: dict[str, str]) -> None:
    assert "label-node" not in found(nodes={"n1": node(**AMD)}, jobs={"g": job(nodeSelector=selector)})


def test_a_label_is_added_where_the_node_has_no_other_value() -> None:
    nodes = {"n1": node(disk="hdd"), "n2": node(), "n3": node(disk="hdd")}
    helps = found(nodes=nodes, jobs={"g": job(nodeSelector={"disk": "ssd"})})
    assert helps["label-node"] == "label node n2 with disk=ssd"
    del nodes["n2"]
    assert "label-node" not in found(nodes=nodes, jobs={"g": job(nodeSelector={"disk": "ssd"})})


def test_the_selector_of_the_machine_is_kept() -> None:
    both = {"kubernetes.io/arch": "amd64", "a": "1", "b": "2"}
    helps = found(nodes={"n1": node(**AMD)}, jobs={"g": job(nodeSelector=both)})
    assert helps["drop-selector"] == "remove spec.nodeSelector of the pods except kubernetes.io/arch"
    assert helps["label-node"] == "label node n1 with a=1, b=2"


def test_node_affinity_to_a_machine_is_kept() -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    helps = found(nodes={"n1": node(**AMD)}, jobs={"g": job(affinity={"nodeAffinity": required})})
    assert "drop-selector" not in helps


@pytest.mark.parametrize(
    ("taint", "suggested"),
    [
        ("node.kubernetes.io/unreachable:NoExecute", False),
        ("node.kubernetes.io/disk-pressure:NoSchedule", False),
        ("node-role.kubernetes.io/control-plane:NoSchedule", False),
        ("team=red:NoSchedule", True),
    ],
)
def test_tolerations_of_faults_are_not_suggested(taint: str, suggested: bool) -> None:
    helps = found(nodes={"n1": {"cpu": 4, "taints": [taint]}}, jobs={"g": job()})
    assert ("tolerate" in helps) is suggested


@pytest.mark.parametrize(
    ("fields", "suggested"),
    [
        (
            {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}},
            False,
        ),
        ({"spec": {"priority": 2_000_001_000}}, False),
        ({}, True),
    ],
)
def test_pods_of_the_node_do_not_have_to_end(fields: dict[str, Any], suggested: bool) -> None:
    old = {"phase": "Running", "each": {"cpu": 4, "runsOn": "n1", **fields}}
    helps = found(nodes={"n1": {"cpu": 4}}, jobs={"old": old, "g": job()})
    assert ("free-capacity" in helps) is suggested
