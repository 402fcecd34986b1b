"""The annotations that announce and assign vGPUs. Volcano: vgpu/utils.go; HAMi's device plugin writes the former and
reads the latter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MIG_MODE = "mig"
HAMI_CORE = "hami-core"
TYPE = "NVIDIA"
"""The type of every assigned device."""


class Announced(NamedTuple):
    """One card in the annotation of a node. `position`: its index in the list; `number`: how many pods may share it;
    `memory` in MiB."""

    position: int
    uuid: str
    number: int
    memory: int
    type: str
    healthy: bool
    mode: str


class Assigned(NamedTuple):
    """One device of a container. `device`: `uuid`, or `uuid[group-position]` for a MIG instance."""

    device: str
    memory: int
    cores: int


def read_cards(text: str) -> list[Announced] | None:
    """The cards that a node announces; None if the text is invalid. Empty records count in the position."""
    if ":" not in text:
        return None
    found = []
    for index, record in enumerate(text.split(":")):
        if "," not in record:
            continue
        fields = record.split(",")
        if len(fields) < 6 or not fields[1].isdecimal() or not fields[2].isdecimal():
            return None
        uuid, number, memory, type_, health, mode = fields[:6]
        found.append(Announced(index, uuid, int(number), int(memory), type_, health.lower() == "true", mode))
    return found


def write_assigned(containers: Iterable[Iterable[Assigned]]) -> str:
    """The assigned devices of a pod's containers; those without devices are left out."""
    return ";".join("".join(f"{d.device},{TYPE},{d.memory},{d.cores}:" for d in devices) for devices in containers)


def read_assigned(text: str) -> list[Assigned]:
    """The assigned devices of a pod; invalid records are left out."""
    return [device for container in text.split(";") for device in _devices(container)]


def _devices(text: str) -> Iterator[Assigned]:
    for record in text.split(":"):
        fields = record.split(",")
        if len(fields) >= 4 and fields[2].isdecimal() and fields[3].isdecimal():
            yield Assigned(fields[0], int(fields[2]), int(fields[3]))
