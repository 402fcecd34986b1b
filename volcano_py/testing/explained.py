"""Why pods are pending after a cycle, for authors of plugins: the blockers of the job, and what each node answers."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.scheduler.explain.explanation import explain
from volcano_py.scheduler.explain.reasons import amount_text
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

MOST_NODES = 20


def explanations(session: Session) -> dict[str, str]:
    """A text for each pod of each job, by the pod's key."""
    found: dict[str, str] = {}
    for uid, model in session.cluster.jobs.items():
        blockers: list[str] | None = None
        for key, task in model.tasks.items():
            status = session.status(task)
            node = session.node_of(task)
            if status != st.PENDING:
                at = "" if node is None else f" on node {session.table.names[node]}"
                found[key] = f"pod {key} is {st.STATUS_NAMES[status]}{at}"
                continue
            if blockers is None:
                blockers = [f"  {cause.code}: {sentence_of(cause)}" for cause in explain(session, uid).blockers]
            found[key] = "\n".join((f"pod {key} is pending", *blockers, *_by_node(session, task)))
    return found


def _by_node(session: Session, task: Task) -> Iterator[str]:
    for column in range(min(len(session.table), MOST_NODES)):
        yield f"  node {session.table.names[column]}: {_answer(session, task, column)}"
    if len(session.table) > MOST_NODES:
        yield f"  and {len(session.table) - MOST_NODES} more nodes"


def _answer(session: Session, task: Task, column: int) -> str:
    """What the node answers: the first rejection of each plugin, what it lacks, or that it accepts the pod."""
    parts: list[str] = []
    for plugin, rule in session.placement.filters:
        code = int(session.placement.codes(rule, task)[column]) if rule.applies(task) else 0
        if code and not any(part.startswith(f"{plugin}: ") for part in parts):
            parts.append(f"{plugin}: {rule.reasons[code - 1].text}")
    numbers, request = session.numbers, task.spec_class.vector(session.table)
    names = list(session.table.rows)
    for row in task.spec_class.checked_rows(session.table):
        needed, idle = request.item(row), numbers.idle.item(row, column)
        if needed - idle >= EPS:
            has = amount_text(names[row], max(idle, 0.0))
            parts.append(f"it requests {amount_text(names[row], needed)} {names[row]}, {has} idle")
    return "; ".join(parts) or "accepts the pod now"
