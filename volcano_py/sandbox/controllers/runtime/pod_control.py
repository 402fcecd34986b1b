"""Creates and deletes pods for an owner, with its Events. Kubernetes: RealPodControl."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.storage.store import Entry
from volcano_py.sandbox.controllers.runtime.adoption import controller_reference
from volcano_py.sandbox.controllers.runtime.client import Client

Object = dict[str, Any]


def from_template(template: Object, owner: Object) -> Object:
    """A pod of an owner from its template; its name is generated from the owner's."""
    given = template.get("metadata") or {}
    meta: Object = {
        "generateName": owner["metadata"]["name"] + "-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [controller_reference(owner)],
    }
    if given.get("finalizers"):
        meta["finalizers"] = list(given["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": dict(template.get("spec") or {})}


async def create(client: Client, owner: Object, pods: Iterable[Object]) -> StatusError | None:
    """Create pods one after the other until one is denied; returns its error."""
    for pod in pods:
        try:
            made = await client.create("pods", pod)
        except StatusError as error:
            if error.reason == "NamespaceTerminating" or "is being terminated" in error.message:
                return error
            await client.event(owner, "Warning", "FailedCreate", f"Error creating: {error.message}")
            return error
        await client.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
    return None


async def delete(client: Client, owner: Object, pods: Iterable[Entry]) -> None:
    for entry in pods:
        if await client.delete("pods", entry):
            await client.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {entry.name}")
