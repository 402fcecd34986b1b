"""An operation as API calls. Volcano: DefaultBinder, defaultEvictor, defaultStatusUpdater.

Every write is idempotent: a bind of a pod that is already on that node succeeds; an eviction of a deleted pod
succeeds; conditions and statuses are set, not added; deletions contain the uid as a precondition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.api import kinds, names
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import format_time
from volcano_py.kube import AlreadyExists, ApiError, Client, Conflict, Invalid, KubeError, NotFound, Unreachable
from volcano_py.kube.client import PatchType
from volcano_py.kube.errors import InvalidResponse
from volcano_py.kube.events import Correlator, send
from volcano_py.kube.served import ServedKind
from volcano_py.scheduler.dispatch.answers import MetaAnswer, PodAnswer, scan_answer
from volcano_py.scheduler.dispatch.machine import Failure
from volcano_py.scheduler.dispatch.pre_bind import pre_bind_writes
from volcano_py.scheduler.dispatch.pre_bind.barriers import StepWrite
from volcano_py.scheduler.dispatch.pre_bind.step_objects import NotYet, StepFailed
from volcano_py.scheduler.dispatch.versions import Versions
from volcano_py.scheduler.dispatch.waiting import object_key
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE, reference
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Nomination,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
    RemoveGate,
)


class NotLeading(KubeError):
    """The Lease has expired: raised by the client's gate before a request is sent."""


class Rejected(Exception):
    """The operation cannot be written, for a reason that the dispatcher has detected itself."""

    def __init__(self, message: str, pod_gone: bool = False) -> None:
        super().__init__(message)
        self.pod_gone = pod_gone


class Writer:
    """Writes operations with one client. `wall` returns seconds since the epoch, for timestamps."""

    def __init__(self, client: Client, component: str, host: str, wall: Callable[[], float]) -> None:
        self._client = client
        self._wall = wall
        self._correlator = Correlator(component, host)
        self._versions = Versions()
        self._native = ServedKind(client, kinds.NATIVE_PODGROUPS)
        self._dated: set[str] = set()

    async def write(self, op: Operation | StepWrite) -> Failure | None:
        """Write one operation; None if it succeeded."""
        try:
            match op:
                case Bind():
                    await self._bind(op)
                case RemoveGate():
                    await self._remove_gate(op)
                case Evict():
                    await self._evict(op)
                case PodCondition():
                    await self._condition(op)
                case Nomination():
                    await self._nominate(op)
                case PodGroupStatus():
                    await self._pod_group(op)
                case NativeGroupStatus():
                    await self._native_group(op)
                case QueueStatus():
                    await self._queue(op)
                case Event():
                    await self._event(op)
                case StepWrite():
                    await (pre_bind_writes.undo if op.undo else pre_bind_writes.carry_out)(self._client, op.step)
        except NotYet as error:
            return Failure("not-yet", str(error), sent=False)
        except StepFailed as error:
            return Failure("rejected", str(error))
        except Unreachable as error:
            return Failure("unreachable", str(error), sent=error.sent)
        except NotLeading as error:
            return Failure("not-leading", str(error), sent=False)
        except InvalidResponse as error:
            # A retry is harmless; only the object's own writes wait for it.
            return Failure("busy", str(error))
        except Conflict as error:
            return await self._conflict(op, error)
        except ApiError as error:
            if error.status >= 500 or error.status == 429:
                # 429 is sent before the request is processed; with a 5xx it may have been processed.
                return Failure("busy", str(error), error.status >= 500, retry_after=error.retry_after or 0.0)
            return Failure("rejected", str(error), pod_gone=isinstance(error, NotFound))
        except Rejected as error:
            return Failure("rejected", str(error), pod_gone=error.pod_gone)
        return None

    async def _conflict(self, op: Operation | StepWrite, error: Conflict) -> Failure:
        """What a 409 means, which depends on the object as it is now."""
        match op:
            case PodGroupStatus() | QueueStatus():
                self._versions.forget(object_key(op))
                return Failure("conflict", str(error))
            case PodCondition() | Nomination() | RemoveGate() | NativeGroupStatus():
                # No version was sent: usually another object has the name. If not, it is decided again.
                rt = _native(op) if isinstance(op, NativeGroupStatus) else kinds.POD
                try:
                    gone = await self._uid(rt, op.name, op.namespace) != op.uid
                except KubeError as unread:
                    return Failure("rejected", f"{error}; and it cannot be read: {unread}")
                if gone:
                    text = f"{rt.kind} {op.namespace}/{op.name} of uid {op.uid} was deleted"
                    return Failure("rejected", text, pod_gone=True)
        return Failure("rejected", str(error))

    async def _bind(self, op: Bind) -> None:
        metadata: dict[str, Any] = {"namespace": op.namespace, "name": op.name, "uid": op.uid}
        if op.annotations:
            metadata["annotations"] = op.annotations
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": op.node},
        }
        try:
            await self._client.create_subresource(kinds.POD, op.name, "binding", binding, op.namespace)
        except (Conflict, AlreadyExists) as error:
            pod = await self._pod(op.namespace, op.name)
            if pod is None or pod.metadata.uid != op.uid:
                raise Rejected(f"pod {op.namespace}/{op.name} of uid {op.uid} was deleted", pod_gone=True) from error
            if pod.spec.node_name != op.node:
                where = f"it is already on node {pod.spec.node_name}" if pod.spec.node_name else str(error)
                raise Rejected(f"pod {op.namespace}/{op.name}: {where}") from error

    async def _remove_gate(self, op: RemoveGate) -> None:
        gate = {"name": names.QUEUE_ALLOCATION_GATE, "$patch": "delete"}
        body = {"metadata": {"uid": op.uid}, "spec": {"schedulingGates": [gate]}}
        await self._patch(kinds.POD, op.name, op.namespace, body, "strategic")

    async def _evict(self, op: Evict) -> None:
        pod = await self._to_evict(op)
        if pod is None:
            return
        if not pod.spec.node_name:
            # Its bind was in flight when the eviction was decided, and has failed: it holds no capacity.
            raise Rejected(f"pod {op.namespace}/{op.name} is not evicted, because it is on no node")
        for last in (False, False, True):
            try:
                pod = await self._announce(op, pod)
                break
            except (NotFound, Conflict) as error:
                # Neither shows that the pod is gone: it may have changed, or the server may have answered late.
                found = await self._to_evict(op)
                if found is None:
                    return
                if last:
                    text = f"pod {op.namespace}/{op.name} is not evicted, its status cannot be written: {error}"
                    raise Rejected(text) from error
                pod = found
        # The version as well as the uid: the pod may have ended since. If the pod has only changed, the
        # deletion is retried, the last time with the uid alone.
        version: str | None = pod.metadata.resource_version
        for last in (False, False, True):
            try:
                await self._client.delete(kinds.POD, op.name, op.namespace, op.uid, None if last else version)
                return
            except InvalidResponse as error:
                scan_answer(error, op.namespace, op.name)
                return
            except NotFound:
                return
            except Conflict:
                found = await self._to_evict(op)
                if found is None:
                    return
                version = found.metadata.resource_version
        raise Rejected(f"pod {op.namespace}/{op.name} cannot be deleted: the API server reports a conflict each time")

    async def _to_evict(self, op: Evict) -> PodAnswer | None:
        """The pod of an eviction as it is now; None if it is gone or going."""
        pod = await self._pod(op.namespace, op.name)
        gone = pod is None or pod.metadata.uid != op.uid or pod.metadata.deletion_timestamp
        return None if gone else pod

    async def _announce(self, op: Evict, pod: PodAnswer) -> PodAnswer:
        """Write the conditions of a pod that is evicted."""
        text = f"Pod is evicted, because of {op.reason}"
        message = f"{pod.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        now = format_time(self._wall())
        conditions = [_condition("DisruptionTarget", "True", "PreemptionByScheduler", message, now)]
        if not op.event:
            conditions.insert(0, _condition("Ready", "False", "Evict", text, now))
        body = {"metadata": {"uid": op.uid}, "status": {"conditions": conditions}}
        written: PodAnswer = await self._patch(
            kinds.POD, op.name, op.namespace, body, "strategic", "status", type=PodAnswer
        )
        return written

    async def _condition(self, op: PodCondition) -> None:
        # lastTransitionTime changes only with the status; the status is always False, so it is written once per
        # pod.
        now = format_time(self._wall()) if op.uid not in self._dated else None
        status: dict[str, Any] = {"conditions": [_condition("PodScheduled", "False", op.reason, op.message, now)]}
        if op.nominated_node:
            status["nominatedNodeName"] = op.nominated_node
        body = {"metadata": {"uid": op.uid}, "status": status}
        await self._patch(kinds.POD, op.name, op.namespace, body, "strategic", "status")
        if len(self._dated) > 500_000:
            self._dated.clear()
        self._dated.add(op.uid)

    async def _nominate(self, op: Nomination) -> None:
        body = {"metadata": {"uid": op.uid}, "status": {"nominatedNodeName": op.node or None}}
        await self._patch(kinds.POD, op.name, op.namespace, body, "merge", "status")

    async def _pod_group(self, op: PodGroupStatus) -> None:
        # The kind has no status subresource. A JSON patch replaces the whole status (a merge would leave
        # old counts behind) and can test the uid; a resourceVersion in it makes the server reject it with a
        # Conflict when the object has changed.
        key = object_key(op)
        version = self._versions.guard(key, op.resource_version)
        patch = [*_only_version(version), {"op": "add", "path": "/status", "value": op.status}]
        if op.uid:
            patch.insert(0, {"op": "test", "path": "/metadata/uid", "value": op.uid})
        found = await self._patch(kinds.PODGROUP, op.name, op.namespace, patch, "json")
        self._versions.wrote(key, version, found.metadata.resource_version)

    async def _native_group(self, op: NativeGroupStatus) -> None:
        body = {"metadata": {"uid": op.uid}, "status": {"conditions": op.conditions}}
        await self._patch(_native(op), op.name, op.namespace, body, "strategic", "status")

    async def _queue(self, op: QueueStatus) -> None:
        key = object_key(op)
        version = self._versions.guard(key, op.resource_version)
        patch = [*_only_version(version), {"op": "add", "path": "/status/allocated", "value": op.allocated}]
        try:
            found = await self._patch(kinds.QUEUE, op.name, "", patch, "json", "status")
        except Invalid:
            # The object has no status yet.
            body: dict[str, Any] = {"status": {"allocated": op.allocated}}
            if version:
                body["metadata"] = {"resourceVersion": version}
            found = await self._patch(kinds.QUEUE, op.name, "", body, "merge", "status")
        self._versions.wrote(key, version, found.metadata.resource_version)

    async def _event(self, op: Event) -> None:
        rt = await self._kind(op.kind)
        ref = {"kind": op.kind, "namespace": op.namespace, "name": op.name, "uid": op.uid}
        if rt is not None:
            ref |= {"kind": rt.kind, "apiVersion": rt.api_version}
        ref = {key: value for key, value in ref.items() if value}
        write = self._correlator.correlate(ref, op.type, op.reason, op.message, self._wall())
        if write is not None:
            if op.related:
                kind, key = reference(op.related)
                namespace, _, name = key.partition("/")
                group = await self._kind(kind)
                if group is not None:
                    write.create["related"] = {
                        "apiVersion": group.api_version,
                        "kind": group.kind,
                        "namespace": namespace,
                        "name": name,
                    }
            try:
                await send(self._client, self._correlator, write)
            except KubeError:
                # The dispatcher or the decider sends it again, and the server may have stored it.
                self._correlator.undo(write)
                raise

    async def _kind(self, name: str) -> ResourceType | None:
        """The kind with this name in the model, in the version that the cluster serves; None: it is unknown."""
        return await self._native.at(self._wall()) if name == NATIVE else _BY_KIND.get(name)

    async def _pod(self, namespace: str, name: str) -> PodAnswer | None:
        try:
            pod: PodAnswer = await self._client.get(kinds.POD, name, namespace, type=PodAnswer)
            return pod
        except InvalidResponse as error:
            return scan_answer(error, namespace, name)
        except NotFound:
            return None

    async def _uid(self, rt: ResourceType, name: str, namespace: str) -> str:
        """The uid of the object that has the name now; empty if there is none."""
        try:
            found: MetaAnswer = await self._client.get(rt, name, namespace, type=MetaAnswer)
            return found.metadata.uid
        except InvalidResponse as error:
            return scan_answer(error, namespace, name).metadata.uid
        except NotFound:
            return ""

    async def _patch(
        self,
        rt: ResourceType,
        name: str,
        namespace: str,
        body: Any,
        patch_type: PatchType,
        subresource: str | None = None,
        type: Any = MetaAnswer,
    ) -> Any:
        try:
            return await self._client.patch(rt, name, body, namespace or None, patch_type, subresource, type=type)
        except InvalidResponse as error:
            # The response is the object, and the server reports success: only the object cannot be decoded.
            return scan_answer(error, namespace, name)


_BY_KIND = {
    rt.kind: rt
    for rt in (kinds.POD, kinds.PODGROUP, kinds.QUEUE, kinds.NODE, kinds.HYPERNODE, kinds.JOB, kinds.CONFIGMAP)
}
_BY_KIND[COMPOSITE] = kinds.COMPOSITE_PODGROUP


def _native(op: NativeGroupStatus) -> ResourceType:
    """The kind in the version that the cluster serves."""
    if op.kind == COMPOSITE:
        return kinds.COMPOSITE_PODGROUP
    return next((rt for rt in kinds.NATIVE_PODGROUPS if rt.api_version == op.api_version), kinds.NATIVE_PODGROUP)


def _only_version(version: str) -> list[dict[str, Any]]:
    """JSON patch steps that make the server reject the patch when the object has another resourceVersion."""
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}] if version else []


def _condition(type_: str, status: str, reason: str, message: str, now: str | None) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": type_, "status": status, "reason": reason, "message": message}
    if now is not None:
        condition["lastTransitionTime"] = now
    return condition
