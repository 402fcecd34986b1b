"""Node selector and node affinity."""

from __future__ import annotations

import re
from typing import Any

from tests.reference.kube.selectors import Labels, Pod
from tests.reference.node import Node


def _affinity(pod: Pod) -> dict[str, Any]:
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def required_matches(pod: Pod, node: Node) -> bool:
    for key, wanted in (pod["spec"].get("nodeSelector") or {}).items():
        if node.labels.get(key) != wanted:
            return False
    required = _affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return selects(required, node)


def selects(selector: dict[str, Any], node: Node) -> bool:
    """Whether one of the terms of a node selector matches."""
    return any(_term_matches(t, node) for t in selector.get("nodeSelectorTerms") or [])


def names_contradict(pod: Pod) -> bool:
    """Whether every term requires names, and no name is left: PreFilter rejects before any node is filtered."""
    required = _affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = (required or {}).get("nodeSelectorTerms") or []
    if not terms:
        return False
    for term in terms:
        names: set[str] | None = None
        for f in term.get("matchFields") or []:
            if f["key"] == "metadata.name" and f["operator"] == "In":
                names = set(f["values"]) if names is None else names & set(f["values"])
        if names is None or names:
            return False
    return True


def preferred_score(pod: Pod, node: Node) -> int | None:
    """The sum of the weights of matching terms; None: there are no preferences."""
    terms = _affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    if not terms:
        return None
    return sum(t["weight"] for t in terms if _term_matches(t["preference"], node))


def _term_matches(term: dict[str, Any], node: Node) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if not all(_holds(e, node.labels) for e in expressions):
        return False
    for f in fields:
        if len(f.get("values") or []) != 1 or f["operator"] not in ("In", "NotIn"):
            return False  # such a term is invalid for kube-scheduler
        if not _holds(f, {"metadata.name": node.name}):
            return False
    return True


def _holds(e: dict[str, Any], labels: Labels) -> bool:
    key, values = e["key"], e.get("values") or []
    match e["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt":
            have = _integer(labels.get(key))
            bound = _integer(values[0]) if len(values) == 1 else None
            if have is None or bound is None:
                return False
            return have > bound if e["operator"] == "Gt" else have < bound
    raise ValueError(f"unknown operator {e['operator']}")


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?[0-9]+", text) else None
