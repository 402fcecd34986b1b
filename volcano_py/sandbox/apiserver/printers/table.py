"""Tables: the columns that `kubectl get` prints, made on the server as the real one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.printers import jsonpath
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.serializer.negotiate import Form

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; priority above 0 is shown with -o wide only."""

    name: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind and the cells of one object."""

    columns: tuple[Column, ...]
    cells: Callable[[Object], list[Any]]
    conditions: Callable[[Object], list[Object] | None] = lambda obj: None


NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", description="The time since the object was made.")


def human_duration(seconds: float) -> str:
    """A time span as Kubernetes prints it: 5s, 3m20s, 47h, 3d4h, 2y."""
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return f"{days // 365}y{days % 365}d" if days % 365 else f"{days // 365}y"
    return f"{days // 365}y"


def since(stamp: str | None) -> str:
    """How long ago a time was; `<unknown>` without one."""
    if not stamp:
        return "<unknown>"
    try:
        return human_duration((datetime.now(UTC) - codec.parse_time(stamp)).total_seconds())
    except codec.DecodeError:
        return "<invalid>"


def age(obj: Object) -> str:
    return since(obj["metadata"].get("creationTimestamp"))


def _plain_cells(obj: Object) -> list[Any]:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


PLAIN = Printer((NAME, Column("Created At", "date", description="The time of creation.")), _plain_cells)


def printer_of(resource: Resource) -> Printer:
    """The columns of a resource."""
    if resource.custom is not None:
        printer: Printer = resource.custom.printer
        return printer
    from volcano_py.sandbox.apiserver.printers.columns import PRINTERS

    return PRINTERS.get(resource.qualified, PLAIN)


def definitions(columns: tuple[Column, ...]) -> list[Object]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description or column.name,
            "priority": column.priority,
        }
        for column in columns
    ]


def columns_of(resource: Resource) -> list[Object]:
    return definitions(printer_of(resource).columns)


def table(
    form: Form, resource: Resource, objects: list[Object], meta: Object, include: str, columns: bool = True
) -> Object:
    """A Table of objects; `include` says what each row carries (None, Metadata or Object)."""
    printer = printer_of(resource)
    version = f"meta.k8s.io/{form.version}"
    if not meta and objects:
        meta = {"resourceVersion": objects[0]["metadata"].get("resourceVersion", "")}
    rows: list[Object] = []
    for obj in objects:
        row: Object = {"cells": printer.cells(obj)}
        conditions = printer.conditions(obj)
        if conditions:
            row["conditions"] = conditions
        if include == "None":
            row["object"] = None
        elif include == "Object":
            row["object"] = obj
        else:
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": version,
                "metadata": obj["metadata"],
            }
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": version,
        "metadata": meta,
        "columnDefinitions": definitions(printer.columns) if columns else None,
        "rows": rows,
    }


# --- custom resources ------------------------------------------------------------------------------------------------


def custom_printer(columns: list[Object]) -> Printer:
    """Columns from a CRD's additionalPrinterColumns."""
    if not columns:
        columns = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
        columns[0]["description"] = (
            "CreationTimestamp is a timestamp representing the server time when this object was created."
        )
    made = tuple(
        Column(
            column["name"],
            column["type"],
            column.get("priority", 0),
            column.get("format", ""),
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
        )
        for column in columns
    )
    paths = [(column["jsonPath"], column["type"]) for column in columns]

    def cells(obj: Object) -> list[Any]:
        return [obj["metadata"]["name"], *(_cell(path, kind, obj) for path, kind in paths)]

    return Printer((NAME, *made), cells)


def _cell(path: str, kind: str, obj: Object) -> Any:
    try:
        found = jsonpath.find(path, obj)
    except ValueError:
        return None
    if not found or found == [None]:
        return None
    value = found[0]
    if kind == "date":
        return since(value) if isinstance(value, str) else "<invalid>"
    if kind == "integer":
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return int(value)
        return None
    if kind == "number":
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import orjson

    return orjson.dumps(value).decode()
