"""Rules for resource names and quantities in requests, limits and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from volcano_py.api import quantity
from volcano_py.webhooks.identifiers import qualified_name

_INTEGER = frozenset(
    (
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_CONTAINER = frozenset(("cpu", "memory", "ephemeral-storage"))


def is_extended(name: str) -> bool:
    """An extended resource, such as `nvidia.com/gpu`: only whole numbers are valid."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_integer(name: str) -> bool:
    return name in _INTEGER or is_extended(name)


def amounts(resources: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """Resource name to amount; invalid quantities are left out (`check_amounts` reports them)."""
    found = {}
    for name, text in (resources or {}).items():
        try:
            found[name] = quantity.parse(text)
        except (ValueError, TypeError):
            continue
    return found


def check_amounts(path: str, resources: Mapping[str, Any] | None) -> Iterator[str]:
    """Each amount is a valid quantity, not negative, and whole for integer resources."""
    for name, text in (resources or {}).items():
        try:
            amount = quantity.parse(text)
        except (ValueError, TypeError):
            yield f"{path}.{name}: {text!r} is not a quantity"
            continue
        if amount < 0:
            yield f"{path}.{name}: Invalid value: {text!r}: must be greater than or equal to 0"
        if is_integer(name) and amount.denominator != 1:
            yield f"{path}.{name}: Invalid value: {text!r}: must be an integer"


def check_requirements(path: str, resources: Mapping[str, Any] | None) -> Iterator[str]:
    """Requests and limits of a container or pod: valid names and amounts, requests within limits."""
    resources = resources or {}
    for part in ("requests", "limits"):
        for name in resources.get(part) or {}:
            if problem := qualified_name(name):
                yield f"{path}.{part}[{name}]: {problem}"
            elif "/" not in name and name not in _CONTAINER and not name.startswith("hugepages-"):
                yield f"{path}.{part}[{name}]: must be a standard resource for containers"
        yield from check_amounts(f"{path}.{part}", resources.get(part))
    limits = amounts(resources.get("limits"))
    requests = amounts(resources.get("requests"))
    for name, amount in requests.items():
        if name in limits and amount > limits[name]:
            yield (
                f"{path}.requests: Invalid value: {resources['requests'][name]!r}: "
                f"must be less than or equal to {name} limit of {resources['limits'][name]}"
            )
        elif name in limits and is_extended(name) and amount != limits[name]:
            yield f"{path}.requests[{name}]: must be equal to the limit {resources['limits'][name]}"
        elif name not in limits and is_extended(name):
            yield f"{path}.limits: a limit must be set for the non overcommitable resource {name}"


def requests_of(resources: Mapping[str, Any] | None) -> dict[str, Any]:
    """The requests; as in the API server, the limit is the default of a missing request."""
    resources = resources or {}
    return (resources.get("limits") or {}) | (resources.get("requests") or {})
