"""Objects that are created for another object, with names derived from it: a Job's Services, Secrets, ConfigMaps.

An object with such a name may have another owner. Only an object whose controller has the owner's UID is changed or
deleted; any other is reported on the owner. Volcano's job plugins use any object with the name (`owned-only` in
docs/deviations.md).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

import orjson

from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.controllers.instructions import Create, Delete, Emit, Ensure
from volcano_py.controllers.memory import Memory
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, KubeError, NotFound

Manifest = dict[str, Any]


class StillThere(KubeError):
    """An object with the required name is about to be deleted, or was deleted a moment ago: retry later."""


class Relation(Enum):
    """The relation of an existing object to the object that needs its name."""

    OURS = auto()
    FORMER = auto()
    """Controlled by a deleted owner of the same kind and name: the garbage collector deletes it."""
    FOREIGN = auto()


class Owner(NamedTuple):
    """The identity of an object's controller."""

    api_version: str
    kind: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: ApiObject) -> Owner:
        return cls(obj.api_version, obj.kind, obj.metadata.name, obj.metadata.uid)


def controller_of(manifest: Manifest) -> Owner | None:
    """The owner that controls an object, from its ownerReferences."""
    for one in manifest["metadata"].get("ownerReferences") or ():
        if one.get("controller"):
            return Owner(*(one.get(key, "") for key in ("apiVersion", "kind", "name", "uid")))
    return None


def relation(found: Manifest, owner: Owner) -> Relation:
    """The relation of an existing object to `owner`."""
    controller = controller_of(found)
    if controller is None or not owner.uid:
        return Relation.FOREIGN
    if controller.uid == owner.uid:
        return Relation.OURS
    return Relation.FORMER if controller[:3] == owner[:3] else Relation.FOREIGN


class OwnedObjects:
    """Creates, updates and deletes the objects of an owner. `note(rt, answer)` is called with each written object."""

    def __init__(
        self,
        client: Client,
        record: Callable[[ApiObject, Emit], None],
        note: Callable[[ResourceType, Manifest], None],
    ) -> None:
        self._client = client
        self._record = record
        self._note = note
        self._stored: Memory[tuple[ResourceType, str], int] = Memory()
        """By owner: objects that are known to be stored, with a hash of their content."""

    def forget(self, uid: str) -> None:
        """The owner with this UID was deleted."""
        self._stored.forget(uid)

    async def ensure(self, instruction: Ensure, owner: ApiObject) -> None:
        """Execute an Ensure. Raises KubeError; StillThere while an object of a former owner exists."""
        rt, obj = instruction.rt, instruction.obj
        namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        wanted = {field: _field(obj, field) for field in instruction.fields}
        content = hash(orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS))
        if self._stored.get(owner.metadata.uid, (rt, name)) == content:
            return
        try:
            found = await self._client.get(rt, name, namespace)
        except NotFound:
            made = instruction.complete(obj) if instruction.complete else obj
            try:
                self._note(rt, await self._client.create(rt, made))
            except AlreadyExists as error:  # created since the read
                raise StillThere(f"{rt.kind} {name}: {error}") from error
        else:
            if not self._is_ours(rt, found, owner, instruction.blame):
                return
            if found["metadata"].get("deletionTimestamp"):
                raise StillThere(f"{rt.kind} {name} is being deleted; it is created again afterwards")
            changed = {field: value for field, value in wanted.items() if _field(found, field) != value}
            if changed:
                patch = [{"op": "add", "path": f"/{field}", "value": value} for field, value in changed.items()]
                same = [
                    {"op": "add", "path": f"/metadata/{key}", "value": found["metadata"][key]}
                    for key in ("uid", "resourceVersion")
                ]  # the server responds with Conflict if the checked object was replaced
                self._note(rt, await self._client.patch(rt, name, same + patch, namespace, "json"))
        self._stored.put(owner.metadata.uid, (rt, name), content)

    async def find_to_delete(self, instruction: Delete, owner: ApiObject) -> str | None:
        """The UID of the object for a Delete without a UID; None if there is none that may be deleted."""
        rt, name = instruction.rt, instruction.name
        self._stored.drop(owner.metadata.uid, (rt, name))
        try:
            found = await self._client.get(rt, name, instruction.namespace or None)
        except NotFound:
            return None
        try:
            ours = self._is_ours(rt, found, owner, instruction.blame)
        except StillThere:
            return None  # the garbage collector deletes it
        return found["metadata"]["uid"] if ours else None

    async def report_taken(self, instruction: Create, owner: ApiObject, known: Manifest | None) -> None:
        """Report that the name of an object to create is taken, unless its intended controller controls that object.

        `known` is the existing object, if available. Otherwise it is read and noted: an earlier request that failed may
        have created it, and it may be deleted before a watch returns it. Raises KubeError; StillThere if it is gone.
        """
        rt, metadata = instruction.rt, instruction.obj["metadata"]
        wanted = controller_of(instruction.obj)
        if wanted is None:
            return
        if known is None:
            try:
                known = await self._client.get(rt, metadata["name"], metadata.get("namespace"))
            except NotFound as error:
                raise StillThere(f"{rt.kind} {metadata['name']} was deleted while it was created") from error
            self._note(rt, known)
        if relation(known, wanted) is Relation.FOREIGN:
            self._report(rt, metadata["name"], owner, instruction.blame)

    def _is_ours(self, rt: ResourceType, found: Manifest, owner: ApiObject, blame: str) -> bool:
        name = found["metadata"]["name"]
        match relation(found, Owner.of(owner)):
            case Relation.OURS:
                return True
            case Relation.FORMER:
                why = f"{rt.kind} {name} belongs to a deleted {owner.kind} of the same name; waiting for its removal"
                raise StillThere(why)
            case Relation.FOREIGN:
                self._report(rt, name, owner, blame)
                return False

    def _report(self, rt: ResourceType, name: str, owner: ApiObject, blame: str) -> None:
        message = (
            f"{rt.kind} {name} exists and this {owner.kind} does not control it, so it is not changed: "
            f"rename the {owner.kind} or delete the {rt.kind}"
        )
        self._record(owner, Emit("Warning", blame or "ForeignObject", message, once=True, topic=f"{rt.kind} {name}"))


def _field(obj: Manifest, path: str) -> Any:
    """The value at a path such as `data/config`; None if it is missing."""
    value: Any = obj
    for part in path.split("/"):
        value = (value or {}).get(part)
    return value
