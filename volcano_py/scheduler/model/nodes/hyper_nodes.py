"""HyperNodes: domains of nodes with a fast network between them, as a forest. Volcano: HyperNodesInfo.

The whole forest is built again when a HyperNode or a node has changed: it depends on the objects alone, not on the
order in which they arrive. An invalid link (a second parent, a cycle) is left out and recorded in `problems`; the
other links are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from volcano_py.api.meta import LabelSelector
from volcano_py.api.node_patterns import Budget, InvalidPattern, TooCostly, matching, quoted
from volcano_py.api.selector import matches
from volcano_py.api.topology import MEMBER_HYPERNODE, MEMBER_NODE, HyperNode, MemberSelector

Labels = Mapping[str, str]


class HyperNodeInfo(NamedTuple):
    """One domain. `nodes` includes those of the domains below; they may not exist as Node objects."""

    name: str
    tier: int
    parent: str
    children: tuple[str, ...]
    nodes: frozenset[str]


class HyperNodes(NamedTuple):
    """The forest.

    tier_of_name  the tier number of each tier name
    problems      by HyperNode, the fault in its spec
    ready         whether all links are valid; Volcano schedules no job with a topology otherwise
    """

    infos: dict[str, HyperNodeInfo]
    tier_of_name: dict[str, int]
    problems: dict[str, str]
    ready: bool = True


NONE = HyperNodes({}, {}, {})


def build(hyper_nodes: Iterable[HyperNode], nodes: Mapping[str, Labels]) -> HyperNodes:
    """Build the forest of HyperNodes over nodes, which are given with their labels."""
    objects = {h.metadata.name: h for h in sorted(hyper_nodes, key=lambda h: h.metadata.name)}
    problems: dict[str, str] = {}
    parent, children = _links(objects, problems)
    ready = not problems
    own = _own_nodes(objects, nodes, problems)
    below: dict[str, frozenset[str]] = {}
    for name in _leaves_first(objects, children):
        below[name] = own[name].union(*(below[c] for c in children[name]))
    return HyperNodes(
        {
            name: HyperNodeInfo(name, h.spec.tier, parent.get(name, ""), tuple(children[name]), below[name])
            for name, h in objects.items()
        },
        {h.spec.tier_name: h.spec.tier for h in objects.values() if h.spec.tier_name},
        problems,
        ready,
    )


def _links(objects: dict[str, HyperNode], problems: dict[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The links between children and parents. The first parent in the order of names gets the child; a link that would
    form a cycle is left out."""
    parent: dict[str, str] = {}
    children: dict[str, list[str]] = {name: [] for name in objects}
    for name, h in objects.items():
        for child in sorted({_exact(m.selector) for m in h.spec.members or () if m.type == MEMBER_HYPERNODE}):
            if child not in objects:
                continue
            other = parent.get(child, name)
            if other != name:
                problems[name] = f"HyperNode {child} already has a parent {other}, and cannot set another parent {name}"
            elif child in _upwards(name, parent):
                problems[name] = (
                    f"cyclic dependency detected: HyperNode {child} is already in the ancestor chain of {name}"
                )
            else:
                parent[child] = name
                children[name].append(child)
    return parent, children


def _upwards(name: str, parent: Mapping[str, str]) -> list[str]:
    chain = [name]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
    return chain


def _leaves_first(objects: Iterable[str], children: Mapping[str, Sequence[str]]) -> list[str]:
    """All HyperNodes, each after those below it, for any depth."""
    order: list[str] = []
    below = {child for of in children.values() for child in of}
    stack = [name for name in objects if name not in below]
    while stack:
        name = stack.pop()
        order.append(name)
        stack += children[name]
    return order[::-1]


def _exact(selector: MemberSelector) -> str:
    return selector.exact_match.name if selector.exact_match else ""


# ---- nodes that a selector selects ----------------------------------------------------------------------------


def _own_nodes(
    objects: dict[str, HyperNode], nodes: Mapping[str, Labels], problems: dict[str, str]
) -> dict[str, frozenset[str]]:
    """The nodes that each selects itself: exactly, by pattern, by labels; the union of all selectors."""
    own: dict[str, set[str]] = {name: set() for name in objects}
    patterns: dict[str, list[str]] = {}
    for name, h in objects.items():
        budget = Budget()
        for member in h.spec.members or ():
            if member.type != MEMBER_NODE:
                continue
            selector = member.selector
            if _exact(selector):
                own[name].add(_exact(selector))
            if selector.regex_match and (pattern := selector.regex_match.pattern):
                try:
                    budget.use(pattern)
                except TooCostly as e:
                    problems[name] = f"spec.members: the HyperNode {e}"
                except InvalidPattern as e:
                    problems[name] = f"spec.members: regexMatch.pattern {quoted(pattern)} cannot be used: {e}"
                else:
                    patterns.setdefault(pattern, []).append(name)
            if selector.label_match is not None:
                try:
                    own[name].update(_labelled(selector.label_match, nodes))
                except ValueError as e:
                    problems[name] = f"spec.members: {e}"
    for pattern, found in matching(patterns, nodes).items():
        for name in patterns[pattern]:
            own[name].update(found)
    return {name: frozenset(of) for name, of in own.items()}


def _labelled(selector: LabelSelector, nodes: Mapping[str, Labels]) -> Iterable[str]:
    if not selector.match_labels and not selector.match_expressions:
        return ()
    return [name for name, labels in nodes.items() if matches(selector, labels)]
