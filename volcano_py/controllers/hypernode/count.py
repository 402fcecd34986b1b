"""How many nodes a HyperNode has. Volcano: the status of the hyperNode controller.

An exact name counts as it is, whether there is such a node or not, and whatever the member's type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import re2  # type: ignore[import-untyped]

from volcano_py.api.kinds import HYPERNODE
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import matches
from volcano_py.api.topology import HyperNode, Member
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Instruction

Labels = Mapping[str, str]
_QUIET = re2.Options()
_QUIET.log_errors = False


def follows_nodes(hypernode: HyperNode) -> bool:
    """Whether its count depends on which nodes there are."""
    selectors = (member.selector for member in hypernode.spec.members or ())
    return any(selector.regex_match is not None or selector.label_match is not None for selector in selectors)


def node_names(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> set[str]:
    """The names that the members' selectors yield, given the labels of all nodes."""
    found = set[str]()
    for member in hypernode.spec.members or ():
        found |= _selected(member, nodes)
    return found


def reconcile(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> list[Instruction]:
    """Write the count down where it is not right."""
    count = len(node_names(hypernode, nodes))
    if count == hypernode.status.node_count:
        return []
    return [status_write(HYPERNODE, hypernode, msgspec.structs.replace(hypernode.status, node_count=count))]


def _selected(member: Member, nodes: Mapping[str, Labels]) -> set[str]:
    selector = member.selector
    if selector.exact_match is not None:
        return {selector.exact_match.name}
    if selector.regex_match is not None:
        pattern = _compiled(selector.regex_match.pattern)
        return {name for name in nodes if pattern is not None and pattern.search(name)}
    if selector.label_match is not None:
        return _labelled(selector.label_match, nodes)
    return set()


def _labelled(selector: LabelSelector, nodes: Mapping[str, Labels]) -> set[str]:
    if not selector.match_labels and not selector.match_expressions:
        return set()
    try:
        return {name for name, labels in nodes.items() if matches(selector, labels)}
    except ValueError:
        return set()


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    """None for a pattern that cannot be used; its time is linear in the names whatever it is."""
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error:
        return None
