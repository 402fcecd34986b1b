"""The device plugins of a node: they assign a pod the devices in its annotations, and fail a pod whose devices are in
use. Kubernetes: the kubelet's device manager.

The annotations are those of the scheduler's plugin deviceshare; the cards are those in the Node's annotations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from volcano_py.sandbox import npu

Object = dict[str, Any]

ASSIGNED, REGISTERED = "volcano.sh/vgpu-ids-new", "volcano.sh/node-vgpu-register"
CARD_INDEX, CARD_MEMORY, CARD_NUMBER = "volcano.sh/gpu-index", "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
_LOCKS = {ASSIGNED: "hamivgpu", CARD_INDEX: "gpu"}
"""The lock annotation of a node, by the annotation of the assigned devices."""
_CORES = 100


class _Use(NamedTuple):
    """One container's use of a device: MiB or units, cores."""

    device: str
    memory: int
    cores: int


def has_devices(pod: Object) -> bool:
    """Whether a pod has assigned devices."""
    annotations = pod["metadata"].get("annotations") or {}
    return ASSIGNED in annotations or CARD_INDEX in annotations or npu.ASSIGNED in annotations


def conflict(pod: Object, node: Object, others: Iterable[Object]) -> str:
    """Why the devices of the pod are not available beside other pods of the node; "": they are."""
    here = [other for other in others if other["metadata"]["uid"] != pod["metadata"]["uid"]]
    return _vgpu_conflict(pod, node, here) or _card_conflict(pod, node, here) or npu.conflict(pod, node, here)


def unlock(pod: Object, node: Object) -> None:
    """Remove the locks of a node for the pod's devices."""
    annotations = node["metadata"].get("annotations") or {}
    wanted = pod["metadata"].get("annotations") or {}
    locks = [lock for assigned, lock in _LOCKS.items() if assigned in wanted and lock in annotations]
    for lock in locks:
        del annotations[lock]


def _vgpu_conflict(pod: Object, node: Object, others: list[Object]) -> str:
    mine = _uses(pod)
    cards = {}
    for record in ((node["metadata"].get("annotations") or {}).get(REGISTERED) or "").split(":"):
        fields = record.split(",")
        if len(fields) >= 6:
            cards[fields[0]] = (int(fields[1]), int(fields[2]))
    theirs = [use for other in others for use in _uses(other)]
    for use in mine:
        uuid = use.device.partition("[")[0]
        if uuid not in cards:
            return f"device {uuid} is not on the node"
        if "[" in use.device and any(other.device == use.device for other in theirs):
            return f"MIG instance {use.device} has another user"
        number, memory = cards[uuid]
        users = [other for other in (*mine, *theirs) if other.device.partition("[")[0] == uuid]
        if len(users) > number or sum(u.memory for u in users) > memory or sum(u.cores for u in users) > _CORES:
            return f"device {uuid} is assigned more than once"
    return ""


def _uses(pod: Object) -> list[_Use]:
    text = (pod["metadata"].get("annotations") or {}).get(ASSIGNED) or ""
    records = [record.split(",") for part in text.split(";") for record in part.split(":") if "," in record]
    return [_Use(fields[0], int(fields[2]), int(fields[3])) for fields in records if len(fields) >= 4]


def _card_conflict(pod: Object, node: Object, others: list[Object]) -> str:
    capacity = (node.get("status") or {}).get("capacity") or {}
    number = int(capacity.get(CARD_NUMBER, 0))
    memory = int(capacity.get(CARD_MEMORY, 0)) // number if number else 0
    for card in _cards(pod):
        users = [p for p in (pod, *others) if card in _cards(p)]
        if card >= number:
            return f"card {card} is not on the node"
        if len(users) > 1 and any(_limit(p, CARD_NUMBER) for p in users):
            return f"card {card} is assigned as a whole and has another user"
        if sum(_limit(p, CARD_MEMORY) for p in users) > memory:
            return f"the memory of card {card} is assigned more than once"
    return ""


def _cards(pod: Object) -> list[int]:
    text = (pod["metadata"].get("annotations") or {}).get(CARD_INDEX) or ""
    return [int(part) for part in text.split(",") if part.isdecimal()]


def _limit(pod: Object, resource: str) -> int:
    containers = pod["spec"].get("containers") or []
    return sum(int(((c.get("resources") or {}).get("limits") or {}).get(resource, 0)) for c in containers)
