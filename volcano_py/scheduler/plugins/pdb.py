"""pdb: victims only as far as disruption budgets allow. Volcano: plugin pdb."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.selector import matches
from volcano_py.scheduler.framework.session import Handler, Session
from volcano_py.scheduler.framework.votes import PERMIT
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


class Pdb:
    """No arguments."""

    name = "pdb"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        budgets: list[PodDisruptionBudget] = list(session.cluster.others.get("PodDisruptionBudget", {}).values())
        careful = session.on("protections-hold")
        gone: dict[str, Task] = {}
        """Whom this session has evicted so far; Volcano counts from the start every time."""

        def allowed(candidates: list[Task]) -> list[Task]:
            return within_budgets(budgets, candidates, gone.values())

        def evicted(task: Task, node: int) -> None:
            if session.status(task) == st.RELEASING:
                gone[task.key] = task

        def back(task: Task, node: int) -> None:
            gone.pop(task.key, None)

        votes = session.votes
        votes.add("preemptable", self.name, lambda _, candidates: (allowed(candidates), PERMIT))
        votes.add("reclaimable", self.name, lambda _, candidates: (allowed(candidates), PERMIT))
        if careful:
            votes.add("unified_evictable", self.name, lambda _, candidates: (allowed(candidates), PERMIT))
            session.handlers.append(Handler(self.name, back, evicted))
        else:  # Volcano's shuffle evicts everybody whom a budget would let go
            votes.add("victim_tasks", self.name, allowed)


def within_budgets(budgets: list[PodDisruptionBudget], candidates: list[Task], gone: Iterable[Task] = ()) -> list[Task]:
    """The candidates that may go, in their order; a pod without labels never may. Violating pods use budget, too, and
    those that are `gone` already."""
    remaining = {b.metadata.key: b.status.disruptions_allowed for b in budgets}
    for task in gone:
        for b in budgets:
            remaining[b.metadata.key] -= _is_for(b, task)
    found = []
    for task in candidates:
        if not task.pod.metadata.labels:
            continue
        violated = False
        for b in budgets:
            if _is_for(b, task):
                remaining[b.metadata.key] -= 1
                violated = violated or remaining[b.metadata.key] < 0
        if not violated:
            found.append(task)
    return found


def _is_for(budget: PodDisruptionBudget, task: Task) -> bool:
    """Whether a pod counts for a budget. One whose selector cannot be read is for nobody."""
    selector = budget.spec.selector
    if budget.metadata.namespace != task.namespace or selector is None:
        return False
    if not selector.match_labels and not selector.match_expressions:
        return False
    try:
        return matches(selector, task.pod.metadata.labels) and task.name not in (budget.status.disrupted_pods or {})
    except ValueError:
        return False
