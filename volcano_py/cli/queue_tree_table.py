"""`vcctl queue tree` as a table: one row per branch, with bars on the scale of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from volcano_py.cli.bars import measured
from volcano_py.cli.columns import Table, fitted
from volcano_py.cli.queue_tree import PHASES, Amounts, Branch, amounts, form

Manifest = dict[str, Any]
_LINES = ("├─ ", "└─ ", "│  ")
_ASCII = ("|- ", "`- ", "|  ")
_BLANK = "   "
_HEADER = ("Queue", "State", "Weight", "Resource", "", "Allocated", "Inqueue", "Deserved", "Guarantee", "Capability")
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_ZERO = Fraction(0)


def legend(blocks: bool) -> str:
    """The legend of the bars."""
    held, inqueue, mark = ("█", "▒", "┃") if blocks else ("#", "+", "|")
    return f"{held} allocated  {inqueue} inqueue  {mark} deserved (~ by weight, when all queues have demand)"


def tree_table(trees: list[Branch], resources: tuple[str, ...], total: Amounts, width: int, blocks: bool) -> Table:
    """One row per queue and resource. `width`: characters of a bar; `blocks`: whether to use block characters."""
    scale = {r: scale_of(trees, r, total) for r in resources}
    rows = []
    for b, first, further in walk(trees, blocks):
        for number, r in enumerate(resources):
            held, inqueue = b.allocated.get(r, _ZERO), b.inqueue.get(r, _ZERO)
            bar = measured(held, inqueue, deserved(b, r), scale[r], width, blocks)
            rows.append([*_about(b, first, further, number == 0), r, bar, *_cells(b, r), *_groups(b, number == 0)])
    header = (*_HEADER, *(f"{phase}Jobs" for phase in PHASES))
    return fitted(header, rows, 2, (*(f"{phase}Jobs" for phase in reversed(PHASES)), "Weight", "State", "Inqueue", ""))


def deserved(b: Branch, resource: str) -> Fraction | None:
    """The deserved amount of a queue: its own value, or its part by weight; None if it has neither."""
    return b.deserved.get(resource, b.by_weight.get(resource))


def walk(trees: list[Branch], blocks: bool) -> Iterator[tuple[Branch, str, str]]:
    """Every branch from the top, with the prefix of its name, and the prefix of its further rows."""
    return _walk(trees, _LINES if blocks else _ASCII)


def scale_of(trees: list[Branch], resource: str, total: Amounts) -> Fraction:
    """The amount of a full bar: the capacity of the cluster, or the largest amount of any queue."""
    return max([total.get(resource, _ZERO), *(_largest(b, resource) for b in trees)])


def _walk(
    branches: list[Branch], signs: tuple[str, str, str], before: str | None = None
) -> Iterator[tuple[Branch, str, str]]:
    for b in branches:
        last = b is branches[-1]
        first = "" if before is None else before + signs[1 if last else 0]
        below = "" if before is None else before + (_BLANK if last else signs[2])
        yield b, first, below + (signs[2] if b.children else "")
        yield from _walk(b.children, signs, below)


def _about(b: Branch, first: str, further: str, named: bool) -> list[object]:
    if not named:
        return [further.rstrip(), "", ""]
    spec, status = b.queue.get("spec") or {}, b.queue.get("status") or {}
    return [first + b.name, status.get("state", ""), spec.get("weight", 0)]


def _cells(b: Branch, r: str) -> list[str]:
    spec = b.queue.get("spec") or {}
    part = deserved(b, r)
    return [
        text(b.allocated.get(r, _ZERO), r),
        text(b.inqueue.get(r, _ZERO), r),
        "-" if part is None else text(part, r) if r in b.deserved else f"~{text(part, r)}",
        *(
            text(given[r], r) if r in given else "-"
            for given in (amounts((spec.get("guarantee") or {}).get("resource")), amounts(spec.get("capability")))
        ),
    ]


def _groups(b: Branch, named: bool) -> list[object]:
    return [b.groups[phase] if named else "" for phase in PHASES]


def text(amount: Fraction, resource: str) -> str:
    """An amount in a few characters: 1.5, 64Gi."""
    for suffix, unit in _UNITS if form(resource) == "BinarySI" else ():
        if amount >= unit:
            return f"{float(amount / unit):.4g}{suffix}"
    return f"{float(amount):.4g}"


def _largest(b: Branch, resource: str) -> Fraction:
    """The largest amount that a bar of this branch shows."""
    own = b.allocated.get(resource, _ZERO) + b.inqueue.get(resource, _ZERO)
    return max([own, b.deserved.get(resource, _ZERO), *(_largest(child, resource) for child in b.children)])
