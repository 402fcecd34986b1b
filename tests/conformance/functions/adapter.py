"""Adapters between the recorded functions and those of this project."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Data = dict[str, Any]
Function = Callable[[Any, list[Any]], list[Any]]
"""(receiver, arguments) as data → the list of results of our function."""


def result(expected: Data) -> list[Any]:
    """The recorded return values."""
    found: list[Any] = expected.get("result", [])
    return found


def receiver_after(expected: Data) -> list[Any]:
    """The receiver after the call."""
    return [expected["receiver_after"]]


def arguments_after(expected: Data) -> list[Any]:
    """The arguments after the call."""
    found: list[Any] = expected["args_after"]
    return found


class Adapter(NamedTuple):
    """How to call the function, and which part of the recorded results it must return."""

    call: Function
    answer: Callable[[Data], list[Any]] = result


Adapters = dict[str, Function | Adapter]
"""The name of Volcano's function → this project's. A plain function returns the return values."""
