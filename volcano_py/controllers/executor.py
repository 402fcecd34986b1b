"""Executes instructions: the only module in which controllers write to the API server.

Corresponds to the clients in Volcano's controllers. Objects found by name are only written through `owned`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.controllers.instructions import (
    Again,
    Create,
    Delete,
    Emit,
    Ensure,
    Instruction,
    Patch,
    Single,
    Together,
    Update,
    UpdateStatus,
)
from volcano_py.controllers.memory import Memory
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.owned import OwnedObjects, StillThere
from volcano_py.controllers.progress import moved
from volcano_py.kube import scan
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Conflict, InvalidResponse, KubeError, NotFound, OlderDefinition
from volcano_py.kube.events import EventRecorder
from volcano_py.kube.remedies import UPDATE_CRDS

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Concurrent requests of one `Together`."""


class NotLeading(Exception):
    """Leadership was lost: no more writes are allowed."""


class Executor:
    """Executes instructions, and stores the responses in the mirrors."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder | None = None,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._leading = leading
        self._mirrors: dict[ResourceType, Mirror[Any]] = {}
        self._owned = OwnedObjects(client, self.record, self._note)
        self._recorded: Memory[tuple[str, str], str] = Memory()
        """By object, reason and topic: the last message of an Event that is not repeated."""
        self._running: Counter[str] = Counter()
        """By UID of the object they are about: calls of `carry_out` that have not returned."""
        self._deleted_meanwhile: set[str] = set()
        """UIDs of objects that were deleted during such a call, which may still store values for them."""

    def attach(self, rt: ResourceType, mirror: Mirror[Any]) -> None:
        """Keep `mirror` up to date with the writes of this kind."""
        self._mirrors[rt] = mirror
        mirror.on(delete=lambda obj: self._forget_about(obj.metadata.uid))

    async def carry_out(self, instructions: Sequence[Instruction], about: ApiObject) -> None:
        """Execute all instructions in order; Events are recorded on `about`. Raises KubeError or NotLeading."""
        versions: dict[tuple[ResourceType, str], str] = {}
        uid = about.metadata.uid
        self._running[uid] += 1
        try:
            for instruction in instructions:
                if isinstance(instruction, Again):
                    continue  # the controller handles it
                if isinstance(instruction, Together):
                    await self._all(instruction.instructions, about, versions)
                else:
                    await self._one(instruction, about, versions)
        finally:
            self._running[uid] -= 1
            if not self._running[uid]:
                del self._running[uid]
                if uid in self._deleted_meanwhile:
                    self._deleted_meanwhile.discard(uid)
                    self._forget_about(uid)

    def record(self, about: ApiObject, event: Emit) -> None:
        """Record an event on `about`."""
        if event.once:
            if self._recorded.get(about.metadata.uid, (event.reason, event.topic)) == event.message:
                return
            self._recorded.put(about.metadata.uid, (event.reason, event.topic), event.message)
        self._event(about, event.type, event.reason, event.message)

    async def take(self, rt: ResourceType, obj: ApiObject) -> bool:
        """Delete a Command; True if this call deleted it. Raises KubeError; Conflict if it still exists."""
        if not self._leading():
            raise NotLeading
        metadata = obj.metadata
        try:
            await self._client.delete(rt, metadata.name, metadata.namespace or None, uid=metadata.uid)
        except NotFound:
            return False
        except Conflict:
            if await self._exists(rt, metadata.namespace, metadata.name, metadata.uid):
                raise
            return False
        return True

    async def _all(
        self, instructions: Sequence[Single], about: ApiObject, versions: dict[tuple[ResourceType, str], str]
    ) -> None:
        waiting = iter(instructions)
        errors: list[BaseException] = []
        succeeded = False

        async def lane() -> None:
            nonlocal succeeded
            while succeeded or len(errors) < AT_ONCE:  # if all of the first ones fail, so would the others
                try:
                    instruction = next(waiting)
                except StopIteration:
                    return
                except Exception as error:  # an instruction that is made when it is due, and cannot be
                    errors.append(error)
                    return
                try:
                    await self._one(instruction, about, versions)
                except KubeError as error:
                    errors.append(error)
                else:
                    succeeded = True

        await asyncio.gather(*(lane() for _ in range(min(AT_ONCE, len(instructions)))))
        if errors:
            raise errors[0]

    async def _one(self, instruction: Single, about: ApiObject, versions: dict[tuple[ResourceType, str], str]) -> None:
        if not self._leading():
            raise NotLeading
        try:
            await self._write(instruction, about, versions)
        except KubeError as error:
            quiet = isinstance(error, Conflict | StillThere)  # the next attempt resolves it
            if not isinstance(instruction, Emit) and instruction.blame and not quiet:
                error.blame = instruction.blame
                self._event(about, "Warning", instruction.blame, str(error))
            raise
        finally:
            moved()

    def _event(self, about: ApiObject, type_: str, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.event(about, type_, reason, message)

    async def _write(
        self, instruction: Single, about: ApiObject, versions: dict[tuple[ResourceType, str], str]
    ) -> None:
        match instruction:
            case Emit():
                self.record(about, instruction)
            case Create(rt=rt, obj=obj, event=event):
                try:
                    self._note(rt, await _carried_out(self._client.create(rt, obj), obj["metadata"]))
                except AlreadyExists:
                    await self._owned.report_taken(instruction, about, self._known(rt, _key_of(obj)))
                else:
                    if event is not None:
                        self.record(about, event)
            case Ensure():
                await self._owned.ensure(instruction, about)
            case Update(rt=rt, obj=obj):
                try:
                    self._note(rt, await _carried_out(self._client.update(rt, obj), obj["metadata"]))
                except NotFound:
                    self._forget(rt, _key_of(obj), obj["metadata"].get("uid", ""))
            case UpdateStatus():
                await self._update_status(instruction, versions)
            case Patch():
                await self._patch(instruction, versions)
            case Delete():
                await self._delete(instruction, about)

    async def _delete(self, instruction: Delete, about: ApiObject) -> None:
        rt, namespace, name = instruction.rt, instruction.namespace, instruction.name
        key = f"{namespace}/{name}" if namespace else name
        uid = instruction.uid or await self._owned.find_to_delete(instruction, about)
        if not uid:
            return
        try:
            write = self._client.delete(
                rt, name, namespace or None, uid=uid, propagation_policy=instruction.propagation or None
            )
            answer = await _carried_out(write, {"namespace": namespace, "name": name})
        except NotFound:
            self._forget(rt, key, uid)
            return
        except Conflict:
            # Usually another object has the name. If not, the mirror must keep this one: no watch would return it.
            if await self._exists(rt, namespace, name, uid):
                raise
            self._forget(rt, key, uid)
            return
        if answer is None or (answer.get("metadata") or {}).get("deletionTimestamp"):
            self._note(rt, answer)
        else:
            self._forget(rt, key, uid)

    async def _exists(self, rt: ResourceType, namespace: str, name: str, uid: str) -> bool:
        """Whether the object with this UID exists now. Uses list: `get` may be denied. Raises KubeError."""
        found = await self._client.list(rt, namespace or None, field_selector=f"metadata.name={name}")
        return any(obj["metadata"].get("uid") == uid for obj in found)

    async def _update_status(self, instruction: UpdateStatus, versions: dict[tuple[ResourceType, str], str]) -> None:
        rt, key = instruction.rt, (instruction.rt, f"{instruction.namespace}/{instruction.name}")
        metadata = {
            "name": instruction.name,
            "namespace": instruction.namespace,
            "uid": instruction.uid,
            # an earlier write of this reconcile changed the version; a write of another client must not be overwritten
            "resourceVersion": versions.get(key, instruction.resource_version),
        }
        body = {
            "apiVersion": rt.api_version,
            "kind": rt.kind,
            "metadata": metadata,
            "status": instruction.status,
        }
        try:
            self._note(rt, await _carried_out(self._client.update(rt, body, "status"), metadata))
        except NotFound:
            await self._check_status_subresource(rt, instruction.namespace, instruction.name)
            log.debug("%s %s does not exist", rt.kind, key[1])

    async def _check_status_subresource(self, rt: ResourceType, namespace: str, name: str) -> None:
        """After a status was not found: raises OlderDefinition if the object exists. Uses list: `get` may be denied."""
        try:
            found = await self._client.list(rt, namespace or None, field_selector=f"metadata.name={name}")
        except (NotFound, InvalidResponse):
            return
        if found:
            text = f"CRD {rt.plural}.{rt.group} has no subresource status; update it: {UPDATE_CRDS}"
            raise OlderDefinition(text) from None

    async def _patch(self, instruction: Patch, versions: dict[tuple[ResourceType, str], str]) -> None:
        rt, namespace, name = instruction.rt, instruction.namespace, instruction.name
        try:
            write = self._client.patch(
                rt,
                name,
                _of_same(instruction),
                namespace or None,
                instruction.patch_type,
                subresource=instruction.subresource or None,
                field_manager=instruction.field_manager or None,
                force=instruction.patch_type == "apply",
            )
            answer = await _carried_out(write, {"namespace": namespace, "name": name})
        except NotFound:
            if instruction.subresource == "status":
                await self._check_status_subresource(rt, namespace, name)
            if not instruction.missing_ok:
                raise
            return
        if answer is not None:
            versions[rt, f"{namespace}/{name}"] = answer["metadata"].get("resourceVersion", "")
        self._note(rt, answer)

    def _note(self, rt: ResourceType, answer: dict[str, Any] | None) -> None:
        if answer is not None and rt in self._mirrors:
            self._mirrors[rt].note(answer)

    def _known(self, rt: ResourceType, key: str) -> dict[str, Any] | None:
        """An object in its mirror."""
        known = self._mirrors[rt].get(key) if rt in self._mirrors else None
        return None if known is None else {"metadata": to_manifest(known.metadata)}

    def _forget_about(self, uid: str) -> None:
        if uid in self._running:
            self._deleted_meanwhile.add(uid)
        self._owned.forget(uid)
        self._recorded.forget(uid)

    def _forget(self, rt: ResourceType, key: str, uid: str) -> None:
        if rt in self._mirrors:
            self._mirrors[rt].forget(key, uid)


def _key_of(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


async def _carried_out(write: Coroutine[Any, Any, dict[str, Any]], target: Mapping[str, Any]) -> dict[str, Any] | None:
    """The response to a write; None if it is the whole target, which any client may have nested too deep to decode."""
    try:
        return await write
    except InvalidResponse as error:
        found = scan.texts(error.body, "metadata")
        same = all(found.get(key, "") == (target.get(key) or "") for key in ("namespace", "name"))
        if same and scan.complete(error.body):
            return None
        raise


def _of_same(instruction: Patch) -> Any:
    """The body of a patch; the server responds with Conflict if another object has the name."""
    uid, body = instruction.uid, instruction.body
    if not uid:
        return body
    if instruction.patch_type == "json":
        return [{"op": "add", "path": "/metadata/uid", "value": uid}, *body]
    return {**body, "metadata": {**body.get("metadata", {}), "uid": uid}}


def status_write(rt: ResourceType, obj: ApiObject, status: msgspec.Struct, blame: str = "") -> UpdateStatus:
    """The instruction that replaces the status of `obj`."""
    manifest: dict[str, Any] = orjson.loads(msgspec.json.encode(status))
    metadata = obj.metadata
    return UpdateStatus(rt, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version, manifest, blame)
