"""Cases of preemption, back-off and gangs: what `framework_rules` calls for these areas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.conformance.framework_bench import Bench, Data, group, pod, status
from volcano_py.api import core
from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import format_time, parse_time
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status, unschedulable
from volcano_py.scheduler.profiles.plugins.default_preemption import (
    DefaultPreemption,
    choose,
    covering,
    split_by_budgets,
)
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import backoff
from volcano_py.scheduler.profiles.registry import REGISTRY

# ---- preemption


def eligible(given: Data) -> Data:
    nodes = [{"kind": "Node", "metadata": {"name": n}} for n in given["nodes"]]
    bench = Bench(nodes, given["pods"])
    waiting = pod(given["pod"])
    known = given.get("nominatedNodeStatus")
    nominated = waiting.pod.status.nominated_node_name
    rejected = {nominated: Status(Code(known["code"]), tuple(known["reasons"]))} if known else {}
    return {"result": not bench.plugin("DefaultPreemption").not_eligible(waiting, rejected)}


def preemption(bench: Bench, profile: Profile) -> DefaultPreemption:
    registration = REGISTRY["DefaultPreemption"]
    plugin = registration.make(msgspec.convert({}, registration.arguments), Handle(bench.world, profile))
    assert isinstance(plugin, DefaultPreemption)
    return plugin


def candidates(bench: Bench, given: Data, waiting: PodInfo) -> list[Any]:
    profile = bench.profile(given["plugins"])
    plugin, state = preemption(bench, profile), CycleState()
    profile.pre_filter(state, waiting)
    rejected = dict.fromkeys(bench.cluster.nodes, unschedulable(""))
    return plugin.candidates(state, waiting, rejected)[0]


def victims(given: Data) -> Data:
    results = []
    for preemptor in given["preemptors"]:
        bench = Bench(given["nodes"], given["pods"])
        for i, budget in enumerate(given.get("pdbs") or ()):
            _add_budget(bench, budget, i)
        found = candidates(bench, given, pod(preemptor)) if given["fakeFilterRC"] == "Success" else []
        results.append(
            [
                {
                    "name": c.node,
                    "victims": {"numPDBViolations": c.violations, "pods": sorted(v.name for v in c.victims)},
                }
                for c in sorted(found, key=lambda c: c.node)
            ]
        )
    return {"result": results}


def choice(given: Data) -> Data:
    bench = Bench(given["nodes"], given["pods"])
    best = choose(candidates(bench, given, pod(given["pod"])))
    return {"result": _OneOf(best.node)}


class _OneOf:
    def __init__(self, value: str) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and self._value in other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._value)


def post_filter(given: Data) -> Data:
    bench = Bench(given["nodes"], given["pods"])
    for i, budget in enumerate(given.get("pdbs") or ()):
        _add_budget(bench, budget, i)
    profile = bench.profile({"NodeResourcesFit": ["preFilter", "filter"]})
    plugin, state, waiting = preemption(bench, profile), CycleState(), pod(given["pod"])
    profile.pre_filter(state, waiting)
    known = given["statuses"]["nodes"]
    other = Status(Code(given["statuses"]["others"]["code"]))
    rejected = {n: Status(Code(known[n]["code"])) if n in known else other for n in bench.cluster.nodes}
    answer = plugin.post_filter(state, waiting, rejected)
    nominated = None if answer.nominated is None else {"nominatingInfo": {"nominatedNodeName": answer.nominated}}
    return {"result": nominated, "status": status(answer.status) or {"code": "Success"}}


def _add_budget(bench: Bench, given: Data, number: int) -> None:
    metadata = {"name": f"b{number}", "namespace": ""} | given.get("metadata", {})
    budget = from_manifest(core.PodDisruptionBudget, {**given, "metadata": metadata})
    bench.cluster.model.upsert("PodDisruptionBudget", budget)


def budgets(given: Data) -> Data:
    """A unit is one pod, or the members of a gang that are evicted together."""
    units = [tuple(pod(p) for p in unit) for unit in given.get("units") or ()]
    found = [from_manifest(core.PodDisruptionBudget, b) for b in given.get("pdbs") or ()]
    violating, others = split_by_budgets(units, found, lambda unit: [i for p in unit for i in covering(p, found)])

    def listed(some: Sequence[Sequence[PodInfo]]) -> list[Data] | None:
        return [{"pods": [p.name for p in unit]} for unit in some] or None

    return {"violating": listed(violating), "nonViolating": listed(others)}


# ---- queue and gangs


def backoff_time(given: Data) -> Data:
    info = given["podInfo"]
    count = info["consecutiveErrorsCount"] or info["unschedulableCount"]
    if not count:
        return {"result": None}
    if "backoffExpiration" in info:
        return {"result": info["backoffExpiration"]}
    wait = backoff(count, given["initialBackoffDuration"], given["maxBackoffDuration"])
    if not wait:
        return {"result": None}
    return {"result": format_time(parse_time(info["timestamp"]) + wait)}


def backoff_duration(given: Data) -> Data:
    wait = backoff(given["count"], given["initialBackoffDuration"], given["maxBackoffDuration"])
    return {"result": round(wait, 12)}


def gates(given: Data) -> Data:
    return {"result": status(Bench().plugin("SchedulingGates").pre_enqueue(pod(given["pod"])))}


def gang_points(given: Data) -> Data:
    bench = Bench([{"kind": "Node", "metadata": {"name": "n"}}])
    for g in given["initialPodGroups"]:
        found = group(g)
        bench.cluster.groups[found.key] = found
    waiting = pod(given["pod"])
    for member in [waiting, *(pod(p) for p in given.get("initialPods") or ())]:
        bench.cluster.join(member)
    plugin = bench.plugin("GangScheduling")
    before = plugin.pre_enqueue(waiting)
    if "podsWaitingOnPermit" not in given:
        return {"preEnqueueStatus": status(before)}
    for p in [waiting, *(pod(p) for p in given["podsWaitingOnPermit"])]:
        bench.cluster.place(p, "n")
    answer, _ = plugin.permit(CycleState(), waiting, "n")
    return {"preEnqueueStatus": status(before), "permitStatus": status(answer)}
