"""Storing the node of a pod in its PodGroup, as API calls: the step of the plugin sticky. Not in Volcano."""

from __future__ import annotations

from volcano_py.api import kinds, scheduling
from volcano_py.kube import Client, NotFound
from volcano_py.scheduler.dispatch.pre_bind.step_objects import StepFailed, read
from volcano_py.scheduler.model.jobs.pre_bind import StoreNode


async def store_node(client: Client, step: StoreNode) -> None:
    """Write the annotation. Raises StepFailed if another node is stored, and KubeError."""
    group = await read(client, kinds.PODGROUP, step.group, step.namespace, scheduling.PodGroup)
    if group is None or (step.uid and group.metadata.uid != step.uid):
        raise StepFailed(f"PodGroup {step.namespace}/{step.group} of uid {step.uid} was deleted")
    known = (group.metadata.annotations or {}).get(step.annotation)
    if known and known != step.node:
        text = f"PodGroup {step.namespace}/{step.group} has another node in the annotation {step.annotation}: {known}"
        raise StepFailed(text)
    if not known:
        await _write(client, group, step, step.node)


async def remove_node(client: Client, step: StoreNode) -> None:
    """Remove the annotation if it has the node of this step. Raises KubeError."""
    try:
        group = await client.get(kinds.PODGROUP, step.group, step.namespace, type=scheduling.PodGroup)
    except NotFound:
        return
    if (group.metadata.annotations or {}).get(step.annotation) == step.node and group.metadata.uid == step.uid:
        await _write(client, group, step, None)


async def _write(client: Client, group: scheduling.PodGroup, step: StoreNode, node: str | None) -> None:
    metadata = {"resourceVersion": group.metadata.resource_version, "annotations": {step.annotation: node}}
    await client.patch(kinds.PODGROUP, step.group, {"metadata": metadata}, step.namespace, "merge")
