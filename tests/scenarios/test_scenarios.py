"""Every scenario of every table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.table import configuration, manifests
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import CycleResult, Simulation

HERE = Path(__file__).parent


def _all() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("*.yaml")):
        for scenario in yaml.safe_load(path.read_text()):
            found.append(pytest.param(scenario, id=f"{path.stem}: {scenario['name']}"))
    return found


@pytest.mark.parametrize("scenario", _all())
def test_scenario(scenario: dict[str, Any]) -> None:
    simulation = Simulation(manifests(scenario), seed=scenario.get("seed", 0))
    simulation.cluster.check_states = True
    conf = load(configuration(scenario.get("conf")), REGISTRY.actions)
    cycles = scenario.get("cycles") or [scenario["expect"]]
    for number, expect in enumerate(cycles, 1):
        _compare(simulation.cycle(conf), expect or {}, number)
    assert Counter(map(_kind, simulation.refused)) == Counter(scenario.get("refused") or [])


def _kind(refused: str) -> str:
    return refused.split(":")[0]


def _compare(result: CycleResult, expect: dict[str, Any], number: int) -> None:
    unknown = set(expect) - {"bound", "pipelined", "evicted", "phases", "waiting", "faults"}
    assert not unknown, f"the scenario expects something that is not looked at: {unknown}"
    bound = {key.removeprefix("default/"): node for key, node in result.bound.items()}
    wanted = expect.get("bound", {})
    if isinstance(wanted, int):
        assert len(bound) == wanted, f"cycle {number}: bound {bound}"
    elif wanted and all(isinstance(v, int) for v in wanted.values()):
        per_job = Counter(next((j for j in wanted if pod.startswith(f"{j}-")), pod) for pod in bound)
        assert dict(per_job) == {k: v for k, v in wanted.items() if v}, f"cycle {number}: bound {bound}"
    else:
        free = {pod for pod, node in wanted.items() if node == "*"}
        assert {p: n for p, n in bound.items() if p not in free} == {
            p: n for p, n in wanted.items() if p not in free
        }, f"cycle {number}"
        assert free <= set(bound), f"cycle {number}: bound {bound}"
    pipelined = {key.removeprefix("default/"): node for key, node in result.pipelined.items()}
    assert pipelined == expect.get("pipelined", {}), f"cycle {number}: pipelined"
    evicted = sorted(key.removeprefix("default/") for key in result.evicted)
    assert evicted == sorted(expect.get("evicted", [])), f"cycle {number}: evicted"
    for job, phase in expect.get("phases", {}).items():
        assert result.phases[f"default/{job}"] == phase, f"cycle {number}: phases {result.phases}"
    for job, words in expect.get("waiting", {}).items():
        reason = result.waiting.get(f"default/{job}", "")
        assert words in reason, f"cycle {number}: {job} waits because of {reason!r}"
    assert len(result.faults) == expect.get("faults", 0), f"cycle {number}: {result.faults}"
