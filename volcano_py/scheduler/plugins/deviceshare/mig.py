"""MIG: the instances of a GPU, and which of them a pod gets. Volcano: vgpu/mig."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple


class Instance(NamedTuple):
    """A kind of instance in a geometry. `memory` in MiB; `number`: how many instances of it the geometry has."""

    name: str
    memory: int
    number: int


class Geometry(NamedTuple):
    """One way to divide a card; `group` is its name."""

    group: str
    instances: tuple[Instance, ...]

    def positions(self) -> Iterator[tuple[int, Instance]]:
        """The instances with their positions on the card, those of the smallest memory first."""
        starts = []
        position = 0
        for instance in self.instances:
            starts.append((instance.memory, position, instance))
            position += instance.number
        for _, start, instance in sorted(starts, key=lambda s: s[0]):
            for i in range(instance.number):
                yield start + i, instance

    def at(self, position: int) -> Instance | None:
        """The instance at a position."""
        return next((i for p, i in self.positions() if p == position), None)


class Slot(NamedTuple):
    """One instance on a card, as the text `group-position`."""

    group: str
    position: int

    def __str__(self) -> str:
        return f"{self.group}-{self.position}"


def read_id(device: str) -> tuple[str, Slot | None]:
    """The card and the instance of an assigned device: `uuid` or `uuid[group-position]`."""
    uuid, bracket, rest = device.partition("[")
    group, dash, position = rest.removesuffix("]").rpartition("-")
    if not bracket or not dash or not position.isdecimal():
        return uuid, None
    return uuid, Slot(group, int(position))


def choose(geometries: Sequence[Geometry], used: Collection[Slot], memory: float) -> tuple[Slot, Instance] | None:
    """The smallest free instance with this memory: of the geometry in use, or else of the first geometry that has
    one."""
    in_use = {slot.group for slot in used}
    for geometry in geometries:
        if in_use and geometry.group not in in_use:
            continue
        for position, instance in geometry.positions():
            if instance.memory >= memory and Slot(geometry.group, position) not in used:
                return Slot(geometry.group, position), instance
    return None


def instance_at(geometries: Sequence[Geometry], slot: Slot) -> Instance | None:
    """The instance in a slot; None if no geometry has it."""
    return next((g.at(slot.position) for g in geometries if g.group == slot.group), None)
