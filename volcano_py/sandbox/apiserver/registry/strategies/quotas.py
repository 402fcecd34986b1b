"""ResourceQuotas and LimitRanges: defaults and validation.

Kubernetes: pkg/registry/core/resourcequota and limitrange.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata, quantity
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, duplicate, field_forbidden, invalid_value
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]


def _default_quota(obj: Object) -> None:
    obj.setdefault("spec", {})


_QUOTA_NAMES = frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)


def _quota(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    for name, value in ((obj.get("spec") or {}).get("hard") or {}).items():
        at = f"spec.hard[{name}]"
        faults = metadata.qualified_errors(name)
        if faults:
            out.extend(invalid_value(at, name, fault) for fault in faults)
        elif "/" not in name and name not in _QUOTA_NAMES and not name.split(".")[-1].startswith("hugepages-"):
            out.append(invalid_value(at, name, "must be a standard resource type or fully qualified"))
            out.append(invalid_value(at, name, "must be a standard resource for quota"))
        if quantity.parse(value) < 0:
            out.append(invalid_value(at, value, "must be greater than or equal to 0"))
    return out


def _no_empty_limits(obj: Object, request: Request) -> None:
    if not obj["spec"].get("limits"):
        obj["spec"]["limits"] = None  # an empty list is not stored


def _default_limits(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        for name, value in (item.get("max") or {}).items():
            item.setdefault("default", {}).setdefault(name, value)
        for name, value in (item.get("default") or {}).items():
            item.setdefault("defaultRequest", {}).setdefault(name, value)
        for name, value in (item.get("min") or {}).items():
            item.setdefault("defaultRequest", {}).setdefault(name, value)


_OVER_DEFAULT = "default request value {} is greater than default limit value {}"
_ORDERED = (
    # the field of the error, the smaller one, the larger one, whose value is printed, text
    ("min", "min", "max", "min", "min value {} is greater than max value {}"),
    (
        "defaultRequest",
        "min",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "defaultRequest",
        "max",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    ("defaultRequest", "defaultRequest", "default", "defaultRequest", _OVER_DEFAULT),
    ("default", "min", "default", "min", "min value {} is greater than default value {}"),
    ("default", "default", "max", "max", "default value {} is greater than max value {}"),
)


def _limits(obj: Object, request: Request) -> list[Cause]:
    """The errors of a LimitRange."""
    out: list[Cause] = []
    kinds: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or []):
        at = f"spec.limits[{index}]"
        kind = limit.get("type") or ""
        if kind in kinds:
            out.append(duplicate(f"{at}.type", kind))
        kinds.add(kind)
        if kind == "Pod":
            for field in ("default", "defaultRequest"):
                if limit.get(field):
                    out.append(field_forbidden(f"{at}.{field}", "may not be specified when `type` is 'Pod'"))
        tables = {field: limit.get(field) or {} for field in ("min", "max", "default", "defaultRequest")}
        for key in sorted(set().union(*tables.values())):
            out.extend(_order_causes(at, key, tables))
        for key, value in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
            if quantity.parse(value) < 1:
                where = f"{at}.maxLimitRequestRatio[{key}]"
                out.append(invalid_value(where, value, f"ratio {value} is less than 1"))
    return out


def _order_causes(at: str, key: str, tables: dict[str, dict[str, str]]) -> Iterator[Cause]:
    for field, less, more, shown, text in _ORDERED:
        small, large = tables[less].get(key), tables[more].get(key)
        if small is not None and large is not None and quantity.parse(large) < quantity.parse(small):
            yield invalid_value(f"{at}.{field}[{key}]", tables[shown][key], text.format(small, large))


STRATEGIES = {
    "resourcequotas": Strategy(
        default=_default_quota,
        validate_create=_quota,
        validate_update=lambda new, old, request: _quota(new, request),
        has_status=True,
        returns_deleted=True,
        reset_fields=("status",),
    ),
    "limitranges": Strategy(
        default=_default_limits,
        prepare_create=_no_empty_limits,
        validate_create=_limits,
        validate_update=lambda new, old, request: _limits(new, request),
        create_on_update=True,
    ),
}
