"""GPUs that are shared by memory, or assigned as a whole. Volcano: devices/nvidia/gpushare."""

from __future__ import annotations

from typing import Any

from tests.reference.task import Task
from volcano_py.api.quantity import value

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
INDEX = "volcano.sh/gpu-index"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"


def demand(pod: dict[str, Any], resource: str) -> int:
    """The sum of the containers' limits, or the largest limit of an init container."""
    spec = pod["spec"]
    regular = sum(_limit(c, resource) for c in spec.get("containers") or [])
    return max([regular, *(_limit(c, resource) for c in spec.get("initContainers") or [])])


def _limit(container: dict[str, Any], resource: str) -> int:
    return value(((container.get("resources") or {}).get("limits") or {}).get(resource, 0))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


class GpuShareNode:
    """The cards of one node: the pods that hold each."""

    def __init__(self, manifest: dict[str, Any], by_number: bool) -> None:
        capacity = (manifest.get("status") or {}).get("capacity") or {}
        count = value(capacity.get(NUMBER, 0))
        self.by_number = by_number
        self.kind = "number" if by_number else "memory"
        self.exists = count > 0 and MEMORY in capacity
        self.memory = value(capacity.get(MEMORY, 0)) // count if self.exists else 0
        broken = _numbers((manifest["metadata"].get("annotations") or {}).get(UNHEALTHY, ""))
        self.pods: dict[int, dict[str, int]] = {card: {} for card in range(count) if card not in broken}
        """By card and pod: the pod's demand for memory."""

    def requests(self, task: Task) -> bool:
        return demand(task.pod, NUMBER if self.by_number else MEMORY) > 0

    def choose(self, task: Task) -> list[int] | None:
        """The cards for a pod; None: there are too few."""
        if self.by_number:
            count = demand(task.pod, NUMBER)
            empty = [card for card, pods in self.pods.items() if not pods]
            return empty[:count] if len(empty) >= count else None
        wanted = demand(task.pod, MEMORY)
        for card, pods in self.pods.items():
            if max(self.memory - sum(pods.values()), 0) >= wanted:
                return [card]
        return None

    def rejection(self, task: Task) -> str:
        if self.choose(task) is not None:
            return ""
        return "GpuNumber no enough gpu number" if self.by_number else "GpuShare no enough gpu memory"

    def score(self, task: Task) -> float:
        return 0.0

    def allocate(self, task: Task) -> dict[str, str] | None:
        """The pod's annotations; None: the cards do not suffice."""
        cards = self.choose(task)
        if cards is None:
            return None
        for card in cards:
            self.pods[card][task.key] = demand(task.pod, MEMORY)
        return {INDEX: ",".join(map(str, cards))}

    def release(self, task: Task) -> None:
        for pods in self.pods.values():
            pods.pop(task.key, None)

    def save(self) -> dict[int, dict[str, int]]:
        return {card: dict(pods) for card, pods in self.pods.items()}

    def restore(self, saved: Any) -> None:
        self.pods = saved

    def add(self, task: Task) -> None:
        """Count a pod with an annotation. Volcano: AddResource."""
        for card in _numbers((task.pod["metadata"].get("annotations") or {}).get(INDEX, "")):
            if card in self.pods:
                self.pods[card][task.key] = demand(task.pod, MEMORY)

    def sub(self, task: Task) -> None:
        for card in _numbers((task.pod["metadata"].get("annotations") or {}).get(INDEX, "")):
            if card in self.pods:
                self.pods[card].pop(task.key, None)
