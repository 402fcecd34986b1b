"""Amounts of devices by device class: how many, and how much of each capacity. Volcano: DRAResource.

Claims with `allocationMode: All` or alternatives have no fixed amount and do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from volcano_py.api import dra, quantity

PREFIX = "deviceclass/"
_MAX = 2**63 - 1


@dataclass(slots=True)
class DeviceAmount:
    """The amount of one device class. Counts saturate at 64 bits."""

    count: int = 0
    capacity: dict[str, Fraction] = field(default_factory=dict)


DeviceAmounts = dict[str, DeviceAmount]


def saturated(number: int) -> int:
    """The number, limited to 64 bits."""
    return max(-_MAX - 1, min(_MAX, number))


def requested(claim: dra.ResourceClaim, with_capacity: bool) -> DeviceAmounts:
    """What a claim requests. `with_capacity`: including the devices' capacity."""
    found: DeviceAmounts = {}
    for request in claim.spec.devices.requests or ():
        exact = request.exactly
        if exact is None or exact.allocation_mode == "All":
            continue
        count = exact.count or 1
        wanted = (exact.capacity.requests if exact.capacity is not None and with_capacity else None) or {}
        capacity = {name: quantity.parse(amount) * count for name, amount in wanted.items()}
        add(found, {exact.device_class_name: DeviceAmount(count, capacity)})
    return found


def add(to: DeviceAmounts, other: Mapping[str, DeviceAmount], times: int = 1) -> None:
    """Add amounts, multiplied by `times`; −1 subtracts. Entries that become zero are removed."""
    for name, amount in other.items():
        mine = to.setdefault(name, DeviceAmount())
        mine.count = saturated(mine.count + saturated(amount.count * times))
        for dimension, much in amount.capacity.items():
            mine.capacity[dimension] = mine.capacity.get(dimension, Fraction()) + much * times
        mine.capacity = {dimension: much for dimension, much in mine.capacity.items() if much}
        if not mine.count and not mine.capacity:
            del to[name]


def parse_amounts(amounts: Mapping[str, quantity.Quantity] | None) -> DeviceAmounts:
    """The device classes among the resources of a queue: `deviceclass/<class>` is a number of devices,
    `<dimension>.deviceclass/<class>` an amount of their capacity."""
    found: DeviceAmounts = {}
    for key, amount in (amounts or {}).items():
        before, separator, name = key.partition(PREFIX)
        if not separator or not name:
            continue
        mine = found.setdefault(name, DeviceAmount())
        if before.endswith("."):
            mine.capacity[before[:-1]] = quantity.parse(amount)
        elif not before:
            mine.count = quantity.value(amount)
    return found


def as_quantities(amounts: DeviceAmounts) -> dict[str, str]:
    """The amounts as resources of a queue."""
    found: dict[str, str] = {}
    for name, amount in sorted(amounts.items()):
        found[PREFIX + name] = str(amount.count)
        for dimension, much in sorted(amount.capacity.items()):
            found[f"{dimension}.{PREFIX}{name}"] = quantity.format_amount(much, "BinarySI")
    return found
