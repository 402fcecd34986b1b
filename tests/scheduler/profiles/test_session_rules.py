"""Rules of profiles in a session, with plugins as users write them: gangs see them, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.profile_plugin import (
    LOCAL,
    SKIP,
    STATIC,
    SUCCESS,
    AnyColumns,
    Columns,
    CycleState,
    Filter,
    NodeInfo,
    Permit,
    Plugin,
    PodInfo,
    PostBind,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
    Status,
    unresolvable,
    unschedulable,
)
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.profiles import configuration as profiles
from volcano_py.scheduler.profiles.cluster_events import BoundBySession, NodeChanged, ObjectChanged
from volcano_py.scheduler.profiles.registry import REGISTRY, of
from volcano_py.scheduler.run_once import REGISTRY as SESSION_REGISTRY
from volcano_py.simulate.cycles import CycleResult, Simulation
from volcano_py.testing.table import configuration, manifests

Counts = dict[str, int]
calls: Counts = {}
"""Calls of the plugins below, by `plugin point`."""


def count(what: str) -> None:
    calls[what] = calls.get(what, 0) + 1


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


class OnePerNode(Filter):
    """Nodes take one pod of each app; reads the pods on the node."""

    name = "OnePerNode"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        app = pod.labels.get("app")
        taken = app and any(p.labels.get("app") == app for p in node.pods.values())
        return unschedulable("node(s) had a pod of this app") if taken else SUCCESS


class Elsewhere(Filter):
    """Zones take one pod of each app; reads other nodes by the handle."""

    name = "Elsewhere"

    def __init__(self, arguments: Any, handle: Any) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        zone = node.labels["zone"]
        for other in self._handle.nodes():
            if other.labels["zone"] == zone and any(p.labels.get("app") for p in other.pods.values()):
                return unresolvable("zone(s) had a pod of this app")
        return SUCCESS


class NoNorth(Filter):
    """STATIC, with an array form."""

    name = "NoNorth"
    scope = STATIC

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        count("NoNorth filter")
        return unresolvable("node(s) were in the north") if node.labels.get("zone") == "north" else SUCCESS

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Any:
        count("NoNorth columns")
        return np.array([n.labels.get("zone") != "north" for n in nodes.infos])


class AtMostTwo(Filter):
    """LOCAL: the number of pods on the node."""

    name = "AtMostTwo"
    scope = LOCAL

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        count("AtMostTwo filter")
        return unschedulable("node(s) had two pods") if len(node.pods) >= 2 else SUCCESS


class Named(PreFilter):
    """Names the only nodes, or rejects the pod, or skips."""

    name = "Named"

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Sequence[str] | None, Status]:
        wanted = pod.labels.get("wanted")
        if wanted == "none":
            return None, unresolvable("the pod must not run")
        return (None, SKIP) if wanted is None else ([wanted], SUCCESS)


class Fitting(Filter):
    """DOMAIN, with the array form over the columns of all nodes."""

    name = "Fitting"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("node(s) had a pod") if node.pods else SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Any) -> Any:
        return nodes.pods == 0


class Gate(PreEnqueue):
    name = "Gate"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unresolvable("the gate is closed") if "gated" in pod.labels else SUCCESS


class Fails(Filter):
    name = "Fails"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        raise RuntimeError("out of order")


class Best(Score):
    """Prefers one node; with normalization over the candidates."""

    name = "Best"
    scope: ClassVar[Any] = STATIC

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 7 if node.name == "z" else 6

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        top = max(scores.values())
        for name in scores:
            scores[name] = 100 * scores[name] // top

    def normalize_columns(self, scores: Any) -> Any:
        return 100 * scores // scores.max()


class Fewest(Score):
    """LOCAL, with an array form: the fewest pods."""

    name = "Fewest"
    scope = LOCAL

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 - len(node.pods)

    def score_columns(self, pod: PodInfo, nodes: AnyColumns) -> Any:
        return 100 - nodes.pods


class WrongScore(Score):
    name = "WrongScore"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101


class Everything(Filter, Reserve, Permit, PreBind, PostBind):
    """Also implements points that a session does not have."""

    name = "Everything"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == "b" else unresolvable("node(s) were not b")

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        raise AssertionError

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        raise AssertionError

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        raise AssertionError

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        raise AssertionError

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        count(f"Everything {pod.name} {node}")


def simulation(*plugins: type[Plugin], weight: int = 1, **cluster: Any) -> Simulation:
    """Two zones, and a profile `batch` with these plugins."""
    enabled = [{"name": p.name} | ({"weight": weight} if issubclass(p, Score) else {}) for p in plugins]
    document = {"profiles": [{"schedulerName": "batch", "plugins": {"multiPoint": {"enabled": enabled}}}]}
    registry = {**REGISTRY, **{p.name: of(p) for p in plugins}}
    nodes = {"a": {"labels": {"zone": "north"}}, "b": {"labels": {"zone": "south"}}, "c": {"labels": {"zone": "south"}}}
    described = {"nodes": nodes, "queues": {"q": {}}, **cluster}
    found = profiles.load(document, frozenset(), registry)
    return Simulation(manifests(described), profiles=found)


def gang(pods: int, least: int | None = None, cpu: int = 1, **labels: str) -> dict[str, Any]:
    each = {"cpu": cpu, "labels": labels, "spec": {"schedulerName": "batch"}}
    return {"queue": "q", "min": pods if least is None else least, "pods": pods, "each": each}


def cycle(of: Simulation, **conf: Any) -> CycleResult:
    conf.setdefault("plugins", [["priority", "gang"], ["predicates", "nodeorder"]])
    return of.cycle(load(configuration(conf), SESSION_REGISTRY.actions))


def nodes_of(result: CycleResult) -> list[str]:
    return sorted(result.bound.values())


def test_a_filter_sees_the_pods_that_the_session_has_placed() -> None:
    assert nodes_of(cycle(simulation(OnePerNode, jobs={"g": gang(3, app="x")}))) == ["a", "b", "c"]


def test_and_a_gang_that_is_too_large_is_placed_nowhere_and_says_why() -> None:
    of_four = simulation(OnePerNode, jobs={"g": gang(4, app="x"), "h": gang(3, app="x")})
    result = cycle(of_four)
    assert {key.rpartition("-")[0] for key in result.bound} == {"default/h"}, "what was undone is not counted"
    assert "node(s) had a pod of this app" in result.waiting["default/g"]


def test_a_filter_sees_other_nodes_by_its_handle_as_the_session_has_changed_them() -> None:
    result = cycle(simulation(Elsewhere, jobs={"g": gang(3, 2, app="x")}))
    assert len(result.bound) == 2 and "a" in nodes_of(result)
    assert "zone(s) had a pod of this app" in result.waiting["default/g"]


def test_after_the_session_the_profile_has_the_nodes_of_the_model() -> None:
    of_gang = simulation(OnePerNode, jobs={"g": gang(4, app="x")})
    assert not cycle(of_gang).bound
    assert of_gang.pods is not None
    assert [len(node.pods) for node in of_gang.pods.cluster.nodes.values()] == [0, 0, 0]


def test_static_results_are_kept_for_the_class_and_use_the_array_form() -> None:
    result = cycle(simulation(NoNorth, jobs={"g": gang(6)}))
    assert set(nodes_of(result)) == {"b", "c"}
    assert calls == {"NoNorth columns": 1, "NoNorth filter": 1}, "one pass; one call for the reason of the node in it"


def test_local_results_are_evaluated_again_for_nodes_that_have_changed() -> None:
    result = cycle(simulation(AtMostTwo, jobs={"g": gang(6)}))
    assert nodes_of(result) == ["a", "a", "b", "b", "c", "c"]
    assert calls["AtMostTwo filter"] <= 3 + 6


def test_the_array_form_of_a_domain_filter_sees_the_moves_of_the_session() -> None:
    assert nodes_of(cycle(simulation(Fitting, jobs={"g": gang(3)}))) == ["a", "b", "c"]


def test_a_pre_filter_names_the_only_nodes_or_rejects_the_pod() -> None:
    assert nodes_of(cycle(simulation(Named, jobs={"g": gang(2, wanted="c")}))) == ["c", "c"]
    result = cycle(simulation(Named, jobs={"g": gang(2, wanted="none")}))
    assert "3 the pod must not run" in result.waiting["default/g"]
    assert len(cycle(simulation(Named, jobs={"g": gang(2)})).bound) == 2


def test_a_pre_enqueue_holds_a_gang() -> None:
    result = cycle(simulation(Gate, jobs={"g": gang(2, gated="yes")}))
    assert "3 the gate is closed" in result.waiting["default/g"]


def test_a_filter_that_raises_rejects_all_nodes_and_names_itself() -> None:
    result = cycle(simulation(Fails, jobs={"g": gang(2)}))
    assert "3 plugin Fails failed" in result.waiting["default/g"]
    assert any("Fails of profile batch" in fault and "out of order" in fault for fault in result.faults)


def test_a_filter_that_raises_concerns_only_its_profile() -> None:
    other = {"queue": "q", "min": 2, "pods": 2, "each": {"cpu": 1}}
    result = cycle(simulation(Fails, jobs={"g": gang(2), "other": other}))
    assert sorted(result.bound) == ["default/other-0", "default/other-1"]


def test_scores_are_normalized_over_the_candidates_and_weighted() -> None:
    nodes = {"a": {"cpu": 64}, "z": {"cpu": 4}}
    assert nodes_of(cycle(simulation(Best, weight=10, nodes=nodes, jobs={"g": gang(1)}))) == ["z"]
    assert nodes_of(cycle(simulation(Best, weight=1, nodes=nodes, jobs={"g": gang(1, cpu=3)}))) == ["a"]


def test_the_array_form_of_a_local_score_sees_the_moves_of_the_session() -> None:
    result = cycle(simulation(Fewest, weight=100, jobs={"g": gang(3)}), plugins=[["gang"], ["predicates", "binpack"]])
    assert nodes_of(result) == ["a", "b", "c"]


def test_a_score_that_fails_adds_nothing() -> None:
    result = cycle(simulation(WrongScore, jobs={"g": gang(2)}))
    assert len(result.bound) == 2
    assert any("101" in fault for fault in result.faults)


def test_points_that_a_session_does_not_have_are_reported_and_the_others_hold() -> None:
    of_all = simulation(Everything, jobs={"g": gang(2)})
    assert of_all.pods is not None
    rules = of_all.pods.session_rules
    listed = "reserve of Everything, permit of Everything, preBind of Everything"
    (text,) = rules.left_out
    assert text.startswith(f"profile batch: not called for pods of gangs, which the session places: {listed}; ")
    assert nodes_of(cycle(of_all)) == ["b", "b"]


def test_post_bind_is_called_for_a_pod_that_the_session_has_bound() -> None:
    of_all = simulation(Everything, jobs={"g": gang(1)})
    assert nodes_of(cycle(of_all)) == ["b"]
    assert of_all.pods is not None
    pod = of_all.pods.cluster.pod("default/g-0")
    assert pod is not None
    of_all.pods.handle(BoundBySession(pod, "b"), 0.0)
    assert calls == {"Everything g-0 b": 1}


def test_a_plugin_that_did_not_return_is_closed_its_gangs_wait() -> None:
    of_gang = simulation(NoNorth, jobs={"g": gang(2)})
    assert of_gang.pods is not None
    of_gang.pods.rules_for_session(0.0, ["NoNorth"])
    result = cycle(of_gang)
    assert "3 plugin NoNorth did not return" in result.waiting["default/g"] and not calls
    of_gang.pods.rules_for_session(1.0)
    assert len(cycle(of_gang).bound) == 2


def test_default_plugins_as_they_are_by_default_are_left_to_the_session() -> None:
    of_gang = simulation(jobs={"g": gang(2)})
    assert of_gang.pods is not None and not of_gang.pods.session_rules.names and not of_gang.pods.session_rules.left_out


def test_preempt_evicts_until_the_filter_of_the_profile_accepts_the_node() -> None:
    low = {"queue": "q", "min": 1, "phase": "Running", "priority": "low"}
    jobs = {
        "app": {**low, "each": {"cpu": 1, "runsOn": "a", "labels": {"app": "x"}}},
        "big": {**low, "each": {"cpu": 3, "runsOn": "a"}},
        "vip": {**gang(1, cpu=2, app="x"), "priority": "high"},
    }
    nodes = {"a": {"cpu": 4}}
    of_three = simulation(OnePerNode, nodes=nodes, jobs=jobs, priorities={"low": 1, "high": 100})
    settings = [{"name": "preempt", "arguments": {"enableTopologyAwarePreemption": True}}]
    result = cycle(
        of_three,
        actions="enqueue, allocate, preempt",
        plugins=[["priority", {"gang": {"enablePreemptable": False}}], ["predicates"]],
        configurations=settings,
    )
    assert sorted(result.evicted) == ["default/app-0", "default/big-0"]


RULES: dict[str, dict[str, Any]] = {
    "CardTypes": {"rare": ["H100"], "keepGpuNodesFree": True},
    "MachineGroups": {"namespaces": {"default": "blue"}},
    "Sticky": {"owners": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
}


def with_rules(simulated: dict[str, Any]) -> Simulation:
    enabled = [{"name": name} for name in RULES]
    arguments = [{"name": name, "args": args} for name, args in RULES.items()]
    profile = {"schedulerName": "batch", "plugins": {"multiPoint": {"enabled": enabled}}, "pluginConfig": arguments}
    return Simulation(manifests(simulated), profiles=profiles.load({"profiles": [profile]}))


@pytest.mark.parametrize("name", RULES)
def test_the_codes_of_built_in_filters_are_the_results_of_the_plain_form(name: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o"}
    nodes: dict[str, Any] = {
        "a": {"labels": {"volcano.sh/machine-group": "red"}},
        "b": {"labels": {"volcano.sh/machine-group": "blue", "nvidia.com/gpu.product": "H100"}, "nvidia.com/gpu": 8},
        "c": {"labels": {"nvidia.com/gpu.product": "A100"}, "nvidia.com/gpu": 8},
        "d": {},
    }
    each: list[dict[str, Any]] = [
        {},
        {"labels": {"volcano.sh/machine-group": "red"}},
        {"nvidia.com/gpu": 1, "annotations": {"volcano.sh/card-types": "A100"}},
        {"nvidia.com/gpu": 1, "annotations": {"volcano.sh/preferred-card-types": "H100"}},
        {"metadata": {"ownerReferences": [owner]}},
    ]
    jobs = {f"g{i}": {"each": {"spec": {"schedulerName": "batch"}, **fields}} for i, fields in enumerate(each)}
    scheduler = with_rules({"nodes": nodes, "jobs": jobs}).pods
    assert scheduler is not None
    annotated = {"name": "o", "namespace": "default", "uid": "o", "annotations": {"volcano.sh/sticky-node": "c"}}
    scheduler.handle(ObjectChanged({"apiVersion": "v1", "kind": "ConfigMap", "metadata": annotated}), 0.0)
    plugin: Any = scheduler.session_rules.selected("batch").filter[list(RULES).index(name)]
    assert plugin.name == name
    rejected = 0
    for labels in ({}, {"volcano.sh/machine-group": "blue", "nvidia.com/gpu.product": "H100"}):
        for i in range(len(each)):
            pod = scheduler.cluster.pod(f"default/g{i}-0")
            state, columns = CycleState(), scheduler.cluster.columns
            assert pod is not None
            if isinstance(plugin, PreFilter) and plugin.pre_filter(state, pod)[1].code is SKIP.code:
                continue
            codes, statuses = plugin.filter_codes(state, pod, columns)
            found = [SUCCESS if code == 0 else statuses[code - 1] for code in codes]
            assert found == [plugin.filter(state, pod, node) for node in columns.infos]
            fitting = plugin.filter_fitting(state, pod, columns, np.ones(len(columns), dtype=bool))
            assert fitting.tolist() == [status.ok for status in found]
            rejected += len(found) - int(fitting.sum())
        changed = manifests({"nodes": {"d": {"labels": labels, "nvidia.com/gpu": 1}}})[0]
        scheduler.handle(NodeChanged(None, from_manifest(Node, changed)), 1.0)
        scheduler.cluster.model.upsert("Node", from_manifest(Node, changed))
    assert rejected
