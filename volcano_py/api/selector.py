"""Label selectors: whether a set of labels matches.

An absent selector matches nothing; one without requirements matches everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement

LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def matches(selector: LabelSelector | None, labels: Mapping[str, str] | None) -> bool:
    """Whether `labels` satisfy every requirement. Raises ValueError for an unknown operator."""
    if selector is None:
        return False
    labels = labels or {}
    for key, wanted in (selector.match_labels or {}).items():
        if labels.get(key) != wanted:
            return False
    return all(_holds(requirement, labels) for requirement in selector.match_expressions or ())


def is_empty(selector: LabelSelector) -> bool:
    """Whether a selector has no requirement."""
    return not (selector.match_labels or selector.match_expressions)


def check(selector: LabelSelector | None) -> None:
    """Raises ValueError for an unknown operator."""
    for requirement in (selector.match_expressions if selector is not None else None) or ():
        _holds(requirement, {})


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    if requirement.operator not in LABEL_OPERATORS:
        raise ValueError(
            f"label selector, key {requirement.key!r}: operator {requirement.operator!r} is unknown; "
            "use In, NotIn, Exists or DoesNotExist"
        )
    return holds(requirement.operator, labels.get(requirement.key), requirement.values or ())


def holds(operator: str, value: str | None, values: Collection[str]) -> bool:
    """Whether a value (None: absent) satisfies one requirement. Raises ValueError for an unknown operator.

    Gt and Lt, which exist only in node selectors and in text selectors, compare integers: `values` has one member.
    """
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(operator, value, next(iter(values)))
    raise ValueError(f"selector operator {operator!r} is unknown; use In, NotIn, Exists, DoesNotExist, Gt or Lt")


def _compares(operator: str, value: str, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    except ValueError:
        return False
