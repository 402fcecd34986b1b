"""The condition Waiting is set again after another writer has replaced the conditions of the group."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT, load
from volcano_py.scheduler.model.plan import Event, Operation, PodGroupStatus
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import manifests

CLUSTER = {
    "nodes": {"n1": {"cpu": 1}},
    "queues": {"default": {"weight": 1}},
    "jobs": {"g": {"phase": "Inqueue", "each": {"cpu": 2}}},
}
OTHER = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "by another scheduler"}


@pytest.mark.parametrize(
    "written", [[OTHER], [OTHER, {"type": "Waiting", "status": "True", "reason": "Old", "message": "x"}]]
)
def test_the_condition_heals(written: list[dict[str, str]]) -> None:
    simulation, conf = Simulation(manifests(CLUSTER)), load(DEFAULT_TEXT, REGISTRY.actions)

    def cycle() -> list[Operation]:
        plan: list[Operation] = []
        run_once(simulation.cluster, conf, simulation.now, emit=plan.extend)
        return plan

    assert [o for o in cycle() if isinstance(o, PodGroupStatus)]
    assert not cycle(), "nothing has changed"
    group = simulation.objects["PodGroup", "default/g"]
    simulation.put({**group, "status": {"phase": "Inqueue", "conditions": written}})
    plan = cycle()
    [status] = [o for o in plan if isinstance(o, PodGroupStatus)]
    assert [c["reason"] for c in status.status["conditions"] if c["type"] == "Waiting"] == ["NodeTooSmall"]
    assert not [o for o in plan if isinstance(o, Event)], "it was reported before"
    assert not cycle()
