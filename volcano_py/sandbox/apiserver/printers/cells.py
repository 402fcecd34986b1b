"""The parts of a Table's columns: names, types, and the texts of times and time spans.

Kubernetes: TableColumnDefinition and duration.HumanDuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.schema import codec

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; with a priority above 0 it is displayed only with -o wide."""

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
AGE = Column("Age", description="The time since the object was created.")


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
