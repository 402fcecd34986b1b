"""GPUs that HAMi shares by memory and cores, or divides into MIG instances. Volcano: devices/nvidia/vgpu.

A node announces its cards in the annotation `volcano.sh/node-vgpu-register`; the annotation `volcano.sh/vgpu-ids-new`
of a pod contains its devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from volcano_py.api import names, quantity
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.device_config import VgpuConfig
from volcano_py.scheduler.plugins.deviceshare.device_type import Fit, Taken
from volcano_py.scheduler.plugins.deviceshare.mig import Geometry, Slot, choose, instance_at, read_id
from volcano_py.scheduler.plugins.deviceshare.vgpu_annotations import (
    HAMI_CORE,
    MIG_MODE,
    TYPE,
    Announced,
    Assigned,
    read_assigned,
    read_cards,
    write_assigned,
)
from volcano_py.scheduler.plugins.deviceshare.vgpu_demand import VgpuDemand, VgpuRequest, demand_of, group_key

BINPACK, SPREAD = "binpack", "spread"
_CORES = 100
"""The cores of a card."""


class Vgpu:
    """`policy`: the order in which cards are tried, and the score of nodes. `rules`: labels of pods that do not share a
    card with each other. `exact`, `healthy`: see the deviations exact-devices and healthy-devices."""

    name = "hamivgpu"
    lock = "hamivgpu"
    scores = True
    moved: frozenset[str] = frozenset()
    reasons: Sequence[Reason] = (
        Reason("hami-vgpuDeviceSharing error: not enough gpu fitted on this node"),
        Reason("hami-vgpuDeviceSharing error: the node has fewer cards than a container requests"),
        Reason("hami-vgpuDeviceSharing error: no GPU matches the UUID constraints"),
        Reason("hami-vgpuDeviceSharing error: the node's mode is not the one that the pod requests"),
    )

    def __init__(
        self,
        config: VgpuConfig,
        policy: str,
        rules: Sequence[dict[str, str]] = (),
        *,
        exact: bool = True,
        healthy: bool = True,
    ) -> None:
        self.config = config
        self.policy = policy
        self.rules = rules
        self.exact = exact
        self.healthy = healthy

    def demand(self, pod: Pod) -> VgpuDemand | None:
        return demand_of(pod, self.config)

    def locks(self, demand: VgpuDemand) -> bool:
        return True

    def of_pod(self, demand: VgpuDemand, task: Task) -> VgpuDemand:
        return demand._replace(rules=self.rules_of(task.pod)) if self.rules else demand

    def is_shared(self, demand: VgpuDemand) -> bool:
        constraints = demand.constraints
        return not (demand.group or demand.rules or constraints.uuids or constraints.not_uuids)

    def times(self, now: float) -> dict[str, str]:
        seconds = str(int(now))
        return {names.VGPU_TIME: seconds, names.VGPU_BIND_TIME: seconds}

    def rules_of(self, pod: Pod) -> tuple[int, ...]:
        """The positions of the exclusive rules whose labels the pod has."""
        labels = pod.metadata.labels or {}
        return tuple(i for i, rule in enumerate(self.rules) if rule and rule.items() <= labels.items())

    def cards(self, node: Node) -> VgpuCards | None:
        have = node.status.allocatable or {}
        resources = (self.config.count_name, self.config.memory_name, self.config.cores_name)
        if not all(name in have and quantity.value(have[name]) > 0 for name in resources):
            return None
        text = (node.metadata.annotations or {}).get(names.VGPU_NODE_REGISTER)
        announced = read_cards(text) if text else None
        if not announced:
            return None
        unique = {card.uuid: card for card in reversed(announced)} if self.exact else {}
        found, mode = [], HAMI_CORE
        for card in announced:
            geometries = self.config.geometries(card.type) if card.mode == MIG_MODE else ()
            mode = MIG_MODE if geometries else HAMI_CORE
            usable = card.healthy or not self.healthy
            if usable and (not unique or unique[card.uuid] is card):
                found.append(Card(card, geometries))
        return VgpuCards(self, node.metadata.name, mode, found)


class Holding(NamedTuple):
    """What a pod holds of a card: the number of its shares, MiB, cores; its group and rules."""

    number: int
    memory: int
    cores: int
    group: str
    rules: tuple[int, ...]


class Card:
    """One card and its used amounts."""

    __slots__ = ("announced", "cores", "geometries", "memory", "number", "pods", "slots")

    def __init__(self, announced: Announced, geometries: tuple[Geometry, ...]) -> None:
        self.announced = announced
        self.geometries = geometries
        self.number = 0
        self.memory = 0
        self.cores = 0
        self.pods: dict[str, Holding] = {}
        self.slots: dict[Slot, int] = {}
        """MIG instances in use, with the number of their users."""

    def clone(self) -> Card:
        other = Card(self.announced, self.geometries)
        other.number, other.memory, other.cores = self.number, self.memory, self.cores
        other.pods, other.slots = dict(self.pods), dict(self.slots)
        return other

    def state(self) -> tuple[object, ...]:
        a = self.announced
        used = tuple(sorted(self.slots)) if self.slots else ()
        return (a.number, a.memory, a.type, self.geometries, self.number, self.memory, self.cores, used)

    def use(self, number: int, memory: int, cores: int) -> None:
        self.number += number
        self.memory += memory
        self.cores += cores

    def hold(self, pod: str, holding: Holding) -> None:
        """Add to what a pod holds of the card."""
        old = self.pods.get(pod)
        if old is not None:
            sums = (old.number + holding.number, old.memory + holding.memory, old.cores + holding.cores)
            holding = Holding(*sums, holding.group, holding.rules)
        self.pods[pod] = holding

    def use_slot(self, slot: Slot, by: int) -> None:
        left = self.slots.get(slot, 0) + by
        if left > 0:
            self.slots[slot] = left
        else:
            self.slots.pop(slot, None)


def card_score(policy: str, card: Card) -> float:
    """binpack: the used part of the memory; spread: 100 for a card without users (a card that was just assigned has
    one)."""
    if policy == BINPACK:
        return 100 * card.memory / card.announced.memory if card.announced.memory else 0.0
    return 100.0 if policy == SPREAD and card.number == 0 else 0.0


class CardChoice(NamedTuple):
    """A card that a container gets. `memory`: the amount that is counted on the card; `assigned`: the pod's device."""

    card: Card
    memory: int
    cores: int
    slot: Slot | None
    assigned: Assigned


class VgpuCards:
    """The cards of one node."""

    __slots__ = ("_of", "_slots_of", "cards", "mode", "node")

    def __init__(self, of: Vgpu, node: str, mode: str, cards: list[Card]) -> None:
        self._of = of
        self.node = node
        self.mode = mode
        self.cards = cards
        self._slots_of: dict[str, list[tuple[Card, Slot]]] = {}

    def clone(self) -> VgpuCards:
        cards = [card.clone() for card in self.cards]
        other = VgpuCards(self._of, self.node, self.mode, cards)
        same = dict(zip(map(id, self.cards), cards, strict=True))
        other._slots_of = {pod: [(same[id(c)], slot) for c, slot in used] for pod, used in self._slots_of.items()}
        return other

    def state(self) -> tuple[object, ...]:
        return (self.mode, *(card.state() for card in self.cards))

    # ---- choosing ---------------------------------------------------------------------------------------

    def fit(self, demand: VgpuDemand) -> Fit:
        code, chosen, score = self.choose(demand)
        self._undo(c for container in chosen for c in container)
        return Fit(code, score)

    def choose(self, demand: VgpuDemand) -> tuple[int, list[list[CardChoice]], float]:
        """(code, the cards of each container, score). The chosen cards are counted as used, also on failure."""
        chosen: list[list[CardChoice]] = []
        score = 0.0
        if demand.mode and demand.mode != self.mode:
            return 4, chosen, score
        for request in demand.requests:
            if request.number > len(self.cards):
                return 2, chosen, score
            mine: list[CardChoice] = []
            chosen.append(mine)
            for card in self._in_order():
                if len(mine) == request.number:
                    break
                choice = self.try_card(card, request, demand, chosen)
                if choice is not None:
                    mine.append(choice)
                    card.use(1, choice.memory, choice.cores)
                    score += card_score(self._of.policy, card)
            if len(mine) < request.number:
                accepted = any(demand.constraints.accept_uuid(c.announced.uuid) for c in self.cards)
                return 1 if accepted else 3, chosen, score
        return 0, chosen, score

    def _in_order(self) -> list[Card]:
        if self._of.policy == BINPACK:
            return sorted(self.cards, key=lambda c: -c.memory)
        if self._of.policy == SPREAD:
            return sorted(self.cards, key=lambda c: c.number)
        return self.cards[::-1]

    def try_card(
        self, card: Card, request: VgpuRequest, demand: VgpuDemand, chosen: list[list[CardChoice]]
    ) -> CardChoice | None:
        """The card's part for a container, if it has enough capacity."""
        have, allowed = card.announced, demand.constraints
        memory, cores = request.memory_of(have.memory), request.cores
        if not allowed.accept_uuid(have.uuid) or card.number >= have.number:
            return None
        if demand.group and any(h.group == demand.group for h in card.pods.values()):
            return None
        if have.memory - card.memory < memory or card.cores + cores > _CORES:
            return None
        if (cores == _CORES and card.number > 0) or (card.cores == _CORES and cores == 0):
            return None
        if TYPE not in have.type or not allowed.accept_type(have.type):
            return None
        if demand.rules and self.mode == HAMI_CORE and self.is_excluded(card, demand.rules):
            return None
        if not card.geometries:
            return CardChoice(card, memory, cores, None, Assigned(have.uuid, memory, cores))
        factor = max(1, self._of.config.memory_factor)
        used = set(card.slots)
        if self._of.exact:
            used |= {c.slot for mine in chosen for c in mine if c.card is card and c.slot is not None}
        found = choose(card.geometries, used, memory * factor)
        if found is None:
            return None
        slot, instance = found
        assigned = Assigned(f"{have.uuid}[{slot}]", memory, cores)
        return CardChoice(card, instance.memory // factor, cores, slot, assigned)

    def is_excluded(self, card: Card, rules: tuple[int, ...]) -> bool:
        """Whether a pod with the same exclusive rule is on a card."""
        return any(not set(rules).isdisjoint(h.rules) for h in card.pods.values())

    def _undo(self, choices: Iterable[CardChoice]) -> None:
        for c in choices:
            c.card.use(-1, -c.memory, -c.cores)

    # ---- booking ----------------------------------------------------------------------------------------

    def take(self, demand: VgpuDemand, task: Task) -> Taken:
        code, chosen, _ = self.choose(demand)
        flat = [c for container in chosen for c in container]
        if code:
            self._undo(flat)
            return Taken({}, self._of.reasons[code - 1].text)
        group = group_key(task.pod)
        for c in flat:
            c.card.hold(task.key, Holding(1, c.memory, c.cores, group, demand.rules))
            if self._of.exact and c.slot is not None:
                self._use_slot(task, c.card, c.slot)
        text = write_assigned([c.assigned for c in container] for container in chosen)
        return Taken(
            {
                names.VGPU_NODE: self.node,
                names.VGPU_IDS_NEW: text,
                names.VGPU_DEVICES_TO_ALLOCATE: text,
                names.VGPU_BIND_PHASE: "allocating",
            }
        )

    def count(self, task: Task) -> None:
        group, rules = group_key(task.pod), self._of.rules_of(task.pod)
        seen = {id(card) for card in self.cards if task.key in card.pods}
        for card, slot, device in self._assigned(task):
            if id(card) in seen and (self._of.exact or not card.geometries):
                continue
            if not self._of.exact:
                seen.add(id(card))
            memory = self._memory(card, slot, device)
            card.use(1, memory, device.cores)
            card.hold(task.key, Holding(1, memory, device.cores, group, rules))
            if slot is not None and card.geometries:
                self._use_slot(task, card, slot)

    def uncount(self, task: Task) -> None:
        for card, slot, device in self._assigned(task):
            if card.pods.pop(task.key, None) is None:
                continue
            card.use(-1, -self._memory(card, slot, device), -device.cores)
            if slot is not None:
                card.use_slot(slot, -1)
        self._slots_of.pop(task.key, None)

    def release(self, task: Task) -> None:
        if not self._of.exact:
            self.uncount(task)
            return
        for card in self.cards:
            held = card.pods.pop(task.key, None)
            if held is not None:
                card.use(-held.number, -held.memory, -held.cores)
        for card, slot in self._slots_of.pop(task.key, ()):
            card.use_slot(slot, -1)

    def _assigned(self, task: Task) -> Iterator[tuple[Card, Slot | None, Assigned]]:
        by_uuid = {card.announced.uuid: card for card in self.cards}
        for device in read_assigned(task.annotations.get(names.VGPU_IDS_NEW, "")):
            uuid, slot = read_id(device.device)
            card = by_uuid.get(uuid)
            if card is not None:
                yield card, slot, device

    def _memory(self, card: Card, slot: Slot | None, device: Assigned) -> int:
        """The memory that an assigned device uses of the card: for a MIG instance the size of the instance."""
        instance = instance_at(card.geometries, slot) if slot is not None else None
        return device.memory if instance is None else instance.memory // max(1, self._of.config.memory_factor)

    def _use_slot(self, task: Task, card: Card, slot: Slot) -> None:
        card.use_slot(slot, +1)
        self._slots_of.setdefault(task.key, []).append((card, slot))
