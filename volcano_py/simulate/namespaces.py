"""Namespaces as in a cluster: the namespaces of all pods exist, and each has its name as a label, for affinity."""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.simulate.manifests import Manifest

NAME = "kubernetes.io/metadata.name"


def complete_namespaces(objects: Iterable[Manifest]) -> dict[str, Manifest]:
    """All namespaces, by name: the described ones, labelled in place, and those of the pods."""
    found: dict[str, Manifest] = {}
    implied: dict[str, Manifest] = {}
    for o in objects:
        if o["kind"] == "Namespace":
            found[o["metadata"]["name"]] = o
        elif o["kind"] == "Pod":
            name = o["metadata"]["namespace"]
            implied[name] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    found = {**implied, **found}
    for name, namespace in found.items():
        metadata = namespace["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME: name}
    return found
