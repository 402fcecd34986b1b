"""The objects that pre-bind steps read, and the errors of the steps. kube-scheduler: a Status of PreBind that is not a
success."""

from __future__ import annotations

from typing import Any

from volcano_py.api.kinds import ResourceType
from volcano_py.kube import Client, NotFound


class StepFailed(Exception):
    """A step cannot be executed: the message contains the object and the reason."""


class NotYet(Exception):
    """What a step waits for has not happened yet."""


async def read(client: Client, rt: ResourceType, name: str, namespace: str, type: Any) -> Any:
    """An object, None if it does not exist."""
    try:
        return await client.get(rt, name, namespace or None, type=type)
    except NotFound:
        return None


def unchanged(found: Any, version: str) -> None:
    """Raises StepFailed if the object has another version than the one that the step is based on."""
    if version and found.metadata.resource_version != version:
        raise StepFailed(f"{found.kind} {found.metadata.key} has changed since the decision; the pod is retried")
