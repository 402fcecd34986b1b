"""What stands between one of their functions and ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Data = dict[str, Any]
Ask = Callable[[Any, list[Any]], list[Any]]
"""(receiver, arguments) as data → the list of results of our function."""


def result(expected: Data) -> list[Any]:
    """The recorded return values."""
    found: list[Any] = expected.get("result", [])
    return found


def receiver_after(expected: Data) -> list[Any]:
    """What the call made of its receiver."""
    return [expected["receiver_after"]]


def arguments_after(expected: Data) -> list[Any]:
    """What the call made of its arguments."""
    found: list[Any] = expected["args_after"]
    return found


class Adapter(NamedTuple):
    """How to ask our function, and what of the recorded answer it has to give."""

    ask: Ask
    answer: Callable[[Data], list[Any]] = result


Adapters = dict[str, Ask | Adapter]
"""Their function's name → ours. A plain function answers with the return values."""
