"""Label selectors: does a set of labels match?

A selector that is absent matches nothing, one without any requirement matches everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement


def matches(selector: LabelSelector | None, labels: Mapping[str, str] | None) -> bool:
    """Whether `labels` satisfy every requirement. Raises ValueError for an unknown operator."""
    if selector is None:
        return False
    labels = labels or {}
    for key, wanted in (selector.match_labels or {}).items():
        if labels.get(key) != wanted:
            return False
    return all(_holds(requirement, labels) for requirement in selector.match_expressions or ())


def check(selector: LabelSelector | None) -> None:
    """Raises ValueError for an operator that is unknown, whatever labels it is asked about."""
    for requirement in (selector.match_expressions if selector is not None else None) or ():
        _holds(requirement, {})


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in (requirement.values or ())
        case "NotIn":
            return value is None or value not in (requirement.values or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(
        f"label selector, key {requirement.key!r}: operator {requirement.operator!r} is unknown; "
        "use In, NotIn, Exists or DoesNotExist"
    )
