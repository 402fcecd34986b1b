"""Synchronizes the NodeShards with the assignment of nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from volcano_py.api.kinds import NODESHARD
from volcano_py.api.meta import format_time
from volcano_py.api.shard import NodeShard
from volcano_py.controllers.instructions import Create, Delete, Instruction, Patch, Single, Together

WORTH_WHILE = 0.1
"""Minimum part of changed nodes that leads to a write, if their number is unchanged."""


def reconcile(wanted: Mapping[str, Sequence[str]], shards: Iterable[NodeShard], now: float) -> list[Instruction]:
    """One NodeShard per scheduler; those without a scheduler are deleted."""
    there = {shard.metadata.name: shard for shard in shards}
    steps: list[Single] = []
    for name, nodes in wanted.items():
        steps += _bring(there[name], list(nodes), now) if name in there else [_make(name, nodes)]
    steps += [Delete(NODESHARD, "", name, one.metadata.uid) for name, one in there.items() if name not in wanted]
    return [Together(tuple(steps))] if steps else []


def differs(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the difference is large enough for a write."""
    if len(old) != len(new):
        return True
    return len(set(new) - set(old)) >= max(1, int(len(new) * WORTH_WHILE))


def _make(name: str, nodes: Sequence[str]) -> Create:
    manifest = {
        "apiVersion": NODESHARD.api_version,
        "kind": NODESHARD.kind,
        "metadata": {"name": name},
        "spec": {"nodesDesired": list(nodes)},
    }
    return Create(NODESHARD, manifest)


def _bring(shard: NodeShard, nodes: list[str], now: float) -> list[Single]:
    name, current = shard.metadata.name, shard.spec.nodes_desired or []
    steps: list[Single] = []
    if differs(current, nodes):
        steps.append(Patch(NODESHARD, "", name, {"spec": {"nodesDesired": nodes}}, missing_ok=True))
        current = nodes
    in_use = shard.status.nodes_in_use or []
    add = [node for node in current if node not in set(in_use)]
    remove = [node for node in in_use if node not in set(current)]
    known = (shard.status.nodes_to_add or [], shard.status.nodes_to_remove or [])
    if steps or (add, remove) != known:
        status: dict[str, Any] = {"lastUpdateTime": format_time(now), "nodesToAdd": add, "nodesToRemove": remove}
        steps.append(Patch(NODESHARD, "", name, {"status": status}, subresource="status", missing_ok=True))
    return steps
