"""pdb: respects PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

from tests.reference.kube.selectors import matches
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PERMIT


def pdb(session: Session, arguments: dict[str, Any]) -> None:
    budgets = session.cluster.of("PodDisruptionBudget")

    def within_budgets(tasks: list[Task]) -> list[Task]:
        left = [(b.get("status") or {}).get("disruptionsAllowed", 0) for b in budgets]
        victims = []
        for task in tasks:
            labels = task.pod["metadata"].get("labels")
            if not labels:
                continue
            violated = False
            for i, b in enumerate(budgets):
                selector = b["spec"].get("selector") or {}
                empty = not selector.get("matchLabels") and not selector.get("matchExpressions")
                if b["metadata"].get("namespace", "default") != task.namespace or empty:
                    continue
                if not matches(selector, labels) or task.name in ((b.get("status") or {}).get("disruptedPods") or {}):
                    continue
                left[i] -= 1
                violated = violated or left[i] < 0
            if not violated:
                victims.append(task)
        return victims

    def filtered(evictor: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        return within_budgets(candidates), PERMIT

    session.votes.register("VictimTasks", "pdb", within_budgets)
    session.votes.register("Preemptable", "pdb", filtered)
    session.votes.register("Reclaimable", "pdb", filtered)
