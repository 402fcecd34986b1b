"""The terms of a NodeSelector. kube-scheduler: package nodeaffinity."""

from __future__ import annotations

import re

from volcano_py.api.affinity import NodeSelectorRequirement, NodeSelectorTerm
from volcano_py.api.core import Node
from volcano_py.api.selector import holds


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether a node satisfies all of a term; a term without requirements matches nothing."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return False
    labels = node.metadata.labels or {}
    return all(_holds(r, labels) for r in expressions) and all(_names(r, node) for r in fields)


def _names(requirement: NodeSelectorRequirement, node: Node) -> bool:
    """Whether a field is as required: In or NotIn with exactly one value; any other requirement matches nothing."""
    values = requirement.values or ()
    if len(values) != 1 or requirement.operator not in ("In", "NotIn"):
        return False
    have = node.metadata.name if requirement.key == "metadata.name" else ""
    return (have == values[0]) == (requirement.operator == "In")


def _holds(requirement: NodeSelectorRequirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    values = requirement.values or ()
    match requirement.operator:
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return holds(requirement.operator, value, values)
        case "Gt" | "Lt":
            have, bound = _integer(value), _integer(values[0] if len(values) == 1 else None)
            if have is None or bound is None:
                return False
            return have > bound if requirement.operator == "Gt" else have < bound
    return False


_INTEGER = re.compile(r"[+-]?[0-9]+")


def _integer(text: str | None) -> int | None:
    """A 64-bit integer, as Go parses it."""
    if text is None or not _INTEGER.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
