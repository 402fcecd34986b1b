"""Differences between the model's sums and its tasks are found, in whatever sum they are."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import pytest

from tests.scheduler.trial import Manifest, opened
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.verification import correct, differences
from volcano_py.scheduler.run_once import REGISTRY, run_once

DESCRIBED: Manifest = {
    "nodes": {"n0": {"cpu": 8}, "n1": {"cpu": 8}},
    "jobs": {
        "a": {
            "min": 1,
            "phase": "Running",
            "tasks": {"x": {"cpu": 2, "runsOn": "n0"}, "y": {"cpu": 1, "runsOn": "n1"}},
        },
        "b": {"min": 1, "pods": 1, "phase": "Inqueue", "each": {"cpu": 1}},
    },
}


def model() -> Cluster:
    return opened(DESCRIBED, [["gang"]]).cluster


def _used(cluster: Cluster) -> None:
    cluster.nodes.numbers.used[0, 1] += 1000


def _pods(cluster: Cluster) -> None:
    cluster.nodes.numbers.kube_pods[0] -= 1


def _counts(cluster: Cluster) -> None:
    cluster.jobs["default/a"].counts[status.RUNNING] -= 1


def _allocated(cluster: Cluster) -> None:
    cluster.jobs["default/a"].allocated.milli_cpu -= 500


def _column(cluster: Cluster) -> None:
    cluster.statuses[cluster.tasks["default/a-x-0"].slot] = status.PENDING


def _allocatable(cluster: Cluster) -> None:
    cluster.nodes.numbers.allocatable[0, 1] += 1000


def _ghost(cluster: Cluster) -> None:
    task = copy(cluster.tasks["default/a-x-0"])
    task.key, task.node = "default/ghost", "n1"
    cluster.on_node["n1"][task.key] = task


def _uncounted(cluster: Cluster) -> None:
    del cluster.on_node["n0"]["default/a-x-0"]


def _no_member(cluster: Cluster) -> None:
    del cluster.jobs["default/a"].tasks["default/a-x-0"]


def test_a_model_without_differences() -> None:
    assert not list(differences(model()))


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (_used, "node n1: used is"),
        (_pods, "node n0: kube_pods is 0.0, its pods add up to 1.0"),
        (_counts, "job default/a: counts is"),
        (_allocated, "job default/a: allocated is"),
        (_column, "pod default/a-x-0: status"),
        (_allocatable, "node n1: allocatable is {'cpu': 9000.0, "),
        (_ghost, "node n1: pods is default/ghost of uid "),
        (_uncounted, "node n0: idle is"),
        (_no_member, "job default/a: counts is"),
    ],
)
def test_a_planted_difference_is_found(plant: Callable[[Cluster], None], found: str) -> None:
    cluster = model()
    plant(cluster)
    first, *_ = different = list(differences(cluster))
    assert first.text.startswith(found)
    for difference in different:
        correct(cluster, difference)
    assert not list(differences(cluster))


@pytest.mark.parametrize("verifies", [False, True])
def test_a_cycle_reports_differences_as_faults_if_it_verifies(verifies: bool) -> None:
    cluster = model()
    cluster.check_states = verifies
    conf = load("actions: allocate\ntiers: [{plugins: [{name: gang}]}]", REGISTRY.actions)
    assert not run_once(cluster, conf, 0.0).faults
    _used(cluster)
    faults = run_once(cluster, conf, 1.0).faults
    assert [(f.plugin, f.point) for f in faults] == [("model", "verify-incremental")] * verifies
