"""Plain predicates and scores: how often they are called, any number of reasons, and rules that raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from volcano_py.plugin import DOMAIN, LOCAL, STATIC, NodeView, Plugin, Reason, Scope, Session, Task
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.plan import Evict
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

NODES = 5


def cluster(nodes: int = NODES, pods: int = 4, **more: Any) -> Simulation:
    scenario = {
        "nodes": {f"n{i}": {"cpu": 8} for i in range(nodes)},
        "jobs": {"g": {"min": 1, "pods": pods, "each": {"cpu": 1}}},
        **more,
    }
    return Simulation(manifests(scenario))


def run(simulation: Simulation, register: Callable[[Session], None], plugins: Any = None) -> CycleReport:
    class User(Plugin):
        name = "user"

        def on_session_open(self, session: Session) -> None:
            register(session)

    registry = Registry({**REGISTRY.plugins, "user": User}, REGISTRY.actions)
    plugins = plugins or [["gang", "user"], ["predicates", "nodeorder"]]
    conf = run.known.setdefault(str(plugins), load(configuration({"plugins": plugins}), registry.actions))  # type: ignore[attr-defined]
    return run_once(simulation.cluster, conf, simulation.now, registry=registry)


run.known = {}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("scope", "calls"), [(STATIC, NODES), (LOCAL, NODES + 3), (DOMAIN, 4 * NODES)])
def test_a_narrow_scope_is_called_once_a_class_and_changed_node(scope: Scope, calls: int) -> None:
    """Four equal pods; each but the last changes the numbers of the node that it is put on."""
    called: list[str] = []

    def predicate(task: Task, node: NodeView) -> None:
        called.append(node.name)

    report = run(cluster(), lambda s: s.add_predicate(predicate, scope=scope))
    assert report.bound == 4 and len(called) == calls


def test_a_static_rule_is_called_again_only_for_a_node_object_that_changed() -> None:
    called: list[str] = []
    simulation = cluster(pods=1)

    def predicate(task: Task, node: NodeView) -> str | None:
        called.append(node.name)
        return "not there" if node.labels.get("closed") or node.name != "n3" else None

    def cycle() -> list[str]:
        called.clear()
        run(simulation, lambda s: s.add_predicate(predicate, scope=STATIC))
        return sorted(called)

    pending = {"g": {"min": 2, "pods": 2, "each": {"cpu": 5}}}
    simulation = cluster(jobs=pending)
    assert cycle() == [f"n{i}" for i in range(NODES)]
    assert cycle() == []
    node = simulation.objects["Node", "n3"]
    node["metadata"]["labels"] = {"closed": "yes"}
    simulation.put(node)
    assert cycle() == ["n3"]
    reasons = run(simulation, lambda s: s.add_predicate(predicate, scope=STATIC)).session.jobs["default/g"].fit_errors
    assert next(iter(reasons.values())).counts == {"not there": NODES}


def test_a_static_rule_sees_no_numbers() -> None:
    report = run(cluster(), lambda s: s.add_node_order(lambda _, node: node.pod_count, scope=STATIC))
    assert "declare scope=LOCAL" in report.faults[0].error and report.faults[0].plugin == "user"


def test_local_scores_follow_what_the_session_places() -> None:
    report = run(
        cluster(nodes=4, pods=4),
        lambda s: s.add_node_order(lambda _, node: -100 * node.pod_count, scope=LOCAL),
        [["gang", "user"], ["predicates"]],
    )
    assert len(set(report.session.moves.placed.values())) == 4


def test_any_number_of_reasons_works() -> None:
    report = run(cluster(nodes=1000, pods=1), lambda s: s.add_predicate(lambda _, node: f"{node.name} is full"))
    errors = report.session.jobs["default/g"].fit_errors["default/g-0"]
    assert len(errors.counts) == 1000 and not report.faults


class Rule:
    """An array rule that raises."""

    name = "user-rule"
    batch = False
    reasons = [Reason("never")]

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, *_: Any) -> Any:
        raise ZeroDivisionError

    filter_node = score = score_node = filter

    def constant(self, task: Task) -> float | None:
        return None


@pytest.mark.parametrize("scope", Scope)
def test_an_array_rule_that_raises_names_its_plugin_and_the_action_goes_on(scope: Scope) -> None:
    rejected = run(cluster(), lambda s: s.add_filters(Rule(scope)))  # type: ignore[arg-type]
    assert {(f.plugin, f.point) for f in rejected.faults} == {("user", "predicate")} and rejected.bound == 0
    errors = rejected.session.jobs["default/g"].fit_errors["default/g-0"]
    assert errors.counts == {"plugin user failed": NODES}
    scored = run(cluster(), lambda s: s.add_scores(Rule(scope)))  # type: ignore[arg-type]
    assert {(f.plugin, f.point) for f in scored.faults} == {("user", "node_order")} and scored.bound == 4


def test_node_views_show_what_the_session_sees() -> None:
    seen: dict[str, Any] = {}

    def score(task: Task, node: NodeView) -> float:
        seen.setdefault(node.name, (node.allocatable["cpu"], node.idle["cpu"], node.used["cpu"], node.pod_count))
        return 0.0

    nodes = {"n0": {"cpu": 8, "labels": {"zone": "a"}}, "n1": {"cpu": 4, "taints": ["k=v:PreferNoSchedule"]}}
    old = {"phase": "Running", "tasks": {"t": {"pods": 2, "cpu": 1, "runsOn": "n0"}}}
    simulation = Simulation(manifests({"nodes": nodes, "jobs": {"old": old, "g": {"each": {"cpu": 1}}}}))
    report = run(simulation, lambda s: s.add_node_order(score))
    assert seen == {"n0": (8000.0, 6000.0, 2000.0, 2), "n1": (4000.0, 4000.0, 0.0, 0)}
    session = report.session
    n0, n1 = session.node(0), session.node(1)
    assert n0.labels["zone"] == "a" and n1.taints[0].key == "k" and n0.annotations == {} and not n0.unschedulable
    assert {t.name for t in n0.pods} >= {"old-t-0", "old-t-1"} and n0.releasing["cpu"] == n0.pipelined["cpu"] == 0
    assert n0.allocatable["example.com/none"] == 0 and "cpu" in dict(n0.idle) and np.isfinite(n0.idle["memory"])


@pytest.mark.parametrize(("follows", "evicted"), [(True, {"default/holder-0"}), (False, {"default/other-0"})])
def test_dry_runs_call_a_predicate_again_that_reads_what_pods_hold(follows: bool, evicted: set[str]) -> None:
    """One pod of a node holds its license, and another pod is the first victim."""
    running = {"min": 0, "priority": "low", "each": {"cpu": 1, "runsOn": "n0"}, "phase": "Running"}
    simulation = Simulation(
        manifests(
            {
                "nodes": {"n0": {"cpu": 2}},
                "priorities": {"high": 100, "middle": 2, "low": 1},
                "jobs": {
                    "other": running,
                    "holder": {**running, "priority": "middle"},
                    "urgent": {"priority": "high", "each": {"cpu": 1}},
                },
            }
        )
    )
    holds = {"default/holder-0"}

    def register(session: Session) -> None:
        session.add_predicate(lambda t, _: "no license" if holds - {t.key} else None, follows_dry_runs=follows)
        session.add_event_handler(
            lambda t, _: holds.add(t.key) if t.key == "default/holder-0" else None,
            lambda t, _: holds.discard(t.key),
        )

    registry = Registry({**REGISTRY.plugins, "user": _plugin(register)}, REGISTRY.actions)
    plugins = [["priority", "gang", "user"], ["predicates"]]
    # Without deviations: with them no pod is evicted where a filter still rejects the node.
    dry_runs = {"name": "preempt", "arguments": {"enableTopologyAwarePreemption": True}}
    conf = {"actions": "allocate, preempt", "plugins": plugins, "configurations": [dry_runs], "deviations": "parity"}
    text = configuration(conf)
    report = run_once(simulation.cluster, load(text, registry.actions), simulation.now, registry=registry)
    assert {f"{op.namespace}/{op.name}" for op in report.plan if isinstance(op, Evict)} == evicted


def _plugin(register: Callable[[Session], None]) -> type[Plugin]:
    class User(Plugin):
        name = "user"

        def on_session_open(self, session: Session) -> None:
            register(session)

    return User
