"""GPUs that are shared by memory, or assigned as a whole. Volcano: devices/nvidia/gpushare.

A node announces them as the resources `volcano.sh/gpu-memory` and `volcano.sh/gpu-number`; the annotation
`volcano.sh/gpu-index` of a pod contains its cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from volcano_py.api import names, quantity
from volcano_py.api.core import Container, Node, Pod
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.device_type import Fit, Taken

_MOST_CARDS = 1024
"""The largest number of cards on one node; an announcement of more is ignored."""


class GpuShareDemand(NamedTuple):
    """Memory on one card, or whole cards."""

    memory: int = 0
    number: int = 0


class GpuShare:
    """`by_number`: whole cards are assigned, else memory. `exact`: see the deviation exact-devices."""

    name = "GpuShare"
    lock = "gpu"
    scores = False
    moved: frozenset[str] = frozenset()

    def __init__(self, by_number: bool, exact: bool) -> None:
        self.by_number = by_number
        self.exact = exact
        what = "GpuNumber no enough gpu number" if by_number else "GpuShare no enough gpu memory"
        self.reasons: Sequence[Reason] = (Reason(what),)

    def demand(self, pod: Pod) -> GpuShareDemand | None:
        if self.by_number:
            number = amount_of(pod, names.GPU_NUMBER)
            return GpuShareDemand(number=number) if number > 0 else None
        memory = amount_of(pod, names.GPU_MEMORY)
        return GpuShareDemand(memory=memory) if memory > 0 else None

    def locks(self, demand: GpuShareDemand) -> bool:
        return demand.memory > 0

    def of_pod(self, demand: GpuShareDemand, task: Task) -> GpuShareDemand:
        return demand

    def is_shared(self, demand: GpuShareDemand) -> bool:
        return True

    def times(self, now: float) -> dict[str, str]:
        return {names.PREDICATE_TIME: str(int(now * 1_000_000_000))}

    def cards(self, node: Node) -> GpuCards | None:
        have = node.status.capacity or {}
        if names.GPU_MEMORY not in have or names.GPU_NUMBER not in have:
            return None
        number = quantity.value(have[names.GPU_NUMBER])
        if not 0 < number <= _MOST_CARDS:
            return None
        memory = max(0, quantity.value(have[names.GPU_MEMORY])) // number
        broken = set(_ids((node.metadata.annotations or {}).get(names.GPU_UNHEALTHY_IDS, "")))
        return GpuCards(self, memory, {i: {} for i in range(number) if i not in broken})


class GpuCards:
    """The cards of one node by number, each with its pods and the memory that they use."""

    __slots__ = ("_free", "_memory", "_of", "_pods")

    def __init__(self, of: GpuShare, memory: int, pods: dict[int, dict[str, int]]) -> None:
        self._of = of
        self._memory = memory
        self._pods = pods
        self._free = {card: memory - sum(pods[card].values()) for card in sorted(pods)}
        """What its pods do not use of each card, in the order of their numbers; negative if they use too much."""

    def clone(self) -> GpuCards:
        return GpuCards(self._of, self._memory, {card: dict(pods) for card, pods in self._pods.items()})

    def idle_memory(self) -> dict[int, int]:
        """The idle memory of each card."""
        return {card: max(0, free) for card, free in self._free.items()}

    def state(self) -> tuple[int, ...]:
        if self._of.by_number:
            return (sum(not pods for pods in self._pods.values()),)
        return (max(0, *self._free.values()) if self._free else -1,)

    def fit(self, demand: GpuShareDemand) -> Fit:
        return Fit(0 if self._choose(demand) else 1)

    def _choose(self, demand: GpuShareDemand) -> list[int]:
        """The cards with the lowest numbers that fit the demand; empty if there are too few."""
        if self._of.by_number:
            empty = [card for card in sorted(self._pods) if not self._pods[card]]
            return empty[: demand.number] if len(empty) >= demand.number else []
        for card, free in self._free.items():
            if max(0, free) >= demand.memory:
                return [card]
        return []

    def take(self, demand: GpuShareDemand, task: Task) -> Taken:
        chosen = self._choose(demand)
        if not chosen:
            return Taken({}, self._of.reasons[0].text)
        for card in chosen:
            self._put(card, task.key, demand.memory)
        return Taken({names.GPU_INDEX: ",".join(map(str, chosen))})

    def count(self, task: Task) -> None:
        demand = self._of.demand(task.pod) or GpuShareDemand()
        for card in card_numbers(task):
            if card in self._pods:
                self._put(card, task.key, demand.memory)

    def uncount(self, task: Task) -> None:
        for card in card_numbers(task):
            if card in self._pods:
                self._remove(card, task.key)

    def release(self, task: Task) -> None:
        for card in self._pods:
            self._remove(card, task.key)

    def _put(self, card: int, pod: str, memory: int) -> None:
        pods = self._pods[card]
        self._free[card] += pods.get(pod, 0) - memory
        pods[pod] = memory

    def _remove(self, card: int, pod: str) -> None:
        self._free[card] += self._pods[card].pop(pod, 0)


def amount_of(pod: Pod, resource: str) -> int:
    """The sum of the containers' limits, or the largest limit of the init containers if that is more."""
    regular = sum(_limits(pod.spec.containers, resource))
    return max(regular, *_limits(pod.spec.init_containers, resource), 0)


def _limits(containers: list[Container] | None, resource: str) -> Iterator[int]:
    for c in containers or ():
        limits = c.resources.limits
        if limits and resource in limits:
            yield quantity.value(limits[resource])


def card_numbers(task: Task) -> list[int]:
    """The cards in a pod's annotation."""
    return _ids(task.annotations.get(names.GPU_INDEX, ""))


def _ids(text: str) -> list[int]:
    """Numbers, separated by commas; other text is left out."""
    return [int(part) for part in text.split(",") if part.strip().isdecimal()]
