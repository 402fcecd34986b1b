"""Short names for templates, in Kubernetes' alphabet. Kubernetes: ComputeHash and SafeEncodeString.

The hash is computed over JSON, not over Go's memory: it is as stable as Kubernetes', but not equal.
"""

from __future__ import annotations

from typing import Any

import orjson

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(value: Any, collisions: int | None = None) -> str:
    """A hash of any JSON value; each number of collisions results in another hash."""
    return safe_hash(orjson.dumps([value, collisions], option=orjson.OPT_SORT_KEYS))


def safe_hash(content: bytes) -> str:
    """FNV-1a of 32 bits, in Kubernetes' alphabet."""
    number = 2166136261
    for byte in content:
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))
