"""Which cases of Volcano's own end-to-end suites a test of ours covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])

COVERED: dict[str, list[str]] = {}
"""Test to the cases that it covers."""


def covers(*cases: str) -> Callable[[T], T]:
    """Record that a test covers these cases."""

    def mark(test: T) -> T:
        module = test.__module__.rpartition(".")[2]
        COVERED[f"{module}.py::{test.__name__}"] = list(cases)
        return test

    return mark
