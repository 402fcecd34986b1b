"""The result of a reconciler, as data.

A reconciler computes a list of these from what it observed; it does no I/O itself. The executor
executes them in order, those in a `Together` concurrently, and stops at the first failure.
`blame` is the reason of the Warning Event that reports a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from volcano_py.api.kinds import ResourceType

PatchType = Literal["merge", "json", "strategic", "apply"]


class Emit(Struct, frozen=True):
    """Record an Event on the reconciled object."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    once: bool = False
    """Do not repeat it while the message is the same."""
    topic: str = ""
    """The subject of the message, for objects with several messages of one reason."""


class Create(Struct, frozen=True):
    """Create an object; an existing object with the name counts as success.

    If the reconciled object should control it, but does not control the existing object, an Event reports this.
    """

    rt: ResourceType
    obj: dict[str, Any]
    blame: str = ""
    event: Emit | None = None
    """Recorded if the object was created (not if it existed)."""


class Ensure(Struct, frozen=True):
    """Create an object, or set `fields` of the existing one to the values in `obj`.

    Only an object that the reconciled object controls is changed; any other object with the name is reported.
    It is read once; afterwards only different content leads to a request. `fields` are paths such as
    `data` or `data/config`. `complete` adds content that is generated only on creation (keys).
    """

    rt: ResourceType
    obj: dict[str, Any]
    fields: tuple[str, ...] = ()
    complete: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    blame: str = ""


class Update(Struct, frozen=True):
    """Replace an object if its resourceVersion is still the one in its metadata; a deleted object counts as success.

    For kinds that a role of Volcano's chart permits to update, but not to patch.
    """

    rt: ResourceType
    obj: dict[str, Any]
    blame: str = ""


class UpdateStatus(Struct, frozen=True):
    """Replace the status of an object if its resourceVersion is still the observed one."""

    rt: ResourceType
    namespace: str
    name: str
    uid: str
    resource_version: str
    status: dict[str, Any]
    blame: str = ""


class Patch(Struct, frozen=True):
    """Patch an object; a deleted object counts as success if `missing_ok`.

    With a `uid`, only if the object still has this UID; otherwise the server responds with Conflict.
    """

    rt: ResourceType
    namespace: str
    name: str
    body: Any
    patch_type: PatchType = "merge"
    subresource: str = ""
    field_manager: str = ""
    missing_ok: bool = False
    uid: str = ""
    blame: str = ""


class Delete(Struct, frozen=True):
    """Delete an object if it still has this UID; a deleted object counts as success.

    Without a UID the object is read, and deleted only if the reconciled object controls it.
    """

    rt: ResourceType
    namespace: str
    name: str
    uid: str = ""
    propagation: str = ""
    blame: str = ""


Single = Create | Ensure | Update | UpdateStatus | Patch | Delete | Emit


class Again(Struct, frozen=True):
    """Reconcile the object again after this many seconds."""

    seconds: float


class Together(Struct, frozen=True):
    """Instructions in any order."""

    instructions: Sequence[Single]


Instruction = Single | Again | Together
