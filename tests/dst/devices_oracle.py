"""What must hold of devices: at each write of a claim, at each bind, and of what still waits at the end. Plain objects,
and nothing of the product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Object = dict[str, Any]
Objects = dict[str, dict[str, Object]]
Device = tuple[str, str, str]
"""Driver, pool and name. A pool has the name of its node."""

CLAIMS, SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
KINDS = (CLAIMS, SLICES)
EXTENDED = "example.com/device"
"""The resource that devices provide: the scheduler creates a claim for a pod that requests it."""


def claims_of(pod: Object) -> list[str | None]:
    """The keys of the claims of a pod; None for one that does not exist yet."""
    space = pod["metadata"]["namespace"]
    made = {row["name"]: row for row in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    found: list[str | None] = []
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or made.get(entry["name"], {}).get("resourceClaimName")
        found.append(f"{space}/{name}" if name else None)
    return found


def extended(pod: Object) -> int:
    """How many devices a pod requests as a resource."""
    return sum(int((c["resources"].get("requests") or {}).get(EXTENDED, 0)) for c in pod["spec"]["containers"])


def extended_claim(pod: Object) -> str | None:
    """The key of the claim for these devices; None before the scheduler has created it."""
    name = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def allocated(claim: Object) -> list[Device]:
    """The devices of a claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    rows = (allocation.get("devices") or {}).get("results") or ()
    return [(row["driver"], row["pool"], row["device"]) for row in rows]


def wrong_claim(claim: Object, objects: Objects) -> Iterator[str]:
    """What is wrong with a claim that was written just now."""
    mine = set(allocated(claim))
    for key, other in objects[CLAIMS].items():
        if other["metadata"]["uid"] != claim["metadata"]["uid"] and (shared := mine.intersection(allocated(other))):
            device = "/".join(min(shared))
            yield f"device {device} is allocated to the claims {claim['metadata']['name']} and {key}"


def wrong_bind(pod: Object, node: str, objects: Objects) -> Iterator[str]:
    """What is wrong with the claims of a pod that was bound just now."""
    keys = claims_of(pod)
    if extended(pod):
        keys.append(extended_claim(pod))
        if keys[-1] is None:
            yield "has no claim for its devices"
    for key in keys:
        claim = objects[CLAIMS].get(key or "")
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            continue  # deleted by a user, a moment ago or while the bind was on its way
        pools = {pool for _, pool, _ in allocated(claim)}
        if pools != {node}:
            yield f"its claim {key} has devices of {', '.join(sorted(pools)) or 'no node'}"
        consumers = (claim.get("status") or {}).get("reservedFor") or ()
        if pod["metadata"]["uid"] not in {consumer["uid"] for consumer in consumers}:
            yield f"its claim {key} is not reserved for it"


class FreeDevices:
    """Devices in a search for pods that fit."""

    def __init__(self, objects: Objects) -> None:
        self._claims = objects[CLAIMS]
        taken = {device for claim in self._claims.values() for device in allocated(claim)}
        self._free: dict[str, int] = defaultdict(int)
        """By node."""
        for slice_ in objects[SLICES].values():
            pool = slice_["spec"]["pool"]["name"]
            for device in slice_["spec"].get("devices") or ():
                self._free[pool] += (slice_["spec"]["driver"], pool, device["name"]) not in taken
        self._chosen: dict[str, str] = {}
        """By claim: the node of the devices that it gets in this search."""

    @contextmanager
    def placed(self, pod: Object, node: str) -> Iterator[bool]:
        """Whether the claims of a pod can be allocated on a node; until the end of the block they are."""
        before = self._free[node], dict(self._chosen)
        try:
            yield self._takes(pod, node) and all(key is not None and self._use(key, node) for key in claims_of(pod))
        finally:
            self._free[node], self._chosen = before

    def _takes(self, pod: Object, node: str) -> bool:
        """Whether a node has the devices that a pod requests as a resource."""
        count = extended(pod)
        if count and extended_claim(pod) is not None:
            return False  # its claim may be allocated on a node already
        self._free[node] -= count
        return self._free[node] >= 0 or not count

    def _use(self, key: str, node: str) -> bool:
        claim = self._claims.get(key)
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return False
        if devices := allocated(claim):
            return all(pool == node for _, pool, _ in devices)
        if key in self._chosen:
            return self._chosen[key] == node
        self._chosen[key] = node
        self._free[node] -= sum(row["exactly"]["count"] for row in claim["spec"]["devices"]["requests"])
        return self._free[node] >= 0
