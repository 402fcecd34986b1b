"""Schedules of CronJobs, as Volcano parses them: five fields, or a descriptor such as `@hourly` and `@every 1h30m`.

Minutes, hours, days of the month, months, days of the week (0 is Sunday; 7 is not a day). A field is a list of
`*`, `n`, `n-m`, each optionally with `/step`; months and days may be written as `jan` and `sun`. `?` means `*`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from volcano_py.api.duration import parse_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_LONGEST = (2**63 - 1) / 10**9
_NUMBER = re.compile(r"\+?[0-9]{1,9}", re.ASCII)


class _Field(NamedTuple):
    title: str
    least: int
    most: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("day of week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class Calendar(NamedTuple):
    """Minutes at which to start. If both days are restricted, one of them must match."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool


class Every(NamedTuple):
    """Starts at a fixed interval: whole seconds, at least one."""

    seconds: int


def parse_schedule(text: str) -> Calendar | Every:
    """The schedule. Raises ValueError with the invalid field and its valid values."""
    if text.startswith(_EVERY):
        return _every(text.removeprefix(_EVERY))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"{text!r} is none of {', '.join(_DESCRIPTORS)}, {_EVERY}<duration>")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"expected {len(_FIELDS)} fields, found {len(parts)}")
    minutes, hours, days, months, weekdays = (_field(field, part) for field, part in zip(_FIELDS, parts, strict=True))
    return Calendar(minutes[0], hours[0], days[0], months[0], weekdays[0], days[1], weekdays[1])


def _every(text: str) -> Every:
    try:
        seconds = parse_duration(text)
    except OverflowError:
        seconds = float("inf")
    if abs(seconds) > _LONGEST:
        raise ValueError(f"{text!r} exceeds Go's maximum duration of 292 years")
    return Every(max(int(seconds), 1))


def _field(field: _Field, text: str) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether it is unrestricted (`*` without a step)."""
    values = set[int]()
    anything = False
    for part in filter(None, text.split(",")):
        low, high, step, star = _range(field, part)
        if low < field.least or high > field.most or low > high or step < 1:
            bounds = f"{field.least} to {field.most}"
            raise ValueError(f"{part!r} in the field of the {field.title} is not a number or range from {bounds}")
        values.update(range(low, high + 1, step))
        anything |= star and step == 1
    return frozenset(values), anything


def _range(field: _Field, part: str) -> tuple[int, int, int, bool]:
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    star = first in ("*", "?")
    if star:
        low, high = field.least, field.most
    else:
        low = _number(field, first)
        high = _number(field, last) if dash else field.most if slash else low
    return low, high, _number(field, step, names=False) if slash else 1, star


def _number(field: _Field, text: str, *, names: bool = True) -> int:
    if names and text.lower() in field.names:
        return field.names[text.lower()]
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} in the field of the {field.title} is not a number")
    return int(text)
