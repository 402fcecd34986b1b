"""Resource quantities with the API server's error: `volcano_py.api.quantity`, without its upper bound.

Kubernetes: resource.Quantity.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from volcano_py.api.quantity import Format, format_amount, parse_exactly

PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


class QuantityError(ValueError):
    """The text is not a quantity; the message is kube-apiserver's."""

    def __init__(self) -> None:
        super().__init__(f"quantities must match the regular expression '{PATTERN}'")


@lru_cache(maxsize=65536)
def split(text: str) -> tuple[Fraction, Format]:
    """The value of a quantity and its format. Raises QuantityError."""
    try:
        return parse_exactly(text)
    except ValueError:
        raise QuantityError from None


@lru_cache(maxsize=65536)
def parse(text: str) -> Fraction:
    """The value of a quantity. Raises QuantityError."""
    return split(text)[0]


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """The text that the API server stores for a quantity ("0.5Gi" becomes "512Mi"). Raises QuantityError."""
    return format_amount(*split(text.strip()))
