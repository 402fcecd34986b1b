"""The hierarchy of queues with the allocated, inqueue and deserved amounts of each, for `vcctl queue tree`.

If `spec.deserved` is not set, it is replaced by the queue's part, by weight, of the deserved amount of its parent: its
share when all queues have demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from volcano_py.api.quantity import Format, format_amount, parse
from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.cli.queue_table import Counts
from volcano_py.webhooks.lookup import parent_of

Manifest = dict[str, Any]
Amounts = dict[str, Fraction]
PHASES = ("Inqueue", "Pending", "Running")
"""Phases of PodGroups that are counted."""


class Branch(NamedTuple):
    """A queue with its amounts by resource, and its child queues."""

    queue: Manifest
    allocated: Amounts
    inqueue: Amounts
    deserved: Amounts
    by_weight: Amounts
    groups: dict[str, int]
    children: list[Branch]

    @property
    def name(self) -> str:
        return str(self.queue["metadata"]["name"])


def grow(queues: Iterable[Manifest], groups: list[Manifest], total: Amounts, counts: Counts) -> list[Branch]:
    """The trees of queues: root's tree, and trees below missing parents or cycles.

    `total`: the capacity of the cluster; `counts`: PodGroups by queue and phase.
    """
    by_name = {q["metadata"]["name"]: q for q in queues}
    below: dict[str, list[Manifest]] = {}
    for name in sorted(by_name):
        below.setdefault(parent_of(by_name[name]), []).append(by_name[name])
    inqueue: dict[str, Amounts] = {}
    for group in groups:
        if (group.get("status") or {}).get("phase") == "Inqueue":
            spec = group.get("spec") or {}
            add(inqueue.setdefault(spec.get("queue", ""), {}), amounts(spec.get("minResources")))
    grown: set[str] = set()

    def branch(queue: Manifest, part: Amounts) -> Branch:
        name = queue["metadata"]["name"]
        grown.add(name)
        deserved = amounts((queue.get("spec") or {}).get("deserved"))
        own = part | deserved
        children = [child for child in below.get(name, ()) if child["metadata"]["name"] not in grown]
        weights = sum(_weight(child) for child in children)
        branches = []
        for child in children:
            share = {r: amount * _weight(child) / weights for r, amount in own.items()} if weights else {}
            branches.append(branch(child, share))
        held = amounts((queue.get("status") or {}).get("allocated"))
        own_inqueue = dict(inqueue.get(name, {}))
        numbers = {phase: counts.get(name, {}).get(phase, 0) for phase in PHASES}
        sums: Amounts = {}
        for b in branches:
            add(sums, b.allocated)
            add(own_inqueue, b.inqueue)
            for phase in PHASES:
                numbers[phase] += b.groups[phase]
        # some writers of the status leave inner queues out
        held = {r: max(held.get(r, Fraction(0)), sums.get(r, Fraction(0))) for r in held.keys() | sums.keys()}
        return Branch(queue, held, own_inqueue, deserved, part, numbers, branches)

    trees = [branch(by_name[ROOT_QUEUE], dict(total))] if ROOT_QUEUE in by_name else []
    lost = [name for name in by_name if parent_of(by_name[name]) not in by_name and name not in grown]
    trees += [branch(by_name[name], {}) for name in sorted(lost)]
    for name in sorted(by_name):
        if name not in grown:  # in a cycle
            trees.append(branch(by_name[name], {}))
    return trees


def find(trees: list[Branch], name: str) -> Branch | None:
    """The branch of a queue."""
    for b in trees:
        found = b if b.name == name else find(b.children, name)
        if found:
            return found
    return None


def resources(trees: Iterable[Branch]) -> set[str]:
    """The resources of which a queue holds or may hold something."""
    found: set[str] = set()
    for b in trees:
        spec = b.queue.get("spec") or {}
        limits = amounts(spec.get("capability")) | amounts((spec.get("guarantee") or {}).get("resource"))
        found |= b.allocated.keys() | b.inqueue.keys() | b.deserved.keys() | limits.keys() | resources(b.children)
    return found


def unknown(resource: str, known: Iterable[str]) -> str:
    """The error about a resource that neither nodes nor queues have."""
    return f"no node and no queue has the resource {resource!r}; resources are {', '.join(sorted(known))}"


def as_object(b: Branch) -> Manifest:
    """A branch for -o json and -o yaml."""
    spec, status = b.queue.get("spec") or {}, b.queue.get("status") or {}
    return {
        "name": b.name,
        "state": status.get("state", ""),
        "parent": parent_of(b.queue),
        "weight": spec.get("weight", 0),
        "priority": spec.get("priority", 0),
        "reclaimable": spec.get("reclaimable", True),
        "guarantee": (spec.get("guarantee") or {}).get("resource") or {},
        "deserved": spec.get("deserved") or {},
        "deservedByWeight": _texts(b.by_weight),
        "capability": spec.get("capability") or {},
        "allocated": _texts(b.allocated),
        "inqueue": _texts(b.inqueue),
        "podGroups": b.groups,
        "children": [as_object(child) for child in b.children],
    }


def amounts(resources: Manifest | None) -> Amounts:
    """A resource list as numbers; invalid quantities count as 0."""
    found = {}
    for name, text in (resources or {}).items():
        try:
            found[name] = parse(text)
        except ValueError:
            continue
    return found


def add(sums: Amounts, more: Amounts) -> None:
    """Add `more` to `sums`."""
    for name, amount in more.items():
        sums[name] = sums.get(name, Fraction(0)) + amount


def _weight(queue: Manifest) -> int:
    return max(1, int((queue.get("spec") or {}).get("weight") or 1))


def _texts(found: Amounts) -> dict[str, str]:
    return {name: format_amount(amount, form(name)) for name, amount in sorted(found.items())}


def form(resource: str) -> Format:
    """The family of suffixes in which amounts of a resource are printed."""
    return "BinarySI" if "memory" in resource or "storage" in resource else "DecimalSI"
