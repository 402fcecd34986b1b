"""pdb: evict only as far as disruption budgets permit. Volcano: plugin pdb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.selector import matches
from volcano_py.scheduler.framework.extension_points.victims import Basis
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


class Pdb(Plugin):
    """No arguments."""

    name = "pdb"

    def on_session_open(self, session: Session) -> None:
        budgets = Budgets(session.cluster.others.get("PodDisruptionBudget", {}).values())
        session.add_preemptable(lambda _, candidates: budgets.allow(candidates), basis=Basis.PROTECTION)
        session.add_reclaimable(lambda _, candidates: budgets.allow(candidates), basis=Basis.PROTECTION)
        if not session.deviations.protections_hold:  # Volcano counts from the start every time
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
    """How many pods each budget permits to evict, and which ones a session has evicted. A budget whose selector is
    empty or cannot be read selects no pod."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._in: dict[str, list[PodDisruptionBudget]] = {}
        """By namespace."""
        self._left: Counter[str] = Counter()
        """By the budget's key; may fall below 0."""
        for b in budgets:
            self._in.setdefault(b.metadata.namespace, []).append(b)
            self._left[b.metadata.key] = b.status.disruptions_allowed
        self._of: dict[str, list[str]] = {}
        """The budgets that a task counts for, by its key, once computed."""
        self._gone: set[str] = set()

    def allow(self, candidates: list[Task]) -> list[Task]:
        """The permitted victims, in order; a pod without labels is never one. Other candidates use budget, too."""
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
        """A task was evicted."""
        if task.key not in self._gone:
            self._gone.add(task.key)
            self._left.subtract(self._budgets(task))

    def give_back(self, task: Task) -> None:
        """A task was placed; if it had been evicted, it is back."""
        if task.key in self._gone:
            self._gone.discard(task.key)
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
