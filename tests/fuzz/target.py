"""A target: a function that gets bytes from outside, and the errors that it may raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """`run` raises what it declares for invalid input, and AssertionError if the result breaks a promise."""

    name: str
    run: Callable[[bytes], object]
    errors: tuple[type[BaseException], ...]
    """What the function declares."""
    seeds: Sequence[bytes]
    """Valid input, from which other input is made."""
    form: str = "json"
    """json, yaml or bytes: how input is changed."""


def text_of(data: bytes) -> str:
    """Bytes as text; every text can be made."""
    return data.decode("utf-8", "replace")
