"""Carries out instructions: the only place where controllers write to the API server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import orjson

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
from volcano_py.controllers.mirror import Mirror
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from volcano_py.kube.events import EventRecorder

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Requests of one `Together` that are under way at the same time."""


class NotLeading(Exception):
    """Leadership was lost: nothing may be written any more."""


class Executor:
    """Writes, and tells the mirrors what came of it."""

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
        self._ensured: dict[tuple[ResourceType, str], int] = {}
        self._told: dict[tuple[str, str], str] = {}

    def attach(self, rt: ResourceType, mirror: Mirror[Any]) -> None:
        """Keep `mirror` up to date with our writes of this kind."""
        self._mirrors[rt] = mirror

    async def carry_out(self, instructions: Sequence[Instruction], about: ApiObject) -> None:
        """Do all of it, in order; events are recorded on `about`. Raises KubeError or NotLeading."""
        versions: dict[tuple[ResourceType, str], str] = {}
        for instruction in instructions:
            if isinstance(instruction, Again):
                continue  # the controller sees to it
            if isinstance(instruction, Together):
                await self._all(instruction.instructions, about, versions)
            else:
                await self._one(instruction, about, versions)

    def say(self, about: ApiObject, event: Emit) -> None:
        """Record an event on `about`."""
        if event.once:
            if self._told.get((about.metadata.uid, event.reason)) == event.message:
                return
            self._told[about.metadata.uid, event.reason] = event.message
        self._event(about, event.type, event.reason, event.message)

    async def take(self, rt: ResourceType, obj: ApiObject) -> bool:
        """Delete an object that is an order to us; whether we, and nobody else, did it. Raises KubeError."""
        if not self._leading():
            raise NotLeading
        metadata = obj.metadata
        try:
            await self._client.delete(rt, metadata.name, metadata.namespace or None, uid=metadata.uid)
        except (NotFound, Conflict):
            return False
        return True

    async def _all(
        self, instructions: Sequence[Single], about: ApiObject, versions: dict[tuple[ResourceType, str], str]
    ) -> None:
        waiting = iter(instructions)
        errors: list[BaseException] = []

        async def lane() -> None:
            for instruction in waiting:
                try:
                    await self._one(instruction, about, versions)
                except KubeError as error:
                    errors.append(error)

        await asyncio.gather(*(lane() for _ in range(min(AT_ONCE, len(instructions)))))
        if errors:
            raise errors[0]

    async def _one(self, instruction: Single, about: ApiObject, versions: dict[tuple[ResourceType, str], str]) -> None:
        if not self._leading():
            raise NotLeading
        try:
            await self._write(instruction, about, versions)
        except KubeError as error:
            if not isinstance(instruction, Emit) and instruction.blame and not isinstance(error, Conflict):
                self._event(about, "Warning", instruction.blame, str(error))
            raise

    def _event(self, about: ApiObject, type_: str, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.event(about, type_, reason, message)

    async def _write(
        self, instruction: Single, about: ApiObject, versions: dict[tuple[ResourceType, str], str]
    ) -> None:
        match instruction:
            case Emit():
                self.say(about, instruction)
            case Create(rt=rt, obj=obj, told=told):
                try:
                    self._note(rt, await self._client.create(rt, obj))
                except AlreadyExists:
                    log.debug("%s %s exists already", rt.kind, _key_of(obj))
                else:
                    if told is not None:
                        self.say(about, told)
            case Ensure():
                await self._ensure(instruction)
            case Update(rt=rt, obj=obj):
                try:
                    self._note(rt, await self._client.update(rt, obj))
                except NotFound:
                    self._forget(rt, _key_of(obj), obj["metadata"].get("uid", ""))
            case UpdateStatus():
                await self._update_status(instruction, versions)
            case Patch():
                await self._patch(instruction, versions)
            case Delete(rt=rt, namespace=namespace, name=name, uid=uid, propagation=propagation):
                key = f"{namespace}/{name}" if namespace else name
                self._ensured.pop((rt, key), None)
                try:
                    answer = await self._client.delete(
                        rt, name, namespace or None, uid=uid or None, propagation_policy=propagation or None
                    )
                except (NotFound, Conflict):
                    # gone, or another one of the same name has taken its place
                    self._forget(rt, key, uid)
                    return
                if (answer.get("metadata") or {}).get("deletionTimestamp"):
                    self._note(rt, answer)
                else:
                    self._forget(rt, key, uid)

    async def _ensure(self, instruction: Ensure) -> None:
        rt, obj = instruction.rt, instruction.obj
        key = (rt, _key_of(obj))
        wanted = {field: _field(obj, field) for field in instruction.fields}
        owner = (obj["metadata"].get("ownerReferences") or [{}])[0].get("uid")
        content = hash(orjson.dumps([owner, wanted], option=orjson.OPT_SORT_KEYS))
        if self._ensured.get(key) == content:
            return
        namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        found: dict[str, Any] | None
        try:
            found = await self._client.get(rt, name, namespace)
        except NotFound:
            found = None
        if found is not None and _is_of_predecessor(found, obj):
            # The garbage collector takes it in a moment, and would leave us without.
            with contextlib.suppress(NotFound, Conflict):
                await self._client.delete(rt, name, namespace, uid=found["metadata"]["uid"])
            found = None
        if found is None:
            made = instruction.complete(obj) if instruction.complete else obj
            self._note(rt, await self._client.create(rt, made))
        else:
            changed = {field: value for field, value in wanted.items() if _field(found, field) != value}
            if changed:
                patch = [{"op": "add", "path": f"/{field}", "value": value} for field, value in changed.items()]
                self._note(rt, await self._client.patch(rt, name, patch, namespace, "json"))
        self._ensured[key] = content

    async def _update_status(self, instruction: UpdateStatus, versions: dict[tuple[ResourceType, str], str]) -> None:
        rt, key = instruction.rt, (instruction.rt, f"{instruction.namespace}/{instruction.name}")
        metadata = {
            "name": instruction.name,
            "namespace": instruction.namespace,
            "uid": instruction.uid,
            # our own earlier write in this round moved the version; somebody else's must not be overwritten
            "resourceVersion": versions.get(key, instruction.resource_version),
        }
        body = {
            "apiVersion": rt.api_version,
            "kind": rt.kind,
            "metadata": metadata,
            "status": instruction.status,
        }
        try:
            self._note(rt, await self._client.update(rt, body, "status"))
        except NotFound:
            log.debug("%s %s is gone", rt.kind, key[1])

    async def _patch(self, instruction: Patch, versions: dict[tuple[ResourceType, str], str]) -> None:
        rt, namespace, name = instruction.rt, instruction.namespace, instruction.name
        try:
            answer = await self._client.patch(
                rt,
                name,
                instruction.body,
                namespace or None,
                instruction.patch_type,
                subresource=instruction.subresource or None,
                field_manager=instruction.field_manager or None,
                force=instruction.patch_type == "apply",
            )
        except NotFound:
            if not instruction.missing_ok:
                raise
            return
        versions[rt, f"{namespace}/{name}"] = answer["metadata"].get("resourceVersion", "")
        self._note(rt, answer)

    def _note(self, rt: ResourceType, answer: dict[str, Any]) -> None:
        if rt in self._mirrors:
            self._mirrors[rt].note(answer)

    def _forget(self, rt: ResourceType, key: str, uid: str) -> None:
        if rt in self._mirrors:
            self._mirrors[rt].forget(key, uid)


def _key_of(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


def _is_of_predecessor(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether an object belongs to a former owner that had the same name as the one that wants it."""

    def owner(obj: dict[str, Any]) -> dict[str, Any]:
        references: list[dict[str, Any]] = obj["metadata"].get("ownerReferences") or []
        return next((one for one in references if one.get("controller")), {})

    old, new = owner(found), owner(wanted)
    same = all(old.get(key) == new.get(key) for key in ("apiVersion", "kind", "name"))
    return bool(new) and same and old.get("uid") != new.get("uid")


def _field(obj: dict[str, Any], path: str) -> Any:
    """The value at a path such as `data/config`; None where there is none."""
    value: Any = obj
    for part in path.split("/"):
        value = (value or {}).get(part)
    return value


def status_write(rt: ResourceType, obj: ApiObject, status: msgspec.Struct, blame: str = "") -> UpdateStatus:
    """The instruction that replaces the status of `obj`."""
    manifest: dict[str, Any] = orjson.loads(msgspec.json.encode(status))
    metadata = obj.metadata
    return UpdateStatus(rt, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version, manifest, blame)
