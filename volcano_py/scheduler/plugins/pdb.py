"""pdb: victims only as far as disruption budgets allow. Volcano: plugin pdb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import matches
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.votes import PERMIT
from volcano_py.scheduler.model.task import Task


class Pdb:
    """No arguments."""

    name = "pdb"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        budgets: list[PodDisruptionBudget] = list(session.cluster.others.get("PodDisruptionBudget", {}).values())

        def allowed(candidates: list[Task]) -> list[Task]:
            return within_budgets(budgets, candidates)

        if not session.on("protections-hold"):  # Volcano's shuffle evicts everybody whom a budget would let go
            session.votes.add("victim_tasks", self.name, allowed)
        session.votes.add("preemptable", self.name, lambda _, candidates: (allowed(candidates), PERMIT))
        session.votes.add("reclaimable", self.name, lambda _, candidates: (allowed(candidates), PERMIT))


def within_budgets(budgets: list[PodDisruptionBudget], candidates: list[Task]) -> list[Task]:
    """The candidates that may go, in their order; a pod without labels never may. Violating pods use budget, too."""
    remaining = {b.metadata.key: b.status.disruptions_allowed for b in budgets}
    found = []
    for task in candidates:
        labels = task.pod.metadata.labels
        if not labels:
            continue
        violated = False
        for b in budgets:
            selector = b.spec.selector
            if b.metadata.namespace != task.namespace or selector is None:
                continue
            if not selector.match_labels and not selector.match_expressions:
                continue
            if not _means(selector, labels) or task.name in (b.status.disrupted_pods or {}):
                continue
            remaining[b.metadata.key] -= 1
            violated = violated or remaining[b.metadata.key] < 0
        if not violated:
            found.append(task)
    return found


def _means(selector: LabelSelector, labels: dict[str, str]) -> bool:
    """Whether a budget is for a pod with these labels. One whose selector cannot be read is for nobody."""
    try:
        return matches(selector, labels)
    except ValueError:
        return False
