"""The plugin usage: estimates, scores, and the usage of pods that is not measured yet."""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.values import pod as pod_struct
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.pod_request import pod_limit, pod_request
from volcano_py.scheduler.plugins.usage import Usage
from volcano_py.scheduler.plugins.usage.estimates import (
    Estimate,
    ShadowLoad,
    composite,
    estimate,
    estimate_best_effort,
    risk,
    weighted,
)
from volcano_py.scheduler.plugins.usage.plugin import is_unmeasured, node_score

_RECORDED_AT = parse_time("2026-11-21T14:07:09Z")
_NODES = ("node1", "node2", "node3")


def _shadow(data: Any) -> ShadowLoad:
    """The data contains empty maps as a list of their names."""
    found = ShadowLoad()
    if isinstance(data, dict):
        for pod, s in (data.get("podSnapshots") or {}).items():
            found.of[pod] = Estimate(_NODES.index(s["NodeName"]), s.get("CPUMillis", 0), s.get("MemBytes", 0))
        for node, cpu in (data.get("nodeCPUEst") or {}).items():
            found.cpu[_NODES.index(node)] = cpu
        for node, memory in (data.get("nodeMemEst") or {}).items():
            found.memory[_NODES.index(node)] = memory
    return found


def _shadow_out(shadow: ShadowLoad) -> list[Any]:
    """Sums that are 0 and those that are missing are the same."""
    sums = [{_NODES[n]: v for n, v in of.items() if v} for of in (shadow.cpu, shadow.memory)]
    return [*sums, {pod: [_NODES[e.node], e.cpu, e.memory] for pod, e in shadow.of.items()}]


def _shadow_after(expected: Data) -> list[Any]:
    return _shadow_out(_shadow(expected.get("receiver_after")))


def _add(receiver: Any, a: list[Any]) -> list[Any]:
    shadow = _shadow(receiver)
    shadow.add(a[1], Estimate(_NODES.index(a[0]), a[2], a[3]))
    return _shadow_out(shadow)


def _remove(receiver: Any, a: list[Any]) -> list[Any]:
    shadow = _shadow(receiver)
    before = _shadow_out(shadow)
    shadow.remove(a[0])
    return [] if _shadow_out(shadow) == before else _shadow_out(shadow)


def _get(receiver: Any, a: list[Any]) -> list[Any]:
    shadow, node = _shadow(receiver), _NODES.index(a[0]) if a[0] in _NODES else -1
    return [shadow.cpu.get(node, 0), shadow.memory.get(node, 0)]


def _tracked(_: Any, a: list[Any]) -> list[Any]:
    """Only pods on a node are evaluated: others use nothing."""
    task = a[0]
    if "node" not in task:
        return [False]
    start = ((task.get("pod") or {}).get("status") or {}).get("startTime", "")
    return [is_unmeasured(st.STATUS_NAMES.index(task["status"]), start, _RECORDED_AT, 300.0)]


def _amounts(_: Any, a: list[Any]) -> list[Any]:
    pod = pod_struct(a[0])
    request, limit = pod_request(pod), pod_limit(pod)
    return [request.milli_cpu, limit.milli_cpu, request.memory, limit.memory]


def _new(_: Any, a: list[Any]) -> list[Any]:
    u = Usage(a[0] or {})
    return [
        {
            "usageWeight": u.weight,
            "cpuWeight": u.cpu_weight,
            "memoryWeight": u.memory_weight,
            "cpuThresholds": u.thresholds[0],
            "memThresholds": u.thresholds[1],
            "requestRatio": u.request_ratio,
            "burstRatio": u.burst_ratio,
            "riskThreshold": u.risk_threshold,
            "riskFactor": u.risk_factor,
            "beCPU": u.be_cpu,
            "beMemory": u.be_memory,
        }
    ]


def _settings(expected: Data) -> list[Any]:
    left_out = ("pluginArguments", "usageType", "period", "metricsInterval")
    return [{"burstRatio": 0} | {k: v for k, v in expected["result"][0].items() if k not in left_out}]


ADAPTERS: Adapters = {
    "api.GetPodResourceLimit": lambda r, a: [pod_limit(pod_struct(a[0]))],
    "usage.CalcAppliedRiskFactor": lambda r, a: [risk(*a)],
    "usage.CalcCompositeUtilization": lambda r, a: [composite(*a)],
    "usage.CalcLoadCompositePercentage": lambda r, a: [weighted(*a)],
    "usage.CalcNodeScore": lambda r, a: [node_score(*a)],
    "usage.EstimateBestEffortResource": lambda r, a: [estimate_best_effort(*a)],
    "usage.EstimatePodResource": lambda r, a: [estimate(*a)],
    "usage.getPodResourceRequestLimit": _amounts,
    "usage.ShadowLoadCache.AddEstimate": Adapter(_add, _shadow_after),
    "usage.ShadowLoadCache.SubEstimateBySnapshot": Adapter(
        _remove, lambda expected: _shadow_after(expected) if "receiver_after" in expected else []
    ),
    "usage.ShadowLoadCache.GetNodeEst": _get,
    "usage.ShadowLoadCache.Reset": Adapter(lambda r, a: _shadow_out(ShadowLoad()), _shadow_after),
    "usage.shouldAddToShadowCache": _tracked,
    "usage.New": Adapter(_new, _settings),
}
