"""What a reconciler wants done, as data.

A reconciler looks at what it is shown and returns a list of these; it does no I/O itself. The executor
carries them out in order, those in a `Together` at the same time, and stops at the first failure.
`blame` is the reason of the Warning event that reports a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from volcano_py.api.kinds import ResourceType

PatchType = Literal["merge", "json", "strategic", "apply"]


class Emit(Struct, frozen=True):
    """Record an event on the object that is reconciled."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    once: bool = False
    """Not again while the message stays the same."""
    topic: str = ""
    """What the message is about, where one object may have several messages of one reason."""


class Create(Struct, frozen=True):
    """Make an object; that one of the same name exists already counts as success.

    If the reconciled object was to control it and does not control the one that exists, an Event reports that.
    """

    rt: ResourceType
    obj: dict[str, Any]
    blame: str = ""
    event: Emit | None = None
    """Recorded when the object was created (and not when it existed)."""


class Ensure(Struct, frozen=True):
    """Make an object, or bring `fields` of the existing one to what they are in `obj`.

    Only an object that the reconciled one controls is changed; any other of that name is reported and stays as it is.
    It is looked up once; after that only a different content leads to a request. `fields` are paths such as
    `data` or `data/config`. `complete` adds what is made only when the object is (keys).
    """

    rt: ResourceType
    obj: dict[str, Any]
    fields: tuple[str, ...] = ()
    complete: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    blame: str = ""


class Update(Struct, frozen=True):
    """Replace an object, if it is still at the resourceVersion in its metadata; that it is gone is success.

    For kinds that a role of Volcano's chart lets us update, but not patch.
    """

    rt: ResourceType
    obj: dict[str, Any]
    blame: str = ""


class UpdateStatus(Struct, frozen=True):
    """Replace the status of an object, if it is still at the resourceVersion that was looked at."""

    rt: ResourceType
    namespace: str
    name: str
    uid: str
    resource_version: str
    status: dict[str, Any]
    blame: str = ""


class Patch(Struct, frozen=True):
    """Change an object in place; that it is gone counts as success if `missing_ok`.

    With a `uid` only if the object is still the one with this UID; otherwise the server answers Conflict.
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
    """Delete an object, on condition that it is still the one with this UID; that it is gone is success.

    Without a UID the object is looked up, and deleted only if the reconciled one controls it.
    """

    rt: ResourceType
    namespace: str
    name: str
    uid: str = ""
    propagation: str = ""
    blame: str = ""


Single = Create | Ensure | Update | UpdateStatus | Patch | Delete | Emit


class Again(Struct, frozen=True):
    """Look at the object again after so many seconds."""

    seconds: float


class Together(Struct, frozen=True):
    """Instructions whose order does not matter."""

    instructions: tuple[Single, ...]


Instruction = Single | Again | Together
