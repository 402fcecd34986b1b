"""NUMA: topology hints, policies, and which CPUs are in use."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapters, Data
from volcano_py.api import quantity
from volcano_py.api.nodeinfo import Numatopology, NumatopoSpec, PodAllocation
from volcano_py.scheduler.plugins.numaaware.cpu_topology import CpuPlace, Cpus, CpuTopology, NumaNode
from volcano_py.scheduler.plugins.numaaware.hints import (
    BEST_EFFORT,
    NONE,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    Hint,
    choose,
    cpu_hints,
)
from volcano_py.scheduler.plugins.numaaware.plugin import cpus_of, reported_pods


def _topology(info: Data) -> CpuTopology:
    detail = info.get("CPUDetail") or {}
    places = {
        int(cpu): CpuPlace(p.get("NUMANodeID", 0), p.get("SocketID", 0), p.get("CoreID", 0))
        for cpu, p in detail.items()
    }
    reserved = (info.get("ResReserved") or {}).get("cpu", 0)
    return CpuTopology(places, -(-quantity.milli_value(reserved) // 1000), exact=False)


def _cpus(sets: Data) -> Cpus:
    return frozenset(int(cpu) for cpu in sets["cpu"].get("elems") or ())


def _request(container: Data) -> int:
    return quantity.value(container["resources"]["requests"]["cpu"])


def _hint(data: Data) -> Hint:
    return Hint(data.get("NUMANodeAffinity"), data.get("Preferred", False))


def _hint_out(hint: Hint) -> Data:
    out: Data = {} if hint.mask is None else {"NUMANodeAffinity": hint.mask}
    return {**out, "Preferred": True} if hint.preferred else out


def _policy(name: str) -> Any:
    def call(receiver: Data, a: list[Any]) -> list[Any]:
        providers = [
            {res: None if hints is None else [_hint(h) for h in hints] for res, hints in (of or {}).items()}
            for of in a[0]
        ]
        found = choose(name, receiver["numaNodes"], providers)
        return [_hint_out(found.hint), found.admitted]

    return call


def _hints(_: Any, a: list[Any]) -> list[Any]:
    container, info, sets = a
    return [{"cpu": [_hint_out(h) for h in cpu_hints(_topology(info), _cpus(sets), _request(container))]}]


def _allocate(_: Any, a: list[Any]) -> list[Any]:
    container, hint, info, sets = a
    numa = NumaNode("static", "", _topology(info), _cpus(sets))
    taken = cpus_of(numa, _cpus(sets), _request(container), _hint(hint))
    return [{"cpu": {"elems": [str(cpu) for cpu in taken]}}]


def _is_assigned(receiver: Data, a: list[Any]) -> list[Any]:
    pods = [PodAllocation(p["uid"], p["name"], p["namespace"]) for p in receiver.get("PodAllocations") or ()]
    reported = reported_pods(Numatopology(spec=NumatopoSpec(pod_allocations=pods)))
    return [not reported.isdisjoint((a[0]["UID"], f"{a[0]['Namespace']}/{a[0]['Name']}"))]


ADAPTERS: Adapters = {
    "policy.policyBestEffort.Predicate": _policy(BEST_EFFORT),
    "policy.policyNone.Predicate": _policy(NONE),
    "policy.policyRestricted.Predicate": _policy(RESTRICTED),
    "policy.policySingleNumaNode.Predicate": _policy(SINGLE_NUMA_NODE),
    "cpumanager.cpuMng.GetTopologyHints": _hints,
    "cpumanager.cpuMng.Allocate": _allocate,
    "api.NumatopoInfo.CheckNumaPodAssigned": _is_assigned,
}
