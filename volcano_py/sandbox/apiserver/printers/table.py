"""Tables: the columns of `kubectl get`, computed by the server as in kube-apiserver."""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.printers import jsonpath
from volcano_py.sandbox.apiserver.printers.cells import NAME, Column, Printer, since
from volcano_py.sandbox.apiserver.printers.columns import PRINTERS
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.serializer.negotiate import Form

Object = dict[str, Any]


def _plain_cells(obj: Object) -> list[Any]:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


PLAIN = Printer((NAME, Column("Created At", "date", description="The time of creation.")), _plain_cells)


def printer_of(resource: Resource) -> Printer:
    """The columns of a resource."""
    if resource.custom is not None:
        printer: Printer = resource.custom.printer
        return printer
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
    """A Table of objects; `include`: what each row contains (None, Metadata or Object)."""
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
    return orjson.dumps(value).decode()
