"""The quota usage of a pod: `requests.cpu`, `limits.memory`, `pods`, `count/pods` and so on.

PodGroups reserve it before their pods exist. Follows Kubernetes' quota evaluator; as in Volcano, extended
resources also appear without the `requests.` prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from volcano_py.api import quantity
from volcano_py.api.quantity import Format

Amounts = dict[str, tuple[Fraction, Format]]
"""Resource name to amount and the family of suffixes in which it is written."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def usage(spec: Mapping[str, Any]) -> Amounts:
    """The quota usage of one pod with this (plain) spec. Raises ValueError for a malformed quantity."""
    used: Amounts = {"pods": (Fraction(1), "DecimalSI"), "count/pods": (Fraction(1), "DecimalSI")}
    for name, amount in _pod_total(spec, "requests").items():
        if name in _COMPUTE or "/" in name or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
    for name, limit in _pod_total(spec, "limits").items():
        if name in _COMPUTE:
            used[f"limits.{name}"] = limit
    return used


def total(parts: Iterable[tuple[Amounts, int]]) -> dict[str, str]:
    """The sum of amounts, each with a factor, as a resource list."""
    result: Amounts = {}
    for amounts, times in parts:
        if times > 0:
            _add(result, {name: (amount * times, form) for name, (amount, form) in amounts.items()})
    return {name: quantity.format_amount(amount, form) for name, (amount, form) in result.items()}


def same(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> bool:
    """Whether two resource lists contain the same amounts, in any notation."""
    return {name: quantity.parse(text) for name, text in (first or {}).items()} == {
        name: quantity.parse(text) for name, text in (second or {}).items()
    }


def _pod_total(spec: Mapping[str, Any], part: str) -> Amounts:
    """Requests or limits of a pod: the sum of its containers, or the largest init step if that is more."""
    result: Amounts = {}
    for container in spec.get("containers") or ():
        _add(result, _amounts(container, part))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            _add(result, own)
            _add(sidecars, own)
            step = dict(sidecars)
        else:
            step = dict(own)
            _add(step, sidecars)
        _raise_to(peak, step)
    _raise_to(result, peak)
    for name, whole in _amounts(spec, part).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            result[name] = whole  # resources of the pod as a whole replace the sum
    for name, extra in _parse(spec.get("overhead")).items():
        if part == "requests" or (name in result and result[name][0]):
            _add(result, {name: extra})
    return result


def _amounts(holder: Mapping[str, Any], part: str) -> Amounts:
    return _parse((holder.get("resources") or {}).get(part))


def _parse(resources: Mapping[str, Any] | None) -> Amounts:
    return {name: (quantity.parse(text), quantity.quantity_format(text)) for name, text in (resources or {}).items()}


def _add(to: Amounts, more: Amounts) -> None:
    for name, (amount, form) in more.items():
        before = to.get(name)
        to[name] = (before[0] + amount, before[1] if before[0] else form) if before else (amount, form)


def _raise_to(to: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in to or amount[0] > to[name][0]:
            to[name] = amount
