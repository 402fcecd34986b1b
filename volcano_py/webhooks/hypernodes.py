"""Admission of HyperNodes: there is a member, and the patterns are valid. Volcano: /hypernodes/validate.

The CRD validates that a member has exactly one kind of selector.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import re2  # type: ignore[import-untyped]

from volcano_py.webhooks.lookup import Manifest

_QUIET = re2.Options()
_QUIET.log_errors = False


def validate_hypernode(hypernode: Manifest) -> list[str]:
    """Problems of a new or updated HyperNode."""
    name = (hypernode.get("metadata") or {}).get("name", "")
    members = (hypernode.get("spec") or {}).get("members") or []
    if not members:
        return [f"hypernode {name}: spec.members: Required value: member list must not be empty; add at least one"]
    return [f"hypernode {name}: {problem}" for problem in _check_patterns(members)]


def _check_patterns(members: list[dict[str, Any]]) -> Iterator[str]:
    for index, member in enumerate(members):
        pattern = ((member.get("selector") or {}).get("regexMatch") or {}).get("pattern") or ""
        try:
            re2.compile(pattern, _QUIET)
        except re2.error as error:
            cause = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
            yield (
                f"spec.members[{index}].selector.regexMatch.pattern: Invalid value: {pattern!r}: "
                f"member regexMatch pattern is invalid: error parsing regexp: {cause}; use RE2 syntax"
            )
