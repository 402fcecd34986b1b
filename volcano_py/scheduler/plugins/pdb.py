"""pdb: evict only as far as disruption budgets permit. Volcano: plugin pdb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.selector import matches
from volcano_py.scheduler.framework.extension_points.victims import Basis
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class Pdb(Plugin):
    """No arguments."""

    name = "pdb"

    def on_session_open(self, session: Session) -> None:
        budgets = Budgets(session.cluster.others.get("PodDisruptionBudget", {}).values())
        session.add_preemptable(lambda _, candidates: budgets.allow(candidates), basis=Basis.PROTECTION)
        session.add_reclaimable(lambda _, candidates: budgets.allow(candidates), basis=Basis.PROTECTION)
        if not session.deviations.protections_hold:  # Volcano computes the budgets again on each call
            session.add_victim_tasks(budgets.allow)  # and shuffles every pod that a budget permits
            return
        session.add_unified_evictable(lambda _, candidates: budgets.allow(candidates), basis=Basis.PROTECTION)

        def evicted(task: Task, node: int) -> None:
            if session.status(task) == st.RELEASING:
                budgets.use(task)

        def placed(tasks: Sequence[Task], _: Sequence[int]) -> None:
            for task in tasks:
                budgets.give_back(task)

        session.add_event_handler(lambda task, node: budgets.give_back(task), evicted, allocate_run=placed)


class Budgets:
    """How many evictions each budget permits, and which pods a session has evicted. A budget whose selector is empty or
    invalid selects no pod."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._in: dict[str, list[PodDisruptionBudget]] = {}
        """Budgets by namespace."""
        self._left: Counter[str] = Counter()
        """The remaining evictions by the budget's key; may fall below 0."""
        for b in budgets:
            self._in.setdefault(b.metadata.namespace, []).append(b)
            self._left[b.metadata.key] = b.status.disruptions_allowed
        self._of: dict[str, list[str]] = {}
        """The budgets that select a task, by the task's key, once computed."""
        self._evicted: set[str] = set()

    def allow(self, candidates: list[Task]) -> list[Task]:
        """The permitted victims, in order; a pod without labels is never one. Rejected candidates use budget as
        well."""
        left = self._left.copy()
        found = []
        for task in candidates:
            if not task.pod.metadata.labels:
                continue
            mine = self._budgets(task)
            left.subtract(mine)
            if all(left[key] >= 0 for key in mine):
                found.append(task)
        return found

    def use(self, task: Task) -> None:
        """Count the eviction of a task."""
        if task.key not in self._evicted:
            self._evicted.add(task.key)
            self._left.subtract(self._budgets(task))

    def give_back(self, task: Task) -> None:
        """Undo the count of a task's eviction when the task is placed again."""
        if task.key in self._evicted:
            self._evicted.discard(task.key)
            self._left.update(self._budgets(task))

    def _budgets(self, task: Task) -> list[str]:
        if task.key not in self._of:
            here = self._in.get(task.namespace, ())
            self._of[task.key] = [b.metadata.key for b in here if _is_for(b, task)]
        return self._of[task.key]


def _is_for(budget: PodDisruptionBudget, task: Task) -> bool:
    selector = budget.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    try:
        return matches(selector, task.pod.metadata.labels) and task.name not in (budget.status.disrupted_pods or {})
    except ValueError:
        return False
