"""Label selectors, and the pods that a term of (anti-)affinity selects."""

from __future__ import annotations

from typing import Any

Pod = dict[str, Any]
Labels = dict[str, str]


def labels_of(pod: Pod) -> Labels:
    return pod["metadata"].get("labels") or {}


def namespace_of(pod: Pod) -> str:
    return pod["metadata"].get("namespace", "default")


def matches(selector: dict[str, Any] | None, labels: Labels) -> bool:
    """No selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, wanted in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != wanted:
            return False
    return all(_holds(e, labels) for e in selector.get("matchExpressions") or [])


def _holds(expression: dict[str, Any], labels: Labels) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ValueError(f"unknown operator {expression['operator']}")


def term_matches(
    term: dict[str, Any], owner: Pod, pod: Pod, namespaces: dict[str, Labels], incoming: bool = True
) -> bool:
    """Whether an affinity term of `owner` selects `pod`.

    If `owner` is the pod to place, a namespace selector selects only namespaces with a Namespace object.
    """
    named = term.get("namespaces") or []
    by_labels = term.get("namespaceSelector")
    if not named and by_labels is None:
        named = [namespace_of(owner)]
    where = namespace_of(pod)
    chosen = by_labels is not None and matches(by_labels, namespaces.get(where, {}))
    if chosen and incoming and where not in namespaces:
        chosen = not by_labels.get("matchLabels") and not by_labels.get("matchExpressions")
    if where not in named and not chosen:
        return False
    return matches(term.get("labelSelector"), labels_of(pod))
