"""The demand of a pod for vGPUs: its containers' amounts, and the cards it accepts. Volcano: vgpu/utils.go."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.api import names
from volcano_py.api.core import Container, Pod, ResourceList
from volcano_py.scheduler.plugins.deviceshare.device_config import VgpuConfig
from volcano_py.scheduler.plugins.deviceshare.device_type import limit

NO_PERCENTAGE = 101
"""The percentage of a request that sets none."""


class VgpuRequest(NamedTuple):
    """The request of one container for each of `number` cards. `memory` in MiB, or `percentage` of the card's; `cores`
    in hundredths of a card."""

    number: int
    memory: int
    percentage: int
    cores: int

    def memory_of(self, total: int) -> int:
        """The requested memory on a card with this total."""
        return self.memory if self.percentage == NO_PERCENTAGE else total * self.percentage // 100


class Constraints(NamedTuple):
    """The cards that a pod accepts: parts of their types, and UUIDs. Empty: all."""

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: frozenset[str] = frozenset()
    not_uuids: frozenset[str] = frozenset()

    def accept_uuid(self, uuid: str) -> bool:
        if not uuid:
            return not (self.uuids or self.not_uuids)
        return uuid not in self.not_uuids and (not self.uuids or uuid in self.uuids)

    def accept_type(self, type_: str) -> bool:
        found = type_.upper()
        if self.types and not any(part in found for part in self.types):
            return False
        return not any(part in found for part in self.not_types)


class VgpuDemand(NamedTuple):
    """The demand of a pod. `group`: its PodGroup, if its pods must be on different cards; `rules`: the exclusive rules
    that it matches, by position."""

    requests: tuple[VgpuRequest, ...]
    constraints: Constraints = Constraints()
    mode: str = ""
    group: str = ""
    rules: tuple[int, ...] = ()


def demand_of(pod: Pod, config: VgpuConfig) -> VgpuDemand | None:
    """The demand of a pod, without exclusive rules; None: it requests no vGPU."""
    requests = tuple(r for c in pod.spec.containers or () if (r := _request(c, config)) is not None)
    if not requests:
        return None
    annotations = pod.metadata.annotations or {}
    spread = annotations.get(names.VGPU_PODGROUP_POLICY) == "spread"
    return VgpuDemand(
        requests,
        constraints_of(annotations),
        annotations.get(names.VGPU_MODE, ""),
        group_key(pod) if spread else "",
    )


def constraints_of(annotations: dict[str, str]) -> Constraints:
    """The constraints in a pod's annotations."""
    return Constraints(
        _parts(annotations.get(names.GPU_USE_TYPE, "").upper()),
        _parts(annotations.get(names.GPU_NO_USE_TYPE, "").upper()),
        frozenset(_parts(annotations.get(names.VGPU_USE_UUID, ""))),
        frozenset(_parts(annotations.get(names.VGPU_NO_USE_UUID, ""))),
    )


def group_key(pod: Pod) -> str:
    """The pod's PodGroup, `namespace/name`; "" if it has none."""
    annotations = pod.metadata.annotations or {}
    name = annotations.get(names.GROUP_NAME) or annotations.get(names.VOLCANO_GROUP_NAME)
    return f"{pod.metadata.namespace}/{name}" if name else ""


def _request(container: Container, config: VgpuConfig) -> VgpuRequest | None:
    limits, requests = container.resources.limits, container.resources.requests

    def amount(name: str) -> int | None:
        return _either(limits, requests, name) if name else None

    number = limit(limits, config.count_name)
    if number is None:
        if limit(limits, config.memory_name) is None:
            return None
        number = config.default_number
    memory = amount(config.memory_name) or 0
    percentage = amount(config.percentage_name)
    if percentage is None:
        percentage = NO_PERCENTAGE if memory else 100
    return VgpuRequest(number, memory, percentage, amount(config.cores_name) or 0)


def _either(limits: ResourceList | None, requests: ResourceList | None, name: str) -> int | None:
    found = limit(limits, name)
    return limit(requests, name) if found is None else found


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
