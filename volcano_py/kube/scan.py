"""Reads the identity of objects that cannot be decoded: invalid types, or nested deeper than the stack allows.

A kube-apiserver stores objects with `managedFields` that are nested thousands of levels deep, and msgspec raises
RecursionError for them even in fields that it skips. This scanner iterates over the tokens with a counter instead of
a stack, so it works at any depth. It is only used after a decoder has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_TOKEN = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z))\s*(:)?|([{\[])|([}\]])', re.DOTALL)
_OPEN, _CLOSE, _KEY, _TEXT = range(4)


def _tokens(raw: bytes) -> Iterator[tuple[int, bytes, int, int]]:
    """(type, text, start, end) of brackets and strings; `text` of strings includes the quotes."""
    for found in _TOKEN.finditer(raw):
        text, colon, opening, _ = found.groups()
        if text is not None:
            yield (_KEY if colon else _TEXT), text, found.start(), found.end()
        else:
            yield (_OPEN if opening else _CLOSE), found.group(), found.start(), found.end()


def texts(raw: bytes, *path: str) -> dict[str, str]:
    """The string fields of the object at `path`; empty if there is no such object. Never raises."""
    keys = [key.encode() for key in path]
    depth = matched = 0
    key: bytes | None = None
    result: dict[str, str] = {}
    for kind, text, _, _ in _tokens(raw):
        if kind == _OPEN:
            depth += 1
            if matched == depth - 2 < len(keys) and text == b"{" and key == keys[depth - 2]:
                matched = depth - 1
            key = None
        elif kind == _CLOSE:
            depth -= 1
            if matched > max(0, depth - 1):
                if matched == len(keys):
                    return result
                matched = max(0, depth - 1)
        elif kind == _KEY:
            key = _unquoted(text).encode() if depth == matched + 1 else None
        elif matched == len(keys) == depth - 1 and key is not None:
            result[key.decode()] = _unquoted(text)
            key = None
    return result if matched == len(keys) else {}


def complete(raw: bytes) -> bool:
    """Whether the text is one complete JSON object, according to its brackets; a truncated body is not."""
    depth = 0
    for kind, text, _, _ in _tokens(raw):
        if kind == _OPEN:
            depth += 1
        elif kind == _CLOSE:
            depth -= 1
            if not depth:
                return text == b"}"
    return False


def member(raw: bytes, name: str) -> bytes:
    """The bytes of the object or list in the field `name` of the root object; empty if there is none."""
    depth, begin, key = 0, -1, ""
    for kind, text, start, end in _tokens(raw):
        if kind == _OPEN:
            depth += 1
            if depth == 2 and key == name:
                begin = start
            key = ""
        elif kind == _CLOSE:
            depth -= 1
            if depth == 1 and begin >= 0:
                return raw[begin:end]
        elif depth == 1:
            key = _unquoted(text) if kind == _KEY else ""
    return b""


def elements(raw: bytes) -> Iterator[bytes]:
    """The bytes of each object in a list of objects."""
    depth, begin = 0, 0
    for kind, _, start, end in _tokens(raw):
        if kind == _OPEN:
            depth += 1
            if depth == 2:
                begin = start
        elif kind == _CLOSE:
            depth -= 1
            if depth == 1:
                yield raw[begin:end]


def _unquoted(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return text[1:-1].decode("utf-8", "replace")
