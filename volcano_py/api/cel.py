"""The functions that Kubernetes adds to CEL: strings, optionals, math, lists, regular expressions, quantities.

A quantity is a map here, because the CEL library has no opaque types: `{"quantity": <exact value as a fraction>}`; so
is a semantic version: `{"semver": "1.2.3"}`. The functions of both accept either. `indexOf` supports only strings: the
library accepts one declaration per name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any

from volcano_py.api.quantity import parse_exactly


def environment(names: Iterable[str]) -> Any:
    """A CEL environment with variables of any type, and Kubernetes' libraries."""
    from cel_expr_python import cel  # type: ignore[import-untyped]
    from cel_expr_python.ext import ext_math, ext_optional, ext_strings  # type: ignore[import-untyped]

    return cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN),
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional(), ext_math.ExtMath()],
        functions=_functions(),
    )


def declared() -> frozenset[str]:
    """The names of Kubernetes' functions in an environment; each is always a method, or never."""
    return frozenset(name for name, *_ in _rows())


@cache
def _functions() -> list[Any]:
    from cel_expr_python import cel

    return [
        cel.FunctionDecl(name, [cel.Overload(f"k8s_{name}", result, given, member, impl)])
        for name, result, given, member, impl in _rows()
    ]


@cache
def _rows() -> list[tuple[str, Any, list[Any], bool, Callable[..., Any]]]:
    from cel_expr_python import cel

    kinds = cel.Type
    one, text = [kinds.LIST], [kinds.STRING]
    amounts = [kinds.MAP, kinds.MAP]
    return [
        ("sum", kinds.DYN, one, True, sum),
        ("min", kinds.DYN, one, True, min),
        ("max", kinds.DYN, one, True, max),
        ("isSorted", kinds.BOOL, one, True, lambda items: list(items) == sorted(items)),
        ("find", kinds.STRING, [*text, *text], True, _find),
        ("isQuantity", kinds.BOOL, text, False, _is_quantity),
        ("quantity", kinds.MAP, text, False, _quantity),
        ("isSemver", kinds.BOOL, text, False, lambda text: _SEMVER.fullmatch(text) is not None),
        ("semver", kinds.MAP, text, False, _semver),
        ("major", kinds.INT, [kinds.MAP], True, lambda a: _value(a)[0]),
        ("minor", kinds.INT, [kinds.MAP], True, lambda a: _value(a)[1]),
        ("patch", kinds.INT, [kinds.MAP], True, lambda a: _value(a)[2]),
        ("compareTo", kinds.INT, amounts, True, lambda a, b: (_value(a) > _value(b)) - (_value(a) < _value(b))),
        ("isGreaterThan", kinds.BOOL, amounts, True, lambda a, b: _value(a) > _value(b)),
        ("isLessThan", kinds.BOOL, amounts, True, lambda a, b: _value(a) < _value(b)),
        ("add", kinds.MAP, amounts, True, lambda a, b: _of(_value(a) + _value(b))),
        ("sub", kinds.MAP, amounts, True, lambda a, b: _of(_value(a) - _value(b))),
        ("sign", kinds.INT, [kinds.MAP], False, lambda a: (_value(a) > 0) - (_value(a) < 0)),
        ("isInteger", kinds.BOOL, [kinds.MAP], True, lambda a: _value(a).denominator == 1),
        ("asInteger", kinds.INT, [kinds.MAP], True, lambda a: int(_value(a))),
        ("asApproximateFloat", kinds.DOUBLE, [kinds.MAP], True, lambda a: float(_value(a))),
    ]


def _find(text: str, pattern: str) -> str:
    import re2  # type: ignore[import-untyped]

    found = re2.search(pattern, text)
    return found.group(0) if found else ""


def _is_quantity(text: str) -> bool:
    try:
        parse_exactly(text)
    except ValueError:
        return False
    return True


_SEMVER = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


def _semver(text: str) -> dict[str, str]:
    if _SEMVER.fullmatch(text) is None:
        raise ValueError(f"not a semantic version: {text}")
    return {"semver": text}


def _quantity(text: str) -> dict[str, str]:
    return _of(parse_exactly(text)[0])


def _of(value: Fraction) -> dict[str, str]:
    return {"quantity": str(value)}


def _value(of: dict[str, str]) -> Any:
    """A quantity, or a version in its sort order: numbers, then releases after pre-releases."""
    if "semver" not in of:
        return Fraction(of["quantity"])
    match = _SEMVER.fullmatch(of["semver"])
    if match is None:
        raise ValueError(f"not a semantic version: {of['semver']}")
    major, minor, patch, before = match.groups()
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in (before or "").split(".") if p]
    return int(major), int(minor), int(patch), not before, parts
