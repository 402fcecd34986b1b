"""Why the API server rejects the pods of a group, by the condition that the controllers write. Not in Volcano."""

from __future__ import annotations

from volcano_py.api.scheduling import FAILED_CREATE, PodGroup


def rejection_of(podgroup: PodGroup) -> str:
    """The API server's message; empty without the condition FailedCreate."""
    for condition in podgroup.status.conditions or ():
        if condition.type == FAILED_CREATE and condition.status == "True":
            return condition.message.rstrip(".")
    return ""
