"""Extension points that choose victims, and how the results of several plugins combine. Volcano: Preemptable,
Reclaimable, UnifiedEvictable, VictimTasks.

Volcano uses the result of the first tier that has one. Two deviations change that: with `protections_hold` protections
of all tiers hold, and with `rank_holds` a pod is a victim only if a plugin has a reason to evict it. A plugin declares
the meaning of its result as its `Basis`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.callbacks import Callbacks, Fn, Tier, name_of
from volcano_py.scheduler.framework.deviations import Deviations
from volcano_py.scheduler.framework.extension_points.queues import QueueLimits
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.session_jobs import SessionJobs
from volcano_py.scheduler.model.jobs.task import Task


class Basis(Enum):
    """Why a plugin names a pod as a victim."""

    CLAIM = "claim"
    """A reason to evict: the victim's job or queue holds what the evictor is entitled to (drf, proportion)."""
    RANK = "rank"
    """The evictor has a higher priority; that is a reason within a queue, and none between queues (priority)."""
    PROTECTION = "protection"
    """No reason to evict: the plugin only leaves out pods that must not be evicted (conformance, pdb, cdp)."""
    GANG_MINIMUM = "gang-minimum"
    """No reason to evict: the plugin leaves out pods that a gang needs for its minimum (gang)."""


class EvictionContext(NamedTuple):
    """The job that pods are evicted for: kind is "gangpreempt" or "gangreclaim"."""

    kind: str
    job: SessionJob
    hyper_node: str = ""


Victims = list[Task]
VictimsFn = Callable[[Task, Victims], Victims | None]


class VictimSelection:
    """Which pods may be evicted.

    limits: the plugins that share the cluster among queues are called once more for some of the victims
    jobs: the order of the jobs decides where no plugin has a reason
    """

    def __init__(self, callbacks: Callbacks, deviations: Deviations, limits: QueueLimits, jobs: SessionJobs) -> None:
        self.callbacks = callbacks
        self._deviations = deviations
        self._limits = limits
        self._jobs = jobs

    def add_preemptable(self, fn: VictimsFn, *, basis: Basis = Basis.CLAIM) -> None:
        """Return the candidates that a task may preempt, in their order; None: the plugin abstains.

        `basis`: why the plugin names a pod.

        Called: by preempt, with the pods of a node that are in the preemptor's queue or in its job.
        Combination: the pods that all plugins of a tier name; the first tier with a result decides; protections hold
        in every tier (deviation protections-hold), and each pod needs a reason (deviation rank-holds).
        Flag: enablePreemptable.
        On error: no victims.
        """
        self.callbacks.add("preemptable", fn, basis)

    def preemptable(self, preemptor: Task, candidates: Victims) -> Victims:
        """The candidates that the task may preempt."""
        found = self._victims("preemptable", preemptor, candidates)
        for plugin, fn, _ in self.callbacks.enabled("outranked"):
            try:
                found = fn(preemptor, found)
            except Exception as e:
                self.callbacks.fault(plugin, "outranked", e, preemptor.key)
                return []
        return found

    def add_outranked(self, fn: Callable[[Task, Victims], Victims]) -> None:
        """Return the victims without those that a task must not preempt, whichever tier named them.

        Called: by preempt, with the victims that preemptable has named.
        Combination: each plugin receives the result of the previous one.
        Flag: enablePreemptable.
        On error: no victims.
        """
        self.callbacks.add("outranked", fn)

    def add_reclaimable(self, fn: VictimsFn, *, basis: Basis = Basis.CLAIM) -> None:
        """Return the candidates that a task may reclaim from other queues, in their order; None: the plugin abstains.

        `basis`: why the plugin names a pod.

        Called: by reclaim, with the pods of a node that are in other, reclaimable queues.
        Combination: as for preemptable.
        Flag: enableReclaimable.
        On error: no victims.
        """
        self.callbacks.add("reclaimable", fn, basis)

    def reclaimable(self, reclaimer: Task, candidates: Victims) -> Victims:
        """The candidates that the task may reclaim."""
        return self._victims("reclaimable", reclaimer, candidates)

    def add_unified_evictable(
        self, fn: Callable[[EvictionContext, Victims], Victims | None], *, basis: Basis = Basis.CLAIM
    ) -> None:
        """Return the candidates that may be evicted for a whole gang; None: the plugin abstains.

        `basis`: why the plugin names a pod.

        Called: by gangpreempt and gangreclaim, with the pods of a network domain.
        Combination: as for preemptable.
        Flag: none.
        On error: no victims.
        """
        self.callbacks.add("unified_evictable", fn, basis)

    def unified_evictable(self, context: EvictionContext, candidates: Victims) -> Victims:
        """The candidates that may be evicted for a gang."""
        return self._victims("unified_evictable", context, candidates)

    def add_victim_tasks(self, fn: Callable[[Victims], Victims]) -> None:
        """Return those of all running tasks that should be evicted, regardless of pending tasks.

        Called: by shuffle, with all running tasks.
        Combination: the union of a tier's results; the first tier that names a task decides; protections hold in every
        tier (deviation protections-hold).
        Flag: enabledVictim.
        On error: the plugin names none.
        """
        self.callbacks.add("victim_tasks", fn)

    def victim_tasks(self, tasks: Victims) -> Victims:
        """The tasks that should be evicted, regardless of pending tasks."""
        for tier in self.callbacks.tiers("victim_tasks"):
            chosen: dict[str, Task] = {}
            for plugin, fn, _ in tier:
                try:
                    for task in fn(tasks):
                        chosen.setdefault(task.uid, task)
                except Exception as e:
                    self.callbacks.fault(plugin, "victim_tasks", e)
            if chosen:
                return self.unprotected(list(chosen.values()))
        return []

    def unprotected(self, victims: Victims) -> Victims:
        """The victims that no plugin protects at any extension point (deviation protections-hold)."""
        if not self._deviations.protections_hold:
            return victims
        for plugin, fn, basis in self.callbacks.enabled("preemptable"):
            if victims and basis is Basis.PROTECTION:
                try:
                    victims = fn(None, victims)
                except Exception as e:
                    self.callbacks.fault(plugin, "preemptable", e)
                    return []
        return victims

    def also_reclaimable(self, reclaimer: Task, candidates: Victims) -> set[int]:
        """The slots of the candidates that all plugins name at `reclaimable` which neither share the cluster among
        queues nor keep gangs: the rules of these two are part of what is evicted for an entitled gang."""
        sharing = self._limits.sharing
        allowed = {t.slot for t in candidates}
        for plugin, fn, basis in self.callbacks.enabled("reclaimable"):
            if plugin in sharing or basis in (Basis.GANG_MINIMUM, Basis.PROTECTION) or not allowed:
                continue
            try:
                answer = fn(reclaimer, candidates)
            except Exception as e:
                self.callbacks.fault(plugin, "reclaimable", e, reclaimer.key)
                return set()
            if answer is not None:
                allowed &= {t.slot for t in answer}
        return allowed

    @property
    def has_gangs(self) -> bool:
        """Whether a plugin keeps gangs at their minimum, whatever its flags are: unified_evictable has no flag."""
        return any(c.basis is Basis.GANG_MINIMUM for c in self.callbacks.enabled("unified_evictable"))

    # ---- combination ------------------------------------------------------------------------------------

    def _victims(self, point: str, evictor: Any, candidates: Victims) -> Victims:
        found, decided, agreed = self._first_tier(point, evictor, candidates)
        if found and self._deviations.rank_holds:
            found = self._with_reason(point, decided, evictor, found, candidates)
        if self._deviations.protections_hold:
            for number, tier in enumerate(self.callbacks.tiers(point)):
                for plugin, fn, basis in tier:
                    # A gang's minimum holds in the tiers that were called, a protection in all.
                    holds = basis is Basis.PROTECTION or (basis is Basis.GANG_MINIMUM and number <= decided)
                    if holds and not (number == decided and plugin in agreed):
                        found = self._also_named_by(point, plugin, fn, evictor, candidates, found)
        return found

    def _first_tier(self, point: str, evictor: Any, candidates: Victims) -> tuple[Victims, int, set[str]]:
        """The result of the first tier that has one, that tier's number, and the plugins that name all victims."""
        tiers = self.callbacks.tiers(point)
        for number, tier in enumerate(tiers):
            try_next, victims, agreed = self._answer(point, tier, evictor, candidates)
            if not try_next:
                return victims, number, agreed
        return [], len(tiers), set()

    def _answer(self, point: str, tier: Tier, evictor: Any, candidates: Victims) -> tuple[bool, Victims, set[str]]:
        """Whether the next tier is called, the pods that all plugins of this one name, and the plugins that name all of
        these. If the plugins agree on no pod, those that follow decide alone, as in Volcano."""
        victims: Victims | None = None
        agreed: set[str] = set()
        for plugin, fn, _ in tier:
            try:
                answer = fn(evictor, candidates)
            except Exception as e:
                self.callbacks.fault(plugin, point, e, name_of(evictor))
                return False, [], set()
            if answer is None:
                continue
            if not answer:
                return True, [], set()
            if victims is None:
                victims = list(answer)
            else:
                uids = {t.uid for t in answer}
                victims = [t for t in victims if t.uid in uids] or None
            agreed = set() if victims is None else {*agreed, plugin}
        return victims is None, victims or [], agreed

    def _also_named_by(
        self, point: str, plugin: str, fn: Fn, evictor: Any, candidates: Victims, found: Victims
    ) -> Victims:
        """The found victims that one plugin, called with all candidates, names as well."""
        if not found:
            return []
        try:
            answer = fn(evictor, candidates)
        except Exception as e:
            self.callbacks.fault(plugin, point, e, name_of(evictor))
            return []
        allowed = {t.uid for t in answer or ()}
        return [t for t in found if t.uid in allowed]

    def _with_reason(self, point: str, decided: int, evictor: Any, found: Victims, candidates: Victims) -> Victims:
        """The victims that a plugin has a reason to evict; without this rule two jobs can evict each other in turn.

        If no plugin of the deciding tier has a reason, the plugins that share the cluster among queues give it between
        queues, in whatever tier they are. Within a queue the order of jobs gives it.
        """
        between_queues = point == "reclaimable" or getattr(evictor, "kind", "") == "gangreclaim"
        reasons = {Basis.CLAIM} if between_queues else {Basis.CLAIM, Basis.RANK}
        if any(c.basis in reasons for c in self.callbacks.tiers(point)[decided]):
            return found
        if not between_queues:
            return self.of_later_jobs(evictor, found)
        sharing = self._limits.sharing
        limits = [c for c in self.callbacks.enabled(point) if c.plugin in sharing]
        for plugin, fn, _ in limits:
            found = self._also_named_by(point, plugin, fn, evictor, candidates, found)
        return found if limits else self.of_later_jobs(evictor, found)

    def of_later_jobs(self, evictor: Task | EvictionContext, victims: Victims) -> Victims:
        """The victims of jobs with a lower priority or, at equal priority, of younger jobs, and of its own job."""
        mine = self._jobs.get(evictor.job) if isinstance(evictor, Task) else evictor.job
        if mine is None:
            return []
        place = (-mine.priority, mine.created, mine.uid)
        theirs = [(v, self._jobs.get(v.job)) for v in victims]
        return [v for v, j in theirs if j is not None and (j is mine or place < (-j.priority, j.created, j.uid))]
