"""Invariants after every cycle, for any decisions: checked on the same clusters that are compared.

`check_cycles` runs a case with the scheduler of the package, in parity or with its deviations, and raises
AssertionError for violations; `check_discard` applies a statement, discards it, and compares the session.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from types import FunctionType, MethodType
from typing import Any

import msgspec
import numpy as np

from tests.reference import conf as reference_conf
from tests.reference.cluster import Cluster
from tests.reference.comparison import Case
from tests.reference.cycles import recreated
from tests.reference.kube.selectors import matches
from tests.reference.resource import EPS, Resource, parse
from tests.reference.task import ALLOCATED_STATUS, Task
from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import Bind, Evict, Operation
from volcano_py.scheduler.model.resource import Resource as Amounts
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins, run_once
from volcano_py.simulate.cycles import Simulation

_FOR_SOMEBODY = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


class Cycle:
    """One cycle: the snapshot before it, and the decisions."""

    def __init__(self, case: Case, before: Cluster, report: CycleReport, plan: list[Operation]) -> None:
        self.conf = reference_conf.load(case["conf"])
        self.before = before
        self.session = report.session
        self.bound = {f"{o.namespace}/{o.name}": o for o in plan if isinstance(o, Bind)}
        self.evicted = {f"{o.namespace}/{o.name}": o for o in plan if isinstance(o, Evict)}
        self.pipelined = report.pipelined()
        self.tasks = {t.key: t for t in before.tasks}
        self.jobs = before.jobs()

    @property
    def counts_slots(self) -> bool:
        """Whether a plugin checks the number of pods per node: Volcano's actions alone do not."""
        return self.has("predicates", "enablePredicate")

    def has(self, plugin: str, flag: str) -> bool:
        return self.conf.first_flag(plugin, flag)


def check_cycles(case: Case, cycles: int, parity: bool, on: deviations.Deviations | None = None) -> int:
    """Run a case and check every cycle; returns how many pods were evicted. `on`: other deviations than all."""
    on = deviations.PARITY if parity else on or deviations.DEFAULT
    conf = msgspec.structs.replace(load(case["conf"], REGISTRY.actions), deviations=on)
    simulation = Simulation(case["objects"], raw=True, seed=case["seed"])
    against: set[tuple[str, str]] = set()
    evicted = 0
    for _ in range(cycles):
        plan: list[Operation] = []
        before = Cluster(msgspec.msgpack.decode(msgspec.msgpack.encode(list(simulation.objects.values()))))
        report = run_once(simulation.cluster, conf, simulation.now, simulation.seed, emit=plan.extend)
        cycle = Cycle(case, before, report, plan)
        nodes_are_not_over_allocated(cycle)
        queues_keep_to_their_capability(cycle, parity)
        guarantees_hold(cycle, parity)
        evictions_help_a_job(cycle, parity)
        if not parity:
            protections_hold(cycle)
            victims_gangs_are_whole(cycle)
        if not parity and cycle.counts_slots:
            gangs_are_whole(cycle)
        pairs = {(e.evictor, e.group) for e in cycle.evicted.values() if e.evictor not in ("", e.group)}
        if not parity and case.get("come_back") and cycle.counts_slots:
            for a, b in pairs:
                assert (b, a) not in against | pairs, f"{a} and {b} evict each other in turn"
        # A job that lost pods to a third one may have a new reason to evict.
        against |= pairs
        against -= {pair for pair in against for by, victim in pairs if victim in pair and by not in pair}
        pods = {key: simulation.objects["Pod", key] for key in cycle.evicted}
        evicted += len(pods)
        simulation.react(plan)
        for pod in pods.values() if case.get("come_back") else ():
            simulation.put(recreated(pod))
    return evicted


def nodes_are_not_over_allocated(cycle: Cycle) -> None:
    """No node is over-allocated by the bound pods, in any requested resource."""
    for bind in cycle.bound.values():
        node = cycle.before.nodes[bind.node]
        task = cycle.tasks[f"{bind.namespace}/{bind.name}"]
        node.idle.sub(task.resreq)
        for name in task.resreq.names():
            if name == "pods" and not cycle.counts_slots:
                continue
            assert node.idle.get(name) > -EPS, f"{task.key} over-allocates {name} of {node.name}"


def gangs_are_whole(cycle: Cycle) -> None:
    """The bound and running tasks of a gang are at least the minimum.

    Victims of shuffle count: it runs last, calls no gang callback, and also evicts members of new gangs.
    """
    if not cycle.has("gang", "enableJobReady"):
        return
    evicted = {key for key, e in cycle.evicted.items() if e.reason != "shuffle"}
    for uid in {b.group for b in cycle.bound.values()}:
        job = cycle.jobs[uid]
        there = sum(
            t.key in cycle.bound or (t.status in (*ALLOCATED_STATUS, "Succeeded") and t.key not in evicted)
            for t in job.tasks.values()
        )
        assert there >= job.min_available, f"{uid} is bound with {there} of {job.min_available}"


def queues_keep_to_their_capability(cycle: Cycle, parity: bool) -> None:
    """Bound pods do not take a queue above its capability; with a tree, nor its ancestors."""
    plugins = [p for p in ("capacity", "proportion") if cycle.has(p, "enabledAllocatable")]
    if not plugins:
        return
    tree = cycle.has("capacity", "enableHierarchy")
    used: dict[str, Resource] = defaultdict(Resource)
    requested: dict[str, set[str]] = defaultdict(set)
    for job in cycle.jobs.values():
        for task in job.tasks.values():
            runs = task.status in ALLOCATED_STATUS and task.key not in cycle.evicted
            if runs or task.key in cycle.bound:
                for name in _upwards(cycle, job.queue) if tree else [job.queue]:
                    used[name].add(task.resreq)
                    if task.key in cycle.bound:
                        requested[name] |= set(task.resreq.names()) - {"pods"}
    for name, amount in used.items():
        queue = cycle.before.queues[name]
        most, kept = parse(queue.capability), parse(queue.guarantee)
        for resource in requested[name] & set(most.names()):
            if parity and "proportion" in plugins and kept.get(resource) > most.get(resource):
                continue  # Volcano grants the guarantee: deviation capability-first
            assert amount.get(resource) <= most.get(resource) + EPS, f"queue {name} has more {resource} than it may"


def _upwards(cycle: Cycle, name: str) -> list[str]:
    found: list[str] = []
    while name in cycle.before.queues and name not in found:
        found.append(name)
        name = cycle.before.queues[name].parent or "root"
    return found


def guarantees_hold(cycle: Cycle, parity: bool) -> None:
    """If capacity decides, reclaim leaves a queue its guarantee.

    In parity, a queue below its guarantee in one resource loses nothing at all; by default, nothing of that resource.
    """
    if not cycle.has("capacity", "enableReclaimable"):
        return
    tier = next(
        t for t in cycle.conf.tiers if any(o.name in _RECLAIM_PLUGINS and o.enabled("enableReclaimable") for o in t)
    )
    if tier[-1].name != "capacity" and all(o.name != "capacity" for o in tier):
        return  # an earlier tier decides, and capacity is not called
    reasons: dict[str, set[str]] = defaultdict(set)
    lost: dict[str, set[str]] = defaultdict(set)
    for key, e in cycle.evicted.items():
        queue = cycle.jobs[e.group].queue
        reasons[queue].add(e.reason)
        lost[queue] |= set(cycle.tasks[key].resreq.names())
    tree = cycle.has("capacity", "enableHierarchy")
    for name, why in reasons.items():
        if why - {"reclaim", "gangreclaim"}:
            continue
        left = Resource()
        for job in cycle.session.jobs.values():
            if job.queue == name or (tree and name in _upwards(cycle, job.queue)):
                for task in job.tasks.values():
                    placed = st.IS_ALLOCATED[cycle.session.statuses[task.slot]] or task.key in cycle.pipelined
                    if placed:
                        left.add(cycle.tasks[task.key].resreq)
        guarantee = parse(cycle.before.queues[name].guarantee)
        if parity:
            assert guarantee.less_equal(left), f"queue {name} is left with less than its guarantee"
        for resource in set(guarantee.names()) & lost[name]:
            kept = left.get(resource) >= guarantee.get(resource) - EPS
            assert kept, f"queue {name} is left with less {resource} than its guarantee"


_RECLAIM_PLUGINS = ("gang", "conformance", "pdb", "cdp", "capacity", "proportion")
"""Plugins with a reclaimable callback."""


def evictions_help_a_job(cycle: Cycle, parity: bool) -> None:
    """Every eviction is followed by a placed or pipelined task of the evictor.

    Volcano's backfill can take that capacity for best-effort pods, and then may not place the evictor.
    """
    helped = {b.group for b in cycle.bound.values()} | {cycle.tasks[key].job for key in cycle.pipelined}
    for key, e in cycle.evicted.items():
        if e.reason not in _FOR_SOMEBODY:
            continue  # shuffle evicts for no job, and gang releases broken gangs
        volcanic = parity and any(t.best_effort for t in cycle.jobs[e.evictor].tasks.values())
        if not volcanic:
            assert e.evictor in helped, f"{key} is evicted for {e.evictor or 'no job'}, which gets nothing"


def protections_hold(cycle: Cycle) -> None:
    """Pods that conformance, cdp or pdb protects are not evicted, in whatever tier these plugins are; a budget holds
    for the cycle as a whole."""
    victims = [cycle.tasks[key] for key, e in cycle.evicted.items() if e.reason != "gang"]
    everywhere = ("enablePreemptable", "enableReclaimable")

    def protects(plugin: str) -> bool:
        return all(cycle.has(plugin, flag) for flag in everywhere)

    if protects("conformance"):
        for t in victims:
            critical = t.pod["spec"].get("priorityClassName") in _CRITICAL
            assert t.namespace != "kube-system" and not critical, f"{t.key} is evicted, conformance or not"
    if protects("pdb"):
        for b in cycle.before.of("PodDisruptionBudget"):
            victims_of_budget = [t.key for t in victims if _is_for(b, t)]
            allowed = max((b.get("status") or {}).get("disruptionsAllowed") or 0, 0)
            assert len(victims_of_budget) <= allowed, (
                f"{victims_of_budget} are evicted, and budget {b['metadata']['name']} allows {allowed}"
            )


_CRITICAL = ("system-cluster-critical", "system-node-critical")


def _is_for(budget: dict[str, Any], task: Task) -> bool:
    selector = (budget.get("spec") or {}).get("selector") or {}
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return False
    labels = task.pod["metadata"].get("labels") or {}
    disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
    same = budget["metadata"].get("namespace", "default") == task.namespace
    return same and bool(labels) and matches(selector, labels) and task.name not in disrupted


def victims_gangs_are_whole(cycle: Cycle) -> None:
    """A gang that had its minimum and lost members to another job still has its minimum, or no members."""
    if not all(cycle.has("gang", flag) for flag in ("enablePreemptable", "enableReclaimable")):
        return  # no plugin protects gangs
    for uid in {e.group for e in cycle.evicted.values() if e.reason in _FOR_SOMEBODY}:
        job = cycle.jobs[uid]
        placed = [t for t in job.tasks.values() if t.node and t.status in (*ALLOCATED_STATUS, "Succeeded")]
        running = [t for t in placed if t.status != "Succeeded"]
        left = [t for t in job.tasks.values() if t.key in cycle.bound or (t in placed and t.key not in cycle.evicted)]
        if len(placed) >= job.min_available > len(left):
            stay = [t.key for t in running if t.key not in cycle.evicted]
            assert not stay, f"{uid} is left with {stay}, and needs {job.min_available}"


# --- undo


def check_discard(case: Case, parity: bool) -> int:
    """Apply a random statement and discard it: the session is unchanged; returns the number of its steps."""
    on = deviations.PARITY if parity else deviations.DEFAULT
    conf = msgspec.structs.replace(load(case["conf"], REGISTRY.actions), deviations=on)
    simulation = Simulation(case["objects"], raw=True, seed=case["seed"])
    session, plugins = opened(simulation, conf)
    before = _state(session, plugins)
    statement = Statement(session)
    dice = Random(case["seed"])
    for job in session.jobs.values():
        for task in job.tasks.values():
            node = dice.randrange(len(session.table.names))
            status = session.status(task)
            if status == st.RUNNING and session.node_of(task) is not None and dice.random() < 0.5:
                statement.evict(task, "preempt")
            elif status == st.PENDING and dice.random() < 0.5:
                statement.allocate(task, node)
            elif status == st.PENDING and dice.random() < 0.5:
                statement.pipeline(task, node, evicted=dice.random() < 0.5)
    steps = len(statement.steps)
    statement.discard()
    after = _state(session, plugins)
    for what, value in before.items():
        assert after[what] == value, f"{what} is not restored: {after[what]} instead of {value}"
    return steps


def opened(simulation: Simulation, conf: Configuration) -> tuple[Session, list[object]]:
    """A session with its plugins, before any action."""

    def nothing(_: Any) -> None: ...

    begin_cycle(simulation.cluster, conf, simulation.now)
    session = Session(simulation.cluster, conf, simulation.now, simulation.seed, nothing)
    plugins = open_plugins(session, REGISTRY, CycleReport(session), lambda *_: _Untimed())
    return session, plugins


class _Untimed:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _state(session: Session, plugins: list[object]) -> dict[str, Any]:
    n = session.numbers
    found: dict[str, Any] = {
        "statuses": bytes(session.statuses),
        "placed": dict(session.moves.placed),
        "held": _plain(session.moves.held, set()),
        "counts": {uid: list(job.counts) for uid, job in session.jobs.items()},
        "allocated": {uid: _plain(job.allocated, set()) for uid, job in session.jobs.items()},
    }
    for name in ("idle", "used", "releasing", "pipelined"):
        found[name] = getattr(n, name).tolist()
    for plugin in plugins:
        found[type(plugin).__name__] = _plain(plugin, set())
    return found


def _plain(value: Any, seen: set[int]) -> Any:
    """Numbers and texts in a value, recursively; missing values and 0 are equal."""
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Session | FunctionType | MethodType) or callable(value) or id(value) in seen:
        return None
    seen = seen | {id(value)}
    if isinstance(value, dict):
        plain: dict[Any, Any] = {k: _plain(v, seen) for k, v in value.items()}
        return {k: v for k, v in plain.items() if v not in (0, None, {}, [])}
    if isinstance(value, list | tuple):
        return [_plain(v, seen) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if type(value).__module__.startswith(
        ("volcano_py.scheduler.plugins", "volcano_py.scheduler.framework")
    ) or isinstance(value, Amounts):
        names = [
            *getattr(value, "__dict__", {}),
            *(s for c in type(value).__mro__ for s in getattr(c, "__slots__", ())),
        ]
        return _plain({name: getattr(value, name, None) for name in names if name not in _MEMOS}, seen)
    return None


_MEMOS = ("_now",)
"""Results that are kept until a task moves."""
