"""Session: the state of one cycle, opened over a snapshot and discarded at its close. Volcano: Session, OpenSession.

Its parts: `jobs`, `queues` and `topology` are what it decides about; `orders`, `states`, `limits`, `rules`, `victims`,
`network`, `binding` and `events` combine the results of plugins (`framework.extension_points`); `placement` finds nodes
for a task; `moves` places and evicts tasks.

Numbers (node columns, task statuses, counts and sums of jobs) are copies; objects belong to the model and are not
written. `begin_cycle` prepares the model for a session. Plugins are constructed for each session and register their
callbacks. Actions move tasks through a Statement, or at once (`framework.task_moves`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from volcano_py.api.core import Node
from volcano_py.api.scheduling import PodGroupCondition, PodGroupStatus
from volcano_py.scheduler.framework.callbacks import CallbackOrders, Callbacks, PluginRegistration, Vote
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.extension_points.binding import Binding
from volcano_py.scheduler.framework.extension_points.events import Events
from volcano_py.scheduler.framework.extension_points.face import PluginFace
from volcano_py.scheduler.framework.extension_points.hyper_nodes import NetworkDomains
from volcano_py.scheduler.framework.extension_points.jobs import Invalid, JobStates
from volcano_py.scheduler.framework.extension_points.nodes import NodeRules
from volcano_py.scheduler.framework.extension_points.orders import Orders
from volcano_py.scheduler.framework.extension_points.queues import QueueLimits
from volcano_py.scheduler.framework.extension_points.table import FLAGS_OF_POINTS
from volcano_py.scheduler.framework.extension_points.victims import VictimSelection
from volcano_py.scheduler.framework.held_nodes import OWNER, HeldNodesFilter
from volcano_py.scheduler.framework.jobs.open_jobs import open_jobs
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.kube_view import KubeView
from volcano_py.scheduler.framework.network.hypernode_recovery import locate
from volcano_py.scheduler.framework.network.topology import topology_of
from volcano_py.scheduler.framework.placement import Placement
from volcano_py.scheduler.framework.search.node_rank import rank
from volcano_py.scheduler.framework.search.node_rules import Filter, Score
from volcano_py.scheduler.framework.search.node_view import NodeView
from volcano_py.scheduler.framework.search.sampling import Rotation
from volcano_py.scheduler.framework.search.shortages import SessionShortages, Shortages
from volcano_py.scheduler.framework.task_moves import TaskMoves
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import reference
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.sample_size import DEFAULT_SAMPLE, SampleSize
from volcano_py.scheduler.model.plan import Emit, Event
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, Resource

T = TypeVar("T")


class Shard(NamedTuple):
    """Which nodes belong to this scheduler; `hard`: others must not be used."""

    nodes: frozenset[str]
    hard: bool


class Work:
    """Work that was done, in counted units; a cycle with a budget ends when it is used up."""

    __slots__ = ("budget", "jobs_tried", "last_victims", "preemption_attempts", "tasks_tried")

    def __init__(self, budget: int | None) -> None:
        self.budget = budget
        self.jobs_tried = 0
        self.tasks_tried = 0
        self.preemption_attempts = 0
        """Nodes on which preempt has tried to free capacity for a task."""
        self.last_victims: int | None = None
        """The number of victims that the plugins have permitted the last time; None: preempt has not called them."""

    @property
    def exhausted(self) -> bool:
        return self.budget is not None and self.tasks_tried >= self.budget


class Session(PluginFace):
    """See the module. `uid` is derived from seed and time, so that a replay writes the same transition IDs, also
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
        sample_size: SampleSize = DEFAULT_SAMPLE,
    ) -> None:
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
        """The status of each task in this session, by slot."""
        self.queues: dict[str, Queue] = dict(sorted(cluster.queues.items()))
        self.topology = topology_of(cluster)
        opened = open_jobs(cluster, self.deviations, self.queues)
        self.jobs, self.jobs_without_queue, self.jobs_without_group, self.awaiting_group = opened
        self.callbacks = Callbacks(FLAGS_OF_POINTS)
        self.orders = Orders(self.callbacks)
        self.states = JobStates(self.callbacks)
        self.limits = QueueLimits(self.callbacks)
        self.rules = NodeRules(self.callbacks, self)
        self.victims = VictimSelection(self.callbacks, self.deviations, self.limits, self.jobs)
        self.network = NetworkDomains(self.callbacks, self)
        self.binding = Binding(self.callbacks, self.table.names, self.deviations.gang_pre_bind)
        self.events = Events(self.callbacks)
        self.moves = TaskMoves(
            cluster,
            self.numbers,
            self.statuses,
            self.jobs,
            emit,
            states=self.states,
            binding=self.binding,
            events=self.events,
        )
        for job in self.jobs.active():
            if job.model.needs_sub_jobs:
                self.divide(job)
        self.total = cluster.usable.total() if self.deviations.usable_capacity else cluster.nodes.total()
        """What queues and jobs share: the total capacity."""
        closed = self.deviations.usable_capacity and cluster.usable.closed_nodes()
        self.admissible = cluster.usable.total(closed_too=True) if closed else self.total
        """The total capacity for which jobs are admitted."""
        self.kube = KubeView(cluster, self.numbers)
        self.work = Work(budget)
        self.new_statuses: dict[str, PodGroupStatus] = {}
        """The PodGroup statuses that were emitted at the close, by job."""
        self.gauges: list[tuple[str, dict[str, str], float]] = []
        """Metrics that plugins report at close: name without prefix, labels, value."""
        self.job_gauges: list[tuple[str, str, str, float]] = []
        """Metrics of jobs, new or changed; others stay while the job exists: name, the job's namespace and name,
        value."""
        self.audit: list[str] = []
        """Lines about decisions that users may ask about, for the log."""
        self.unready_jobs: list[str] | None = None
        """The names of the jobs whose gang is not ready at the close; None: no plugin reports them."""
        self.forgotten_nominations: set[str] = set()
        """Tasks whose nominated node has rejected them, by key."""
        self.queue_parents, self.queue_faults = cluster.hierarchy
        """The parent of each queue, and by queue the fault of its spec.parent."""
        self.unusable_queues: dict[str, str] = {}
        """Queues whose jobs must not be served, with the message for these jobs."""
        self.queue_causes: dict[str, Cause] = {}
        """Why nothing more is allocated to a queue in this session, by queue."""
        self.notes: dict[tuple[str, str], list[Event]] = {}
        self.next_wake = inf
        """The earliest time for which `wake_at` was called, in seconds since the epoch."""
        self._views: dict[tuple[int, bool], NodeView] = {}
        self._shared: dict[type[Any], Any] = {}
        self._rank = rank(cluster, seed)
        self._forget_old_nominations()
        self._shard = shard
        self._sample_size = sample_size
        self.further_filters: list[tuple[str, Filter]] = []
        self.further_scores: list[tuple[str, Score]] = []
        """Rules beside those of the configured plugins, with their owners."""
        self.placement: Placement
        """Set when the plugins have registered their rules."""

    def discard(self) -> None:
        """Free all parts at once. They refer to each other, and would otherwise wait for a collection of garbage, which
        takes as long as many cycles."""
        self.__dict__.clear()

    def wake_at(self, time: float) -> None:
        """Run a cycle at this time, in seconds since the epoch, if no change causes one before.

        Call it in every session for the next time at which your plugin or action decides something else than now,
        without any event: the end of a time window, of an interval or of a waiting time. Without a call, and while
        nothing is pending, cycles are `--idle-schedule-period` (60 s) apart.
        """
        if self.now < time < self.next_wake:
            self.next_wake = time

    def _forget_old_nominations(self) -> None:
        """Drop the reservations of nominations that were not used for a while."""
        for key in self.cluster.nominations.expired(self.now):
            if self.deviations.kept_nominations:
                self.forgotten_nominations.add(key)

    @property
    def topology_is_ready(self) -> bool:
        """Whether jobs with a topology may be placed."""
        return self.topology.ready or self.deviations.partial_topology

    def divide(self, job: SessionJob) -> None:
        """Form the job's sub-jobs, and derive the HyperNodes of their placed tasks."""
        waits = self.deviations.unknown_tiers_wait
        job.divide(self.statuses, self.topology.tier_of_name, self.topology.root_tier, waits)
        locate(self, job)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Names the part that has a method which actions of users may still call on the session."""
            owner = next((part for part, of in _PARTS.items() if hasattr(of, name)), "")
            where = f"; call session.{owner}.{name}" if owner else ""
            raise AttributeError(f"a session has no attribute {name}{where}", name=name, obj=self)

    # ---- opening -----------------------------------------------------------------------------------------

    def seal(self) -> None:
        """After all plugins have registered: build the lists of what the configuration enables."""
        self.callbacks.compile(self.configuration.tiers, self.cluster.keep(CallbackOrders))
        self.orders.keep_ranks()
        shard = None
        if self._shard is not None:
            shard = np.array([name in self._shard.nodes for name in self.table.names], dtype=bool)
        filters = [*self.rules.enabled_filters(), *self.further_filters]
        if self.cluster.held and self.deviations.held_nodes:
            filters.insert(0, (OWNER, HeldNodesFilter(self.cluster.held, self.table.names)))
        self.placement = Placement(
            self.table,
            self.numbers,
            self._rank,
            filters,
            [*self.rules.enabled_scores(), *self.further_scores],
            shard,
            self._shard is not None and self._shard.hard,
            self.cluster.rule_cache(),
            self.callbacks,
            self.kube.moves_with_session,
        )
        target = self._sample_size.target(len(self.table))
        if not self.deviations.every_node and target < len(self.table):
            rotation = self.cluster.keep(Rotation)
            self.placement.sampler = lambda accepted: rotation.sample(accepted, target)
        elif shard is None:
            self.placement.shortages = SessionShortages(self.cluster.keep(Shortages), self.cluster, self.numbers)

    def registration(self, plugin: str) -> PluginRegistration:
        """Callbacks that are added within this context belong to this plugin and replace those it had."""
        self.rules.remove(plugin)
        return self.callbacks.of(plugin)

    def close_plugin(self, plugin: str) -> None:
        """Called when a plugin failed to open: without its callbacks no job is placed and no pod is evicted."""
        why = Invalid("PluginError", f"plugin {plugin} failed to open; its callbacks are missing")
        with self.registration(plugin):
            self.add_job_valid(lambda _: why)
            self.add_job_enqueueable(lambda _: Vote.REJECT)
            self.add_preemptable(lambda *_: [])
            self.add_reclaimable(lambda *_: [])
            self.add_unified_evictable(lambda *_: [])

    def shared(self, kind: type[T], make: Callable[[], T]) -> T:
        """State that several rules of this session share, created at the first use."""
        if kind not in self._shared:
            self._shared[kind] = make()
        found: T = self._shared[kind]
        return found

    def of_nodes(self, name: str, derive: Callable[[Sequence[Node]], T]) -> T:
        """Values that a rule derives from taints, `unschedulable` or images of the Node objects; derived again when one
        of these has changed."""
        return self.cluster.derived(f"{name} of nodes", self.table.spec_generation, lambda: derive(self.table.objects))

    def enabled(self, plugin: str, flag: str) -> bool:
        """Whether the first occurrence of a plugin enables a flag (Volcano: HierarchyEnabled and others)."""
        for tier in self.configuration.tiers:
            for option in tier:
                if option.name == plugin:
                    return flag in option.enabled
        return False

    # ---- reading ----------------------------------------------------------------------------------------

    def status(self, task: Task) -> int:
        """The task's status in this session."""
        return self.statuses[task.slot]

    def node_of(self, task: Task) -> int | None:
        """The column of the task's node, also if this session has placed it."""
        return self.moves.node_of(task)

    def nominated_node(self, task: Task) -> int | None:
        """The column of the node on which an earlier session evicted pods for a task."""
        nominations = self.cluster.nominations.node_of
        if task.plain and not nominations:
            return None
        kept = nominations.get(task.key) if self.deviations.kept_nominations else None
        name = kept or task.pod.status.nominated_node_name
        return self.table.index.get(name) if name and task.key not in self.forgotten_nominations else None

    def pending(self, job: SessionJob) -> list[Task]:
        if not job.counts[st.PENDING]:
            return []
        statuses = self.statuses
        return [t for t in job.tasks.values() if statuses[t.slot] == st.PENDING]

    def on_node(self, node: int) -> list[Task]:
        """The tasks that took capacity on a node when the session opened, the youngest first: a plugin that permits the
        eviction of only some of them then selects these."""
        here = self.cluster.on_node.get(self.table.names[node], {}).values()
        return sorted(here, key=lambda t: (t.created, t.index or 0, t.key), reverse=True)

    def future_idle(self, node: int) -> Resource:
        """What will be available on a node later: idle, plus releasing, minus pipelined."""
        n = self.numbers
        free = Resource(scalars={})
        column = n.idle[:, node] + n.releasing[:, node] - n.pipelined[:, node]
        for name, row in self.table.rows.items():
            free[name] = column.item(row)
        return free

    def fits_without(self, task: Task, node: int, victims: Sequence[Task]) -> bool:
        """Whether a task fits a node without the victims, which may be none. Volcano: ValidateVictims."""
        n, table, request = self.numbers, self.table, task.spec_class.vector(self.table)
        for row in task.spec_class.checked_rows(table):
            needed = request.item(row)
            free = n.idle.item(row, node) + n.releasing.item(row, node) - n.pipelined.item(row, node)
            if needed - free < EPS:
                continue
            for victim in victims:
                free += victim.spec_class.vector(table).item(row)
                if needed - free < EPS:
                    break
            else:
                return False
        return True

    def node(self, index: int, numbers: bool = True) -> NodeView:
        """The node in a column; without `numbers` the view contains only the Node object."""
        view = self._views.get((index, numbers))
        if view is None:
            view = self._views[index, numbers] = NodeView(self, index, numbers)
        return view

    @property
    def nodes(self) -> list[NodeView]:
        """All nodes."""
        return [self.node(index) for index in range(len(self.table))]

    def feasible_nodes(self, task: Task) -> list[NodeView]:
        """The nodes on which the task can be allocated now: the predicates accept them, and they have idle
        capacity."""
        if self.rules.pre_predicate(task) is not None:
            return []
        ok = self.placement.accepted(task) & self.placement.has_idle(task)
        return [self.node(index) for index in np.flatnonzero(ok).tolist()]

    # ---- reporting ---------------------------------------------------------------------------------------

    def note(self, job: SessionJob, type_: str, reason: str, message: str) -> None:
        """Record an Event for a job's PodGroup, written at the session's close."""
        if job.model.shadow:
            return
        meta, kind = job.pod_group.metadata, reference(job.uid)[0]
        event = Event(kind, meta.namespace, meta.name, meta.uid, type_, reason, message)
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


_PARTS = {
    "orders": Orders,
    "states": JobStates,
    "limits": QueueLimits,
    "rules": NodeRules,
    "victims": VictimSelection,
    "network": NetworkDomains,
    "binding": Binding,
    "events": Events,
    "moves": TaskMoves,
}


def _uid(seed: int, now: float) -> str:
    digest = blake2b(f"{seed}/{now}".encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))
