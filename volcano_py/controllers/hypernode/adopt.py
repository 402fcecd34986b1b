"""Synchronizes a source's HyperNodes with its discovery: creates, updates and deletes them. Pure.

Their status is not changed: the node counting owns it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.api import names
from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import HYPERNODE
from volcano_py.api.topology import HyperNode
from volcano_py.controllers.hypernode.labels import Manifest
from volcano_py.controllers.instructions import Create, Delete, Instruction, Single, Together, Update


def is_of(source: str, hypernode: HyperNode) -> bool:
    """Whether a source created this HyperNode."""
    return (hypernode.metadata.labels or {}).get(names.NETWORK_TOPOLOGY_SOURCE) == source


def reconcile(source: str, found: Iterable[Manifest], existing: Iterable[HyperNode]) -> list[Instruction]:
    """Instructions that turn the existing HyperNodes of a source into the discovered ones. Others are not changed."""
    everything = {one.metadata.name: one for one in existing}
    own = {name: one for name, one in everything.items() if is_of(source, one)}
    steps: list[Single] = []
    wanted = set[str]()
    for manifest in found:
        name = manifest["metadata"]["name"]
        wanted.add(name)
        if name not in everything:
            steps.append(Create(HYPERNODE, manifest))
        elif name in own and (changed := _changed(manifest, own[name])) is not None:
            steps.append(Update(HYPERNODE, changed))
    steps += [Delete(HYPERNODE, "", name, one.metadata.uid) for name, one in own.items() if name not in wanted]
    return [Together(tuple(steps))] if steps else []


def in_the_way(source: str, found: Iterable[Manifest], existing: Iterable[HyperNode]) -> list[str]:
    """Names of discovered HyperNodes that other HyperNodes already have."""
    others = {one.metadata.name for one in existing if not is_of(source, one)}
    return sorted(manifest["metadata"]["name"] for manifest in found if manifest["metadata"]["name"] in others)


def _changed(manifest: Manifest, existing: HyperNode) -> dict[str, Any] | None:
    """The existing HyperNode with the discovered values, None if they are equal; added labels are kept."""
    labels = {**(existing.metadata.labels or {}), **manifest["metadata"]["labels"]}
    plain = to_manifest(existing)
    if {"tier": 0, **plain.get("spec", {})} == {"tier": 0, **manifest["spec"]} and labels == existing.metadata.labels:
        return None
    return {**plain, "metadata": {**plain["metadata"], "labels": labels}, "spec": manifest["spec"]}
