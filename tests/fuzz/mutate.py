"""Makes input: small changes of the bytes, or of the values in a JSON or YAML document. Seeded, and fast."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import orjson
import yaml

NUMBERS = (0, 1, -1, 2, 255, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308, 1e-320)
TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1e400",
    "9" * 40,
    "1Ei",
    "0.0000000001",
    "1e-400",
    "NaN",
    "inf",
    "true",
    "null",
    "\x00",
    "\x1b[2J\x1b]0;x\x07",
    "\r\n",
    "\u202e",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "a" * 300,
    "a/b/c",
    "a=b,c",
    "../../etc/passwd",
    "%s%n{}{0}",
    "(a+)+$",
    "[[:^",
    "*",
    "*/0 * * * *",
    "@every 1ns",
    "2026-02-30T25:61:61Z",
    "9999-12-31T23:59:59.999999999+14:00",
    "0001-01-01T00:00:00Z",
    "١٢٣",
    "1_000",
    "０",
    "default",
    "volcano",
    "volcano.sh/queue-name",
)
_PARTS = (
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\u0000",
    b"\\ud800",
    b":",
    b"-",
    b"\n",
    b"\r\n",
    b"\x1b",
    b"&a",
)
_DEEP = b"[" * 3000


class Mutator:
    """Draws input for a target from its seeds."""

    def __init__(self, seeds: Sequence[bytes], form: str, rng: random.Random) -> None:
        self._rng = rng
        self._seeds = list(seeds)
        self._documents: list[Any] = []
        self._yaml = form == "yaml"
        if form in ("json", "yaml"):
            read = yaml.safe_load if self._yaml else orjson.loads
            self._documents = [read(seed) for seed in seeds]
        self._keys = sorted({key for document in self._documents for key in _keys(document)})

    def draw(self) -> bytes:
        """One input."""
        rng = self._rng
        if self._documents and rng.random() < 0.8:
            document = copy.deepcopy(rng.choice(self._documents))
            for _ in range(1 + int(rng.expovariate(0.7))):
                document = self._changed(document)
            if self._yaml:
                # JSON is YAML, and is made much faster
                return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
            return orjson.dumps(document)
        data = bytearray(rng.choice(self._seeds))
        for _ in range(1 + int(rng.expovariate(0.5))):
            self._change_bytes(data)
        return bytes(data)

    # ---- documents

    def _changed(self, document: Any) -> Any:
        """The document with one value changed, removed or added."""
        rng = self._rng
        holder, key = self._place(document)
        if holder is None:
            return self._value()
        action = rng.random()
        if action < 0.55:
            holder[key] = self._value(holder[key])
        elif action < 0.7:
            del holder[key]
        elif action < 0.85:
            if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            else:
                holder[rng.choice(self._keys) if self._keys and rng.random() < 0.7 else rng.choice(TEXTS)] = (
                    self._value()
                )
        elif isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder.pop(key)
        else:
            holder[key : key + 1] = [copy.deepcopy(holder[key]) for _ in range(rng.choice((0, 2, 30)))]
        return document

    def _place(self, document: Any) -> tuple[Any, Any]:
        """A container in the document and one of its keys, at any depth."""
        rng, holder, key = self._rng, None, None
        value = document
        while isinstance(value, dict | list) and value:
            inner = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
            holder, key, value = value, inner, value[inner]
            if rng.random() < 0.2:
                break
        return holder, key

    def _value(self, before: Any = None) -> Any:
        rng = self._rng
        drawn = rng.random()
        if isinstance(before, str) and drawn < 0.4:
            at = rng.randrange(len(before) + 1)
            return before[:at] + rng.choice(TEXTS) + before[at + rng.randrange(3) :]
        if isinstance(before, int | float) and drawn < 0.4:
            return rng.choice(NUMBERS)
        if drawn < 0.6:
            return rng.choice(TEXTS)
        if drawn < 0.75:
            return rng.choice(NUMBERS)
        if drawn < 0.85:
            return rng.choice((None, True, False))
        if drawn < 0.93:
            return rng.choice(([], {}, [None], {"": None}, [[]], [{}], {"a": {"b": {"c": []}}}))
        return copy.deepcopy(self._place(rng.choice(self._documents))[0]) if self._documents else []

    # ---- bytes

    def _change_bytes(self, data: bytearray) -> None:
        rng = self._rng
        at = rng.randrange(len(data) + 1)
        action = rng.random()
        if action < 0.25 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif action < 0.45:
            data[at:at] = rng.choice(_PARTS)
        elif action < 0.6:
            del data[at : at + 1 + int(rng.expovariate(0.2))]
        elif action < 0.75:
            data[at:at] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
        elif action < 0.9:
            other = rng.choice(self._seeds)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + rng.randrange(40)]
        elif action < 0.98:
            data[at:at] = data[: rng.randrange(200)]
        else:
            data[at:at] = _DEEP


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {str(key) for key in value} | {key for inner in value.values() for key in _keys(inner)}
    if isinstance(value, list):
        return {key for inner in value for key in _keys(inner)}
    return set()
