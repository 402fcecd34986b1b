"""The scenarios whose time is measured (`benchmarks/goals.py`), at a size that the reference scheduler can decide: both
decide them alike, pod by pod. What is fast decides nothing else."""

from __future__ import annotations

import pytest

from benchmarks.decision import configuration
from benchmarks.goals import apart, beside, evicting, gang, hierarchy, single
from benchmarks.growth import scenario
from benchmarks.scenario import Spec, objects
from tests.reference.comparison import Case, decide_fast, difference
from volcano_py.scheduler.framework.kernels import choice as kernels
from volcano_py.scheduler.framework.kernels.choice import CompiledKernels, NumpyKernels

SCENARIOS: dict[str, Spec] = {
    "gangs": gang(24, 300),
    "gangs on mixed nodes": gang(24, 300, True),
    "single pods": single(20, 300),
    "single pods on mixed nodes": single(20, 300, True),
    "one gang": scenario(30, 300, 300),
    "apart": apart(40, 60),
    "preempt": evicting(20, 20, "preempt", 20),
    "reclaim": evicting(20, 20, "reclaim", 20),
    "queues": hierarchy(20, 120, (2, 4, 8, 16)),
    "beside running gangs": beside(20, 200, 100, 50, 100),
    "no node has capacity": beside(20, 200, 60, 10, 0, cpu="64"),
}


def case_of(spec: Spec) -> Case:
    found = [{"kind": kind, **manifest} for kind, manifest in objects(spec)]
    return {"conf": configuration(spec), "cycles": 2, "seed": 1, "objects": found}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_decided_as_the_reference_decides_it(name: str) -> None:
    case = case_of(SCENARIOS[name])
    first = decide_fast(case)[0]
    pods = sum(work["pods"] for work in SCENARIOS[name]["workload"])
    print(f"{name}: {pods} pods, {len(first['bound'])} bound, {len(first['evicted'])} evicted")
    assert bool(first["bound"]) != (name in ("preempt", "reclaim", "no node has capacity"))
    assert bool(first["evicted"]) == (name in ("preempt", "reclaim"))
    found = difference(case)
    assert not found, found


@pytest.mark.parametrize("name", SCENARIOS)
def test_compiled_kernels_decide_a_scenario_alike(name: str) -> None:
    pytest.importorskip("numba", reason="the extra [fast] is not installed")
    case, before = case_of(SCENARIOS[name]), kernels.chosen()
    found = []
    try:
        for each in (NumpyKernels(), CompiledKernels()):
            kernels.use(each)
            found.append(decide_fast(case))
    finally:
        kernels.use(before)
    assert found[0] == found[1]
