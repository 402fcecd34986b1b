"""The status of a HyperNode: its number of nodes, and its problems. Volcano: the hyperNode controller.

Volcano writes no condition: its webhook rejects an invalid HyperNode, and clusters without webhooks do not report it.
An exact name counts even if the node does not exist, whatever the member's type.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from volcano_py.api.kinds import HYPERNODE
from volcano_py.api.meta import Condition, LabelSelector
from volcano_py.api.node_patterns import matching
from volcano_py.api.selector import matches
from volcano_py.api.topology import HyperNode, Member
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Instruction

Labels = Mapping[str, str]
VALID = "Valid"
INVALID = "InvalidHyperNode"
"""Type and reason of the condition of a HyperNode that admission would deny."""
MEMBERS_EXIST = "MembersExist"
UNKNOWN_MEMBERS = "UnknownMembers"
"""Type and reason of the condition of a HyperNode with exact names of nodes or HyperNodes that do not exist."""
SHOWN_MEMBERS = 10
LONGEST_MESSAGE = 32768
"""Maximum characters of a condition's message, as in the CRD."""


def follows_nodes(hypernode: HyperNode) -> bool:
    """Whether the count depends on the existing nodes."""
    selectors = (member.selector for member in hypernode.spec.members or ())
    return any(selector.regex_match is not None or selector.label_match is not None for selector in selectors)


def node_names(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> set[str]:
    """The node names that the members' selectors match, given the labels of all nodes."""
    found = set[str]()
    for member in hypernode.spec.members or ():
        found |= _selected(member, nodes)
    return found


def unknown_members(hypernode: HyperNode, nodes: Container[str], hypernodes: Container[str]) -> str:
    """A sentence about exact names that do not exist; empty without such names. A job does not use them."""
    missing = []
    for member in hypernode.spec.members or ():
        exact = member.selector.exact_match
        known = hypernodes if member.type == HYPERNODE.kind else nodes
        if exact is not None and exact.name not in known:
            missing.append(f"{member.type} {exact.name}")
    if not missing:
        return ""
    more = f" and {len(missing) - SHOWN_MEMBERS} more" if len(missing) > SHOWN_MEMBERS else ""
    listed = ", ".join(missing[:SHOWN_MEMBERS])
    return f"members do not exist: {listed}{more}; no job is placed there until they do, or correct the names"


def reported_unknown(hypernode: HyperNode) -> str:
    """The sentence in the condition; empty without one."""
    return next((one.message for one in hypernode.status.conditions or () if one.type == MEMBERS_EXIST), "")


def reconcile(
    hypernode: HyperNode, nodes: Mapping[str, Labels], problems: Sequence[str] = (), now: str = "", unknown: str = ""
) -> list[Instruction]:
    """Write count and conditions if they differ.

    `problems`: why admission would deny the HyperNode; `now` is RFC 3339; `unknown`: see `unknown_members`.
    """
    count, conditions = len(node_names(hypernode, nodes)), _conditions(hypernode, problems, now, unknown)
    if (count, conditions) == (hypernode.status.node_count, hypernode.status.conditions or []):
        return []
    status = msgspec.structs.replace(hypernode.status, node_count=count, conditions=conditions or None)
    return [status_write(HYPERNODE, hypernode, status)]


def _conditions(hypernode: HyperNode, problems: Sequence[str], now: str, unknown: str) -> list[Condition]:
    """The conditions, each of ours while it has something to report; conditions of other writers are kept."""
    stated = {VALID: (INVALID, "; ".join(problems)), MEMBERS_EXIST: (UNKNOWN_MEMBERS, unknown)}
    before = {one.type: one for one in hypernode.status.conditions or ()}
    made = []
    for type_, (reason, message) in stated.items():
        if message:
            old = before.get(type_)
            since = old.last_transition_time if old is not None else now
            made.append(Condition(type_, "False", reason, message[:LONGEST_MESSAGE], since))
    return [*(one for one in before.values() if one.type not in stated), *made]


def _selected(member: Member, nodes: Mapping[str, Labels]) -> set[str]:
    selector = member.selector
    if selector.exact_match is not None:
        return {selector.exact_match.name}
    if selector.regex_match is not None:
        return {name for found in matching([selector.regex_match.pattern], nodes).values() for name in found}
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
