"""Consumable capacity: what a request consumes of a device that several claims may share."""

from __future__ import annotations

from fractions import Fraction

from volcano_py.api import dra, quantity
from volcano_py.scheduler.model.claims.device_pools import Device


def consumption(device: Device, request: dra.ExactDeviceRequest) -> dict[str, Fraction] | None:
    """What a request consumes of each capacity of a shared device; None if the device does not offer it."""
    requested = (request.capacity.requests if request.capacity is not None else None) or {}
    offered = device.spec.capacity or {}
    if not set(requested) <= set(offered):
        return None
    found: dict[str, Fraction] = {}
    for dimension, capacity in offered.items():
        amount = _granted(capacity, requested.get(dimension))
        if amount is None:
            return None
        found[dimension] = amount
    return found


def _granted(capacity: dra.DeviceCapacity, requested: quantity.Quantity | None) -> Fraction | None:
    """What a request gets of a capacity: rounded up to what its policy permits; None if that is too much."""
    whole, policy = quantity.parse(capacity.value), capacity.request_policy
    if policy is None:
        amount = whole if requested is None else quantity.parse(requested)
        return amount if amount <= whole else None
    if requested is None:
        return whole if policy.default is None else quantity.parse(policy.default)
    amount = quantity.parse(requested)
    if policy.valid_values:
        return min((v for v in map(quantity.parse, policy.valid_values) if v >= amount), default=None)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        low = quantity.parse(policy.valid_range.min)
        amount = max(amount, low)
        if policy.valid_range.step is not None:
            step = quantity.parse(policy.valid_range.step)
            steps = -(-(amount - low) // step) if step > 0 else 0
            amount = low + steps * step if step > 0 else amount
        if policy.valid_range.max is not None and amount > quantity.parse(policy.valid_range.max):
            return None
    return amount if amount <= whole else None
