"""Admission of HyperNodes: there is a member, and its patterns can be used. Volcano: /hypernodes/validate.

The CRD validates that a member has exactly one kind of selector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.api.node_patterns import Budget, InvalidPattern, TooCostly, quoted
from volcano_py.webhooks.lookup import Manifest


def validate_hypernode(hypernode: Manifest) -> list[str]:
    """Problems of a new or updated HyperNode."""
    name = (hypernode.get("metadata") or {}).get("name", "")
    members = (hypernode.get("spec") or {}).get("members") or []
    if not members:
        return [f"hypernode {name}: spec.members: Required value: member list must not be empty; add at least one"]
    return [f"hypernode {name}: {problem}" for problem in _check_patterns(members)]


def _check_patterns(members: list[dict[str, Any]]) -> Iterator[str]:
    """One problem for each invalid pattern, until the object has used its budget."""
    budget = Budget()
    for index, member in enumerate(members):
        pattern = ((member.get("selector") or {}).get("regexMatch") or {}).get("pattern") or ""
        try:
            budget.use(pattern)
        except TooCostly as error:
            yield f"spec.members: Too many: the HyperNode {error}"
            return
        except InvalidPattern as error:
            yield (
                f"spec.members[{index}].selector.regexMatch.pattern: Invalid value: {quoted(pattern)}: "
                f"member regexMatch pattern is invalid: error parsing regexp: {error}"
            )
