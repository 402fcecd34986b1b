"""fairshare: queues, and the owners of jobs within them, that have used less of their share come first. Not in Volcano.

Slurm's Fair Tree is the model: queues are compared below their lowest common parent, by the usage of their subtree
divided by their weight; then jobs of a queue by the usage of their owner divided by the owner's weight. What is placed,
and what comes before a job in the order of its owner, counts as used for `ahead`, so that owners take turns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from msgspec import field

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.jobs.owner import OWNER, owner_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.counted_resources import CountedResources, share_of
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.queue_parents import path_of
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins.fairshare.levels import charged, level, of_subtrees, queue_weight
from volcano_py.scheduler.plugins.fairshare.order_audit import Compared, StartedJobs, audit_lines
from volcano_py.scheduler.plugins.fairshare.owner_limits import OwnerLimits
from volcano_py.scheduler.plugins.fairshare.usage import DecayedUsage, Owner

_Held = dict[str, tuple[Owner, float]]


class Fairshare(Plugin):
    """See `Arguments`."""

    name = "fairshare"

    class Arguments(PluginArguments):
        half_life: str = field(default="168h", name="half-life")
        """After this time usage counts half."""
        ahead: str = "1h"
        """What is held or about to be placed counts as if it were used for this time."""
        owner: str = OWNER
        """The label or annotation of PodGroups that names the owner; without it the namespace is the owner."""
        weights: dict[str, float] = field(default_factory=dict)
        """By owner: the weight of its share; 1 for others."""
        resources: list[str] = field(default_factory=list)
        """The resources that count, such as nvidia.com/gpu; empty: all."""
        limit: float = 0.0
        """How many times its deserved share an owner may hold while another owner of the queue that has used less
        waits; 0: no limit."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.half_life = self.duration("half_life", above_zero=True)
        self.ahead = self.duration("ahead", above_zero=True)
        self.limit = read.limit
        if not (isfinite(self.limit) and self.limit >= 0):
            self.warn(f"argument limit is {self.limit}, and must be at least 0; there is no limit")
            self.limit = 0.0
        self.weights: dict[str, float] = {}
        for owner, weight in read.weights.items():
            if isfinite(weight) and weight > 0:
                self.weights[owner] = weight
            else:
                self.warn(f"argument weights: the weight of {owner} is {weight}, and must be above 0; 1 is used")

    def on_session_open(self, session: Session) -> None:
        self._counted = CountedResources.of(session.total, self.arguments.resources)
        held = self._held(session)
        usage = session.cluster.keep(DecayedUsage)
        usage.weights, usage.ahead, usage.half_life = self.weights, self.ahead, self.half_life
        stored = session.cluster.keep(History).take(self.name, usage)
        if stored is not None and (problem := usage.load(stored, session.now)):
            self.warn(f"the stored usage is not valid, and only what runs counts: {problem}")
        if usage.at is None:
            usage.begin(session.now, self.half_life, self._since(session.cluster, held))
        totals: dict[Owner, float] = defaultdict(float)
        for owner, share in held.values():
            totals[owner] += share
        usage.advance(session.now, self.half_life, totals)
        self._parents = session.queue_parents
        self._of_owner = charged(usage.used, totals, self.ahead)
        self._of_queue = of_subtrees(self._of_owner, self._parents)
        self._at_open = dict(self._of_queue)
        self._started = StartedJobs(session)
        self._ranks: dict[str, float] | None = None
        self._session = session
        session.add_queue_order(self._order)
        session.add_job_order(self._rank)
        session.add_event_handler(
            lambda task, _: self._moved(task, +1),
            lambda task, _: self._moved(task, -1),
            allocate_run=lambda tasks, _: self._moved(tasks[0], +len(tasks)),
        )
        if self.limit:
            self._add_limits(session, totals)
        used: dict[str, float] = defaultdict(float)
        for owner, amount in usage.used.items():
            used[owner.queue] += amount
        for queue in session.queues:
            session.gauges.append(("queue_decayed_usage_seconds", {"queue_name": queue}, used[queue]))

    def on_session_close(self, session: Session) -> None:
        session.audit += audit_lines(session, self._started.found(), self._compared)

    def _compared(self, job: SessionJob, other: SessionJob) -> Compared | None:
        """By what a job comes before another one: its owner within a queue, or the queues below their common parent."""
        if job.queue == other.queue:
            mine, theirs = self._owner(job.model).name, self._owner(other.model).name
            found = Compared(f"owner {mine}", self._rank(job), f"owner {theirs}", self._rank(other))
        else:
            pair = self._below_common(job.queue, other.queue)
            if pair is None:
                return None
            levels = (self._level(queue, self._at_open.get(queue, 0.0)) for queue in pair)
            found = Compared(f"queue {pair[0]}", next(levels), f"queue {pair[1]}", next(levels))
        return found if found.first_level < found.other_level and found.first != found.other else None

    def _add_limits(self, session: Session, held: Mapping[Owner, float]) -> None:
        def weight(owner: Owner) -> float:
            return self.weights.get(owner.name, 1.0)

        limits = OwnerLimits(
            session,
            self.limit,
            held,
            lambda job: self._owner(job.model),
            weight,
            lambda owner: self._of_owner.get(owner, 0.0) / weight(owner),
            lambda task: self._share(task.request),
        )
        session.add_allocatable(limits.permits)
        session.add_event_handler(
            lambda task, _: limits.moved(task, +1),
            lambda task, _: limits.moved(task, -1),
            allocate_run=lambda tasks, _: limits.moved(tasks[0], +len(tasks)),
        )

    # ---- usage -----------------------------------------------------------------------------------------------

    def _held(self, session: Session) -> _Held:
        """What each job holds: its owner and its share of the cluster."""

        def apply(state: _Held, cluster: Cluster, changed: set[str]) -> None:
            for uid in changed:
                job = cluster.jobs.get(uid)
                share = self._share(job.allocated) if job is not None else 0.0
                if job is not None and share > 0:
                    state[uid] = self._owner(job), share
                else:
                    state.pop(uid, None)

        def build(cluster: Cluster) -> _Held:
            state: _Held = {}
            apply(state, cluster, set(cluster.jobs))
            return state

        version = (self._counted, self.arguments.owner)
        return state_of(session.cluster, self.name, version, build, apply, session.cluster.check_states)

    def _share(self, amounts: Resource) -> float:
        return share_of(amounts, self._counted)

    def _owner(self, job: Job) -> Owner:
        return Owner(job.queue, owner_of(job, self.arguments.owner))

    def _since(self, cluster: Cluster, held: _Held) -> Iterator[tuple[Owner, float, float]]:
        """What runs, each pod since its start."""
        for uid, (owner, _) in sorted(held.items()):
            for task in cluster.jobs[uid].tasks.values():
                text = task.pod.status.start_time
                if text and task.status == st.RUNNING:
                    yield owner, self._share(task.request), parse_time(text)

    # ---- orders ----------------------------------------------------------------------------------------------

    def _order(self, left: Queue, right: Queue) -> int:
        pair = self._below_common(left.name, right.name)
        if pair is None:
            return 0
        mine, theirs = (self._level(queue, self._of_queue[queue]) for queue in pair)
        return (mine > theirs) - (mine < theirs)

    def _below_common(self, left: str, right: str) -> tuple[str, str] | None:
        """The queues above two queues, or these, just below the last one that both have above them."""
        a, b = path_of(left, self._parents)[::-1], path_of(right, self._parents)[::-1]
        return next(((x, y) for x, y in zip(a, b, strict=False) if x != y), None)

    def _level(self, queue: str, used: float) -> float:
        """The usage of a queue and its children, by its weight."""
        found = self._session.queues.get(queue)
        return level(used, queue_weight(found.weight if found is not None else 1))

    def _rank(self, job: SessionJob) -> float:
        if self._ranks is None:
            self._ranks = self._all_ranks()
        found = self._ranks.get(job.uid)
        if found is None:
            owner = self._owner(job.model)
            found = level(self._of_owner.get(owner, 0.0), self.weights.get(owner.name, 1.0))
        return found

    def _all_ranks(self) -> dict[str, float]:
        """By waiting job: the usage of its owner when the owner's earlier jobs are placed, by the owner's weight."""
        before = dict(self._of_owner)
        ranks: dict[str, float] = {}
        waiting = [job for job in self._session.jobs.active() if job.counts[st.PENDING]]
        for job in sorted(waiting, key=lambda job: (-job.priority, job.created, job.uid)):
            owner = self._owner(job.model)
            used = before.get(owner, 0.0)
            ranks[job.uid] = level(used, self.weights.get(owner.name, 1.0))
            before[owner] = used + self._share(job.model.total_request) * self.ahead
        return ranks

    def _moved(self, task: Task, count: int) -> None:
        self._started.moved(task, count)
        job = self._session.cluster.jobs.get(task.job)
        if job is not None:
            for queue in path_of(job.queue, self._parents):
                self._of_queue[queue] += count * self._share(task.request) * self.ahead
