"""Pods that cannot be created: the condition FailedCreate of the Job's PodGroup. Not in Volcano.

The API server rejects pods of a missing PriorityClass, above a quota, denied by a webhook, or with an invalid template.
The scheduler cannot see this: the group has resources reserved and no pods. The condition has the API server's message;
a group that has it is not about to use what it claims. It is removed when the pods exist.
"""

from __future__ import annotations

from typing import Any

from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import PODGROUP
from volcano_py.api.meta import format_time
from volcano_py.api.scheduling import FAILED_CREATE, PodGroup, PodGroupCondition
from volcano_py.controllers.instructions import Instruction, Patch


def condition_of(podgroup: PodGroup | None) -> PodGroupCondition | None:
    """The condition FailedCreate of a PodGroup, if it is true."""
    conditions = (podgroup.status.conditions if podgroup is not None else None) or ()
    return next((one for one in conditions if one.type == FAILED_CREATE and one.status == "True"), None)


def set_condition(podgroup: PodGroup, message: str, now: float) -> list[Instruction]:
    """Report that pods cannot be created; the time is that of the first failure."""
    old = condition_of(podgroup)
    if old is not None and old.message == message:
        return []
    since = old.last_transition_time if old is not None else format_time(now)
    made = PodGroupCondition(FAILED_CREATE, "True", "", since, FAILED_CREATE, message)
    return [_write(podgroup, [made])]


def clear_condition(podgroup: PodGroup | None) -> list[Instruction]:
    """All pods exist."""
    if podgroup is None or condition_of(podgroup) is None:
        return []
    return [_write(podgroup, [])]


def _write(podgroup: PodGroup, own: list[PodGroupCondition]) -> Patch:
    """The conditions of others stay: the patch fails if they have changed, and the next attempt repeats it."""
    metadata = podgroup.metadata
    others = [one for one in podgroup.status.conditions or () if one.type != FAILED_CREATE]
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": metadata.resource_version},
        "status": {"conditions": [to_manifest(one) for one in (*others, *own)]},
    }
    return Patch(PODGROUP, metadata.namespace, metadata.name, body, uid=metadata.uid, missing_ok=True)
