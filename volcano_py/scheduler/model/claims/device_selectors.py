"""The devices that the CEL selectors of classes and requests accept. Kubernetes:
k8s.io/dynamic-resource-allocation/cel.

An expression is compiled once, and evaluated once for all devices with equal content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

from volcano_py.api import dra, quantity
from volcano_py.api.cel import environment
from volcano_py.scheduler.model.claims.device_pools import Device

_DOMAINS = re.compile(r"""\.(?:attributes|capacity)\s*\[\s*["']([^"']+)["']\s*\]""")
"""The domains that an expression looks up; one that a device lacks is an empty map."""


NO_CEL = "CEL selectors need the package cel-expr-python; install volcano-py[dra]"


@cache
def can_select() -> bool:
    """Whether the CEL library is installed; it is an extra, because it is large."""
    return find_spec("cel_expr_python") is not None


class SelectorError(ValueError):
    """An expression cannot be compiled, or fails for a device."""


class DeviceSelectors:
    """Results by expression and content of the device."""

    def __init__(self) -> None:
        self._programs: dict[str, Any] = {}
        self._answers: dict[tuple[str, bytes], bool | SelectorError] = {}

    def accept(self, selectors: Iterable[dra.DeviceSelector], device: Device) -> bool:
        """Whether all selectors accept a device. Raises SelectorError."""
        for selector in selectors:
            if selector.cel is not None and not self._accepts(selector.cel.expression, device):
                return False
        return True

    def _accepts(self, expression: str, device: Device) -> bool:
        key = (expression, device.content)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) > 100_000:
                self._answers.clear()
            try:
                answer = self._evaluate(expression, device)
            except SelectorError as e:
                answer = e
            self._answers[key] = answer
        if isinstance(answer, SelectorError):
            raise answer
        return answer

    def _evaluate(self, expression: str, device: Device) -> bool:
        from cel_expr_python import cel  # type: ignore[import-untyped]

        program = self._programs.get(expression)
        try:
            if program is None:
                program = self._programs[expression] = environment(["device"]).compile(expression)
            value = program.eval(data={"device": _shown(device, _DOMAINS.findall(expression))})
        except Exception as e:  # the library raises several kinds
            raise SelectorError(f"CEL expression {expression!r}: {str(e).splitlines()[0]}") from None
        if value.type() == cel.Type.ERROR:
            raise SelectorError(f"CEL expression {expression!r}: {value}")
        return value.plain_value() is True


def _shown(device: Device, domains: list[str]) -> dict[str, Any]:
    """A device as CEL variables: names without a domain belong to the driver's domain."""
    driver = device.id[0]
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in (*domains, driver)}
    capacity: dict[str, dict[str, Any]] = {domain: {} for domain in (*domains, driver)}
    for name, attribute in (device.spec.attributes or {}).items():
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = value_of(attribute)
    for name, amount in (device.spec.capacity or {}).items():
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = {"quantity": str(quantity.parse(amount.value))}
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": bool(device.spec.allow_multiple_allocations),
    }


def value_of(attribute: dra.DeviceAttribute) -> Any:
    """The value of an attribute, for CEL and for comparisons."""
    if attribute.version is not None:
        return {"semver": attribute.version}
    found = (attribute.int_, attribute.bool_, attribute.string)
    return next((value for value in found if value is not None), None)


def attribute_of(device: Device, name: str) -> dra.DeviceAttribute | None:
    """An attribute by its qualified name; names without a domain belong to the driver's domain."""
    attributes = device.spec.attributes or {}
    if name in attributes:
        return attributes[name]
    domain, _, short = name.rpartition("/")
    return attributes.get(short) if domain == device.id[0] else None
