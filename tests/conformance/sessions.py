"""Scheduler sessions: a small cluster, a configuration, actions or callbacks, and what came of it.

The runner knows no case by its name; what it cannot run is told by what the case uses.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.functions.jobs import session_job
from tests.conformance.outcome import DEVIATION, FAIL, NOT_BUILT, PASS, Outcome
from tests.conformance.scores import one_sum
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.deviations import DEVIATIONS
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_view import NodeView
from volcano_py.scheduler.framework.session import Session, Shard
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import group_of
from volcano_py.scheduler.model.jobs.pre_bind import AwaitVolume
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodeInfo, HyperNodes
from volcano_py.scheduler.model.nodes.node_usage import PERIOD, NodeUsage
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins
from volcano_py.scheduler.session_close.pod_groups import close_jobs
from volcano_py.simulate.manifests import as_struct

_ORDER = (
    "storageClasses",
    "persistentVolumes",
    "persistentVolumeClaims",
    "deviceClasses",
    "resourceClaims",
    "resourceSlices",
    "nodes",
    "pods",
    "podGroups",
    "queues",
    "priorityClasses",
    "resourceQuotas",
    "hyperNodes",
)
_TOLERANCE = 1e-3


class NotBuilt(Exception):
    """The case needs something that is not there yet."""


def run_folder(folder: Path, padding: int, deviations: Any = "parity") -> Iterator[Outcome]:
    """All session cases below a folder. `padding`: useless nodes to add. `deviations`: as in the configuration."""
    for path in sorted(folder.glob("*/*.json")):
        for case in json.loads(path.read_text()):
            if case["kind"] == "session":
                yield run_case(case, padding, deviations)


def run_case(case: dict[str, Any], padding: int, deviations: Any = "parity") -> Outcome:
    area = case["area"]
    name = f"{case['upstream']['test']}: {case['name']}"
    try:
        wrong = _run(case, padding, deviations)
    except NotBuilt as e:
        return Outcome(area, name, NOT_BUILT, str(e))
    except Exception as e:
        return Outcome(area, name, FAIL, f"{type(e).__name__}: {e}")
    if wrong and deviations != "parity":
        named = _responsible(case, padding)
        return Outcome(area, name, DEVIATION if named else FAIL, named or "; ".join(wrong))
    return Outcome(area, name, FAIL, "; ".join(wrong)) if wrong else Outcome(area, name, PASS)


def _responsible(case: dict[str, Any], padding: int) -> str:
    """The deviations without which the case comes out as recorded; "" if it is none of them, alone or in pairs."""
    for count in (1, 2):
        for ids in combinations(DEVIATIONS, count):
            if not _run(case, padding, dict.fromkeys(ids, False)):
                return " and ".join(ids)
    return ""


def _run(case: dict[str, Any], padding: int, deviations: Any) -> list[str]:
    conf = _configuration(case, deviations)
    cluster = _cluster(case, padding)
    emitted: list[plan.Operation] = []

    def emit(operations: Sequence[plan.Operation]) -> None:
        emitted.extend(operations)

    now = parse_time(case["now"]) if case.get("now") else 0.0
    begin_cycle(cluster, conf, now)
    session = Session(cluster, conf, now, 0, emit, shard=_shard(case))
    report = CycleReport(session)
    _custom_plugins(case, session)
    open_plugins(session, REGISTRY, report, lambda *_: _Nothing())
    wrong = [f"{f.plugin}.{f.point} raised {f.error}" for f in session.callbacks.faults]
    for _ in range(case.get("runs", 1)):
        for action in case["actions"]:
            REGISTRY.actions[action](conf.action_arguments.get(action, {})).execute(session)
    for call in case.get("calls") or []:
        wrong += _call(case, session, call)
    if "CheckAll" in (case.get("checks") or ()):
        close_jobs(session)
        wrong += _check_all(case, session, emitted, report)
    wrong += [f"{f.plugin}.{f.point} raised {f.error}" for f in session.callbacks.faults]
    return wrong


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _configuration(case: dict[str, Any], deviations: Any) -> Configuration:
    document = dict(case["conf"])
    absent = False if document.pop("absentFlags", "") == "disabled" else None
    if deviations is not None:
        document["deviations"] = deviations
    left_out = set(case.get("unregisteredPlugins") or ())
    for tier in document.get("tiers") or []:
        for plugin in tier["plugins"]:
            name = plugin["name"]
            if name not in REGISTRY.plugins and name not in left_out and name not in _CUSTOM:
                raise NotBuilt(f"plugin {name}")
        tier["plugins"] = [p for p in tier["plugins"] if p["name"] not in left_out]
    for action in case["actions"]:
        if action not in REGISTRY.actions:
            raise NotBuilt(f"action {action}")
    document["actions"] = ", ".join(case["actions"]) or "allocate"
    return load(json.dumps(document), REGISTRY.actions, absent)


def _cluster(case: dict[str, Any], padding: int) -> Cluster:
    objects = case.get("objects") or {}
    cluster = Cluster(ignored_provisioners=frozenset(case.get("ignoreProvisioners") or ()))
    for i in range(padding):
        _put(cluster, _useless_node(i))
    for kind in _ORDER:
        for manifest in objects.get(kind) or []:
            _put(cluster, manifest)
    cluster.usage |= _usage(case)
    if case.get("topology"):
        cluster._hyper_nodes = _topology(case["topology"])
        cluster._hyper_nodes_generation = cluster.nodes.generation
    return cluster


def _usage(case: dict[str, Any]) -> dict[str, NodeUsage]:
    """What is measured of the nodes; the calls show it."""
    found = {}
    for arg in (a for call in case.get("calls") or [] for a in call["args"]):
        usage = arg.get("resource_usage") if isinstance(arg, dict) else None
        if usage is not None:
            at = parse_time(usage["MetricsTime"][:26] + "Z") if "MetricsTime" in usage else 0.0
            found[arg["node"]] = NodeUsage(at, usage["CPUUsageAvg"][PERIOD], usage["MEMUsageAvg"][PERIOD])
    return found


def _topology(data: dict[str, Any]) -> HyperNodes:
    """The forest as a case states it, which no HyperNode objects need to make."""
    infos, sets = data.get("infos") or {}, data.get("realNodesSet") or {}
    tiers = {name: int(t) for t, names in (data.get("hyperNodesSetByTier") or {}).items() for name in names}
    names = sorted({*infos, *sets, *tiers})
    made = {}
    for name in names:
        info = infos.get(name) or {}
        made[name] = HyperNodeInfo(
            name,
            tiers.get(name, info.get("tier", 0)),
            info.get("parent", ""),
            tuple(info.get("children") or ()),
            frozenset(sets.get(name) or ()),
        )
    tier_names = {i["tier_name"]: i["tier"] for i in infos.values() if i.get("tier_name")}
    return HyperNodes(made, tier_names, {})


def _useless_node(i: int) -> dict[str, Any]:
    """A node that has nothing and takes nobody: it may change nothing but the number of refusals."""
    return {
        "kind": "Node",
        "metadata": {"name": f"padding-{i:03d}"},
        "spec": {"unschedulable": True, "taints": [{"key": "padding", "effect": "NoSchedule"}]},
        "status": {},
    }


def _put(cluster: Cluster, manifest: dict[str, Any]) -> None:
    struct = as_struct(manifest)
    if struct is None:
        raise NotBuilt(f"kind {manifest['kind']}")
    cluster.upsert(manifest["kind"], struct)


def _shard(case: dict[str, Any]) -> Shard | None:
    sharding = case.get("sharding")
    if not sharding:
        return None
    return Shard(frozenset(sharding["nodesInShard"]), sharding["mode"] == "hard")


# ---- fake plugins of the recorded tests, by the name under which a case asks for them -------------------------


def _rejecter(session: Session) -> None:
    """Rejects the job of PodGroup pgA, permits every other."""
    session.add_job_enqueueable(lambda job: Vote.REJECT if job.name == "pgA" else Vote.PERMIT)


def _fake(session: Session) -> None:
    """Names every candidate whose priority is 10 a victim."""
    session.add_victim_tasks(lambda tasks: [t for t in tasks if t.priority == 10])


def _device_fit(session: Session) -> None:
    """Refuses a node for the task `preemptor` as long as a task `preemptee` there is not Releasing."""

    def ask(task: Task, node: NodeView) -> Reason | None:
        here = session.cluster.on_node.get(node.name, {}).values()
        taken = any(v.name == "preemptee" and session.status(v) != st.RELEASING for v in here)
        return Reason("hidden device capacity is occupied") if task.name == "preemptor" and taken else None

    session.add_predicate(ask)


_CUSTOM: dict[str, Callable[[Session], None]] = {
    "test-rejecter": _rejecter,
    "fake": _fake,
    "device-fit-after-eviction": _device_fit,
}


def _custom_plugins(case: dict[str, Any], session: Session) -> None:
    for name in case.get("customPlugins") or []:
        if name not in _CUSTOM:
            raise NotBuilt(f"fake plugin {name}")
        with session.registration(name):
            _CUSTOM[name](session)


# ---- callbacks ----------------------------------------------------------------------------------------------


def _call(case: dict[str, Any], session: Session, call: dict[str, Any]) -> list[str]:
    ask = _CALLS.get(call["fn"])
    if ask is None:
        raise NotBuilt(f"call {call['fn']}")
    got = ask(session, call["args"])
    if "resultCount" in call:  # who it is varies from run to run, how many does not
        count = len(got[0])
        return [] if count == call["resultCount"] else [f"{call['fn']}: {count} != {call['resultCount']}"]
    wanted = call.get("result")
    if call["fn"] == "BatchNodeOrderFn" and isinstance(wanted[0], dict):
        wanted = [dict.fromkeys(got[0], 0.0) | wanted[0], *wanted[1:]]
    return [] if _alike(got, wanted) else [f"{call['fn']}({_short(call['args'])}): {got!r}, expected {wanted!r}"]


def _alike(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return isinstance(got, int | float) and abs(got - wanted) <= _TOLERANCE
    if isinstance(wanted, dict) and "error" in wanted:
        return isinstance(got, dict) and "error" in got
    if isinstance(wanted, dict):
        return isinstance(got, dict) and set(got) == set(wanted) and all(_alike(got[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return False
        if wanted and isinstance(wanted[0], dict) and "task" in wanted[0]:
            return sorted(map(str, got)) == sorted(map(str, wanted))
        return all(map(_alike, got, wanted))
    return bool(got == wanted) or (got in (None, []) and wanted in (None, []))


def _short(args: Any) -> str:
    return json.dumps(args)[:120]


def _task(session: Session, arg: dict[str, Any]) -> Task:
    """A task of the session, or one that is written out."""
    if "task" in arg:
        return session.cluster.tasks[arg["task"]]
    pod = as_struct({"kind": "Pod", **(arg.get("pod") or {"metadata": {"name": "", "namespace": ""}})})
    task = Task(pod, session.cluster.classes.of(pod), group_of(pod))
    task.slot = len(session.statuses)
    session.statuses.append(st.UNKNOWN)
    return task


def _tasks(session: Session, args: list[dict[str, Any]] | None) -> list[Task]:
    return [_task(session, a) for a in args or []]


def _names(tasks: list[Task]) -> list[Any]:
    return [{"task": t.key} for t in tasks]


def _job(session: Session, arg: dict[str, Any]) -> SessionJob:
    """A job of the session, or one that is written out."""
    return session.jobs[arg["job"]] if "job" in arg else session_job(arg)[0]


def _victims(session: Session, args: list[Any], answer: Callable[[Any, list[Task]], list[Task]]) -> list[Any]:
    candidates = _tasks(session, args[1])
    return [_names(answer(_task(session, args[0]), candidates))]


def _evictable(session: Session, args: list[Any]) -> list[Any]:
    wanted = args[0]["Job"]

    class Handmade:
        uid = wanted["uid"]
        priority = wanted["priority"]
        queue = wanted.get("queue", "")
        created = 0.0

    kind = {1: "gangpreempt", 2: "gangreclaim"}[args[0]["Kind"]]
    context = EvictionContext(kind, Handmade)  # type: ignore[arg-type]
    return [_names(session.victims.unified_evictable(context, _tasks(session, args[1])))]


def _order_rate(session: Session, args: list[Any]) -> list[Any]:
    task = _task(session, args[0])
    if args[1]["node"] not in session.table.index:
        raise NotBuilt("nodes that are not in the session")
    node = session.table.index[args[1]["node"]]
    return [one_sum(session, task, "order", np.array([node])).item(0), None]


def _predicate(session: Session, args: list[Any]) -> list[Any]:
    task = _task(session, args[0])
    if args[1]["node"] not in session.table.index:
        raise NotBuilt("nodes that are not in the session")
    node = session.table.index[args[1]["node"]]
    if session.placement.accepts(task, node):
        return [None]
    codes = [
        int(f.reasons[code - 1].code)
        for _, f in session.placement.filters
        if f.applies(task) and (code := int(session.placement.codes(f, task)[node]))
    ]
    return [{"error": "refused", "codes": codes}]


def _batch_rates(session: Session, args: list[Any]) -> list[Any]:
    """The rates by node; a node without one counts as 0. The recorded fixture notes on each task, as an allocation
    would, the HyperNode that its PodGroup's annotation names."""
    task = _task(session, args[0])
    job = session.jobs.get(task.job)
    sub = job.sub_job_of(task) if job is not None else None
    if job is not None and sub is not None:
        annotations = job.pod_group.metadata.annotations or {}
        sub.current_hyper_node = annotations.get("volcano.sh/job-allocated-hypernode", "")
    names = [n.get("node") or n["name"] for n in args[1]]
    if any(n not in session.table.index for n in names):
        raise NotBuilt("nodes that are not in the session")
    nodes = np.array([session.table.index[n] for n in names], dtype=np.intp)
    rates = one_sum(session, task, "batch", nodes)
    return [dict(zip(names, rates.tolist(), strict=True)), None]


def _hyper_node_scores(session: Session, args: list[Any]) -> list[Any]:
    """The plugins' answers apart; ours adds them up, and only one plugin has an answer."""
    sub = next(s for j in session.jobs.values() for s in j.sub_jobs.values() if s.uid == args[0]["uid"])
    return [{"network-topology-aware": session.network.hyper_node_scores(sub, sorted(args[1]))}, None]


def _allocate(session: Session, args: list[Any]) -> list[Any]:
    task = _task(session, args[0])
    name = args[1]["node"] if "node" in args[1] else args[1]["name"]
    session.moves.place(task, session.table.index[name], st.ALLOCATED)
    return [None]


def _order(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    return (left > right) - (left < right)


_CALLS: dict[str, Callable[[Session, list[Any]], list[Any]]] = {
    "JobEnqueued": lambda s, a: _said(s, a),
    "JobEnqueueable": lambda s, a: [s.states.job_enqueueable(_job(s, a[0]))],
    "JobOrderCompareFn": lambda s, a: [_order(*(s.orders.job_rank(_job(s, uid)) for uid in a))],
    "JobOrderFn": lambda s, a: [s.orders.job_key(_job(s, a[0])) < s.orders.job_key(_job(s, a[1]))],
    "Preemptable": lambda s, a: _victims(s, a, s.victims.preemptable),
    "Reclaimable": lambda s, a: _victims(s, a, s.victims.reclaimable),
    "UnifiedEvictable": _evictable,
    "NodeOrderFn": _order_rate,
    "PredicateFn": _predicate,
    "BatchNodeOrderFn": _batch_rates,
    "HyperNodeOrderMapFn": _hyper_node_scores,
    "VictimTasks": lambda s, a: [_names(s.victims.victim_tasks(_tasks(s, a[0])))],
    "Allocate": _allocate,
}


def _said(session: Session, args: list[Any]) -> list[Any]:
    session.states.job_enqueued(_job(session, args[0]))
    return []


# ---- CheckAll -----------------------------------------------------------------------------------------------


def _waits(bind: plan.Bind) -> bool:
    return any(isinstance(step, AwaitVolume) for step in bind.steps)


def _check_all(case: dict[str, Any], session: Session, emitted: list[plan.Operation], report: CycleReport) -> list[str]:
    expect = case.get("expect") or {}
    observed = case.get("observed") or {}
    varied = {field for variant in case.get("observed_variants") or () for field in variant}
    varied |= {"binds"} if case.get("minimalBindCheck") else set()
    wrong = []
    # No controller binds volumes in the recorded cases: pods with unbound claims stay Binding.
    binds = {f"{o.namespace}/{o.name}": o.node for o in emitted if isinstance(o, plan.Bind) and not _waits(o)}
    if len(binds) != expect.get("bindsNum", 0):
        wrong.append(f"{len(binds)} binds {binds}, expected {expect.get('bindsNum', 0)} {expect.get('binds')}")
    elif "binds" not in varied and binds != (expect.get("binds") or {}):
        wrong.append(f"binds {binds}, expected {expect.get('binds')}")
    evicted = [f"{o.namespace}/{o.name}" for o in emitted if isinstance(o, plan.Evict)]
    if Counter(evicted) != Counter(expect.get("evicted") or ()) and "evicted" not in varied:
        wrong.append(f"evicted {evicted}, expected {expect.get('evicted')}")
    pipelined = report.pipelined()
    for uid, nodes in (expect.get("pipelined") or {}).items():
        mine = [n for key, n in pipelined.items() if session.cluster.tasks[key].job == uid]
        if not mine or not set(mine) <= set(nodes):
            wrong.append(f"{uid}: pipelined to {mine}, expected {nodes}")
    counts = {uid: {st.STATUS_NAMES[s]: n for s, n in enumerate(job.counts) if n} for uid, job in session.jobs.items()}
    for uid, statuses in (expect.get("taskStatusNums") or {}).items():
        for status, n in statuses.items():
            if counts.get(uid, {}).get(status, 0) != n:
                wrong.append(f"{uid}: {counts.get(uid)}, expected {status} {n}")
    for uid, phase in (expect.get("podGroupPhase") or {}).items():
        if session.jobs[uid].phase != phase:
            wrong.append(f"{uid}: phase {session.jobs[uid].phase}, expected {phase}")
    if not varied:
        wrong += _check_observed(observed, session, counts, pipelined)
    return wrong


def _check_observed(
    observed: dict[str, Any], session: Session, counts: dict[str, dict[str, int]], pipelined: dict[str, str]
) -> list[str]:
    """The stronger check: what really happened, where every recorded run agreed."""
    wrong = []
    if "pipelined" in observed and pipelined != observed["pipelined"]:
        wrong.append(f"pipelined {pipelined}, observed {observed['pipelined']}")
    for uid, wanted in (observed.get("taskStatusNums") or {}).items():
        if uid in counts and counts[uid] != wanted:
            wrong.append(f"{uid}: {counts[uid]}, observed {wanted}")
    for uid, phase in (observed.get("podGroupPhase") or {}).items():
        if uid in session.jobs and session.jobs[uid].phase != phase:
            wrong.append(f"{uid}: phase {session.jobs[uid].phase}, observed {phase}")
    for uid, wanted in (observed.get("allocated") or {}).items():
        if uid not in session.jobs or not wanted:
            continue
        a = session.jobs[uid].allocated
        got = {"memory": a.memory, "milli_cpu": a.milli_cpu, **{k: v for k, v in (a.scalars or {}).items() if v}}
        flat = {k: v for k, v in wanted.items() if k not in ("scalars", "max_task_num")} | {
            k: v for k, v in (wanted.get("scalars") or {}).items() if v
        }
        if {k: v for k, v in got.items() if v} != {k: v for k, v in flat.items() if v}:
            wrong.append(f"{uid}: allocated {got}, observed {flat}")
    return wrong
