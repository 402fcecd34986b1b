"""Votes: the extension points of a session and how plugins' answers are combined. Volcano: session plugin
functions.

Plugins register callbacks under Volcano's names in snake case (`votes.add("job_order", plugin, fn)`);
`compile` keeps those whose flag is on, in the order of tiers and of plugins within a tier.

A plugin that raises fails closed: the answer is the one that changes least (a node is refused, nobody is a
victim, a job is not ready); only an order or a score lapses. Each failure is kept in `faults` with the
plugin's name, and the cycle goes on.

Orders of jobs and tasks are sort keys (lower first); those of queues and victims compare pairs (−1, 0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.config import PluginOption
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.sub_job import SubJob
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.task import Task

ALLOCATE, EVICT = "allocate", "evict"
"""What gradients are asked for."""

PERMIT = 1
ABSTAIN = 0
REJECT = -1

POINTS: dict[str, str | None] = {
    "job_order": "enableJobOrder",
    "queue_order": "enableQueueOrder",
    "victim_queue_order": None,
    "task_order": "enableTaskOrder",
    "pre_predicate": "enablePredicate",
    "predicate": "enablePredicate",
    "filter": "enablePredicate",
    "best_node": "enableBestNode",
    "score": "enableNodeOrder",
    "preemptable": "enablePreemptable",
    "reclaimable": "enableReclaimable",
    "unified_evictable": None,
    "outranked": "enablePreemptable",
    "overused": "enabledOverused",
    "preemptive": "enablePreemptive",
    "allocatable": "enabledAllocatable",
    "simulate_allocatable": "enabledAllocatable",
    "job_ready": "enableJobReady",
    "job_pipelined": "enableJobPipelined",
    "sub_job_order": "enabledSubJobOrder",
    "sub_job_ready": "enabledSubJobReady",
    "sub_job_pipelined": "enabledSubJobPipelined",
    "hyper_node_order": "enabledHyperNodeOrder",
    "job_gradient": "enabledHyperNodeGradient",
    "sub_job_gradient": "enabledHyperNodeGradient",
    "job_enqueueable": "enableJobEnqueued",
    "job_enqueued": "enableJobEnqueued",
    "job_valid": None,
    "job_starving": "enableJobStarving",
    "victim_tasks": "enabledVictim",
}
"""Extension point → the configuration flag that switches it (None: always on)."""


class Invalid(NamedTuple):
    """Why a job cannot be scheduled at all."""

    reason: str
    message: str


class Fault(NamedTuple):
    """A plugin raised."""

    plugin: str
    point: str
    error: str
    subject: str


class EvictionContext(NamedTuple):
    """For whom a gang is to be evicted: kind is "gangpreempt" or "gangreclaim"."""

    kind: str
    job: SessionJob
    hyper_node: str = ""


Callback = Callable[..., Any]
Tier = list[tuple[str, Callback]]


_SPARING = frozenset(("conformance", "gang", "pdb", "cdp"))
"""Plugins that only say whom they would spare."""


class Votes:
    """The compiled callbacks of one session."""

    def __init__(self) -> None:
        self._registered: dict[str, dict[str, Callback]] = {point: {} for point in POINTS}
        self._tiers: dict[str, list[Tier]] = {point: [] for point in POINTS}
        self._flat: dict[str, Tier] = {point: [] for point in POINTS}
        self.faults: list[Fault] = []
        self.protectors: frozenset[str] = frozenset()
        """Plugins whose protection holds although another tier names victims (deviation protections-hold)."""
        self.in_turn: Callable[[Any, list[Task]], list[Task]] | None = None
        """Whom an evictor may take where no plugin gives a reason (deviation rank-holds)."""
        self.task_order_moves = False
        """The order of a job's tasks changes while they are placed."""

    def add(self, point: str, plugin: str, callback: Callback) -> None:
        """Register a callback; a second one of the same plugin replaces the first. KeyError: no such
        point."""
        self._registered[point][plugin] = callback

    def compile(self, tiers: Iterable[Iterable[PluginOption]]) -> None:
        """Keep what the configuration switches on."""
        for point, flag in POINTS.items():
            known = self._registered[point]
            per_tier = [
                [(o.name, known[o.name]) for o in tier if o.name in known and (flag is None or flag in o.enabled)]
                for tier in tiers
            ]
            self._tiers[point] = [tier for tier in per_tier if tier]
            self._flat[point] = [entry for tier in per_tier for entry in tier]

    def close(self, plugin: str) -> None:
        """A plugin could not be opened: without its votes nobody is placed and nobody is a victim."""
        why = Invalid("PluginError", f"plugin {plugin} failed to open; its votes are missing")
        self.add("job_valid", plugin, lambda _: why)
        self.add("job_enqueueable", plugin, lambda _: REJECT)
        for point in ("preemptable", "reclaimable", "unified_evictable"):
            self.add(point, plugin, lambda *_: ([], REJECT))

    def enabled(self, point: str) -> Tier:
        """The callbacks that are on, in order, with their plugins' names."""
        return self._flat[point]

    def fault(self, plugin: str, point: str, error: Exception, subject: str = "") -> None:
        self.faults.append(Fault(plugin, point, f"{type(error).__name__}: {error}", subject))

    # ---- orders -----------------------------------------------------------------------------------------

    def job_key(self, job: SessionJob) -> tuple[Any, ...]:
        """Sort key of a job: what the plugins say, then age, then UID."""
        key: list[Any] = []
        for plugin, order in self._flat["job_order"]:
            try:
                key.append(order(job))
            except Exception as e:
                self.fault(plugin, "job_order", e, job.uid)
                key.append(0)
        return (*key, job.created, job.uid)

    def job_before(self, left: SessionJob, right: SessionJob) -> bool:
        return self.job_key(left) < self.job_key(right)

    def job_compare(self, left: SessionJob, right: SessionJob) -> int:
        """Only what the plugins say: −1, 0, 1."""
        a, b = self.job_key(left)[:-2], self.job_key(right)[:-2]
        return (a > b) - (a < b)

    def sub_job_key(self, sub: SubJob) -> tuple[Any, ...]:
        """Sort key of a sub-job: what the plugins say, then its number, then UID."""
        key: list[Any] = []
        for plugin, order in self._flat["sub_job_order"]:
            try:
                key.append(order(sub))
            except Exception as e:
                self.fault(plugin, "sub_job_order", e, sub.uid)
                key.append(0)
        return (*key, sub.match_index, sub.uid)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """What the plugins say about a task; see `task_order` for the rest of the order."""
        key: list[Any] = []
        for plugin, order in self._flat["task_order"]:
            try:
                key.append(order(task))
            except Exception as e:
                self.fault(plugin, "task_order", e, task.key)
                key.append(0)
        return tuple(key)

    def task_before(self, left: Task, right: Task) -> bool:
        """Whether a task comes first: plugins, then the running number in the pods' names, then age, then
        UID."""
        a, b = self.task_key(left), self.task_key(right)
        if a != b:
            return a < b
        if left.index is not None and right.index is not None and left.index != right.index:
            return left.index < right.index
        return (left.created, left.uid) < (right.created, right.uid)

    def queue_before(self, left: Queue, right: Queue) -> bool:
        for plugin, compare in self._flat["queue_order"]:
            try:
                c = compare(left, right)
            except Exception as e:
                self.fault(plugin, "queue_order", e, left.name)
                continue
            if c:
                return bool(c < 0)
        return (left.created, left.name) < (right.created, right.name)

    def victim_queue_before(self, left: Queue, right: Queue, preemptor: Queue | None) -> bool:
        for plugin, compare in self._flat["victim_queue_order"]:
            try:
                c = compare(left, right, preemptor)
            except Exception as e:
                self.fault(plugin, "victim_queue_order", e, left.name)
                continue
            if c:
                return bool(c < 0)
        return not self.queue_before(left, right)

    # ---- yes or no --------------------------------------------------------------------------------------

    def _all(self, point: str, *subject: Any) -> bool:
        for plugin, ask in self._flat[point]:
            try:
                if not ask(*subject):
                    return False
            except Exception as e:
                self.fault(plugin, point, e, _name(subject[-1]))
                return False
        return True

    def _vote(self, point: str, *subject: Any) -> bool:
        """Any Reject is a no; a Permit ends the vote at the end of its tier; nobody minds: yes."""
        for tier in self._tiers[point]:
            permitted = False
            for plugin, ask in tier:
                try:
                    answer = ask(*subject)
                except Exception as e:
                    self.fault(plugin, point, e, _name(subject[-1]))
                    return False
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    def job_ready(self, job: SessionJob) -> bool:
        return self._all("job_ready", job)

    def job_pipelined(self, job: SessionJob) -> bool:
        return self._vote("job_pipelined", job)

    def sub_job_ready(self, job: SessionJob, sub: SubJob) -> bool:
        """Sub-jobs are asked one by one only where policies make several of them."""
        return self._all("sub_job_ready", job, sub) if job.has_policies else self.job_ready(job)

    def sub_job_pipelined(self, job: SessionJob, sub: SubJob) -> bool:
        return self._vote("sub_job_pipelined", job, sub) if job.has_policies else self.job_pipelined(job)

    def job_enqueueable(self, job: SessionJob) -> bool:
        return self._vote("job_enqueueable", job)

    def job_enqueued(self, job: SessionJob) -> None:
        for plugin, tell in self._flat["job_enqueued"]:
            try:
                tell(job)
            except Exception as e:
                self.fault(plugin, "job_enqueued", e, job.uid)

    def job_valid(self, job: SessionJob) -> Invalid | None:
        """None: valid."""
        for plugin, ask in self._flat["job_valid"]:
            try:
                invalid: Invalid | None = ask(job)
            except Exception as e:
                self.fault(plugin, "job_valid", e, job.uid)
                return Invalid("PluginError", f"plugin {plugin} failed: {e}")
            if invalid is not None:
                return invalid
        return None

    def job_starving(self, job: SessionJob) -> bool:
        """All plugins of the first tier that has an opinion must agree; without any, nobody starves."""
        for tier in self._tiers["job_starving"]:
            for plugin, ask in tier:
                try:
                    if not ask(job):
                        return False
                except Exception as e:
                    self.fault(plugin, "job_starving", e, job.uid)
                    return False
            return True
        return False

    def overused(self, queue: Queue) -> bool:
        for plugin, ask in self._flat["overused"]:
            try:
                if ask(queue):
                    return True
            except Exception as e:
                self.fault(plugin, "overused", e, queue.name)
                return True
        return False

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return self._all("allocatable", queue, task)

    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        """The same within a dry run, where Volcano's plugins do not look at whether the queue is open."""
        return self._all("simulate_allocatable", queue, task)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        return self._all("preemptive", queue, tasks)

    def pre_predicate(self, task: Task) -> str | None:
        """Why a task cannot be placed on any node; None: it may."""
        for plugin, ask in self._flat["pre_predicate"]:
            try:
                error: str | None = ask(task)
            except Exception as e:
                self.fault(plugin, "pre_predicate", e, task.key)
                return f"plugin {plugin} failed: {e}"
            if error is not None:
                return error
        return None

    # ---- HyperNodes -------------------------------------------------------------------------------------

    def job_gradients(self, job: SessionJob, hyper_node: str, purpose: str) -> list[list[str]]:
        """Where below a HyperNode to try a job: groups in order, the first with a solution is taken."""
        return self._gradients("job_gradient", job, hyper_node, purpose)

    def sub_job_gradients(self, job: SessionJob, sub: SubJob, hyper_node: str, purpose: str) -> list[list[str]]:
        """The same for a sub-job."""
        return self._gradients("sub_job_gradient", (job, sub), hyper_node, purpose)

    def _gradients(self, point: str, subject: Any, hyper_node: str, purpose: str) -> list[list[str]]:
        """The first plugin that has a say decides; without any the HyperNode itself is tried."""
        for plugin, ask in self._flat[point]:
            try:
                found: list[list[str]] = ask(subject, hyper_node, purpose)
                return found
            except Exception as e:
                self.fault(plugin, point, e)
                return []
        return [[hyper_node]]

    def hyper_node_rates(self, sub: SubJob, hyper_nodes: list[str]) -> dict[str, float]:
        """How good each HyperNode would be for a sub-job: the sum over plugins."""
        total = dict.fromkeys(hyper_nodes, 0.0)
        for plugin, rate in self._flat["hyper_node_order"]:
            try:
                for name, value in rate(sub, hyper_nodes).items():
                    total[name] += value
            except Exception as e:
                self.fault(plugin, "hyper_node_order", e, sub.uid)
        return total

    # ---- victims ----------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        found = self._victims("preemptable", preemptor, candidates)
        for plugin, ask in self._flat["outranked"]:
            try:
                found = ask(preemptor, found)
            except Exception as e:
                self.fault(plugin, "outranked", e, preemptor.key)
                return []
        return found

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return self._victims("reclaimable", reclaimer, candidates)

    def unified_evictable(self, context: EvictionContext, candidates: list[Task]) -> list[Task]:
        return self._victims("unified_evictable", context, candidates)

    def _victims(self, point: str, evictor: Any, candidates: list[Task]) -> list[Task]:
        """The intersection of a tier's answers; a tier that ends without any lets the next one decide.

        Every callback gets the original candidates and answers (victims, vote). An empty answer leaves the
        tier; an intersection that becomes empty lets the next callback of the tier start anew (both as in
        Volcano).
        """
        found, heard = self._first_tier(point, evictor, candidates)
        if found and self.in_turn is not None:
            found = self._with_reason(point, heard, evictor, found, candidates)
        if not found or not self.protectors:
            return found
        for number, tier in enumerate(self._tiers[point]):
            for plugin, ask in tier:
                # gang speaks for a gang's minimum where it was asked; the others protect pods, wherever they stand
                if plugin in self.protectors and (plugin != "gang" or number <= heard):
                    found = self._that_allows(point, plugin, ask, evictor, candidates, found)
        return found

    def _that_allows(
        self, point: str, plugin: str, ask: Callback, evictor: Any, candidates: list[Task], found: list[Task]
    ) -> list[Task]:
        """The found victims that one plugin, asked about all candidates, names as well; none if it fails."""
        if not found:
            return []
        try:
            allowed = {t.uid for t in ask(evictor, candidates)[0]}
        except Exception as e:
            self.fault(plugin, point, e)
            return []
        return [t for t in found if t.uid in allowed]

    def _with_reason(
        self, point: str, heard: int, evictor: Any, found: list[Task], candidates: list[Task]
    ) -> list[Task]:
        """Those of the victims for whom there is a reason to go, so that nobody evicts them in turn.

        In the tier that was heard plugins may only say whom they would spare. Then the reason is, between queues, what
        a queue holds beyond its share, in whatever tier the plugin stands that knows; and else who came first.
        """
        assert self.in_turn is not None
        reasons = {plugin for plugin, _ in self._tiers[point][heard]} - _SPARING
        between_queues = point == "reclaimable" or getattr(evictor, "kind", "") == "gangreclaim"
        if reasons - ({"priority"} if between_queues else set()):
            return found
        if not between_queues:
            return self.in_turn(evictor, found)
        sharing = {plugin for kind in ("preemptive", "overused") for plugin, _ in self._flat[kind]}
        owed = [(plugin, ask) for plugin, ask in self._flat[point] if plugin in sharing]
        for plugin, ask in owed:
            found = self._that_allows(point, plugin, ask, evictor, candidates, found)
        return found if owed else self.in_turn(evictor, found)

    def _first_tier(self, point: str, evictor: Any, candidates: list[Task]) -> tuple[list[Task], int]:
        """The answer of the first tier that has one, and that tier's number."""
        for number, tier in enumerate(self._tiers[point]):
            victims: list[Task] | None = None
            for plugin, ask in tier:
                try:
                    answer, vote = ask(evictor, candidates)
                except Exception as e:
                    self.fault(plugin, point, e)
                    return [], number
                if vote == ABSTAIN:
                    continue
                if not answer:
                    victims = None
                    break
                if victims is None:
                    victims = list(answer)
                else:
                    uids = {t.uid for t in answer}
                    victims = [t for t in victims if t.uid in uids] or None
            if victims is not None:
                return victims, number
        return [], len(self._tiers[point])

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        """The union of a tier's answers; the first tier that names anybody decides. Whom others protect is left out."""
        return self.unprotected(self._named(tasks))

    def unprotected(self, victims: list[Task]) -> list[Task]:
        """Those whom no plugin protects, whoever wants them to go (deviation protections-hold)."""
        for plugin, ask in self._flat["preemptable"]:
            if victims and plugin in self.protectors and plugin != "gang":
                try:
                    victims = ask(None, victims)[0]
                except Exception as e:
                    self.fault(plugin, "preemptable", e)
                    return []
        return victims

    def _named(self, tasks: list[Task]) -> list[Task]:
        for tier in self._tiers["victim_tasks"]:
            chosen: dict[str, Task] = {}
            for plugin, ask in tier:
                try:
                    for task in ask(tasks):
                        chosen.setdefault(task.uid, task)
                except Exception as e:
                    self.fault(plugin, "victim_tasks", e)
            if chosen:
                return list(chosen.values())
        return []


def _name(subject: Any) -> str:
    return str(getattr(subject, "uid", None) or getattr(subject, "name", ""))
