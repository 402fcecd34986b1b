"""Plugins: how they read their arguments, and the rules inside them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.opened import node, opened, pod
from tests.conformance.functions.values import pod as pod_struct
from tests.conformance.functions.values import resource
from tests.conformance.scores import one_sum
from volcano_py.api.codec import from_manifest
from volcano_py.api.duration import format_duration
from volcano_py.api.meta import parse_time
from volcano_py.api.scheduling import Queue as QueueObject
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins import task_topology
from volcano_py.scheduler.plugins.binpack import Binpack
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueNode
from volcano_py.scheduler.plugins.cdp import cooldown_time
from volcano_py.scheduler.plugins.nodeorder import NodeOrder
from volcano_py.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano_py.scheduler.plugins.tdm import window

_DAY = 24 * 3600.0

# ---- binpack, nodeorder ---------------------------------------------------------------------------------------


def _binpack(_: Any, a: list[Any]) -> list[Any]:
    b = Binpack(a[0] or {})
    weight = {
        "BinPackingWeight": b.weight,
        "BinPackingCPU": b.weights["cpu"],
        "BinPackingMemory": b.weights["memory"],
        "BinPackingResources": b.weights,
    }
    return [{"weight": weight}]


def _nodeorder_weights(arguments: Data | None) -> Data:
    w = NodeOrder(arguments or {}).arguments
    weights = {
        "leastReqWeight": w.least_requested,
        "mostReqWeight": w.most_requested,
        "balancedResourceWeight": w.balanced_resource,
        "nodeAffinityWeight": w.node_affinity,
        "podAffinityWeight": w.pod_affinity,
        "taintTolerationWeight": w.taint_toleration,
        "imageLocalityWeight": w.image_locality,
        "podTopologySpreadWeight": w.pod_topology_spread,
    }
    return {k: v for k, v in weights.items() if v}


# ---- task-topology --------------------------------------------------------------------------------------------


def _task_topology(_: Any, a: list[Any]) -> list[Any]:
    """The recorded jobs have no name, the errors contain one."""
    annotations = ((a[0].get("pod_group") or {}).get("metadata") or {}).get("annotations") or {}
    roles = {t["role"] for t in a[0]["tasks"].values()}
    try:
        read = task_topology.read(annotations, roles, "default/job1")
    except ValueError as e:
        return [None, {"error": str(e)}]
    if read is None:
        return [None, None]
    return [{"Affinity": read.affinity, "AntiAffinity": read.anti_affinity, "TaskOrder": read.order}, None]


# ---- capacity, cdp, tdm ---------------------------------------------------------------------------------------


def _queue_share(_: Any, a: list[Any]) -> list[Any]:
    queue = from_manifest(QueueObject, {"metadata": {"name": a[0]["name"]}})
    found = QueueNode(Queue(queue))
    found.state(Resource())
    found.allocated, found.deserved = resource(a[0]["allocated"]), resource(a[0]["deserved"])
    found.update_share()
    return [found.share]


def _cooldown(_: Any, a: list[Any]) -> list[Any]:
    seconds = cooldown_time(pod_struct(a[0]))
    return [format_duration(seconds or 0.0), seconds is not None]


def _hours(_: Any, a: list[Any]) -> list[Any]:
    """Hours are those of the current day: seconds since its midnight."""
    found = window(a[0], 10 * _DAY)
    return [None if found is None else [end - 10 * _DAY for end in found]]


def _recorded_hours(expected: Data) -> list[Any]:
    opens, closes, error = expected["result"]
    if error is not None:
        return [None]
    start = datetime.fromtimestamp(parse_time(opens), UTC)
    midnight = start.replace(hour=0, minute=0, second=0).timestamp()
    return [[parse_time(opens) - midnight, parse_time(closes) - midnight]]


# ---- resource-strategy-fit ------------------------------------------------------------------------------------


def _strategies(plugin: ResourceStrategyFit) -> Data:
    resources = {name: {"Type": s.type, "Weight": s.weight} for name, s in plugin.resources.items()}
    return {"Resources": resources, "Weight": plugin.weight}


def _strategy_fit(_: Any, a: list[Any]) -> list[Any]:
    plugin = ResourceStrategyFit(a[0] or {})
    scarce = {
        "Resources": plugin.scarce,
        "ResourcesWeightSum": sum(plugin.scarce.values()),
        "Weight": plugin.sra.weight,
    }
    beside = {name: {"CPU": p.cpu, "Memory": p.memory} for name, p in plugin.proportions.items()}
    return [{"ResourceStrategyFit": _strategies(plugin), "Sra": scarce, "Proportional": beside}]


def _strategy_arguments(resources: Data) -> Data:
    return {name: {"type": s["Type"], "weight": s["Weight"]} for name, s in resources.items()}


def _strategy_of(_: Any, a: list[Any]) -> list[Any]:
    plugin = ResourceStrategyFit({})
    plugin.resources = ResourceStrategyFit({"resources": _strategy_arguments(a[1])}).resources if a[1] else {}
    found = plugin.strategy_of(a[0])
    return [{} if found is None else {"Type": found.type, "Weight": found.weight}, found is not None]


def _with_plugin(task: Data, on: Data, arguments: Data) -> tuple[Session, Task]:
    """A session with one node, its usage, one task, and the plugin."""
    waits = pod("ns/task", task["resreq"], uid="task", **(task.get("pod") or {}).get("metadata", {}))
    fills = pod("ns/used", on.get("used"), on="n", uid="used")
    plugin = {"name": ResourceStrategyFit.name, "arguments": arguments}
    session = opened([node("n", on.get("allocatable") or on["idle"]), fills, waits], [plugin])
    return session, session.cluster.tasks["ns/task"]


def _score(_: Any, a: list[Any]) -> list[Any]:
    arguments = {"resourceStrategyFitWeight": a[2]["Weight"], "resources": _strategy_arguments(a[2]["Resources"])}
    session, task = _with_plugin(a[0], a[1], arguments)
    return [one_sum(session, task, "order", np.array([0])).item(0)]


def _one_resource(kind: str) -> Adapter:
    """(requested, capacity, used, weight) of one resource. An error results in a total score of 0."""

    def call(_: Any, a: list[Any]) -> list[Any]:
        requested, capacity, used, weight = a
        arguments = {"resourceStrategyFitWeight": 1, "resources": {"cpu": {"type": kind, "weight": weight}}}
        on = {"allocatable": {"milli_cpu": capacity}, "used": {"milli_cpu": used}}
        session, task = _with_plugin({"resreq": {"milli_cpu": requested}}, on, arguments)
        return [one_sum(session, task, "order", np.array([0])).item(0) / 100 * weight]

    return Adapter(call, lambda expected: expected["result"][:1])


def _proportional(_: Any, a: list[Any]) -> list[Any]:
    rates = {
        f"{name}.{kind}": p[kind.upper() if kind == "cpu" else "Memory"]
        for name, p in a[2].items()
        for kind in ("cpu", "memory")
    }
    settings = {"enable": True, "resources": ",".join(a[2]), "resourceProportion": rates}
    session, task = _with_plugin(a[0], a[1], {"proportional": settings})
    refusal = session.placement.fit_errors(task, check_capacity=False)
    status = {"Plugin": ResourceStrategyFit.name}
    if not refusal.counts:
        return [status, None]
    (reason,) = refusal.counts
    code = 3 if session.placement.rejected_by(task, 0) else 2
    return [{**status, "Code": code, "Reason": reason}, {"error": reason}]


ADAPTERS: Adapters = {
    "binpack.New": _binpack,
    "nodeorder.calculateWeight": lambda r, a: [_nodeorder_weights(a[0])],
    "nodeorder.New": lambda r, a: [{"weight": _nodeorder_weights(a[0])}],
    "tasktopology.readTopologyFromPgAnnotations": _task_topology,
    "capacity.updateQueueAttrShare": Adapter(
        _queue_share, lambda expected: [expected["args_after"][0].get("share", 0)]
    ),
    "cdp.CooldownProtectionPlugin.podCooldownTime": _cooldown,
    "tdm.parseRevocableZone": Adapter(_hours, _recorded_hours),
    "resourcestrategyfit.New": _strategy_fit,
    "resourcestrategyfit.calculateWeight": lambda r, a: [_strategies(ResourceStrategyFit(a[0] or {}))],
    "resourcestrategyfit.findResourceConfigWithPrefix": _strategy_of,
    "resourcestrategyfit.Score": _score,
    "resourcestrategyfit.leastRequestedScore": _one_resource("LeastAllocated"),
    "resourcestrategyfit.mostRequestedScore": _one_resource("MostAllocated"),
    "resourcestrategyfit.checkNodeResourceIsProportional": _proportional,
}
