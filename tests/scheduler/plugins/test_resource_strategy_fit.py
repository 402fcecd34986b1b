"""resource-strategy-fit: packing and spreading, scarce resources, and the reserve for idle devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.scheduler.trial import Manifest, Trial, opened, tasks
from volcano_py.scheduler.plugins.resource_strategy_fit import LEAST, MOST, FitStrategy, ResourceStrategyFit

GPU = "nvidia.com/gpu"


def scores(arguments: Manifest, each: Manifest, nodes: Manifest | None = None) -> list[float]:
    """The score of every node, computed for all at once and one by one."""
    given = nodes or {"idle": {"cpu": 4}, "half": {"cpu": 4}, "gpu": {"cpu": 4, GPU: 4}}
    old = {"min": 1, "phase": "Running", "each": {"cpu": 2, "runsOn": "half" if "half" in given else next(iter(given))}}
    scenario = {"nodes": given, "jobs": {"old": old, "new": {"min": 1, "phase": "Inqueue", "each": each}}}
    session = opened(scenario, [[{"resource-strategy-fit": arguments}]])
    [task] = tasks(session, "new")
    [score] = session.rules.rules_of("resource-strategy-fit")
    together = score.score(task, session.numbers)  # type: ignore[union-attr]
    alone = [score.score_node(task, n) for n in range(len(given))]  # type: ignore[union-attr]
    assert np.allclose(together[: len(given)], alone)
    return alone


@pytest.mark.parametrize(
    ("kind", "each", "rates"),
    [
        (LEAST, {"cpu": 1}, [75, 25, 75]),
        (MOST, {"cpu": 1}, [25, 75, 25]),
        (MOST, {"cpu": 3}, [75, 0, 75]),  # half has no capacity for it
        ("Whatever", {"cpu": 1}, [75, 25, 75]),
    ],
)
def test_fill_or_spread(kind: str, each: Manifest, rates: list[float]) -> None:
    assert scores({"resources": {"cpu": {"type": kind}}, "resourceStrategyFitWeight": 1}, each) == rates


def test_weights_of_resources_and_of_the_plugin() -> None:
    resources = {"cpu": {"type": MOST, "weight": 3}, GPU: {"type": MOST, "weight": 1}}
    found = scores({"resources": resources, "resourceStrategyFitWeight": 2}, {"cpu": 1, GPU: 4})
    assert found == [2 * 25 * 3 / 4, 2 * 75 * 3 / 4, 2 * (25 * 3 + 100) / 4]
    assert scores({"resources": {"cpu": {"weight": 0}}, "resourceStrategyFitWeight": -1}, {"cpu": 1}) == [750, 250, 750]
    assert scores({"resources": {GPU: {}}}, {"cpu": 1}) == [0, 0, 0]


def test_names_and_patterns() -> None:
    resources = {
        "*": {},
        "a*b": {},
        "nvidia.com/*": {"weight": 2},
        "nvidia.com/gpu*": {"weight": 3},
        GPU: {"weight": 4},
    }
    plugin = ResourceStrategyFit({"resources": resources})
    assert plugin.strategy_of(GPU) == FitStrategy(LEAST, 4)
    assert plugin.strategy_of("nvidia.com/gpu.shared") == FitStrategy(LEAST, 3)
    assert plugin.strategy_of("nvidia.com/nic") == FitStrategy(LEAST, 2)
    assert plugin.strategy_of("cpu") is None and plugin.strategy_of("axb") is None
    assert ResourceStrategyFit({}).strategy_of("memory") == FitStrategy(LEAST, 1)


@pytest.mark.parametrize(
    ("kind", "weights", "rates"),
    [
        ("MostAllocated", '{"cpu": 1}', [25, 75, 25]),
        ("LeastAllocated", '{"cpu": 1}', [75, 25, 75]),
        ("Other", '{"cpu": 1}', [75, 25, 75]),
        ("MostAllocated", '{"cpu": 0}', [0, 0, 0]),
        ("MostAllocated", '{"memory": 1}', [0, 0, 0]),
        ("MostAllocated", "no json", [0, 0, 0]),
        ("MostAllocated", '{"cpu": "many"}', [0, 0, 0]),
    ],
)
def test_a_pod_may_have_its_own_strategy(kind: str, weights: str, rates: list[float]) -> None:
    annotations = {
        "volcano.sh/resource-strategy-scoring-type": kind,
        "volcano.sh/resource-strategy-weight": weights,
    }
    arguments = {"resources": {"cpu": {"type": MOST, "weight": 7}}, "resourceStrategyFitWeight": 1}
    assert scores(arguments, {"cpu": 1, "annotations": annotations}) == rates


def test_nodes_with_scarce_resources_are_kept_for_pods_that_request_them() -> None:
    sra = {"enable": True, "resources": f"{GPU}, x.com/nic", "weight": 10, "resourceWeight": {GPU: 3}}
    base: Manifest = {"resources": {"none": {}}, "sra": sra}
    assert scores(base, {"cpu": 1}) == [1000, 1000, 250]
    assert scores(base, {"cpu": 1, GPU: 1}) == [0, 0, 250], (
        "a node without GPUs has score 0 for a pod that requests one"
    )
    assert scores({**base, "sra": {**sra, "weight": 0}}, {"cpu": 1}) == [0, 0, 0]
    assert scores({**base, "sra": {**sra, "enable": False}}, {"cpu": 1}) == [0, 0, 0]
    assert scores({**base, "sra": {**sra, "resources": " , "}}, {"cpu": 1}) == [0, 0, 0]


@pytest.mark.parametrize(
    ("proportion", "each", "bound"),
    [
        ({f"{GPU}.cpu": 1}, {"cpu": 1}, False),  # 4 idle GPUs reserve 4 cores
        ({f"{GPU}.cpu": 0.75}, {"cpu": 1}, True),
        ({f"{GPU}.cpu": 0.76}, {"cpu": 1}, False),
        ({f"{GPU}.cpu": -5}, {"cpu": 1}, False),  # as 1
        ({f"{GPU}.cpu": 0, f"{GPU}.memory": 2}, {"cpu": 1, "memory": "1Gi"}, False),  # GB
        ({f"{GPU}.cpu": 0, f"{GPU}.memory": 1}, {"cpu": 1, "memory": "1Gi"}, True),
        ({f"{GPU}.cpu": 1}, {"cpu": 1, GPU: 1}, True),  # a pod that requests a GPU is exempt
    ],
)
def test_cpu_and_memory_are_reserved_for_idle_devices(proportion: Manifest, each: Manifest, bound: bool) -> None:
    arguments = {"proportional": {"enable": True, "resources": f"{GPU},x.com/nic", "resourceProportion": proportion}}
    plugins: list[list[Any]] = [["gang"], ["predicates", {"resource-strategy-fit": arguments}]]
    nodes = {"n1": {"cpu": 4, "memory": "8Gi", GPU: 4}}
    trial = Trial({"nodes": nodes, "jobs": {"new": {"min": 1, "phase": "Inqueue", "each": each}}}, plugins)
    trial.cycle()
    assert bool(trial.bound) is bound
    if not bound:
        assert f"proportional of resource {GPU} check failed" in trial.reason("new-0")
