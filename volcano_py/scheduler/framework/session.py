"""Session: one look at the cluster, opened over a snapshot and thrown away. Volcano: Session, OpenSession.

Numbers (node columns, task statuses, jobs' counts and sums) are copies; objects are the model's and not
written. Plugins are made anew,
register their callbacks with `votes`, their node rules with `add_filter` and `add_score`, and their event
handlers. Actions move tasks through a Statement, or with `allocate` and `evict` at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.scheduling import PodGroupCondition, PodGroupStatus
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.kube_view import KubeView
from volcano_py.scheduler.framework.node_places import rank
from volcano_py.scheduler.framework.node_rules import Filter, Score
from volcano_py.scheduler.framework.placement import Placement
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.topology import topology_of
from volcano_py.scheduler.framework.votes import EvictionContext, Votes
from volcano_py.scheduler.framework.whereabouts import locate
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.job import Job
from volcano_py.scheduler.model.plan import Bind, Emit, Event, Evict
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, ZERO, Resource
from volcano_py.scheduler.model.task import Task

NOMINATION_SECONDS = 300.0
"""How long room that was freed for a pod is kept for it: pods with long grace periods take their time to go."""


class Handler(NamedTuple):
    """Told of every placement and of every eviction or withdrawal; an answer other than None is an error."""

    plugin: str
    allocate: Callable[[Task, int], str | None] | None = None
    deallocate: Callable[[Task, int], None] | None = None


class Shard(NamedTuple):
    """Which nodes are this scheduler's own; `hard`: no others may be used."""

    nodes: frozenset[str]
    hard: bool


class Work:
    """Work that was done, in counted units; a cycle with a budget ends when it is used up."""

    __slots__ = ("budget", "jobs_tried", "tasks_tried")

    def __init__(self, budget: int | None) -> None:
        self.budget = budget
        self.jobs_tried = 0
        self.tasks_tried = 0

    @property
    def exhausted(self) -> bool:
        return self.budget is not None and self.tasks_tried >= self.budget


class Session:
    """See the module. `uid` is derived from seed and time, so that a replay writes the same transition ids, also
    after a restart."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: Configuration,
        now: float,
        seed: int,
        emit: Emit,
        budget: int | None = None,
        shard: Shard | None = None,
    ) -> None:
        cluster.cycle += 1
        cluster.use_rules(configuration)
        self.cluster = cluster
        self.configuration = configuration
        self.deviations = configuration.deviations
        self.now = now
        self.seed = seed
        self.emit = emit
        self.uid = _uid(seed, now)
        self.table = cluster.nodes
        self.numbers = cluster.nodes.snapshot()
        self.statuses = bytearray(cluster.statuses)
        self.placed: dict[int, int] = {}
        """Node column by task slot, for tasks that this session has placed."""
        self.held: dict[int, NDArray[np.float64]] = {}
        """What of a node's idle room is kept for a pipelined task, by its slot."""
        self.bound_on: dict[int, list[Task]] = {}
        """Tasks that this session has handed to the binder, by node column."""
        self.evicting: set[int] = set()
        """Slots of pipelined tasks for whom somebody was evicted."""
        self.queues: dict[str, Queue] = dict(sorted(cluster.queues.items()))
        self.topology = topology_of(cluster)
        self.jobs: dict[str, SessionJob] = {}
        self.homeless: list[Job] = []
        """Jobs whose queue does not exist."""
        self._open_jobs()
        self.total = cluster.nodes.total()
        self.kube = KubeView(cluster, self.numbers)
        self.votes = Votes()
        if self.deviations.protections_hold:
            self.votes.protectors = frozenset(("conformance", "pdb", "cdp", "gang"))
        if self.deviations.rank_holds:
            self.votes.in_turn = self._those_behind
        self.handlers: list[Handler] = []
        self.entitled: Callable[[str, Resource], bool] | None = None
        """Whether a queue may claim so much more as its own; set by the plugin that shares the cluster among queues."""
        self.work = Work(budget)
        self.new_statuses: dict[str, PodGroupStatus] = {}
        """PodGroup statuses that were emitted at the close, by job."""
        self.gauges: list[tuple[str, dict[str, str], float]] = []
        """Metrics that plugins report at close: name without prefix, labels, value."""
        self.pod_index: Any = None
        """Set by the first rule that has to count pods by their labels."""
        self.forgotten_nominations: set[str] = set()
        """Tasks whose nominated node has turned out not to take them, by key."""
        self.queue_parents, self.queue_faults = cluster.hierarchy
        """The parent of each queue, and by queue what is wrong with its own."""
        self.unusable_queues: dict[str, str] = {}
        """Queues from which no job may be served, with what to tell the jobs."""
        self.simulating = False
        """Within topology-aware preemption: what moves now is simulated, and in Volcano only queues hear of it."""
        self.dry_runs_leave_traces = False
        """A plugin counts placements and never takes them back, so that all have to be tried that Volcano would try."""
        self.prepared: set[str] = set()
        """Tasks for which predicates has counted what it needs, by key."""
        self.notes: dict[tuple[str, str], list[Event]] = {}
        self._rank = rank(cluster, seed)
        self._forget_old_nominations()
        self._filters: dict[str, list[Filter]] = {}
        self._scores: dict[str, list[Score]] = {}
        self._shard = shard
        self.placement: Placement
        """Set when the plugins have registered their rules."""

    def _forget_old_nominations(self) -> None:
        """A promise that was not used in a while binds nobody any more."""
        since, nominated = self.cluster.nominated_since, self.cluster.nominated
        for key in [key for key in since if key not in nominated]:
            del since[key]
        for key in nominated:
            since[key] = min(since.get(key, self.now), self.now)
            if self.now - since[key] > NOMINATION_SECONDS and self.deviations.kept_nominations:
                self.forgotten_nominations.add(key)

    def _open_jobs(self) -> None:
        cluster = self.cluster
        default = next((p.value for p in reversed(cluster.priority_classes.values()) if p.global_default), 0)
        classes = cluster.priority_classes
        # In the order of their UIDs, since the order in which objects came must decide nothing.
        for uid, job in sorted(cluster.jobs.items()):
            pod_group = job.pod_group
            if pod_group is None or (job.shadow and not self.deviations.bare_pods):
                continue
            if job.queue not in self.queues:
                self.homeless.append(job)
                continue
            known = classes.get(pod_group.spec.priority_class_name)
            made = self.jobs[uid] = SessionJob(job, pod_group, default if known is None else known.value)
            if pod_group.spec.network_topology is not None or pod_group.spec.sub_group_policy:
                self.divide(made)

    @property
    def topology_is_ready(self) -> bool:
        """Whether jobs with a topology may be placed."""
        return self.topology.ready or self.deviations.partial_topology

    def divide(self, job: SessionJob) -> None:
        """Form the job's sub-jobs, and find out where in the network their placed tasks are."""
        job.divide(self.statuses, self.topology.tier_of_name, self.topology.root_tier)
        locate(self, job)

    # ---- what plugins register ---------------------------------------------------------------------------

    def add_filter(self, plugin: str, *filters: Filter) -> None:
        """Node rules that refuse; asked in this order, switched by enablePredicate. They replace those of an earlier
        plugin of that name, as callbacks do."""
        self._filters[plugin] = list(filters)
        self.votes.add("filter", plugin, _nothing)

    def add_score(self, plugin: str, *scores: Score) -> None:
        """Node rules that rate; summed, once for each time that the plugin stands in the tiers, switched by
        enableNodeOrder. They replace earlier ones, too."""
        self._scores[plugin] = list(scores)
        self.votes.add("score", plugin, _nothing)

    def seal(self) -> None:
        """All plugins have registered: keep what the configuration switches on."""
        self.votes.compile(self.configuration.tiers)
        # A plugin that stands twice in the tiers refuses no other nodes the second time, and is not heard again.
        filters = [(p, f) for p in dict.fromkeys(p for p, _ in self.votes.enabled("filter")) for f in self._filters[p]]
        scores = [(p, s) for p, _ in self.votes.enabled("score") for s in self._scores[p]]
        shard = None
        if self._shard is not None:
            shard = np.array([name in self._shard.nodes for name in self.table.names], dtype=bool)
        self.placement = Placement(
            self.table,
            self.numbers,
            self._rank,
            filters,
            scores,
            shard,
            self._shard is not None and self._shard.hard,
            self.cluster.rule_cache(),
        )

    def enabled(self, plugin: str, flag: str) -> bool:
        """Whether the first occurrence of a plugin has a flag on (HierarchyEnabled and its like)."""
        for tier in self.configuration.tiers:
            for option in tier:
                if option.name == plugin:
                    return flag in option.enabled
        return False

    # ---- reading ----------------------------------------------------------------------------------------

    def status(self, task: Task) -> int:
        return self.statuses[task.slot]

    def node_of(self, task: Task) -> int | None:
        """The column of the node that the task is on or was put on."""
        if task.slot in self.placed:
            return self.placed[task.slot]
        return self.table.index.get(task.node) if task.node else None

    def nominated_node(self, task: Task) -> int | None:
        """The column of the node that an earlier eviction has promised to a task."""
        kept = self.cluster.nominated.get(task.key) if self.deviations.kept_nominations else None
        name = kept or task.pod.status.nominated_node_name
        return self.table.index.get(name) if name and task.key not in self.forgotten_nominations else None

    def pending(self, job: SessionJob) -> list[Task]:
        if not job.counts[st.PENDING]:
            return []
        statuses = self.statuses
        return [t for t in job.tasks.values() if statuses[t.slot] == st.PENDING]

    def on_node(self, node: int) -> list[Task]:
        """The tasks that take room on a node since before this session, the youngest first: plugins that may only
        give some of them away then give those."""
        here = self.cluster.on_node.get(self.table.names[node], {}).values()
        return sorted(here, key=lambda t: (t.created, t.index or 0, t.key), reverse=True)

    @cached_property
    def largest_request(self) -> NDArray[np.float64]:
        """The most of each resource that any pod on a node asks for, as a column."""
        classes = {t.spec_class for here in self.cluster.on_node.values() for t in here.values()}
        largest = np.zeros(len(self.table.rows))
        for each in classes:
            np.maximum(largest, each.vector(self.table), out=largest)
        return largest

    def future_idle(self, node: int) -> Resource:
        """What will be free on a node: idle, plus what is being released, minus what is promised."""
        n = self.numbers
        free = Resource(scalars={})
        column = n.idle[:, node] + n.releasing[:, node] - n.pipelined[:, node]
        for name, row in self.table.rows.items():
            free[name] = column.item(row)
        return free

    def fits_without(self, task: Task, node: int, victims: Sequence[Task]) -> bool:
        """Whether a task fits a node once these are gone (ValidateVictims); nobody needs to go is fine."""
        free = self.future_idle(node)
        for victim in victims:
            free.add(victim.request)
        return task.request.less_equal(free, ZERO)

    def _those_behind(self, evictor: Task | EvictionContext, victims: list[Task]) -> list[Task]:
        """Those of jobs that come after the evictor's: less important ones, then younger ones. Its own are its own."""
        mine = self.jobs.get(evictor.job) if isinstance(evictor, Task) else evictor.job
        if mine is None:
            return []
        place = (-mine.priority, mine.created, mine.uid)
        theirs = [(v, self.jobs.get(v.job)) for v in victims]
        return [v for v, j in theirs if j is not None and (j is mine or place < (-j.priority, j.created, j.uid))]

    # ---- moving tasks -----------------------------------------------------------------------------------

    def move(self, task: Task, new: int) -> None:
        """Change a task's status, and its job's counts with it."""
        old = self.statuses[task.slot]
        self.statuses[task.slot] = new
        job = self.jobs.get(task.job)
        if job is not None:
            job.moved(task, old, new)

    def place(self, task: Task, node: int, new: int, hold: bool = False) -> str | None:
        """Put a task on a node as Allocated or Pipelined; returns the first handler's error, if any.

        `hold`: what is idle there now is kept for a pipelined task, too, not only what will be.
        """
        self.move(task, new)
        self.placed[task.slot] = node
        n = self.numbers
        v = task.spec_class.vector(self.table)
        if new == st.PIPELINED:
            n.pipelined[:, node] += v
            n.promised = True
            if hold:
                self._keep_idle(task, node)
        else:
            n.idle[:, node] -= v
            n.used[:, node] += v
        error = self._allocated(task, node)
        n.log.append(node)
        return error

    def unplace(self, task: Task) -> None:
        """Take back a placement: the task is Pending again."""
        node = self.placed[task.slot]
        n = self.numbers
        v = task.spec_class.vector(self.table)
        if self.statuses[task.slot] == st.PIPELINED:
            n.pipelined[:, node] -= v
            self._give_idle_back(task, node)
        else:
            n.idle[:, node] += v
            n.used[:, node] -= v
        self.move(task, st.PENDING)
        self._deallocated(task, node)
        del self.placed[task.slot]
        self.evicting.discard(task.slot)
        n.log.append(node)

    def hold(self, task: Task, node: int) -> None:
        """Keep room for a task that stays Pending: nobody else finds it free, now or soon."""
        n = self.numbers
        n.pipelined[:, node] += task.spec_class.vector(self.table)
        n.promised = True
        self._keep_idle(task, node)
        n.log.append(node)

    def release(self, task: Task, node: int) -> None:
        """The opposite of `hold`."""
        n = self.numbers
        n.pipelined[:, node] -= task.spec_class.vector(self.table)
        self._give_idle_back(task, node)
        n.log.append(node)

    def _keep_idle(self, task: Task, node: int) -> None:
        """Of what a pipelined task waits for, take what is idle already out of what others find."""
        n = self.numbers
        held = self.held[task.slot] = np.minimum(np.maximum(n.idle[:, node], 0.0), task.spec_class.vector(self.table))
        n.idle[:, node] -= held
        n.pipelined[:, node] -= held

    def _give_idle_back(self, task: Task, node: int) -> None:
        held = self.held.pop(task.slot, None)
        if held is not None:
            self.numbers.idle[:, node] += held
            self.numbers.pipelined[:, node] += held

    def start_eviction(self, task: Task) -> None:
        """The task is Releasing: its room is free soon."""
        node = self.node_of(task)
        self.move(task, st.RELEASING)
        if node is not None:
            self.numbers.releasing[:, node] += task.spec_class.vector(self.table)
            self.numbers.promised = True
            self._deallocated(task, node)
            self.numbers.log.append(node)

    def take_back_eviction(self, task: Task) -> None:
        """The task runs on (Running, even if it was only Bound, as in Volcano)."""
        node = self.node_of(task)
        self.move(task, st.RUNNING)
        if node is not None:
            self.numbers.releasing[:, node] -= task.spec_class.vector(self.table)
            self._allocated(task, node)
            self.numbers.log.append(node)

    def _allocated(self, task: Task, node: int) -> str | None:
        error: str | None = None
        for handler in self.handlers:
            if handler.allocate is None:
                continue
            try:
                error = handler.allocate(task, node) or error
            except Exception as e:
                self.votes.fault(handler.plugin, "allocate_event", e, task.key)
                error = f"plugin {handler.plugin} failed: {e}"
        return error

    def _deallocated(self, task: Task, node: int) -> None:
        for handler in self.handlers:
            if handler.deallocate is not None:
                try:
                    handler.deallocate(task, node)
                except Exception as e:
                    self.votes.fault(handler.plugin, "deallocate_event", e, task.key)

    # ---- deciding at once -------------------------------------------------------------------------------

    def allocate(self, task: Task, node: int) -> None:
        """Place a task, and if that makes its job ready, bind all that is allocated of the job."""
        self.place(task, node, st.ALLOCATED)
        job = self.jobs[task.job]
        if self.votes.job_ready(job):
            self.bind_allocated(job)

    def bind_allocated(self, job: SessionJob) -> None:
        """Bind all that is allocated of a job."""
        allocated = (t for t in job.tasks.values() if self.statuses[t.slot] == st.ALLOCATED)
        self.bind(sorted(allocated, key=lambda t: t.key))

    def bind(self, tasks: Sequence[Task]) -> None:
        """Hand tasks to the binder, together."""
        operations = []
        for t in tasks:
            node = self.placed[t.slot]
            if not self._has_room(t, node):
                break
            self.move(t, st.BINDING)
            self.bound_on.setdefault(node, []).append(t)
            operations.append(Bind(t.namespace, t.name, t.uid, self.table.names[node], t.job, None))
        if operations:
            self.emit(operations)

    def _has_room(self, task: Task, node: int) -> bool:
        """Whether a node has room for a task, counting only what is really bound there.

        Best-effort tasks are placed without looking at room, also where others only wait to be bound. Volcano: the
        cache's check of a Binding task.
        """
        rows = task.spec_class.checked_rows(self.table)
        taken = sum(t.spec_class.vector(self.table)[rows] for t in self.bound_on.get(node, ()))
        idle = self.cluster.nodes.numbers.idle[rows, node] - taken
        return bool((task.spec_class.vector(self.table)[rows] - idle < EPS).all())

    def evict(self, task: Task, reason: str) -> None:
        """End a task now."""
        self.start_eviction(task)
        self.emit([Evict(task.namespace, task.name, task.uid, task.job, reason)])

    # ---- telling ----------------------------------------------------------------------------------------

    def note(self, job: SessionJob, type_: str, reason: str, message: str) -> None:
        """An Event on a job's PodGroup, written at the session's close."""
        if job.model.shadow:
            return
        meta = job.pod_group.metadata
        event = Event("PodGroup", meta.namespace, meta.name, meta.uid, type_, reason, message)
        self.notes.setdefault(("PodGroup", job.uid), []).append(event)

    def set_condition(self, job: SessionJob, condition: PodGroupCondition) -> None:
        """Replace the condition of the same type, or append."""
        if job.conditions is None:
            job.conditions = list(job.pod_group.status.conditions or ())
        for i, old in enumerate(job.conditions):
            if old.type == condition.type:
                job.conditions[i] = condition
                return
        job.conditions.append(condition)


def _uid(seed: int, now: float) -> str:
    digest = blake2b(f"{seed}/{now}".encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def _nothing(*_: Any) -> None:
    """Stands for a plugin's node rules among its callbacks."""
