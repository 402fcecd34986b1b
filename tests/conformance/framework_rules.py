"""Pod-at-a-time scheduling, rule by rule: small cases of filters, scores, hints, preemption, back-off and gangs.

`ADAPTERS` turns a case of an area into a call of our plugin; the answer has the form of the recorded one.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.framework_bench import Bench, Data, group, node, node_info, pod, status
from tests.conformance.framework_preemption import (
    backoff_duration,
    backoff_time,
    budgets,
    choice,
    eligible,
    gang_points,
    gates,
    post_filter,
    victims,
)
from tests.conformance.outcome import FAIL, NO_COUNTERPART, PASS, UNBUILDABLE, Outcome
from volcano_py.api import core
from volcano_py.api.codec import from_manifest
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import PODS, Kind
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, ProfilePlugin, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status
from volcano_py.scheduler.rules.score_line import LinePoint, on_line

AREA = "framework rules"


def run_folder(folder: Path) -> Iterator[Outcome]:
    """One outcome for each case."""
    data = folder / "framework-cases.json.gz"
    if data.is_file():
        for case in json.loads(gzip.decompress(data.read_bytes()))["cases"]:
            yield run_case(case)


_INVALID = (NO_COUNTERPART, "the API server rejects such a selector; see webhooks and quarantine")
_NANOSECONDS = (UNBUILDABLE, "the start times differ by less than a second, and the data has whole seconds")
_GATE_OFF = (NO_COUNTERPART, "the case switches a feature gate off that is locked on in 1.36")
_WORKLOADS = (NO_COUNTERPART, "no such gate: members evict in the attempt of their group, see profiles/scenarios.yaml")
_NO_RESOURCES = (NO_COUNTERPART, "a strategy without resources cannot be configured: the default has cpu and memory")
OPEN = {
    "preemption-postfilter-10": (
        UNBUILDABLE,
        "a Go plugin of the test fails; see tests/scheduler/profiles/test_faults.py",
    ),
    "preemption-postfilter-12": _WORKLOADS,
    "preemption-victims-08": _NANOSECONDS,
    "preemption-choice-07": _NANOSECONDS,
    "preemption-choice-08": _NANOSECONDS,
    "preemption-choice-09": _NANOSECONDS,
    "hint-resources-pod-07": _GATE_OFF,
    "score-spread-26": _GATE_OFF,
    "score-least-allocated-03": _NO_RESOURCES,
    "score-most-allocated-03": _NO_RESOURCES,
    "filter-affinity-one-20": _INVALID,
    "filter-affinity-one-21": _INVALID,
    "filter-nodeaffinity-18": _INVALID,
    "score-affinity-18": _INVALID,
    "score-affinity-19": _INVALID,
    "score-nodeaffinity-03": _INVALID,
}
"""Cases that differ, with the kind of the outcome and the reason; one that agrees must not be listed."""


def run_case(case: Data) -> Outcome:
    adapter = ADAPTERS[case["area"]]
    try:
        got = adapter(case["given"])
        wrong = {k: (v, got.get(k)) for k, v in case["expected"].items() if k in got and got[k] != v}
        why = "; ".join(f"{k}: {want!r}, got {have!r}" for k, (want, have) in wrong.items())
    except Exception as e:
        why = f"{type(e).__name__}: {e}"
    if case["name"] in OPEN:
        kind, reason = OPEN[case["name"]]
        return Outcome(AREA, case["name"], kind if why else FAIL, reason if why else "it agrees; take it out of OPEN")
    return Outcome(AREA, case["name"], FAIL if why else PASS, why)


# ---- filters


def filtered(plugin: Any, p: PodInfo, info: NodeInfo) -> Data:
    """PreFilter, and Filter unless it skips."""
    state = CycleState()
    before, answer = SUCCESS, SUCCESS
    if isinstance(plugin, PreFilter):
        _, before = plugin.pre_filter(state, p)
    if before.code is Code.SUCCESS and isinstance(plugin, Filter):
        answer = plugin.filter(state, p, info)
    return {"preFilterStatus": status(before), "filterStatus": status(answer), "status": status(answer)}


def filter_one(name: str, given: Data) -> Data:
    info = node_info(given["nodeInfo"] if "nodeInfo" in given else {"node": given["node"]})
    answer = filtered(Bench().plugin(name, given.get("args")), pod(given["pod"]), info)
    return answer | {"fits": answer["status"] is None}


def filter_node_affinity(given: Data) -> Data:
    metadata = {"name": given["nodeName"], "labels": given.get("labels") or {}}
    plugin = Bench().plugin("NodeAffinity", given["args"])
    p, info = pod(given["pod"]), NodeInfo(node({"kind": "Node", "metadata": metadata}))
    only, before = plugin.pre_filter(CycleState(), p)
    named = {"nodeNames": sorted(only)} if only is not None else None
    return {
        "preFilterResult": named if given["runPreFilter"] else None,
        "preFilterStatus": status(before) if given["runPreFilter"] else None,
        "status": status(plugin.filter(CycleState(), p, info)),
    }


def filter_affinity(given: Data) -> Data:
    nodes = given.get("nodes") or [given["node"]]
    bench = Bench(nodes, given.get("pods") or (), given["namespaces"])
    plugin = bench.plugin("InterPodAffinity")
    answers = [filtered(plugin, pod(given["pod"]), info) for info in bench.infos(nodes)]
    statuses = [a["filterStatus"] for a in answers]
    return {**answers[0], "filterStatuses": statuses}


def filter_spread(given: Data) -> Data:
    bench = Bench(given["nodes"], given.get("pods") or ())
    plugin = bench.plugin("PodTopologySpread", {"defaultingType": "List"})
    p = pod(_policies(given))
    codes = {}
    for info in bench.infos(given["nodes"]):
        answer = filtered(plugin, p, info)["status"]
        codes[info.name] = answer["code"] if answer else "Success"
    return {"statusCode": codes}


def _policies(given: Data) -> Data:
    """The pod, without the policies of its constraints if these are switched off."""
    found: Data = json.loads(json.dumps(given["pod"]))
    for c in found["spec"].get("topologySpreadConstraints") or ():
        if not given.get("enableNodeInclusionPolicy"):
            c.pop("nodeAffinityPolicy", None)
            c.pop("nodeTaintsPolicy", None)
    return found


# ---- scores


def scored(plugin: Score, p: PodInfo, nodes: list[NodeInfo], *, normalized: bool = True) -> tuple[Data, Status]:
    """Scores by node, and the status of PreScore."""
    state = CycleState()
    before = plugin.pre_score(state, p, nodes)
    if before.code is Code.SKIP:
        return {}, before
    scores = {n.name: plugin.score(state, p, n) for n in nodes}
    if normalized:
        plugin.normalize(state, p, scores)
    return scores, before


def score(name: str, given: Data) -> Data:
    """Any plugin that scores; absent arguments are its own."""
    extra = ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods")
    arguments = given.get("args") or {k: given[k] for k in extra if k in given}
    bench = Bench(given["nodes"], given.get("pods") or (), given.get("namespaces") or ())
    plugin = bench.plugin(name, arguments)
    nodes = bench.infos(given["nodes"])
    if not given.get("runPreScore", True):
        found = {n.name: plugin.score(CycleState(), pod(given["pod"]), n) for n in nodes}
        if name == "NodeAffinity":
            plugin.normalize(CycleState(), pod(given["pod"]), found)
        return {"scores": _listed(found)}
    scores, before = scored(plugin, pod(given["pod"]), nodes)
    code = before.code.value if before.code is Code.SKIP else None
    return ({"scores": _listed(scores)} if scores else {}) | {
        "status": status(before),
        "preScoreStatus": status(before),
        "preScoreStatusCode": code or "Success",
    }


def _listed(scores: Mapping[str, int]) -> list[Data]:
    return [{"name": n, "score": s} for n, s in scores.items()]


def score_fit(kind: str, given: Data) -> Data:
    strategy: Data = {"type": kind, "resources": given.get("resources") or []}
    if "shape" in given:
        strategy["requestedToCapacityRatio"] = {"shape": given["shape"]}
    return score("NodeResourcesFit", {**given, "args": {"scoringStrategy": strategy}}) | {"statusCode": "Success"}


def score_line(given: Data) -> Data:
    points = msgspec.convert(given["points"], list[LinePoint])
    found = [{"p": p, "expected": on_line(points, p) // 10} for p in range(-10, 111)]
    wanted = {a["p"]: a for a in found}
    return {"assertions": _Containing(wanted)}


class _Containing:
    """Equal to every list of entries that it contains."""

    def __init__(self, entries: Mapping[int, Data]) -> None:
        self._entries = entries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and all(self._entries[a["p"]] == a for a in other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


def score_spread(given: Data) -> Data:
    bench = Bench([*given["nodes"], *(given.get("failedNodes") or ())], given.get("pods") or ())
    for other in given.get("objs") or ():
        kinds: dict[str, type[Any]] = {"Service": core.Service, "ReplicaSet": core.ReplicaSet}
        bench.cluster.model.upsert(other["kind"], from_manifest(kinds[other["kind"]], other))
    plugin = bench.plugin("PodTopologySpread")
    scores, _ = scored(plugin, pod(_policies(given)), bench.infos(given["nodes"]))
    return {"result": _listed(scores) if scores else None}


# ---- hints


def hint(name: str, kind: str, given: Data) -> Data:
    """Whether an event has the pod tried again that the plugin rejected."""
    plugin: ProfilePlugin = Bench().plugin(name)
    if "args" in given:
        plugin = Bench().plugin(name, given["args"])
    waiting = pod(given["pod"], space="default" if kind == "group" else "")
    read: Callable[[Any], Any] = {"pod": pod, "node": node, "group": group}[kind]
    old, new = read(given.get("old")), read(given.get("new"))
    return {"hint": "Queue" if any(_hint(plugin, kind, waiting, old, new)) else "QueueSkip"}


def _hint(plugin: ProfilePlugin, kind: str, waiting: PodInfo, old: Any, new: Any) -> Iterator[bool]:
    """What each hint of the plugin for this kind answers, whatever the action."""
    kinds = {"pod": PODS, "node": {Kind.NODE}, "group": {Kind.POD_GROUP}}[kind]
    for interest in plugin.interests():
        if interest.kinds & kinds and interest.hint is not None:
            yield interest.hint(waiting, old, new)


ADAPTERS: dict[str, Callable[[Data], Data]] = {
    "filter-resources": partial(filter_one, "NodeResourcesFit"),
    "filter-resources-pods": partial(filter_one, "NodeResourcesFit"),
    "filter-resources-storage": partial(filter_one, "NodeResourcesFit"),
    "filter-taint": partial(filter_one, "TaintToleration"),
    "filter-cordon": partial(filter_one, "NodeUnschedulable"),
    "filter-nodename": partial(filter_one, "NodeName"),
    "filter-ports": partial(filter_one, "NodePorts"),
    "filter-nodeaffinity": filter_node_affinity,
    "filter-affinity-one": filter_affinity,
    "filter-affinity-many": filter_affinity,
    "filter-spread-one": filter_spread,
    "filter-spread-many": filter_spread,
    "score-balanced": partial(score, "NodeResourcesBalancedAllocation"),
    "score-fit": partial(score, "NodeResourcesFit"),
    "score-least-allocated": partial(score_fit, "LeastAllocated"),
    "score-most-allocated": partial(score_fit, "MostAllocated"),
    "score-capacity-ratio": partial(score_fit, "RequestedToCapacityRatio"),
    "score-ratio-line": score_line,
    "score-affinity": partial(score, "InterPodAffinity"),
    "score-affinity-hard": partial(score, "InterPodAffinity"),
    "score-taint": partial(score, "TaintToleration"),
    "score-nodeaffinity": partial(score, "NodeAffinity"),
    "score-image": partial(score, "ImageLocality"),
    "score-spread": score_spread,
    "hint-resources-pod": partial(hint, "NodeResourcesFit", "pod"),
    "hint-resources-node": partial(hint, "NodeResourcesFit", "node"),
    "hint-spread-pod": partial(hint, "PodTopologySpread", "pod"),
    "hint-spread-node": partial(hint, "PodTopologySpread", "node"),
    "hint-affinity-pod": partial(hint, "InterPodAffinity", "pod"),
    "hint-affinity-node": partial(hint, "InterPodAffinity", "node"),
    "hint-taint-pod": partial(hint, "TaintToleration", "pod"),
    "hint-taint-node": partial(hint, "TaintToleration", "node"),
    "hint-nodeaffinity-node": partial(hint, "NodeAffinity", "node"),
    "hint-ports-pod": partial(hint, "NodePorts", "pod"),
    "hint-cordon-pod": partial(hint, "NodeUnschedulable", "pod"),
    "hint-cordon-node": partial(hint, "NodeUnschedulable", "node"),
    "hint-gates-pod": partial(hint, "SchedulingGates", "pod"),
    "hint-gang-pod": partial(hint, "GangScheduling", "pod"),
    "hint-gang-group": partial(hint, "GangScheduling", "group"),
    "preemption-eligible": eligible,
    "preemption-victims": victims,
    "preemption-choice": choice,
    "preemption-postfilter": post_filter,
    "preemption-budgets": budgets,
    "backoff-time": backoff_time,
    "backoff-duration": backoff_duration,
    "gates-preenqueue": gates,
    "gang-preenqueue-permit": gang_points,
}
