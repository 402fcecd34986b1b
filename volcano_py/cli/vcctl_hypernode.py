"""`vcctl hypernode`: the domains of the network. Not in Volcano; cluster-scoped, so -n is the name."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api.kinds import HYPERNODE
from volcano_py.cli.columns import age
from volcano_py.cli.kind_commands import Kind, add_all

Manifest = dict[str, Any]


@click.group()
def hypernode() -> None:
    """Create, get, list, describe and delete HyperNodes."""


def _cells(node: Manifest) -> list[object]:
    spec = node.get("spec") or {}
    count = (node.get("status") or {}).get("nodeCount", 0)
    return [node["metadata"]["name"], spec.get("tier", 0), spec.get("tierName") or "<none>", count, age(node)]


def _wide_cells(node: Manifest) -> list[object]:
    return [",".join(_member(m) for m in (node.get("spec") or {}).get("members") or ()) or "<none>"]


def _member(member: Manifest) -> str:
    """A member as one word: a name, ~pattern, or {labels}."""
    selector = member.get("selector") or {}
    if exact := selector.get("exactMatch"):
        return str(exact.get("name", ""))
    if pattern := selector.get("regexMatch"):
        return f"~{pattern.get('pattern', '')}"
    labels = (selector.get("labelMatch") or {}).get("matchLabels") or {}
    return "{" + ",".join(f"{key}={value}" for key, value in sorted(labels.items())) + "}"


KIND = Kind(
    HYPERNODE,
    ("Name", "Tier", "TierName", "Nodes", "Age"),
    _cells,
    ("Members",),
    _wide_cells,
)
add_all(hypernode, KIND)
