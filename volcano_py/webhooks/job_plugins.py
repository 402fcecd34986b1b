"""The names of job plugins for admission, and the parsing of their arguments.

Volcano has eight. Additional ones are entry points of the group `volcano_py.job_plugins`; admission reads their names
and does not load them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

GROUP = "volcano_py.job_plugins"
BUILT_IN = frozenset(("env", "ssh", "svc", "tensorflow", "mpi", "pytorch", "ray", "hcclrank"))


@cache
def known_plugins() -> frozenset[str]:
    """The names that are valid in `spec.plugins` of a Job."""
    return BUILT_IN | {entry.name for entry in entry_points(group=GROUP)}


def argument(arguments: Sequence[str], name: str, default: str) -> str:
    """The value of a plugin's flag: `--name=value`, `-name=value` or `--name`, `value`; the last occurrence wins."""
    value = default
    for index, text in enumerate(arguments):
        flag, equals, given = text.lstrip("-").partition("=")
        if text.startswith("-") and flag == name:
            if equals:
                value = given
            elif index + 1 < len(arguments):
                value = arguments[index + 1]
    return value
