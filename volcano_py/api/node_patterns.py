"""Patterns of node names, as in HyperNodes: which can be used, and the names that each matches. Volcano: regexp.

RE2 takes linear time for each name, but large repetitions make a program of any size, and Kubernetes limits neither the
length nor the number of patterns. The limits here concern one pattern or one object, never all objects together: a
valid object must not make another one fail.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_LENGTH = 16_384
"""Maximum characters of a pattern."""
MAX_PROGRAM = 20_000
"""Maximum instructions of a compiled pattern; a character is about one, a repetition multiplies what it repeats."""
MAX_COST = 100_000
"""Maximum instructions of all patterns of one object."""
MAX_PATTERNS = 1_000
"""Maximum number of different patterns of one object."""
FEW = 64
"""A pattern is matched alone if its literal prefix leaves at most this number of names."""
GROUP = 10_000
"""Maximum instructions of patterns that are matched together, if they are more than one."""
_LAST = "\U0010ffff"
_QUIET = re2.Options()
_QUIET.log_errors = False
# Rejects most patterns above MAX_PROGRAM before they are compiled.
_LIMITED = re2.Options()
_LIMITED.log_errors = False
_LIMITED.max_mem = 2 << 20


class InvalidPattern(ValueError):
    """The pattern has a fault, or costs too much; the text names the remedy."""


class TooCostly(InvalidPattern):
    """The object has used its budget; the text begins with a verb, for the object as its subject."""


class Budget:
    """What the patterns of one object may cost together."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._left = MAX_COST

    def use(self, pattern: str) -> None:
        """Count a pattern. Raises TooCostly for each further pattern when the budget is used up, and InvalidPattern
        if the pattern cannot be used."""
        if pattern in self._seen:
            return
        if len(self._seen) == MAX_PATTERNS:
            raise TooCostly(f"has more than {MAX_PATTERNS} different patterns; use labelMatch, or several HyperNodes")
        cost = MAX_PROGRAM  # to find a fault may cost as much as the largest program
        try:
            if self._left > 0:
                cost = compiled(pattern).programsize
        finally:
            self._left -= cost
        if self._left < 0:
            raise TooCostly(
                f"has patterns that cost more than {MAX_COST} instructions together; "
                "use shorter patterns with smaller repetitions, or labelMatch"
            )
        self._seen.add(pattern)


def compiled(pattern: str) -> Any:
    """The compiled pattern. Raises InvalidPattern."""
    found = _compiled(pattern)
    if isinstance(found, str):
        raise InvalidPattern(found)
    return found


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    """The compiled pattern, or why it cannot be used."""
    if len(pattern) > MAX_LENGTH:
        return f"it has {len(pattern)} characters, more than {MAX_LENGTH}; use labelMatch, or several members"
    too_large = f"it compiles to more than {MAX_PROGRAM} instructions; use smaller repetitions, or labelMatch"
    try:
        found = re2.compile(pattern, _LIMITED)
    except re2.error as error:
        text = _text(error)
        return too_large if text.startswith("pattern too large") else f"{text}; use RE2 syntax"
    except UnicodeEncodeError:
        return "it contains a character that is not valid Unicode; use RE2 syntax"
    return too_large if found.programsize > MAX_PROGRAM else found


def _text(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.decode(errors="replace") if isinstance(cause, bytes) else str(cause)


def quoted(pattern: str) -> str:
    """The pattern as messages quote it."""
    return repr(pattern if len(pattern) <= 200 else f"{pattern[:200]}...")


# ---- many patterns and many names -----------------------------------------------------------------------------


def matching(patterns: Iterable[str], names: Iterable[str]) -> dict[str, list[str]]:
    """The names that each usable pattern matches. Patterns that cannot be used are left out."""
    ordered = sorted(names)
    found: dict[str, list[str]] = {}
    others: dict[str, Any] = {}
    for pattern in patterns:
        try:
            program = compiled(pattern)
        except InvalidPattern:
            continue
        prefix = _literal_prefix(pattern, program)
        begin, end = bisect_left(ordered, prefix), bisect_left(ordered, prefix + _LAST)
        if prefix and end - begin <= FEW:
            found[pattern] = [name for name in ordered[begin:end] if program.search(name)]
        else:
            found[pattern] = []
            others[pattern] = program
    for group in _groups(others):
        _match_together(group, ordered, found)
    return found


def _literal_prefix(pattern: str, program: Any) -> str:
    """A text that every matching name begins with; empty if there is none, or it is not certain."""
    if not _begins_anchored(pattern):
        return ""
    try:
        # The range of the matched text: it begins with what both ends have in common, and so does the name.
        first, last = program.possiblematchrange(256)
        same = [a == b for a, b in zip(first, last, strict=False)]
        common: str = first[: [*same, False].index(False)].decode()
    except (re2.error, UnicodeDecodeError):
        return ""
    return common


def _begins_anchored(pattern: str) -> bool:
    """Whether a match can only begin where the name does: `^`, and no alternative outside of parentheses."""
    if pattern[:1] != "^" or pattern[1:2] in ("*", "+", "?", "{") or "\\Q" in pattern:
        return False
    depth, in_class, i = 0, False, 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
        elif in_class:
            in_class = c != "]"
        elif c == "[":
            in_class = True
            # A bracket at the beginning of a class is a member of it.
            i += pattern[i + 1 : i + 2] == "^"
            i += pattern[i + 1 : i + 2] == "]"
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif c == "|" and depth == 0:
            return False
        i += 1
    return True


def _groups(programs: Mapping[str, Any]) -> Iterator[list[tuple[str, Any]]]:
    group: list[tuple[str, Any]] = []
    cost = 0
    for pattern, program in programs.items():
        if group and cost + program.programsize > GROUP:
            yield group
            group, cost = [], 0
        group.append((pattern, program))
        cost += program.programsize
    if group:
        yield group


def _match_together(group: Sequence[tuple[str, Any]], names: Sequence[str], found: dict[str, list[str]]) -> None:
    """Match patterns in one pass over each name. Those that RE2 cannot match together are matched in smaller groups."""
    if len(group) == 1:
        pattern, program = group[0]
        found[pattern] += [name for name in names if program.search(name)]
        return
    done = 0
    if (together := _together([pattern for pattern, _ in group])) is not None:
        always = len(group)
        for name in names:
            matched = together.Match(name) or ()
            if always not in matched:
                # RE2 had no memory for the name, which it does not report.
                break
            done += 1
            for i in matched:
                if i != always:
                    found[group[i][0]].append(name)
    if done < len(names):
        middle = len(group) // 2
        _match_together(group[:middle], names[done:], found)
        _match_together(group[middle:], names[done:], found)


def _together(patterns: Sequence[str]) -> Any:
    """The patterns, and one that always matches, as one program; None if RE2 has no memory for it."""
    together = re2.Set.SearchSet(_QUIET)
    try:
        for pattern in (*patterns, ""):
            together.Add(pattern)
        together.Compile()
    except re2.error:
        return None
    return together
