"""Matches nodes against selector terms of volumes and of node affinity. Kubernetes: nodeaffinity."""

from __future__ import annotations

from typing import Any

from volcano_py.api import selector

Object = dict[str, Any]


def matches(terms: list[Object], labels: Object, name: str = "") -> bool:
    """Whether one of the terms matches; a term without requirements never does."""
    return any(_holds(term, labels, {"metadata.name": name}) for term in terms)


def _holds(term: Object, labels: Object, fields: Object) -> bool:
    on_labels, on_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not on_labels and not on_fields:
        return False
    return all(_requirement_holds(row, labels) for row in on_labels) and all(
        _requirement_holds(row, fields) for row in on_fields
    )


def _requirement_holds(row: Object, values: Object) -> bool:
    return selector.holds(row["operator"], values.get(row["key"]), row.get("values") or ())
