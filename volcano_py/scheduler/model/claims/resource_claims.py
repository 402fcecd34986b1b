"""ResourceClaims: the claims of pods for devices, and the allocated devices. Volcano: its DRA manager and claim
tracker; kube-scheduler: the claim assume cache.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec

from volcano_py.api import core, dra
from volcano_py.scheduler.model.changes import Changes
from volcano_py.scheduler.model.claims.device_pools import DeviceId, DevicePools
from volcano_py.scheduler.model.claims.extended_resources import (
    ANNOTATION,
    ExtendedClaim,
    ExtendedResources,
    claim_key,
    claim_to_create,
)
from volcano_py.scheduler.model.claims.group_claims import belongs_to_group, is_reserved_for_group
from volcano_py.scheduler.model.claims.storage import share
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, PreBindStep

KINDS = frozenset(("ResourceClaim", "ResourceSlice", "DeviceClass", "DeviceTaintRule"))
ANY_NODE = ""
_encoder = msgspec.msgpack.Encoder()


class PodClaim(NamedTuple):
    """One claim of a pod. Without a `claim` there is a `problem`."""

    key: str
    claim: dra.ResourceClaim | None
    problem: str
    shared: bool
    """Whether other pods refer to it, too."""
    unusable: bool = False
    """Whether the problem is the claim itself, not its requests."""
    extended: ExtendedClaim | None = None
    """For the claim that the scheduler creates for extended resources: what it contains."""


class ClaimDemand(NamedTuple):
    """The requirements of a pod's ResourceClaims for nodes."""

    claims: tuple[PodClaim, ...]
    problem: str
    """Why no node accepts the pod: the message of kube-scheduler's PreFilter."""
    key: bytes
    """Equal for pods with equal requirements."""

    @property
    def unusable(self) -> str:
        """Why the pod must wait for a claim itself, whatever its requests are; empty: it need not."""
        return next((c.problem for c in self.claims if c.unusable), "")


def claim_names(pod: core.Pod) -> list[tuple[str, str | None]]:
    """The claims of a pod, each with its name in the pod and the name of its ResourceClaim; None: not created yet.

    Claims that the pod does not need after all are left out.
    """
    made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    found: list[tuple[str, str | None]] = []
    for entry in pod.spec.resource_claims or ():
        if entry.resource_claim_name is not None:
            found.append((entry.name, entry.resource_claim_name))
        elif entry.name not in made:
            found.append((entry.name, None))
        elif made[entry.name] is not None:
            found.append((entry.name, made[entry.name]))
    return found


class ResourceClaims:
    """Lookups over `objects` (by kind and key), and the assumptions of binds in flight."""

    def __init__(self, objects: dict[str, dict[str, Any]]) -> None:
        self._objects = objects
        self.pools = DevicePools(objects)
        self.extended = ExtendedResources(objects)
        self._pods_of_extended: dict[str, str] = {}
        """The pod of each claim for extended resources, by the claim's key."""
        self.users: dict[str, set[str]] = defaultdict(set)
        """Unfinished pods by the claim that they refer to, both as `namespace/name`."""
        self.assumed: dict[str, dict[str, AllocateClaim]] = {}
        """The assumed writes of binds in flight, by claim and the bind's pod (its uid)."""
        self._assumed_from: dict[tuple[str, str], str] = {}
        """The version of the claim when a write was assumed, by the same keys."""
        self._ended: set[str] = set()
        """Pods with assumed writes that have finished or were deleted, by uid."""
        self.touched: set[str] = set()
        self.all_touched = False
        self._used: dict[DeviceId, dict[str, dra.JsonMap]] = {}
        self._holds: dict[str, list[tuple[DeviceId, str]]] = {}
        """The devices of each claim in `_used`."""
        self.device_changes = Changes()
        """Nodes whose devices were allocated or released; ANY_NODE: devices that several nodes can use."""
        self._recount: set[str] = set()
        """Claims whose devices `used` must count again."""

    # ---- objects ------------------------------------------------------------------------------------------

    def changed(self, kind: str, key: str) -> None:
        """An object was added, changed or removed."""
        if kind == "ResourceSlice":
            self.pools.slice_changed(key)
        elif kind == "DeviceTaintRule":
            self.pools.taints_changed()
        elif kind == "DeviceClass":
            self.pools.generation += 1
            self.all_touched = self.all_touched or any(self.users.values())
            self.extended.changed()
        else:
            self._recount.add(key)
            self.touched |= self.users.get(key, set())
            claim = self.claim(key)
            self._extended_changed(key, claim)
            if claim is None:
                # A claim for extended resources is created again in the next attempt.
                for uid in [u for u, step in self.assumed.get(key, {}).items() if step.extended is None]:
                    self._drop(key, uid)
            else:
                steps = self.assumed.get(key, {})
                for uid in [u for u, step in steps.items() if _is_reserved(claim, step.consumer["uid"])]:
                    self._drop(key, uid)
                self._release(key)

    def _extended_changed(self, key: str, claim: dra.ResourceClaim | None) -> None:
        if claim is not None and (claim.metadata.annotations or {}).get(ANNOTATION) == "true":
            owner = claim.metadata.controller
            self._pods_of_extended[key] = f"{claim.metadata.namespace}/{owner.name if owner is not None else ''}"
        pod = self._pods_of_extended.get(key)
        if pod is not None:
            self.touched.add(pod)
        if claim is None:
            self._pods_of_extended.pop(key, None)

    def claim(self, key: str) -> dra.ResourceClaim | None:
        return self._objects.get("ResourceClaim", {}).get(key)

    def device_class(self, name: str) -> dra.DeviceClass | None:
        return self._objects.get("DeviceClass", {}).get(name)

    def allocation(self, key: str) -> dra.JsonMap | None:
        """The allocation of a claim, including an assumed one."""
        claim = self.claim(key)
        if claim is not None and claim.status.allocation is not None:
            return claim.status.allocation
        steps = self.assumed.get(key, {}).values()
        return next((step.allocation for step in steps if step.allocation is not None), None)

    def reserved_for(self, key: str) -> set[str]:
        """The uids of the pods for which a claim is reserved."""
        claim = self.claim(key)
        consumers = (claim.status.reserved_for if claim is not None else None) or ()
        return {c.uid for c in consumers} | {s.consumer["uid"] for s in self.assumed.get(key, {}).values()}

    def used(self) -> dict[DeviceId, dict[str, dra.JsonMap]]:
        """The allocated devices, each with the allocation result of every claim that has it; read-only.

        Claims with admin access do not count.
        """
        for key in self._recount:
            before = self._holds.pop(key, [])
            for device, entry in before:
                del self._used[device][entry]
                if not self._used[device]:
                    del self._used[device]
            for result in dra.results(self.allocation(key)):
                if not result.get("adminAccess"):
                    device, entry = dra.device_id(result), f"{key}#{result.get('shareID') or ''}"
                    if entry not in self._used.setdefault(device, {}):
                        self._holds.setdefault(key, []).append((device, entry))
                    self._used[device][entry] = result
            for device, _ in {*before, *self._holds.get(key, ())}:
                found = self.pools.device(device)
                self.device_changes.add(found.node or ANY_NODE if found is not None else ANY_NODE)
        self._recount.clear()
        return self._used

    # ---- pods ----------------------------------------------------------------------------------------------

    def demand(self, pod: core.Pod) -> ClaimDemand | None:
        """The requirements of a pod's claims; None if it has none."""
        extended = self.extended.of_pod(pod)
        if not pod.spec.resource_claims and not extended:
            return None
        claims: list[PodClaim] = []
        for name, claim_name in claim_names(pod):
            key = f"{pod.metadata.namespace}/{claim_name}"
            claim = self.claim(key) if claim_name is not None else None
            shared = len(self.users.get(key, ())) > 1
            missing = self._missing(pod, name, claim_name, claim)
            problem = missing or (self._problem(pod, claim) if claim is not None else "")
            claims.append(PodClaim(key, claim, problem, shared, bool(missing)))
        if extended:
            claims.append(self._extended_claim(pod, extended))
        problem = next((c.problem for c in claims if c.problem), "")
        return ClaimDemand(tuple(claims), problem, _encoder.encode([self._content(c) for c in claims]))

    def _extended_claim(self, pod: core.Pod, resources: list[str]) -> PodClaim:
        key, wanted = claim_key(pod), self.extended.claim_of(pod, resources)
        claim = self.claim(key)
        if claim is None:
            return PodClaim(key, claim_to_create(pod, wanted), "", False, extended=wanted)
        name, owner = claim.metadata.name, claim.metadata.controller
        problem = f'resourceclaim "{name}" is being deleted' if claim.metadata.deletion_timestamp else ""
        if owner is None or owner.uid != pod.metadata.uid:
            problem = f'resourceclaim "{name}" was not created for this pod; delete or rename it'
        return PodClaim(key, claim, problem, False, bool(problem), wanted)

    def _missing(self, pod: core.Pod, name: str, claim_name: str | None, claim: dra.ResourceClaim | None) -> str:
        if claim_name is None:
            return f'pod "{pod.metadata.key}": claim {name}: ResourceClaim not created yet'
        if claim is None:
            return f'resourceclaim "{claim_name}" not found'
        if claim.metadata.deletion_timestamp:
            return f'resourceclaim "{claim_name}" is being deleted'
        owner = claim.metadata.controller
        generated = any(e.name == name and e.resource_claim_name is None for e in pod.spec.resource_claims or ())
        of_pod = owner is not None and (owner.uid == pod.metadata.uid or belongs_to_group(owner.kind, owner.name, pod))
        if generated and not of_pod:
            return f'resourceclaim "{claim_name}" was not created for this pod; delete or rename it'
        return ""

    def _problem(self, pod: core.Pod, claim: dra.ResourceClaim) -> str:
        key = claim.metadata.key
        if self.allocation(key) is not None:
            consumers = self.reserved_for(key)
            mine = pod.metadata.uid in consumers or is_reserved_for_group(claim, pod)
            if not mine and len(consumers) >= dra.MAX_CONSUMERS:
                return f'resourceclaim "{claim.metadata.name}" is in use'
            return ""
        for request in claim.spec.devices.requests or ():
            for exact in [request.exactly] if request.exactly is not None else request.first_available or ():
                if self.device_class(exact.device_class_name) is None:
                    return f"request {request.name}: device class {exact.device_class_name} does not exist"
        return ""

    def _content(self, claim: PodClaim) -> Any:
        if claim.claim is None or claim.problem:
            return claim.problem
        allocation = self.allocation(claim.key)
        if allocation is not None:
            return [allocation.get("nodeSelector"), claim.key if claim.shared else ""]
        if claim.extended is not None:
            return ["extended", claim.claim.spec]
        return [claim.claim.spec, claim.key if claim.shared else ""]

    def use(self, pod: core.Pod, used: bool) -> None:
        """Record that a pod uses its claims, or no longer does."""
        for _, name in claim_names(pod):
            self.touched |= share(self.users[f"{pod.metadata.namespace}/{name}"], pod.metadata.key, used)

    # ---- binds in flight -----------------------------------------------------------------------------------

    def assume(self, uid: str, step: PreBindStep) -> None:
        """Count a step of the bind of a pod as done, until an event confirms it or the bind is forgotten."""
        if isinstance(step, AllocateClaim):
            key = f"{step.namespace}/{step.claim}"
            claim = self.claim(key)
            if (claim is None and step.extended is None) or (
                claim is not None and _is_reserved(claim, step.consumer["uid"])
            ):
                return  # an event has confirmed it already: no other follows
            self.assumed.setdefault(key, {})[uid] = step
            self._assumed_from[key, uid] = claim.metadata.resource_version if claim is not None else ""
            self._recount.add(key)
            self.touched |= self.users.get(key, set())

    def forget(self, uid: str, step: PreBindStep) -> None:
        """Undo `assume`."""
        if isinstance(step, AllocateClaim):
            self._drop(f"{step.namespace}/{step.claim}", uid)

    def pod_removed(self, pod: core.Pod) -> None:
        """A pod was deleted: its claim for extended resources may never have been seen."""
        self.pod_ended(pod)
        key = claim_key(pod)
        if key in self.assumed:
            self._drop(key, pod.metadata.uid)

    def pod_ended(self, pod: core.Pod) -> None:
        """A pod has finished or was deleted: its claims are released."""
        for _, name in claim_names(pod):
            key = f"{pod.metadata.namespace}/{name}"
            if pod.metadata.uid in self.assumed.get(key, {}):
                self._ended.add(pod.metadata.uid)
                self._release(key)

    def _release(self, key: str) -> None:
        """Forget the assumed writes for ended pods whose claim has been allocated and released since, if no watch has
        returned the allocation: an allocated claim has the finalizer before, and loses it last."""
        claim = self.claim(key)
        if claim is None or claim.status.allocation is not None or dra.FINALIZER in (claim.metadata.finalizers or ()):
            return
        version = claim.metadata.resource_version
        for uid in self._ended.intersection(self.assumed.get(key, {})):
            if self._assumed_from[key, uid] != version:
                self._drop(key, uid)

    def _drop(self, key: str, uid: str) -> None:
        self._recount.add(key)
        self.touched |= self.users.get(key, set())
        steps = self.assumed.get(key)
        if steps is not None:
            if steps.pop(uid, None) is not None:
                del self._assumed_from[key, uid]
            if not steps:
                del self.assumed[key]
        if uid in self._ended and not any(uid in others for others in self.assumed.values()):
            self._ended.discard(uid)


def _is_reserved(claim: dra.ResourceClaim, uid: str) -> bool:
    return any(consumer.uid == uid for consumer in claim.status.reserved_for or ())
