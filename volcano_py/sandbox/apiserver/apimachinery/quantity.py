"""Resource quantities as the API server writes them: parsing, the canonical text, comparison.

Kubernetes keeps a quantity's family (decimal, binary or exponent suffixes) and writes it with the largest suffix
that leaves no fraction; anything finer than a nano is rounded up.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_PARTS = re.compile(r"^([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES = {0: "", **{power: suffix for suffix, power in _BINARY.items()}}


class QuantityError(ValueError):
    """The text is no quantity."""


@lru_cache(maxsize=65536)
def parse(text: str) -> Fraction:
    """The exact value of a quantity; raises QuantityError."""
    return _split(text)[0]


def _split(text: str) -> tuple[Fraction, str]:
    match = _PARTS.match(text)
    if match is None:
        raise QuantityError(f"quantities must match the regular expression '{PATTERN}'")
    sign, number, suffix = match.groups()
    suffix = suffix or ""
    value = Fraction(number if not number.endswith(".") else number[:-1])
    if suffix in _BINARY:
        value *= 1 << _BINARY[suffix]
        family = "binary"
    elif suffix in _DECIMAL:
        value *= Fraction(10) ** _DECIMAL[suffix]
        family = "decimal"
    else:
        value *= Fraction(10) ** int(suffix[1:])
        family = "exponent"
    return (-value if sign == "-" else value), family


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """The text that the API server stores for a quantity ("0.5Gi" becomes "512Mi"); raises QuantityError."""
    value, family = _split(text.strip())
    return render(value, family)


def render(value: Fraction | int, family: str = "decimal") -> str:
    """The canonical text of a value within a family of suffixes: decimal, binary or exponent."""
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    if family == "binary" and (value < 1024 or Fraction(value).denominator != 1):
        family = "decimal"
    if family == "binary":
        whole, power = int(value), 0
        while whole % 1024 == 0 and power < 60:
            whole //= 1024
            power += 10
        return f"{sign}{whole}{_BINARY_NAMES[power]}"
    nanos = -((-Fraction(value) * 10**9) // 1)
    whole, exponent = int(nanos), -9
    while whole % 1000 == 0 and exponent < 18:
        whole //= 1000
        exponent += 3
    if family == "exponent":
        return f"{sign}{whole}" + (f"e{exponent}" if exponent else "")
    return f"{sign}{whole}{_DECIMAL_NAMES[exponent]}"


def family_of(text: str) -> str:
    """Which family of suffixes a quantity uses: decimal, binary or exponent."""
    return _split(text)[1]
