"""The queue state machine, and the effect of opening and closing on descendants. Volcano: queue controller.

Pure. The next state depends on the stored state, the action, and whether there are PodGroups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from volcano_py.api import bus, names
from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import QUEUE
from volcano_py.api.meta import Condition
from volcano_py.api.scheduling import (
    QUEUE_CLOSED,
    QUEUE_CLOSING,
    QUEUE_OPEN,
    QUEUE_UNKNOWN,
    ROOT_QUEUE,
    Queue,
)
from volcano_py.controllers.instructions import Emit, Instruction, Patch

FIELD_MANAGER = "queue-controller"
SHUT = (QUEUE_CLOSED, QUEUE_CLOSING)


INVALID = "InvalidQueue"
"""Reason of the condition and Event of a queue that admission would deny."""


class Blocked(Exception):
    """The action cannot be executed now; it is retried."""


class FollowUp(Struct, frozen=True):
    """An action for another queue (or again for this one)."""

    queue: str
    action: str


class Observed(Struct):
    queue: Queue
    members: int = 0
    """PodGroups of the queue, in any phase."""
    parent: Queue | None = None
    children: Sequence[Queue] = ()
    problems: Sequence[str] = ()
    """Why admission would deny the queue."""
    now: str = ""
    """RFC 3339, for conditions that change."""
    counters: Mapping[str, int] | None = None
    """PodGroups by phase, in the fields of the status; None: they are not written."""
    counters_are_due: bool = True
    """Whether changed counters alone are a reason to write the status."""


def next_state(state: str, action: str, members: int) -> tuple[str, str]:
    """(handler, next state); the handler is sync, open or close. Raises ValueError for an unknown state."""
    shut = QUEUE_CLOSING if members else QUEUE_CLOSED
    match state:
        case "" | "Open":
            return ("close", shut) if action == bus.CLOSE_QUEUE else ("sync", QUEUE_OPEN)
        case "Closing":
            return ("open", QUEUE_OPEN) if action == bus.OPEN_QUEUE else ("sync", shut)
        case "Closed":
            return ("open", QUEUE_OPEN) if action == bus.OPEN_QUEUE else ("sync", QUEUE_CLOSED)
        case "Unknown":
            if action == bus.OPEN_QUEUE:
                return "open", QUEUE_OPEN
            return ("close", shut) if action == bus.CLOSE_QUEUE else ("sync", QUEUE_UNKNOWN)
    raise ValueError(f"queue state {state!r} is invalid: set status.state to Open or Closed")


def reconcile(seen: Observed, action: str) -> tuple[list[Instruction], list[FollowUp]]:
    """Raises Blocked, or ValueError for an unknown state."""
    handler, state = next_state(seen.queue.status.state, action, seen.members)
    if handler == "open":
        return _open(seen, state)
    if handler == "close":
        return _close(seen, state)
    return _sync(seen, state)


def _sync(seen: Observed, state: str) -> tuple[list[Instruction], list[FollowUp]]:
    queue = seen.queue
    instructions: list[Instruction] = []
    if queue.metadata.name != ROOT_QUEUE and not queue.spec.parent:
        instructions.append(Patch(QUEUE, "", queue.metadata.name, {"spec": {"parent": ROOT_QUEUE}}))
    conditions = _conditions(seen)
    if conditions != (queue.status.conditions or []):
        instructions += _set_state(seen, state, conditions)
        if seen.problems:
            instructions.append(Emit("Warning", INVALID, "; ".join(seen.problems), once=True))
    elif queue.status.state != state or (seen.counters_are_due and differ(queue, seen.counters)):
        instructions += _set_state(seen, state, conditions)
    follow, follow_ups = _follow_parent(seen, state)
    return instructions + follow, follow_ups


def _open(seen: Observed, state: str) -> tuple[list[Instruction], list[FollowUp]]:
    queue, parent = seen.queue, seen.parent
    parent_name = queue.spec.parent
    if parent_name and parent_name != ROOT_QUEUE and parent is not None and parent.status.state in SHUT:
        raise Blocked(
            f"queue {queue.metadata.name} cannot be opened below {parent_name}, which is "
            f"{parent.status.state}: open the parent first"
        )
    follow_ups = [
        FollowUp(child.metadata.name, bus.OPEN_QUEUE)
        for child in seen.children
        if _closed_by_parent(child) and child.status.state != QUEUE_OPEN
    ]
    instructions = _set_state(seen, state, blame=bus.OPEN_QUEUE)
    if _closed_by_parent(queue):
        instructions.append(_mark(queue, False))
    return instructions, follow_ups


def _close(seen: Observed, state: str) -> tuple[list[Instruction], list[FollowUp]]:
    queue = seen.queue
    name = queue.metadata.name
    if name == ROOT_QUEUE:
        return [Emit("Warning", bus.CLOSE_QUEUE, f"the {ROOT_QUEUE} queue cannot be closed")], []
    instructions: list[Instruction] = []
    follow_ups = []
    for child in seen.children:
        if child.status.state not in SHUT:
            instructions.append(_mark(child, True))
            follow_ups.append(FollowUp(child.metadata.name, bus.CLOSE_QUEUE))
    instructions += _set_state(seen, state, blame=bus.CLOSE_QUEUE)
    if queue.status.state != state:
        instructions.append(Emit("Normal", bus.CLOSE_QUEUE, "Close queue succeed"))
    return instructions, follow_ups


def _follow_parent(seen: Observed, state: str) -> tuple[list[Instruction], list[FollowUp]]:
    """Close a queue below a closed one, and reopen it together with its parent if it was closed for that reason."""
    queue, parent = seen.queue, seen.parent
    name, parent_name = queue.metadata.name, queue.spec.parent
    if name == ROOT_QUEUE or not parent_name:
        return [], []
    if parent is None:
        if parent_name == ROOT_QUEUE:
            return [], []  # the scheduler creates it shortly
        if seen.problems:
            return [], []  # its condition reports it
        raise Blocked(f"queue {name}: its parent {parent_name} does not exist")
    if parent.status.state in SHUT and state not in SHUT:
        return [_mark(queue, True)], [FollowUp(name, bus.CLOSE_QUEUE)]
    if parent.status.state == QUEUE_OPEN and state in SHUT and _closed_by_parent(queue):
        return [], [FollowUp(name, bus.OPEN_QUEUE)]
    return [], []


def _closed_by_parent(queue: Queue) -> bool:
    return (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT) == "true"


def _mark(queue: Queue, closed: bool) -> Patch:
    """Record whether a queue is closed because its parent is."""
    annotations = {names.CLOSED_BY_PARENT: "true" if closed else "false"}
    return Patch(QUEUE, "", queue.metadata.name, {"metadata": {"annotations": annotations}})


def _conditions(seen: Observed) -> list[Condition]:
    """The problems of the queue as one condition, which is removed when there are none."""
    if not seen.problems:
        return []
    message = "; ".join(seen.problems)
    old = next(iter(seen.queue.status.conditions or ()), None)
    since = old.last_transition_time if old is not None else seen.now
    return [Condition("Valid", "False", reason=INVALID, message=message, last_transition_time=since)]


def differ(queue: Queue, counters: Mapping[str, int] | None) -> bool:
    """Whether the counters in the status are others."""
    return counters is not None and any(getattr(queue.status, name) != number for name, number in counters.items())


def _set_state(
    seen: Observed, state: str, conditions: Sequence[Condition] | None = None, blame: str = ""
) -> list[Instruction]:
    """Apply state, conditions and counters: the scheduler owns the rest of the status."""
    queue = seen.queue
    if queue.status.state == state and conditions is None:
        return []
    kept = queue.status.conditions or () if conditions is None else conditions
    status: dict[str, Any] = {"state": state, **(seen.counters or {})}
    if kept:
        status["conditions"] = [to_manifest(row) for row in kept]
    body: dict[str, Any] = {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": queue.metadata.name},
        "status": status,
    }
    return [
        Patch(
            QUEUE,
            "",
            queue.metadata.name,
            body,
            "apply",
            subresource="status",
            field_manager=FIELD_MANAGER,
            blame=blame,
        )
    ]
