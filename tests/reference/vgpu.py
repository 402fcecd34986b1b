"""GPUs that HAMi shares by memory and cores, or divides into MIG instances. Volcano: devices/nvidia/vgpu."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.reference.task import Task
from volcano_py.api.quantity import value

COUNT, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
REGISTER, IDS = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-ids-new"
REASON = "hami-vgpuDeviceSharing error: "


@dataclass
class Config:
    """The section of the device configuration for NVIDIA."""

    percentage: str = ""
    """The name of the resource for memory in percent."""
    factor: int = 1
    geometries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By model: group and instances of each geometry."""


def config_of(document: dict[str, Any]) -> Config:
    nvidia = document.get("nvidia") or {}
    known = nvidia.get("knownMigGeometries") or []
    geometries = {model: k["allowedGeometries"] for k in known for model in k["models"]}
    return Config(nvidia.get("resourceMemoryPercentageName", ""), nvidia.get("gpuMemoryFactor", 1), geometries)


@dataclass
class Request:
    count: int
    memory: int
    percentage: int | None
    cores: int

    def memory_of(self, total: int) -> int:
        return self.memory if self.percentage is None else total * self.percentage // 100


def requests_of(pod: dict[str, Any], config: Config) -> list[Request]:
    """The requests of the containers that have one."""
    found = []
    for container in pod["spec"].get("containers") or []:
        limits = (container.get("resources") or {}).get("limits") or {}
        either = ((container.get("resources") or {}).get("requests") or {}) | limits
        if COUNT not in limits and MEMORY not in limits:
            continue
        memory = value(either.get(MEMORY, 0))
        percentage = value(either[config.percentage]) if config.percentage in either else None
        if percentage is None and memory == 0:
            percentage = 100
        found.append(Request(value(limits.get(COUNT, 1)), memory, percentage, value(either.get(CORES, 0))))
    return found


class Card:
    def __init__(self, record: list[str], config: Config) -> None:
        self.uuid, count, memory, self.type, _, mode = record[:6]
        self.count, self.memory = int(count), int(memory)
        self.geometries: list[dict[str, Any]] = []
        if mode == "mig":
            self.geometries = next((g for model, g in config.geometries.items() if model in self.type), [])
        self.used_count = self.used_memory = self.used_cores = 0
        self.pods: dict[str, Task] = {}
        self.slots: list[tuple[str, int]] = []
        """The MIG instances in use, at the opening of the session: (group, position)."""

    def use(self, times: int, memory: int, cores: int) -> None:
        self.used_count += times
        self.used_memory += times * memory
        self.used_cores += times * cores

    def instances(self, geometry: dict[str, Any]) -> list[tuple[int, int]]:
        """(memory, position) of each instance, the smallest first."""
        found, position = [], 0
        for kind in geometry["geometries"]:
            found += [(kind["memory"], position + i) for i in range(kind["count"])]
            position += kind["count"]
        return sorted(found)

    def free_instance(self, memory: int) -> tuple[str, int, int] | None:
        """Group, position and memory of the smallest sufficient instance that is not in use."""
        groups = {group for group, _ in self.slots}
        for geometry in self.geometries:
            group = geometry["group"]
            if groups and group not in groups:
                continue
            for size, position in self.instances(geometry):
                if size >= memory and (group, position) not in self.slots:
                    return group, position, size
        return None


def _words(pod: dict[str, Any], annotation: str) -> list[str]:
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return [word.strip() for word in text.split(",") if word.strip()]


def group_of(pod: dict[str, Any]) -> str:
    return (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")


class VgpuNode:
    """The cards of one node. Nothing that is allocated in a session is freed in it; a pod without an annotation has
    nothing to free."""

    def __init__(self, manifest: dict[str, Any], config: Config, policy: str, rules: list[dict[str, str]]) -> None:
        self.config, self.policy, self.rules = config, policy, rules
        self.name = manifest["metadata"]["name"]
        self.cards: list[Card] = []
        offered = (manifest.get("status") or {}).get("allocatable") or {}
        text = (manifest["metadata"].get("annotations") or {}).get(REGISTER, "")
        records = [record.split(",") for record in text.split(":") if "," in record] if ":" in text else []
        is_offered = all(value(offered.get(name, 0)) > 0 for name in (COUNT, MEMORY, CORES))
        if is_offered and all(len(record) >= 6 for record in records):
            self.cards = [Card(record, config) for record in records]
        self.exists = bool(self.cards)
        self.mode = "mig" if self.cards and self.cards[-1].geometries else "hami-core"
        self.kind = self.mode

    def requests(self, task: Task) -> bool:
        return bool(requests_of(task.pod, self.config))

    def choose(self, task: Task) -> tuple[str, list[list[tuple[Card, int, int, str, int]]], float]:
        """The reason for a rejection; card, counted memory, cores, device and its memory by container; the score.

        The cards count as used afterwards.
        """
        pod, chosen, score = task.pod, [], 0.0
        annotations = pod["metadata"].get("annotations") or {}
        if annotations.get("volcano.sh/vgpu-mode", self.mode) != self.mode:
            return "the node's mode is not the one that the pod requests", chosen, 0.0
        for request in requests_of(pod, self.config):
            if request.count > len(self.cards):
                return "the node has fewer cards than a container requests", chosen, 0.0
            mine: list[tuple[Card, int, int, str, int]] = []
            chosen.append(mine)
            for card in self.in_order():
                if len(mine) == request.count:
                    break
                if not self.accepts(card, request, task):
                    continue
                memory = counted = request.memory_of(card.memory)
                device = card.uuid
                if card.geometries:
                    instance = card.free_instance(memory * self.config.factor)
                    if instance is None:
                        continue
                    device, counted = f"{card.uuid}[{instance[0]}-{instance[1]}]", instance[2] // self.config.factor
                card.use(1, counted, request.cores)
                mine.append((card, counted, request.cores, device, memory))
                if self.policy == "binpack" and card.memory:
                    score += 100 * card.used_memory / card.memory
                if self.policy == "spread" and card.used_count == 0:
                    score += 100
            if len(mine) < request.count:
                if not any(self.has_permitted_uuid(card, pod) for card in self.cards):
                    return "no GPU matches the UUID constraints", chosen, 0.0
                return "not enough gpu fitted on this node", chosen, 0.0
        return "", chosen, score

    def in_order(self) -> list[Card]:
        if self.policy == "binpack":
            return sorted(self.cards, key=lambda card: card.used_memory, reverse=True)
        if self.policy == "spread":
            return sorted(self.cards, key=lambda card: card.used_count)
        return list(reversed(self.cards))

    def has_permitted_uuid(self, card: Card, pod: dict[str, Any]) -> bool:
        permitted = _words(pod, "volcano.sh/vgpu-use-gpuuuid")
        rejected = _words(pod, "volcano.sh/vgpu-nouse-gpuuuid")
        return card.uuid not in rejected and (not permitted or card.uuid in permitted)

    def accepts(self, card: Card, request: Request, task: Task) -> bool:
        pod = task.pod
        if not self.has_permitted_uuid(card, pod) or card.used_count >= card.count:
            return False
        spread = (pod["metadata"].get("annotations") or {}).get("volcano.sh/vgpu-podgroup-policy") == "spread"
        if spread and group_of(pod):
            mine = (task.namespace, group_of(pod))
            if any((other.namespace, group_of(other.pod)) == mine for other in card.pods.values()):
                return False
        if card.memory - card.used_memory < request.memory_of(card.memory):
            return False
        if card.used_cores + request.cores > 100 or (request.cores == 100 and card.used_count > 0):
            return False
        if card.used_cores == 100 and request.cores == 0:
            return False
        kinds = [word.upper() for word in _words(pod, "nvidia.com/use-gputype")]
        rejected = [word.upper() for word in _words(pod, "nvidia.com/nouse-gputype")]
        upper = card.type.upper()
        if "NVIDIA" not in card.type or (kinds and not any(kind in upper for kind in kinds)):
            return False
        if any(kind in upper for kind in rejected):
            return False
        excluded = self.rules_of(task)
        return self.mode == "mig" or not any(excluded & self.rules_of(other) for other in card.pods.values())

    def rules_of(self, task: Task) -> set[int]:
        labels = (task.pod["metadata"].get("labels") or {}).items()
        return {i for i, rule in enumerate(self.rules) if rule and rule.items() <= labels}

    def rejection(self, task: Task) -> str:
        reason, chosen, _ = self.choose(task)
        self._undo(chosen)
        return REASON + reason if reason else ""

    def score(self, task: Task) -> float:
        _, chosen, score = self.choose(task)
        self._undo(chosen)
        return score

    def _undo(self, chosen: list[list[tuple[Card, int, int, str, int]]]) -> None:
        for mine in chosen:
            for card, memory, cores, _, _ in mine:
                card.use(-1, memory, cores)

    def allocate(self, task: Task) -> dict[str, str] | None:
        reason, chosen, _ = self.choose(task)
        if reason:
            self._undo(chosen)
            return None
        for mine in chosen:
            for card, *_ in mine:
                card.pods[task.key] = task
        parts = ["".join(f"{device},NVIDIA,{memory},{cores}:" for _, _, cores, device, memory in m) for m in chosen]
        return {IDS: ";".join(parts)}

    def release(self, task: Task) -> None:
        self.sub(task)

    def save(self) -> list[Any]:
        cards = self.cards
        return [(c.used_count, c.used_memory, c.used_cores, dict(c.pods), list(c.slots)) for c in cards]

    def restore(self, saved: Any) -> None:
        for card, of in zip(self.cards, saved, strict=True):
            card.used_count, card.used_memory, card.used_cores, card.pods, card.slots = of

    def add(self, task: Task) -> None:
        """Count a pod with an annotation; without MIG at most once for each card. Volcano: AddResource."""
        before = [card for card in self.cards if task.key in card.pods]
        for card, memory, cores, slot in self.assigned(task):
            if card in before and not card.geometries:
                continue
            before.append(card)
            card.use(1, memory, cores)
            card.pods[task.key] = task
            if slot is not None:
                card.slots.append(slot)

    def sub(self, task: Task) -> None:
        """Volcano: SubResource."""
        for card, memory, cores, slot in self.assigned(task):
            if card.pods.pop(task.key, None) is None:
                continue
            card.use(-1, memory, cores)
            if slot in card.slots:
                card.slots.remove(slot)

    def assigned(self, task: Task) -> list[tuple[Card, int, int, tuple[str, int] | None]]:
        """The devices in a pod's annotation: card, counted memory, cores, and the MIG instance."""
        found = []
        text = (task.pod["metadata"].get("annotations") or {}).get(IDS, "")
        for record in re.split("[:;]", text):
            parts = record.split(",")
            if len(parts) < 4:
                continue
            device, memory, cores = parts[0], int(parts[2]), int(parts[3])
            uuid, _, place = device.rstrip("]").partition("[")
            for card in self.cards:
                if card.uuid != uuid:
                    continue
                slot = None
                if place:
                    group, _, position = place.rpartition("-")
                    slot = (group, int(position))
                    for geometry in card.geometries:
                        sizes = {p: m for m, p in card.instances(geometry)}
                        if geometry["group"] == group and slot[1] in sizes:
                            memory = sizes[slot[1]] // self.config.factor
                found.append((card, memory, cores, slot))
        return found
