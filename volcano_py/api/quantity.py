"""Kubernetes quantities: `500m`, `1.5Gi`, `2e3`, parsed exactly and formatted as the API server does.

Values are rounded to nano-units (away from zero, as in Kubernetes) and saturate at the largest signed 64-bit
number. Results are cached: a cluster contains few different quantities.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal

Quantity = str | int | float
"""A quantity in JSON."""

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX = 2**63 - 1
"""Larger amounts are reduced to this."""

_PATTERN = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([eE][+-]?\d+)|([numkMGTPE]))?", re.ASCII)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()} | {0: ""}
_BINARY_SUFFIX = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = 10**9


def _away_from_zero(amount: Fraction) -> int:
    """Rounded to whole units."""
    sign = -1 if amount > 0 else 1
    return sign * (sign * amount.numerator // amount.denominator)


@lru_cache(maxsize=65536)
def _parse(quantity: Quantity) -> tuple[Fraction, Format]:
    if isinstance(quantity, int):
        return Fraction(max(-MAX, min(MAX, quantity))), "DecimalSI"
    amount, form = parse_exactly(quantity if isinstance(quantity, str) else repr(quantity))
    return max(min(amount, Fraction(MAX)), Fraction(-MAX)), form


@lru_cache(maxsize=65536)
def parse_exactly(text: str) -> tuple[Fraction, Format]:
    """The amount of a text, which may exceed `MAX`, and its format. Raises ValueError for invalid texts."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid quantity {text!r}: use a number with an optional suffix, e.g. 500m, 1.5Gi")
    sign, number, binary, exponent, decimal = match.groups()
    amount = Fraction(number if not number.endswith(".") else number[:-1])
    form: Format = "DecimalSI"
    if binary:
        amount *= _BINARY[binary]
        form = "BinarySI"
    elif exponent:
        power = int(exponent[1:])
        if not -400 < power < 400:  # far outside what 64 bits can hold; do not compute 10**9999999
            power = 400 if power > 0 else -400
        amount *= Fraction(10) ** power
        form = "DecimalExponent"
    elif decimal:
        amount *= Fraction(10) ** _DECIMAL[decimal]
    if _NANO % amount.denominator:
        amount = Fraction(_away_from_zero(amount * _NANO), _NANO)
    return (-amount if sign == "-" else amount), form


def parse(quantity: Quantity) -> Fraction:
    """The amount in units, exact to the nano-unit. Raises ValueError for an invalid quantity."""
    return _parse(quantity)[0]


@lru_cache(maxsize=65536)
def milli_value(quantity: Quantity) -> int:
    """The amount in thousandths, rounded away from zero: `1` is 1000, `100u` is 1."""
    return max(-MAX, min(MAX, _away_from_zero(parse(quantity) * 1000)))


@lru_cache(maxsize=65536)
def value(quantity: Quantity) -> int:
    """The amount in whole units, rounded away from zero: `1500m` is 2."""
    return _away_from_zero(parse(quantity))


@lru_cache(maxsize=65536)
def canonical(quantity: Quantity) -> str:
    """The text that the API server stores: no fraction, the largest suffix that keeps the amount exact."""
    return format_amount(*_parse(quantity))


def quantity_format(quantity: Quantity) -> Format:
    """The family of suffixes of a quantity."""
    return _parse(quantity)[1]


def format_amount(amount: Fraction, form: Format) -> str:
    """`amount` in its canonical text; binary amounts below 1024 or with a fraction use decimal suffixes."""
    if form == "BinarySI" and abs(amount) >= 1024 and amount.denominator == 1:
        return format_binary(amount.numerator)
    nanos = _away_from_zero(amount * _NANO)
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    if form == "DecimalExponent":
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


def format_milli(milli: int) -> str:
    """`milli` thousandths as decimal text: 500 is `500m`, 2000 is `2`."""
    exponent = -3
    while milli and milli % 1000 == 0 and exponent < 18:
        milli //= 1000
        exponent += 3
    return f"{milli}{_DECIMAL_SUFFIX[exponent]}" if milli else "0"


def format_binary(amount: int) -> str:
    """`amount` whole units with binary suffixes: 1073741824 is `1Gi`, 1000 is `1k`, 1536 is `1536`."""
    if abs(amount) < 1024:
        return format_amount(Fraction(amount), "DecimalSI")
    index = 0
    while amount % 1024 == 0 and index < 6:
        amount //= 1024
        index += 1
    return f"{amount}{_BINARY_SUFFIX[index]}"
