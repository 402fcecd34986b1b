"""Reasons: the meaning of a cause's code, its fields, and its text. The table of all codes is `explain.table`. Not in
Volcano.

A cause has a *meaning*: its code and the fields that are names. A report is repeated when the meaning changes, not when
only a number or an example does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from volcano_py.api import quantity
from volcano_py.scheduler.framework.cause import Cause, Value
from volcano_py.scheduler.model.resource import MAX, MAX_INT
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, PODS


class FieldKind(Enum):
    """The kind of a field."""

    NAME = "name"
    """The name of a queue, a role, a resource, …: part of the meaning."""
    EXAMPLE = "example"
    """A text that may change without a change of the meaning, such as the node that comes closest."""
    COUNT = "count"
    AMOUNT = "amount"
    """An amount of the resource in the field `resource`."""


class _Count(int):
    """A number in a sentence. `{pods:pod|pods}` is "1 pod" or "3 pods", `{pods:?has|have}` only "has" or "have"."""

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(int(self))
        one, _, more = spec.removeprefix("?").partition("|")
        word = one if self == 1 else more
        return word if spec.startswith("?") else f"{int(self)} {word}"


class _Named(str):
    """A field by its name, for the documentation: `{pods} pods`."""

    def __format__(self, spec: str) -> str:
        more = spec.partition("|")[2]
        return more if spec.startswith("?") else f"{self} {more}" if spec else str(self)


class _Mark(str):
    """The place of a field in a pattern, with the words that depend on it."""

    def __format__(self, spec: str) -> str:
        return str(self)


@dataclass(frozen=True)
class TableReason:
    """One code. `sentence`: a template over the fields. `remedy`: the usual remedy."""

    code: str
    area: str
    sentence: str
    fields: Mapping[str, FieldKind]
    remedy: str

    @property
    def template(self) -> str:
        """The sentence with the names of the fields."""
        return self.sentence.format(**{name: _Named(f"{{{name}}}") for name in self.fields})

    def because(self, **fields: Value) -> Cause:
        """A cause with this code."""
        return Cause(self.code, fields)


Meaning = tuple[Value, ...]


def meaning(reason: TableReason, cause: Cause) -> Meaning:
    """The parts whose change causes a new report."""
    return (cause.code, *(cause.fields[name] for name, kind in reason.fields.items() if kind is FieldKind.NAME))


def sentence(reason: TableReason, cause: Cause) -> str:
    """The cause in one sentence, with its numbers."""
    values = shown(reason, cause)
    return reason.sentence.format(**{name: _Count(v) if isinstance(v, int) else v for name, v in values.items()})


def pattern(reason: TableReason, cause: Cause) -> re.Pattern[str]:
    """A pattern for the sentences of all causes with the same meaning."""
    marks = {name: _Mark(f"\0{i}\0") for i, name in enumerate(reason.fields)}
    text = re.escape(reason.sentence.format(**marks))
    for name, kind in reason.fields.items():
        of_name = re.escape(str(cause.fields[name])) if kind is FieldKind.NAME else ".*"
        text = text.replace(re.escape(marks[name]), of_name)
    return re.compile(text, re.DOTALL)


def shown(reason: TableReason, cause: Cause) -> dict[str, str | int]:
    """The fields for display: amounts as quantities of the API."""
    resource = str(cause.fields.get("resource", ""))
    return {
        name: amount_text(resource, float(cause.fields[name]))
        if kind is FieldKind.AMOUNT
        else _plain(cause.fields[name])
        for name, kind in reason.fields.items()
    }


def _plain(value: Value) -> str | int:
    return int(value) if isinstance(value, float) else value


def amount_text(resource: str, amount: float) -> str:
    """An amount in the units of `model.resource` as a quantity; binary units with one decimal for memory."""
    if amount in (MAX, MAX_INT) or amount >= 2.0**62:
        return "unlimited"
    if resource == MEMORY:
        return _bytes(amount)
    if resource == PODS:
        return f"{amount:g}"
    if resource == CPU and amount % 1000:
        return f"{amount:.0f}m" if amount < 1000 else f"{amount / 1000:.3f}".rstrip("0")
    if resource.startswith("hugepages-") or resource == "ephemeral-storage":
        return _bytes(amount / 1000)
    return f"{amount / 1000:g}" if amount % 1 == 0 else quantity.format_milli(int(amount))


def _bytes(amount: float) -> str:
    for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if abs(amount) >= size:
            return f"{round(amount / size, 1):g}{unit}"
    return f"{amount:g}"
