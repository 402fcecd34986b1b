"""Durations in Go's format: `90s`, `1h30m`, `2m0.1s`, `300ms`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError for an invalid Go duration; a bare number other than 0 is invalid."""
    body = text[1:] if text[:1] in "+-" else text
    sign = -1 if text[:1] == "-" else 1
    if body == "0":
        return 0.0
    total = Fraction(0)
    end = 0
    for part in _PART.finditer(body):
        if part.start() != end:
            break
        total += Fraction(part[1].rstrip(".")) * _UNITS[part[2]]
        end = part.end()
    if not body or end != len(body):
        raise ValueError(f"invalid duration {text!r}: use numbers with units, such as 90s or 1h30m")
    return float(total) * sign


def format_duration(seconds: float) -> str:
    """A duration in Go's format: 5400 is `1h30m0s`, 0.3 is `300ms`, 0 is `0s`."""
    nanos = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanos else ""
    if nanos == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if nanos < size * 1000:
            return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}"
