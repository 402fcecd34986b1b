"""Short names for templates, in Kubernetes' alphabet. Kubernetes: ComputeHash and SafeEncodeString.

The hash is computed over JSON, not over Go's memory: it is as stable as Kubernetes', but not equal.
"""

from __future__ import annotations

from typing import Any

import orjson

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(value: Any, collisions: int | None = None) -> str:
    """A hash of any JSON value; each number of collisions results in another hash."""
    number = 2166136261
    for byte in orjson.dumps([value, collisions], option=orjson.OPT_SORT_KEYS):
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_LETTERS[int(digit)] for digit in str(number))
