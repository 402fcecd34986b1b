"""HyperNodes from node labels. Volcano: the label source of network topology discovery.

A topology is a list of labels from the widest level to the node's own. From the node upwards, the nodes with the same
value of a label form a HyperNode; the first label that a node lacks ends its hierarchy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.api import names
from volcano_py.api.kinds import HYPERNODE
from volcano_py.api.topology import MEMBER_HYPERNODE, MEMBER_NODE, HyperNode

SOURCE = "label"
LONGEST_TYPE = 20
ATTEMPTS = 20
"""Attempts to find an unused name."""

Manifest = dict[str, Any]
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that suffixes form no words."""


def parse_types(config: Mapping[str, Any]) -> tuple[dict[str, list[str]], list[str]]:
    """`networkTopologyTypes` as labels from tier 1 upwards, and the problems of invalid types.

    Raises ValueError if the field is missing.
    """
    given = config.get("networkTopologyTypes")
    if not isinstance(given, Mapping) or not given:
        raise ValueError("config.networkTopologyTypes is missing: map a name to a list of nodeLabel entries")
    types: dict[str, list[str]] = {}
    problems = []
    for name, levels in sorted(given.items()):
        try:
            types[str(name)] = _levels(str(name), levels)
        except ValueError as error:
            problems.append(f"config.networkTopologyTypes.{name}: {error}; this type is ignored")
    return types, problems


def _levels(name: str, levels: Any) -> list[str]:
    if len(name) > LONGEST_TYPE:
        raise ValueError(f"the name is longer than {LONGEST_TYPE} characters")
    if not isinstance(levels, list) or not all(isinstance(one, Mapping) and one.get("nodeLabel") for one in levels):
        raise ValueError("use a list of entries such as {nodeLabel: example.com/rack}")
    labels = [str(one["nodeLabel"]) for one in levels]
    if len(set(labels)) < len(labels):
        raise ValueError("a label occurs twice")
    return labels[-2::-1]  # the last entry is the node itself


def clean(text: str) -> str:
    """The characters of a name that are valid in the name of an object."""
    return re.sub(r"[^a-z0-9.-]", "-", text.lower())


def member_type(tier: int) -> str:
    return MEMBER_NODE if tier == 1 else MEMBER_HYPERNODE


def labels_used(types: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The node labels that the topologies use."""
    return frozenset(label for labels in types.values() for label in labels)


def discover(
    types: Mapping[str, list[str]], nodes: Mapping[str, Mapping[str, str]], existing: Iterable[HyperNode]
) -> list[Manifest]:
    """The HyperNodes of these nodes (name → labels). Existing HyperNodes keep their names."""
    naming = _Naming(existing)
    members: dict[tuple[str, int, str, str], set[str]] = {}
    for type_, labels in types.items():
        for node, has in nodes.items():
            below = node
            for tier, label in enumerate(labels, 1):
                value = has.get(label)
                if value is None:
                    break
                members.setdefault((type_, tier, label, value), set()).add(below)
                below = naming.name(type_, tier, label, value)
    return [
        _manifest(naming.name(type_, tier, label, value), tier, label, value, sorted(of))
        for (type_, tier, label, value), of in sorted(members.items())
    ]


class _Naming:
    """Names of HyperNodes: the existing one, or one from the label's value."""

    def __init__(self, existing: Iterable[HyperNode]) -> None:
        self._existing = sorted(
            (one for one in existing if (one.metadata.labels or {}).get(names.NETWORK_TOPOLOGY_SOURCE) == SOURCE),
            key=lambda one: one.metadata.name,
        )
        self._by_label: dict[tuple[str, str], list[str]] = {}
        for one in self._existing:
            for label in (one.metadata.labels or {}).items():
                self._by_label.setdefault(label, []).append(one.metadata.name)
        self._taken = {one.metadata.name for one in self._existing}
        self._names: dict[tuple[str, int, str, str], str] = {}

    def name(self, type_: str, tier: int, label: str, value: str) -> str:
        key = (type_, tier, label, value)
        if key not in self._names:
            self._names[key] = self._found(f"hypernode-{clean(type_)}-tier{tier}-", label, value)
        return self._names[key]

    def _found(self, prefix: str, label: str, value: str) -> str:
        for name in self._by_label.get((label, value), ()):
            if name.startswith(prefix):
                return name
        for attempt in range(ATTEMPTS):
            name = prefix + suffix(f"{label}={value}", attempt)
            if name not in self._taken:
                break
        self._taken.add(name)
        return name


def suffix(text: str, attempt: int) -> str:
    """A deterministic suffix of five characters for a text."""
    number = int.from_bytes(hashlib.sha256(f"{text}#{attempt}".encode()).digest()[:8])
    found = ""
    for _ in range(5):
        number, rest = divmod(number, len(_ALPHABET))
        found += _ALPHABET[rest]
    return found


def _manifest(name: str, tier: int, label: str, value: str, members: list[str]) -> Manifest:
    made = manifest(SOURCE, name, tier, member_type(tier), members)
    made["metadata"]["labels"][label] = value
    made["spec"]["tierName"] = label
    return made


def manifest(source: str, name: str, tier: int, type_: str, members: Iterable[str]) -> Manifest:
    """A discovered HyperNode, with exact names as members."""
    return {
        "apiVersion": HYPERNODE.api_version,
        "kind": HYPERNODE.kind,
        "metadata": {"name": name, "labels": {names.NETWORK_TOPOLOGY_SOURCE: source}},
        "spec": {
            "tier": tier,
            "members": [{"type": type_, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }
