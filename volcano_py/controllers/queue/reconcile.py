"""The queue state machine, and what opening and closing mean for the queues below. Volcano: queue controller.

Pure. The state that follows depends on the state that is stored, the action, and whether PodGroups are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from volcano_py.api import bus, names
from volcano_py.api.kinds import QUEUE
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


class Blocked(Exception):
    """The action cannot be carried out now; it is tried again."""


class Ask(Struct, frozen=True):
    """An action for another queue (or this one again)."""

    queue: str
    action: str


class Observed(Struct):
    queue: Queue
    members: int = 0
    """PodGroups of the queue, in whatever phase."""
    parent: Queue | None = None
    children: Sequence[Queue] = ()


def next_state(state: str, action: str, members: int) -> tuple[str, str]:
    """(handler, state that follows); the handler is sync, open or close. Raises ValueError for an unknown state."""
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


def reconcile(seen: Observed, action: str) -> tuple[list[Instruction], list[Ask]]:
    """Raises Blocked, or ValueError for an unknown state."""
    handler, state = next_state(seen.queue.status.state, action, seen.members)
    if handler == "open":
        return _open(seen, state)
    if handler == "close":
        return _close(seen, state)
    return _sync(seen, state)


def _sync(seen: Observed, state: str) -> tuple[list[Instruction], list[Ask]]:
    queue = seen.queue
    instructions: list[Instruction] = []
    if queue.metadata.name != ROOT_QUEUE and not queue.spec.parent:
        instructions.append(Patch(QUEUE, "", queue.metadata.name, {"spec": {"parent": ROOT_QUEUE}}))
    instructions += _set_state(queue, state)
    follow, asks = _follow_parent(seen, state)
    return instructions + follow, asks


def _open(seen: Observed, state: str) -> tuple[list[Instruction], list[Ask]]:
    queue, parent = seen.queue, seen.parent
    parent_name = queue.spec.parent
    if parent_name and parent_name != ROOT_QUEUE and parent is not None and parent.status.state in SHUT:
        raise Blocked(
            f"queue {queue.metadata.name} cannot be opened below {parent_name}, which is "
            f"{parent.status.state}: open the parent first"
        )
    asks = [
        Ask(child.metadata.name, bus.OPEN_QUEUE)
        for child in seen.children
        if _closed_by_parent(child) and child.status.state != QUEUE_OPEN
    ]
    instructions = _set_state(queue, state, blame=bus.OPEN_QUEUE)
    if _closed_by_parent(queue):
        instructions.append(_mark(queue, False))
    return instructions, asks


def _close(seen: Observed, state: str) -> tuple[list[Instruction], list[Ask]]:
    queue = seen.queue
    name = queue.metadata.name
    if name == ROOT_QUEUE:
        return [Emit("Warning", bus.CLOSE_QUEUE, f"the {ROOT_QUEUE} queue cannot be closed")], []
    instructions: list[Instruction] = []
    asks = []
    for child in seen.children:
        if child.status.state not in SHUT:
            instructions.append(_mark(child, True))
            asks.append(Ask(child.metadata.name, bus.CLOSE_QUEUE))
    instructions += _set_state(queue, state, blame=bus.CLOSE_QUEUE)
    if queue.status.state != state:
        instructions.append(Emit("Normal", bus.CLOSE_QUEUE, "Close queue succeed"))
    return instructions, asks


def _follow_parent(seen: Observed, state: str) -> tuple[list[Instruction], list[Ask]]:
    """A queue below a closed one is closed, and opened again with it if it had been closed for that reason."""
    queue, parent = seen.queue, seen.parent
    name, parent_name = queue.metadata.name, queue.spec.parent
    if name == ROOT_QUEUE or not parent_name:
        return [], []
    if parent is None:
        if parent_name == ROOT_QUEUE:
            return [], []  # the scheduler makes it in a moment
        raise Blocked(f"queue {name}: its parent {parent_name} does not exist")
    if parent.status.state in SHUT and state not in SHUT:
        return [_mark(queue, True)], [Ask(name, bus.CLOSE_QUEUE)]
    if parent.status.state == QUEUE_OPEN and state in SHUT and _closed_by_parent(queue):
        return [], [Ask(name, bus.OPEN_QUEUE)]
    return [], []


def _closed_by_parent(queue: Queue) -> bool:
    return (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT) == "true"


def _mark(queue: Queue, closed: bool) -> Patch:
    """Note whether a queue is closed because its parent is."""
    annotations = {names.CLOSED_BY_PARENT: "true" if closed else "false"}
    return Patch(QUEUE, "", queue.metadata.name, {"metadata": {"annotations": annotations}})


def _set_state(queue: Queue, state: str, blame: str = "") -> list[Instruction]:
    """Apply nothing but the state: the scheduler owns the rest of the status."""
    if queue.status.state == state:
        return []
    body: dict[str, Any] = {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": queue.metadata.name},
        "status": {"state": state},
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
