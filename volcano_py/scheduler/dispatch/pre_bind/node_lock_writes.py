"""Locking a node for a pod with devices, as API calls. Volcano: plugins/util/nodelock.

A lock that a terminated process has left behind expires after five minutes, and can then be acquired. Writes contain
the resourceVersion that was read, so that only one of two processes gets the lock.
"""

from __future__ import annotations

import time

from volcano_py.api import core, kinds
from volcano_py.api.meta import parse_time
from volcano_py.kube import Client, NotFound
from volcano_py.scheduler.dispatch.pre_bind.step_objects import StepFailed
from volcano_py.scheduler.model.jobs.pre_bind import LOCK_EXPIRES, LockNode


async def lock_node(client: Client, step: LockNode) -> None:
    """Acquire the lock. Raises StepFailed if another pod has it, and KubeError."""
    try:
        node = await client.get(kinds.NODE, step.node, type=core.Node)
    except NotFound:
        raise StepFailed(f"Node {step.node} was deleted") from None
    held = (node.metadata.annotations or {}).get(step.lock)
    if held == step.time:
        return
    if held and _holds(held):
        raise StepFailed(f"Node {step.node} has been locked since {held} (annotation {step.lock})")
    await _write(client, node, step, step.time)


async def unlock_node(client: Client, step: LockNode) -> None:
    """Release the lock if it is this step's own. Raises KubeError."""
    try:
        node = await client.get(kinds.NODE, step.node, type=core.Node)
    except NotFound:
        return
    if (node.metadata.annotations or {}).get(step.lock) == step.time:
        await _write(client, node, step, None)


async def _write(client: Client, node: core.Node, step: LockNode, value: str | None) -> None:
    metadata = {"resourceVersion": node.metadata.resource_version, "annotations": {step.lock: value}}
    await client.patch(kinds.NODE, step.node, {"metadata": metadata}, None, "merge")


def _holds(text: str) -> bool:
    """Whether a lock with this time is still valid; text that is not a time is not."""
    try:
        return time.time() - parse_time(text) < LOCK_EXPIRES
    except ValueError:
        return False
