"""How the results of the plugins of all tiers are combined. Volcano: session_plugins.

Every function here is one row of the table of extension points. A plugin registers a callback for a point; it is called
if its option has the point's flag. `deciding` contains the plugins that influenced a result, if a single call shows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tests.reference.conf import Conf

if TYPE_CHECKING:
    from tests.reference.actions.gangs import Eviction
    from tests.reference.cluster import Queue
    from tests.reference.job import Job
    from tests.reference.node import Node
    from tests.reference.sub_job import SubJob
    from tests.reference.task import Task

PERMIT, ABSTAIN, REJECT = 1, 0, -1


class PredicateError(Exception):
    """A node, or every node, rejects a task, for one or several reasons; `unresolvable`: evictions would not help."""

    def __init__(self, *reasons: str, unresolvable: bool = False) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons
        self.unresolvable = unresolvable


class ScoreError(Exception):
    """A node cannot be scored: the NodeOrder functions add nothing to it."""


class Votes:
    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.functions: dict[str, dict[str, Callable[..., Any]]] = defaultdict(dict)
        self.deciding: set[str] = set()

    def register(self, point: str, plugin: str, function: Callable[..., Any]) -> None:
        self.functions[point][plugin] = function

    def _tiers(self, point: str, flag: str | None) -> Iterator[list[tuple[str, Callable[..., Any]]]]:
        for tier in self.conf.tiers:
            known = [o.name for o in tier if o.enabled(flag) and o.name in self.functions[point]]
            yield [(name, self.functions[point][name]) for name in known]

    def _all(self, point: str, flag: str | None) -> Iterator[tuple[str, Callable[..., Any]]]:
        for tier in self._tiers(point, flag):
            yield from tier

    def _compare(self, point: str, flag: str, left: Any, right: Any) -> int:
        for name, compare in self._all(point, flag):
            answer = compare(left, right)
            if answer != 0:
                self.deciding.add(name)
                return answer
        return 0

    def _all_true(self, point: str, flag: str, *about: Any) -> bool:
        for name, function in self._all(point, flag):
            if not function(*about):
                self.deciding.add(name)
                return False
        return True

    def _vote(self, point: str, flag: str, *about: Any) -> bool:
        for tier in self._tiers(point, flag):
            permitted = False
            for name, function in tier:
                answer = function(*about)
                if answer < 0:
                    self.deciding.add(name)
                    return False
                if answer > 0:
                    permitted = True
            if permitted:
                return True
        return True

    # --- orders

    def job_less(self, left: Job, right: Job) -> bool:
        answer = self._compare("JobOrder", "enableJobOrder", left, right)
        if answer != 0:
            return answer < 0
        return (left.created, left.uid) < (right.created, right.uid)

    def sub_job_less(self, left: SubJob, right: SubJob) -> bool:
        answer = self._compare("SubJobOrder", "enabledSubJobOrder", left, right)
        if answer != 0:
            return answer < 0
        return (left.index, left.uid) < (right.index, right.uid)

    def queue_less(self, left: Queue, right: Queue) -> bool:
        answer = self._compare("QueueOrder", "enableQueueOrder", left, right)
        if answer != 0:
            return answer < 0
        return (left.created, left.name) < (right.created, right.name)

    def task_less(self, left: Task, right: Task) -> bool:
        from tests.reference.task import compare_tasks

        answer = self._compare("TaskOrder", "enableTaskOrder", left, right)
        return (answer if answer != 0 else compare_tasks(left, right)) < 0

    # --- callbacks with a boolean result

    def job_valid(self, job: Job) -> bool:
        return self._all_true("JobValid", None, job)

    def job_ready(self, job: Job) -> bool:
        return self._all_true("JobReady", "enableJobReady", job)

    def job_pipelined(self, job: Job) -> bool:
        return self._vote("JobPipelined", "enableJobPipelined", job)

    def sub_job_ready(self, job: Job, sub: SubJob) -> bool:
        if not job.policies:
            return self.job_ready(job)
        return self._all_true("SubJobReady", "enabledSubJobReady", job, sub)

    def sub_job_pipelined(self, job: Job, sub: SubJob) -> bool:
        if not job.policies:
            return self.job_pipelined(job)
        return self._vote("SubJobPipelined", "enabledSubJobPipelined", job, sub)

    def job_enqueueable(self, job: Job) -> bool:
        return self._vote("JobEnqueueable", "enableJobEnqueued", job)

    def job_enqueued(self, job: Job) -> None:
        for _, function in self._all("JobEnqueued", "enableJobEnqueued"):
            function(job)

    def job_starving(self, job: Job) -> bool:
        for tier in self._tiers("JobStarving", "enableJobStarving"):
            if tier:
                return all(function(job) for _, function in tier)
        return False

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        return self._all_true("Preemptive", "enablePreemptive", queue, tasks)

    def job_compare(self, left: Job, right: Job) -> int:
        return self._compare("JobOrder", "enableJobOrder", left, right)

    def victim_queue_less(self, left: Queue, right: Queue, preemptor: Queue) -> bool:
        for name, compare in self._all("VictimQueueOrder", None):
            answer = compare(left, right, preemptor)
            if answer != 0:
                self.deciding.add(name)
                return answer < 0
        return not self.queue_less(left, right)

    # --- victims

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return self._victims("Preemptable", "enablePreemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return self._victims("Reclaimable", "enableReclaimable", reclaimer, candidates)

    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        return self._victims("UnifiedEvictable", None, eviction, candidates)

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        for tier in self._tiers("VictimTasks", "enabledVictim"):
            chosen: dict[str, Task] = {}
            for name, function in tier:
                for task in function(tasks):
                    chosen[task.uid] = task
                    self.deciding.add(name)
            if chosen:
                return list(chosen.values())
        return []

    def _victims(self, point: str, flag: str | None, evictor: Any, candidates: list[Task]) -> list[Task]:
        """A function returns (victims, vote)."""
        victims: list[Task] | None = None
        for tier in self._tiers(point, flag):
            for name, function in tier:
                chosen, vote = function(evictor, candidates)
                if vote == ABSTAIN:
                    continue
                if len(chosen or []) < len(candidates):
                    self.deciding.add(name)
                if not chosen:
                    victims = None
                    break
                if victims is None:
                    victims = chosen
                else:
                    uids = {v.uid for v in chosen}
                    victims = [v for v in victims if v.uid in uids] or None
            if victims is not None:
                return victims
        return []

    def overused(self, queue: Queue) -> bool:
        for name, function in self._all("Overused", "enabledOverused"):
            if function(queue):
                self.deciding.add(name)
                return True
        return False

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return self._all_true("Allocatable", "enabledAllocatable", queue, task)

    def simulated_allocatable(self, queue: Queue, task: Task) -> bool:
        return self._all_true("SimulateAllocatable", "enabledAllocatable", queue, task)

    # --- nodes

    def pre_predicate(self, task: Task) -> None:
        """Raises PredicateError if no node accepts the task."""
        for name, function in self._all("PrePredicate", "enablePredicate"):
            try:
                function(task)
            except PredicateError:
                self.deciding.add(name)
                raise

    def predicate(self, task: Task, node: Node) -> None:
        """Raises PredicateError if the node rejects the task."""
        for name, function in self._all("Predicate", "enablePredicate"):
            try:
                function(task, node)
            except PredicateError:
                self.deciding.add(name)
                raise

    def simulated_predicate(self, task: Task, node: Node) -> bool:
        return self._all_true("SimulatePredicate", "enablePredicate", task, node)

    def node_scores(self, task: Task, nodes: list[Node]) -> list[float]:
        """By node: the sum of the NodeOrder functions, then that of the BatchNodeOrder functions."""
        order, batch = [0.0] * len(nodes), [0.0] * len(nodes)
        cannot: set[int] = set()
        for name, function in self._all("NodeOrder", "enableNodeOrder"):
            more = [0.0] * len(nodes)
            for i, node in enumerate(nodes):
                try:
                    more[i] = function(task, node)
                except ScoreError:
                    cannot.add(i)
            self._add(name, order, more)
        for i in cannot:
            order[i] = 0.0
        for name, function in self._all("BatchNodeOrder", "enableNodeOrder"):
            self._add(name, batch, function(task, nodes))
        return [o + b for o, b in zip(order, batch, strict=True)]

    # --- HyperNodes

    def gradients_of_job(self, job: Job, hyper_node: str, purpose: str) -> list[list[str]]:
        """Groups of HyperNodes, to be tried in this order; `purpose`: allocate or evict."""
        return self._gradients("HyperNodeGradientForJob", job, hyper_node, purpose)

    def gradients_of_sub_job(self, sub: SubJob, hyper_node: str, purpose: str) -> list[list[str]]:
        return self._gradients("HyperNodeGradientForSubJob", sub, hyper_node, purpose)

    def _gradients(self, point: str, of: Any, hyper_node: str, purpose: str) -> list[list[str]]:
        for name, function in self._all(point, "enabledHyperNodeGradient"):
            found: list[list[str]] = function(of, hyper_node, purpose)
            if found != [[hyper_node]]:
                self.deciding.add(name)
            return found
        return [[hyper_node]]

    def hyper_node_scores(self, sub: SubJob, names: list[str]) -> dict[str, float]:
        total = dict.fromkeys(names, 0.0)
        for plugin, function in self._all("HyperNodeOrder", "enabledHyperNodeOrder"):
            more = function(sub, names)
            if len(set(more.values())) > 1:
                self.deciding.add(plugin)
            for name, score in more.items():
                total[name] += score
        return total

    def _add(self, name: str, total: list[float], more: list[float]) -> None:
        if len(set(more)) > 1:
            self.deciding.add(name)
        for i, score in enumerate(more):
            total[i] += score
