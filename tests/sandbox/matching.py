"""Comparing an answer with a recorded one: placeholders, equal identities, rising revisions, loose messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_DATE = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PATTERNS = {
    "time": _TIME,
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "listrv": r"\d+",
    "bookmarkrv": r"\d+",
    "rv": r"\d+",
    "date": _DATE,
    "tmp": r"/\S*",
    "age": r"(?:<unknown>|<invalid>|[0-9smhdy]+)",
    "continue": r".+",
    "clusterIP": r"[0-9a-f.:]+",
    "nodePort": r"\d+",
    "token": r".+",
    "caBundle": r".+",
    "hash": r".+",
    "etag": r".+",
    "build": r".*",
    "address": r".*",
    "server": r".+",
    "n": r"\d+",
    "rand": r"[a-z0-9]{5}",
    "managedFields": r".*",
}
_TOKEN = re.compile(r"<(uid|rv|rand):(\d+)>|<(" + "|".join(_PATTERNS) + r")>")

_AGE = re.compile(r"(?:(\d+)y)?(?:(\d+)d)?(?<=[yd])", re.ASCII)
"""As Kubernetes prints the age of what is old: `6y326d`, `8y`, `40d`."""

LOOSE_KEYS = frozenset({"message"})
IGNORED_KEYS = frozenset({"description", "storageVersionHash"})


@dataclass(slots=True)
class Context:
    """What the placeholders of a story have stood for so far."""

    variables: dict[str, str] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)
    revisions: dict[int, int] = field(default_factory=dict)
    randoms: dict[str, str] = field(default_factory=dict)
    keep_managed_fields: bool = False

    def filled(self, text: str) -> str:
        for name, value in self.variables.items():
            text = text.replace("${" + name + "}", value)
        return re.sub(r"\$\{repeat:(.):(\d+)\}", lambda m: m.group(1) * int(m.group(2)), text)


def words_agree(expected: str, actual: str) -> bool:
    """Whether a message carries the important words of another."""

    def words(text: str) -> list[str]:
        text = _TOKEN.sub(" ", text)
        return re.findall(r"[A-Za-z0-9_./-]{3,}", text.lower())

    wanted = words(expected)
    if not wanted:
        return True
    have = set(words(actual))
    return sum(word in have for word in wanted) >= 0.5 * len(wanted)


def match(expected: Any, actual: Any, context: Context, path: str = "", ignore: tuple[str, ...] = ()) -> list[str]:
    """The differences, as lines; none when the answers agree."""
    if path in ignore:
        return []
    if isinstance(expected, str):
        return _text(expected, actual, context, path)
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return [f"{path}: expected an object, got {_short(actual)}"]
        out: list[str] = []
        for key in expected.keys() | actual.keys():
            at = f"{path}/{key}"
            if key in IGNORED_KEYS or at in ignore:
                continue
            if key not in actual:
                out.append(f"{at}: missing, expected {_short(expected[key])}")
            elif key not in expected:
                out.append(f"{at}: unexpected {_short(actual[key])}")
            elif key == "causes" and isinstance(expected[key], list):
                out.extend(_causes(expected[key], actual[key], at))
            elif key in LOOSE_KEYS and isinstance(expected[key], str) and isinstance(actual[key], str):
                if not words_agree(context.filled(expected[key]), actual[key]):
                    out.append(f"{at}: expected {_short(expected[key])}, got {_short(actual[key])}")
            else:
                out.extend(match(expected[key], actual[key], context, at, ignore))
        return out
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return [f"{path}: expected a list, got {_short(actual)}"]
        out = []
        if len(expected) != len(actual):
            out.append(f"{path}: {len(actual)} items instead of {len(expected)}: {_short(actual)} / {_short(expected)}")
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            out.extend(match(left, right, context, f"{path}/{index}", ignore))
        return out
    if type(expected) is not type(actual) or expected != actual:
        if isinstance(expected, int | float) and isinstance(actual, int | float) and expected == actual:
            return [] if isinstance(expected, bool) == isinstance(actual, bool) else [f"{path}: {actual!r}"]
        return [f"{path}: expected {_short(expected)}, got {_short(actual)}"]
    return []


def _causes(expected: list[Any], actual: Any, path: str) -> list[str]:
    if not isinstance(actual, list):
        return [f"{path}: expected causes, got {_short(actual)}"]
    left = {(c.get("reason"), c.get("field")) for c in expected}
    right = {(c.get("reason"), c.get("field")) for c in actual}
    return [] if left == right else [f"{path}: expected {sorted(left, key=str)}, got {sorted(right, key=str)}"]


def _has_grown(expected: str, actual: str) -> bool:
    """Whether both are how long ago a date was, of which the recorded one is the older answer."""
    days = [_AGE.fullmatch(text) for text in (expected, actual)]
    if not days[0] or not days[1]:
        return False
    then, now = (int(found.group(1) or 0) * 365 + int(found.group(2) or 0) for found in days if found)
    return now >= then


def _text(expected: str, actual: Any, context: Context, path: str) -> list[str]:
    if expected == "<managedFields>":
        return [] if isinstance(actual, list) and actual else [f"{path}: no managedFields"]
    expected = context.filled(expected)
    if expected in ("<nodePort>", "<n>") and isinstance(actual, int) and not isinstance(actual, bool):
        return []
    if not isinstance(actual, str):
        return [f"{path}: expected {_short(expected)}, got {_short(actual)}"]
    if "<" not in expected:
        agree = expected == actual or _has_grown(expected, actual)
        return [] if agree else [f"{path}: expected {_short(expected)}, got {_short(actual)}"]
    tokens: list[tuple[str, str]] = []
    pattern, at = "", 0
    for token in _TOKEN.finditer(expected):
        pattern += re.escape(expected[at : token.start()])
        kind, number, plain = token.groups()
        if kind:
            pattern += "(" + {"uid": _UUID, "rv": r"\d+", "rand": r"[a-z0-9]{5}"}[kind] + ")"
            tokens.append((kind, number))
        else:
            pattern += f"(?:{_PATTERNS[plain]})"
        at = token.end()
    pattern += re.escape(expected[at:])
    found = re.fullmatch(pattern, actual, re.DOTALL)
    if found is None:
        return [f"{path}: expected {_short(expected)}, got {_short(actual)}"]
    out = []
    for (kind, number), value in zip(tokens, found.groups(), strict=True):
        problem = _same(kind, number, value, context)
        if problem:
            out.append(f"{path}: {problem}")
    return out


def _same(kind: str, number: str, value: str, context: Context) -> str:
    if kind == "rv":
        order, revision = int(number), int(value)
        known = context.revisions.get(order)
        if known is not None:
            return "" if known == revision else f"<rv:{number}> was {known}, is {revision}"
        for other, seen in context.revisions.items():
            if (other < order) != (seen < revision):
                return f"<rv:{number}>={revision} does not rise with <rv:{other}>={seen}"
        context.revisions[order] = revision
        return ""
    table = context.uids if kind == "uid" else context.randoms
    known_text = table.setdefault(number, value)
    return "" if known_text == value else f"<{kind}:{number}> was {known_text}, is {value}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
