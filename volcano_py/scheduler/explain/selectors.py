"""A pod's node selectors, and taints that it does not tolerate, in short texts. Not in Volcano."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.core import Taint
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.jobs.tolerations import tolerated


def selector_text(task: Task) -> str:
    """`zone=a, disk in (ssd, nvme)`; terms of the affinity are alternatives."""
    parts = [f"{key}={value}" for key, value in sorted((task.pod.spec.node_selector or {}).items())]
    parsed = task.spec_class.affinity
    affinity = parsed.node_affinity if parsed is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    terms = []
    for term in (required.node_selector_terms or ()) if required is not None else ():
        wanted = [*(term.match_expressions or ()), *(term.match_fields or ())]
        terms.append(" and ".join(f"{r.key} {r.operator} ({', '.join(r.values or ())})" for r in wanted))
    if terms:
        parts.append(" or ".join(terms))
    return ", ".join(parts) or "none"


def taint_text(taint: Taint) -> str:
    """`key=value:effect`, as kubectl displays it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def untolerated(session: Session, task: Task, rejected: NDArray[np.bool_]) -> str:
    """The taint without a toleration that most of the rejected nodes have."""
    found: Counter[str] = Counter()
    for node in np.flatnonzero(rejected).tolist():
        found.update(taint_text(t) for t in untolerated_taints(session, task, node)[:1])
    return max(found, key=lambda t: (found[t], t), default="none")


def untolerated_taints(session: Session, task: Task, node: int) -> list[Taint]:
    """The taints of a node that the task does not tolerate."""
    taints = session.table.objects[node].spec.taints or []
    hard = [t for t in taints if t.effect in ("NoSchedule", "NoExecute")]
    return [t for t in hard if not tolerated(t, task.spec_class.tolerations)]
