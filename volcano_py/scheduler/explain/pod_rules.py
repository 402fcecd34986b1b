"""Rules between pods in short texts: affinity, anti-affinity and spreading, and the node label that is missing for
them. Not in Volcano."""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.api.affinity import PodAffinity
from volcano_py.api.meta import LabelSelector
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


def affinity_text(session: Session, task: Task) -> str:
    """`anti-affinity to app=x per kubernetes.io/hostname`; a node label that no node has comes first."""
    parsed = task.spec_class.affinity
    found = [
        *_terms("affinity", parsed.pod_affinity if parsed is not None else None),
        *_terms("anti-affinity", parsed.pod_anti_affinity if parsed is not None else None),
    ]
    missing = [key for kind, _, key in found if kind == "affinity" and not _exists(session, key)]
    if missing:
        return f"no node has the label {missing[0]}"
    if not found:
        return "anti-affinity of running pods"
    return ", ".join(f"{kind} to {pods} per {key}" for kind, pods, key in found)


def spread_text(session: Session, task: Task) -> str:
    """`over topology.kubernetes.io/zone`; a node label that no node has comes first."""
    hard = [c for c in task.spec_class.spread if c.when_unsatisfiable in ("", "DoNotSchedule")]
    missing = [c.topology_key for c in hard if not _exists(session, c.topology_key)]
    if missing:
        return f"no node has the label {missing[0]}"
    return ", ".join(f"over {c.topology_key} with maxSkew {c.max_skew}" for c in hard) or "default constraints"


def ports_text(task: Task) -> str:
    """`host port 80`."""
    ports = sorted({p.host_port for p in task.spec_class.ports})
    return f"host port {', '.join(map(str, ports))}" if ports else "its host ports"


def _terms(kind: str, side: PodAffinity | None) -> Iterator[tuple[str, str, str]]:
    """(kind, selected pods, node label) of the required terms."""
    for term in (side.required_during_scheduling_ignored_during_execution or ()) if side is not None else ():
        yield kind, _selector(term.label_selector), term.topology_key


def _selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for r in selector.match_expressions or ():
        parts.append(f"{r.key} {r.operator}" + (f" ({', '.join(r.values)})" if r.values else ""))
    return ",".join(parts) or "all pods"


def _exists(session: Session, label: str) -> bool:
    return any(label in (node.metadata.labels or {}) for node in session.table.objects)
