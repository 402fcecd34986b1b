"""Scheduler rules one by one: a call's input and what came of it.

`ADAPTERS` says which of our functions answers for which of theirs. Calls of areas that are not built yet have none;
of the areas that are, those without a counterpart are listed in `COVERED` with the test that covers their rule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.conformance.outcome import FAIL, NOT_BUILT, PASS, UNBUILDABLE, Outcome
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup, PodGroupCondition
from volcano_py.scheduler.explain.close import pod_group_phase
from volcano_py.scheduler.framework import arguments, config, inqueue
from volcano_py.scheduler.framework.fit_errors import FitErrors
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.job import Job
from volcano_py.scheduler.model.node_table import NodeTable
from volcano_py.scheduler.model.pod_request import pod_request, pod_request_without_init
from volcano_py.scheduler.model.resource import (
    INFINITY,
    ZERO,
    Resource,
    exceeded_part,
    intersection,
    maximum,
)
from volcano_py.scheduler.model.spec_class import SpecClasses
from volcano_py.scheduler.model.task import Task, group_of
from volcano_py.scheduler.plugins.binpack import Binpack
from volcano_py.scheduler.plugins.gang import _healing
from volcano_py.scheduler.plugins.nodeorder import NodeOrder
from volcano_py.scheduler.run_once import REGISTRY

Data = dict[str, Any]


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All function cases below a folder."""
    for path in sorted(folder.glob("fn-*/*.json")):
        for number, case in enumerate(json.loads(path.read_text())):
            yield run_case(path.parent.name, f"{path.stem}#{number}", case)


def run_case(area: str, name: str, case: Data) -> Outcome:
    function = case["function"].split("/")[-1]
    label = f"{name} {function} {case.get('case') or ''}".strip()
    if case.get("unbuildable"):
        return Outcome(area, label, UNBUILDABLE)
    adapter = ADAPTERS.get(function)
    if adapter is None:
        return Outcome(area, label, NOT_BUILT, COVERED.get(function, function))
    try:
        got = adapter(case["input"].get("receiver"), case["input"].get("args") or [])
    except AssertionError as e:
        return Outcome(area, label, PASS if "panics" in case["expected"] else FAIL, f"raised {e}")
    except Exception as e:
        return Outcome(area, label, FAIL, f"{type(e).__name__}: {e}")
    if "expected_variants" in case:
        wanted = [v["result"] for v in case["expected_variants"]]
        return Outcome(area, label, PASS if any(_alike(got, w) for w in wanted) else FAIL, f"{got!r}")
    if "panics" in case["expected"]:
        return Outcome(area, label, FAIL, f"{got!r}, expected a panic")
    wanted = case["expected"].get("result", [])
    if function == "api.NewTaskInfo":
        wanted = [{k: v for k, v in w.items() if k in _TASK_FACTS} for w in wanted]
    if function == "scheduler.UnmarshalSchedulerConf":
        wanted = [wanted]
    if function in _AFTER:
        wanted = case["expected"][_AFTER[function]]
        wanted = wanted if isinstance(wanted, list) else [wanted]
    return (
        Outcome(area, label, PASS)
        if _alike(got, wanted)
        else Outcome(area, label, FAIL, f"{got!r}, expected {wanted!r}")
    )


_TASK_FACTS = frozenset(
    [
        "init_resreq",
        "resreq",
        "name",
        "job",
        "role",
        "node",
        "status",
        "uid",
        "priority",
        "preemptable",
        "best_effort",
        "sch_gated",
    ]
)
_AFTER = {
    "framework.Arguments.GetBool": "args_after",
    "framework.Arguments.GetFloat64": "args_after",
    "framework.Arguments.GetInt": "args_after",
    "framework.Arguments.GetString": "args_after",
    "api.Resource.MinDimensionResource": "receiver_after",
    "api.Resource.SetMaxResource": "receiver_after",
    "api.Resource.AddScalar": "receiver_after",
    "plugins.ApplyPluginConfDefaults": "args_after",
}
"""Functions that answer by changing their receiver or arguments."""


def _alike(got: Any, wanted: Any) -> bool:
    if isinstance(got, Resource):
        return _alike(_resource_out(got), wanted)
    if isinstance(wanted, str) and wanted in ("+Inf", "NaN"):
        return isinstance(got, float) and (math.isinf(got) or math.isnan(got))
    if isinstance(wanted, bool) or wanted is None:
        return bool(got == wanted) or (wanted is None and got in ([], None))
    if isinstance(wanted, int | float):
        return isinstance(got, int | float) and abs(got - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, dict):
        if not isinstance(got, dict):
            return False
        a, b = _present(got), _present(wanted)
        return set(a) == set(b) and all(_alike(a[k], b[k]) for k in b)
    if isinstance(wanted, list):
        got = list(got) if isinstance(got, list | tuple) else got
        if not isinstance(got, list) or len(got) != len(wanted):
            return got is None and not wanted
        if wanted and all(isinstance(w, str) for w in wanted):
            return sorted(map(str, got)) == sorted(wanted)
        return all(map(_alike, got, wanted))
    return bool(got == wanted)


def _present(value: Data) -> Data:
    """Without the empty maps that data may or may not write."""
    return {k: v for k, v in value.items() if v not in ({}, None)}


# ---- values ---------------------------------------------------------------------------------------------------


def _resource(data: Data | None) -> Resource:
    data = data or {}
    scalars = data.get("scalars")
    number = lambda v: math.inf if v == "+Inf" else float(v)  # noqa: E731
    return Resource(
        number(data.get("milli_cpu", 0)),
        number(data.get("memory", 0)),
        None if scalars is None else {k: float(v) for k, v in scalars.items()},
        int(data.get("max_task_num", 0)),
    )


def _maybe(data: Data | None) -> Resource | None:
    return None if data is None else _resource(data)


def _resource_out(r: Resource) -> Data:
    out: Data = {"milli_cpu": r.milli_cpu, "memory": r.memory}
    if r.scalars is not None:
        out["scalars"] = r.scalars
    if r.max_task_num:
        out["max_task_num"] = r.max_task_num
    return out


def _default(value: int) -> float:
    return INFINITY if value == -1 else ZERO


def _pod(data: Data | None) -> Pod:
    pod: Pod = from_manifest(Pod, data or {})
    return pod


def _job(data: Data) -> tuple[SessionJob, Any]:
    """A session's job from a summary, and as much of a session as the job's rules look at."""
    model = Job(data.get("uid") or "ns/job")
    group = from_manifest(PodGroup, data.get("pod_group") or {"metadata": {"name": "pg"}})
    model.set_pod_group(group, "default")
    statuses = bytearray()
    nodes: dict[str, str] = {}
    last: dict[str, tuple[int, str]] = {}
    for uid, t in (data.get("tasks") or {}).items():
        namespace, _, name = t.get("name", uid).rpartition("/")
        request = _resource(t.get("resreq"))
        task = SimpleNamespace(
            uid=uid,
            key=t.get("name", uid),
            name=name,
            namespace=namespace,
            role=t.get("role") or t.get("task_role") or "",
            request=request,
            best_effort=bool(t.get("best_effort")) or (_resource(t.get("init_resreq", t.get("resreq"))).is_empty()),
            status=getattr(st.TaskStatus, t["status"]).value,
            node=t.get("node", ""),
            slot=len(statuses),
            sched_gated=bool(t.get("sch_gated")),
            only_queue_gate=False,
        )
        if "best_effort" not in t and "init_resreq" not in t and not t.get("resreq"):
            task.best_effort = False
        statuses.append(task.status)
        nodes[uid] = task.node
        model.add(task)  # type: ignore[arg-type]
        if t.get("last_transaction"):
            context = t["last_transaction"]
            last[task.key] = (getattr(st.TaskStatus, context["status"]).value, context.get("node", ""))
    job = SessionJob(model, group, int(data.get("priority", 0)))
    job.min_available = int(data.get("min_available", 0))
    job.task_min_available = dict(data.get("task_min_available") or {})
    job.task_min_total = int(data.get("task_min_available_total", 0))
    if data.get("allocated"):
        job.allocated = _resource(data["allocated"])
    job.last_transaction = last or None
    names = sorted(set(nodes.values()) - {""})
    session = SimpleNamespace(
        uid="session",
        statuses=statuses,
        status=lambda t: statuses[t.slot],
        node_of=lambda t: names.index(t.node) if t.node else None,
        table=SimpleNamespace(names=names),
        evicting=set(),
        pending=lambda j: [t for t in j.tasks.values() if statuses[t.slot] == st.PENDING],
    )
    return job, session


def _task(data: Data) -> Data:
    """A task summary of a pod, in the data's words."""
    pod = _pod(data)
    task = Task(pod, SpecClasses(NodeTable()).of(pod), group_of(pod))
    out: Data = {
        "init_resreq": task.request,
        "resreq": task.request,
        **({"name": task.key} if task.key != "/" else {}),
        "status": st.STATUS_NAMES[task.status],
        **({"uid": pod.metadata.uid} if pod.metadata.uid else {}),
        "priority": task.priority,
    }
    for key, value in (("job", task.job), ("role", task.role), ("node", task.node)):
        if value:
            out[key] = value
    for key, flag in (
        ("preemptable", task.preemptable),
        ("best_effort", task.best_effort),
        ("sch_gated", task.sched_gated),
    ):
        if flag:
            out[key] = True
    return out


# ---- adapters -------------------------------------------------------------------------------------------------


def _less(method: str) -> Callable[[Any, list[Any]], list[Any]]:
    return lambda r, a: [getattr(_resource(r), method)(_resource(a[0]), _default(a[1]))]


def _named(method: str, **more: Any) -> Callable[[Any, list[Any]], list[Any]]:
    def ask(r: Any, a: list[Any]) -> list[Any]:
        ok, names = getattr(_resource(r), method)(_maybe(a[0]), _maybe(a[1]), **more)
        return [ok, names]

    return ask


def _getter(read: Callable[[Any], Any]) -> Callable[[Any, list[Any]], list[Any]]:
    def ask(r: Any, a: list[Any]) -> list[Any]:
        got = read((r or {}).get(a[1])) if a[1] in (r or {}) else None
        return [a[0] if got is None else got, a[1]]

    return ask


def _phase(_: Any, a: list[Any]) -> list[Any]:
    job, session = _job(a[0])
    if a[1]:
        job.conditions = [PodGroupCondition(type="Unschedulable", status="True", transition_id="session")]
    job.min_available = job.pod_group.spec.min_member
    return [pod_group_phase(session, job)]


def _fit_errors(data: Data) -> FitErrors:
    counts: dict[str, int] = {}
    nodes = data.get("nodes") or {}
    unresolvable = []
    for refused in nodes.values():
        codes = []
        for status in refused.get("status") or ():
            counts[status["Reason"]] = counts.get(status["Reason"], 0) + 1
            codes.append(status.get("Code", 0))
        unresolvable.append(3 in codes)
    error = data.get("err") or ""
    if error.startswith("0/") and error.endswith("nodes are unavailable"):
        error = ""
    made = FitErrors(counts, len(nodes), np.array(unresolvable, dtype=bool) if nodes else None, error)
    made.hyper_node = data.get("hyper_node") or ""
    return made


def _unresolvable(r: Data, a: list[Any]) -> list[Any]:
    made = _fit_errors(r)
    names = list(r.get("nodes") or {})
    return [
        [n for n, bad in zip(names, made.unresolvable if made.unresolvable is not None else (), strict=True) if bad]
    ]


def _inqueue(_: Any, a: list[Any]) -> list[Any]:
    job, _session = _job(a[0])
    job.allocated = _resource(a[1])
    return [inqueue.inqueue_resource(job)]


def _conf(_: Any, a: list[Any]) -> list[Any]:
    known = {*REGISTRY.actions, "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"}
    try:
        loaded = config.load(a[0], known)
    except config.ConfigurationError as e:
        return [{"error": str(e)}]
    tiers = []
    for tier in loaded.tiers:
        plugins = []
        for option in tier:
            entry: Data = {"name": option.name, **dict.fromkeys(option.enabled, True)}
            if option.arguments:
                entry["arguments"] = option.arguments
            plugins.append(entry)
        tiers.append({"plugins": plugins})
    return [{"actions": list(loaded.actions), "tiers": tiers}]


def _defaults(_: Any, a: list[Any]) -> list[Any]:
    given = {k: v for k, v in a[0].items() if k != "name"}
    text = json.dumps({"actions": "allocate", "tiers": [{"plugins": [{"name": a[0].get("name", "x"), **given}]}]})
    option = config.load(text, REGISTRY.actions).tiers[0][0]
    out: Data = {flag: flag in option.enabled for flag, default in config.FLAGS.items() if default or flag in given}
    return [{"name": a[0].get("name"), **out}]


def _weights(_: Any, a: list[Any]) -> list[Any]:
    w = NodeOrder(a[0] or {}).arguments
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
    return [{k: v for k, v in weights.items() if v}]


def _binpack(_: Any, a: list[Any]) -> list[Any]:
    b = Binpack(a[0] or {})
    weight = {
        "BinPackingWeight": b.weight,
        "BinPackingCPU": b.weights["cpu"],
        "BinPackingMemory": b.weights["memory"],
        "BinPackingResources": b.weights,
    }
    return [{"weight": weight}]


def _sub(r: Any, a: list[Any]) -> list[Any]:
    return [_resource(r).sub(_resource(a[0]))]


ADAPTERS: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "api.NewResource": lambda r, a: [Resource.parse(a[0])],
    "api.InfiniteResource": lambda r, a: [Resource.infinite()],
    "api.Resource.Add": lambda r, a: [_resource(r).add(_resource(a[0]))],
    "api.Resource.AddScalar": lambda r, a: [_scalar(_resource(r), a)],
    "api.Resource.Sub": _sub,
    "api.Resource.Diff": lambda r, a: list(_resource(r).diff(_resource(a[0]), _default(a[1]))),
    "api.Resource.Equal": lambda r, a: [_resource(r).equal(_resource(a[0]))],
    "api.Resource.Less": _less("less"),
    "api.Resource.LessEqual": _less("less_equal"),
    "api.Resource.LessPartly": _less("less_partly"),
    "api.Resource.LessEqualPartly": _less("less_equal_partly"),
    "api.Resource.GreaterPartly": lambda r, a: list(_greater_partly(_resource(r), _resource(a[0]), _default(a[1]))),
    "api.Resource.LessEqualWithResourcesName": lambda r, a: list(
        _resource(r).less_equal_names(_resource(a[0]), _default(a[1]))
    ),
    "api.Resource.LessEqualWithDimensionAndResourcesName": lambda r, a: list(
        (_resource(r) if r is not None else Resource()).less_equal_dimension(_maybe(a[0]), _maybe(a[1]))
    ),
    "api.Resource.LessEqualPartlyWithDimension": _named("less_equal_partly_dimension"),
    "api.Resource.LessEqualPartlyWithDimensionZeroFiltered": _named("less_equal_partly_dimension", drop_zero=True),
    "api.Resource.GreaterPartlyWithDimension": _named("greater_partly_dimension"),
    "api.Resource.GreaterPartlyWithRelevantDimensions": _named("greater_partly_relevant"),
    "api.Resource.IsEmpty": lambda r, a: [_resource(r).is_empty()],
    "api.Resource.IsZero": lambda r, a: [_resource(r).is_zero(a[0])],
    "api.Resource.MinDimensionResource": lambda r, a: [_resource(r).min_dimension(_resource(a[0]), _default(a[1]))],
    "api.Resource.SetMaxResource": lambda r, a: [_resource(r).set_max(_resource(a[0]))],
    "api.Resource.String": lambda r, a: [repr(_resource(r))],
    "api.Intersection": lambda r, a: [intersection(_resource(a[0]), _resource(a[1]))],
    "api.IntersectionWithIgnoredScalarResources": lambda r, a: [
        intersection(_resource(a[0]), _resource(a[1]), ignore_pods=True)
    ],
    "helpers.Max": lambda r, a: [maximum(_resource(a[0]), _resource(a[1]))],
    "api.GetPodResourceRequest": lambda r, a: [pod_request(_pod(a[0]))],
    "api.GetPodResourceWithoutInitContainers": lambda r, a: [pod_request_without_init(_pod(a[0]))],
    "api.NewTaskInfo": lambda r, a: [_task(a[0])],
    "api.JobInfo.IsReady": lambda r, a: [_job(r)[0].is_ready()],
    "api.JobInfo.IsPipelined": lambda r, a: [_job(r)[0].is_pipelined()],
    "api.JobInfo.IsStarving": lambda r, a: [_job(r)[0].is_starving()],
    "api.JobInfo.PendingBestEffortTaskNum": lambda r, a: [_job(r)[0].pending_best_effort],
    "api.JobInfo.ScheduledTaskNum": lambda r, a: [_job(r)[0].scheduled_num],
    "api.JobInfo.GetElasticResources": lambda r, a: [_elastic(r)],
    "api.FitErrors.Error": lambda r, a: [str(_fit_errors(r))],
    "api.FitErrors.GetUnschedulableAndUnresolvableNodes": _unresolvable,
    "framework.Arguments.GetBool": _getter(arguments.get_bool),
    "framework.Arguments.GetFloat64": _getter(arguments.get_float),
    "framework.Arguments.GetInt": _getter(arguments.get_int),
    "framework.Arguments.GetString": _getter(arguments.get_string),
    "framework.GetArgOfActionFromConf": lambda r, a: [next((c["Arguments"] for c in a[0] if c["Name"] == a[1]), None)],
    "framework.getPodGroupPhase": _phase,
    "plugins.ApplyPluginConfDefaults": _defaults,
    "scheduler.UnmarshalSchedulerConf": _conf,
    "binpack.New": _binpack,
    "nodeorder.calculateWeight": _weights,
    "gang.shouldSkipUnschedulableForReleasing": lambda r, a: [_healing(*reversed(_job(a[0])))],
    "util.GetInqueueResource": _inqueue,
}
"""Their function → ours. The receiver and the arguments come as data, the answer is the list of results."""


def _greater_partly(left: Resource, right: Resource, default: float) -> tuple[bool, list[str]]:
    fits, names = left.less_equal_names(right, default)
    assert left.greater_partly(right, default) is not fits
    return not fits, names


def _scalar(r: Resource, a: list[Any]) -> Resource:
    r.add_scalar(a[0], float(a[1]))
    return r


def _elastic(r: Data) -> Resource:
    job, _ = _job(r)
    return exceeded_part(job.allocated, job.min_resources or Resource())


COVERED: dict[str, str] = {
    "api.NewNodeInfo": "tests/scheduler/model/test_order_of_events.py: node sums against a model built anew",
    "api.NodeInfo.AddTask": "tests/scheduler/model/test_order_of_events.py",
    "api.NodeInfo.RemoveTask": "tests/scheduler/model/test_order_of_events.py",
    "api.NodeInfo.SetNode": "tests/scheduler/model/test_order_of_events.py",
    "api.JobInfo.AddTaskInfo": "tests/scheduler/model/test_order_of_events.py: job sums against a model built anew",
    "api.JobInfo.DeleteTaskInfo": "tests/scheduler/model/test_order_of_events.py",
    "api.NewJobInfo": "tests/scheduler/model/test_order_of_events.py",
    "api.JobInfo.FitError": "tests/scheduler/explain/test_messages.py (the data lacks the statements' contexts)",
    "api.JobInfo.TaskSchedulingReason": "tests/scheduler/explain/test_messages.py (the same)",
    "util.SelectBestNodeAndScore": "tests/reference: ties go to the lowest rank",
}
"""Functions without one counterpart, with the test that covers their rule."""
