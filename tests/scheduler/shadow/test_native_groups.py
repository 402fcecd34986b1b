"""Shadow mode compares trees of native groups as the jobs that they are."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from prometheus_client import CollectorRegistry

from tests.scheduler.shadow.test_trial import CONF, NOW, SETTLE
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE
from volcano_py.scheduler.run_once import CycleReport, run_once
from volcano_py.scheduler.shadow.observed import ObservedCluster
from volcano_py.scheduler.shadow.shadow import Shadow
from volcano_py.scheduler.shadow.trial import evaluate
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import as_struct, model_kind
from volcano_py.testing.table import manifests

ROOT = f"default/{COMPOSITE}/root"


def scenario(need: int) -> dict[str, Any]:
    native = {"native": {"parent": "root"}, "min": 2, "pods": 2, "each": {"cpu": 2}}
    return {
        "nodes": {"n1": {"cpu": 4}},
        "composites": {"root": {"min": need}},
        "jobs": {"g": native, "h": dict(native)},
    }


class Live:
    """A cluster in which a live scheduler binds pods."""

    def __init__(self, need: int) -> None:
        self.now = NOW
        self.model = ObservedCluster(shadow_schedulers=frozenset(("volcano",)))
        self.model.clock = lambda: self.now
        self.objects, _ = complete(manifests(scenario(need)), frozenset(("volcano",)), NOW)
        for manifest in self.objects:
            self.put(manifest)

    def put(self, manifest: dict[str, Any]) -> None:
        self.model.upsert(model_kind(manifest), as_struct(manifest))

    def of(self, kind: str, name: str) -> dict[str, Any]:
        return next(o for o in self.objects if (o["kind"], o["metadata"]["name"]) == (kind, name))

    def decide(self) -> CycleReport:
        return run_once(self.model, CONF, self.now, assume=False)


def test_a_start_of_a_group_of_a_tree_is_a_start_of_its_root() -> None:
    for need, started in ((1, True), (2, False)):
        live = Live(need)
        live.now += 10
        for name in ("g-0", "g-1"):
            pod = deepcopy(live.of("Pod", name))
            pod["spec"]["nodeName"] = "n1"
            live.put(pod)
        live.now += SETTLE + 1
        (start,) = live.model.settled(live.now, SETTLE)
        assert start.job == ROOT and sorted(start.pods) == ["default/g-0", "default/g-1"]
        verdict = evaluate(live.model, start, SETTLE, live.decide)
        assert verdict.started is started
        assert verdict.code == ("" if started else "GroupDoesNotFit")


def test_a_lower_minimum_is_a_change_of_the_tree_that_may_start_it() -> None:
    live = Live(2)
    live.now += 10
    live.put(live.of("CompositePodGroup", "root"))
    assert live.model.arrived[ROOT] == NOW, "nothing has changed"
    root = deepcopy(live.of("CompositePodGroup", "root"))
    root["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] = 1
    live.put(root)
    assert live.model.arrived[ROOT] == live.now


def test_what_the_live_scheduler_states_is_in_the_condition_of_the_root() -> None:
    live = Live(1)
    shadow = Shadow(live.model, CollectorRegistry(), SETTLE, live.decide)
    assert shadow._live_reason(ROOT) == "the live scheduler states no reason"
    root = deepcopy(live.of("CompositePodGroup", "root"))
    condition = {"type": "CompositePodGroupInitiallyScheduled", "status": "False", "message": "minCount is not met"}
    root["status"] = {"conditions": [condition]}
    live.put(root)
    assert shadow._live_reason(ROOT) == "the live scheduler states: minCount is not met"
