"""Reading YAML of others: every fault is a YAMLError, and the size of a document is bounded.

PyYAML raises several other errors, for values that do not fit their tag and for deep nesting. An alias makes a small
text a document of any size (`a: &a [x, x]`, `b: &b [*a, *a]` and so on), or one that contains itself. Corresponds to
sigs.k8s.io/yaml, whose parser limits aliases, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, ten times as fast, where PyYAML includes it: for files of the package and what its own programs wrote."""
MAX_VALUES = 1_000_000
"""Values in a document that has aliases, each counted as often as it is used."""
MAX_DEPTH = 100
"""Levels of nesting; an API server accepts fewer."""
_DEEP = re.compile(rf"(?:[\[{{]\s*){{{MAX_DEPTH + 1}}}")
"""The plainest form of deep nesting, on which the parser would spend a second."""
_TOO_DEEP = f"it is nested too deep: more than {MAX_DEPTH} levels"


def load(text: str | bytes, loader: Any = yaml.SafeLoader) -> Any:
    """The document of a text. Raises yaml.YAMLError."""
    return _read(text, lambda: [yaml.load(text, loader)])[0]


def load_all(text: str | bytes, loader: Any = yaml.SafeLoader) -> list[Any]:
    """The documents of a text. Raises yaml.YAMLError."""
    return _read(text, lambda: list(yaml.load_all(text, loader)))


def _read(text: str | bytes, read: Callable[[], list[Any]]) -> list[Any]:
    if _DEEP.search(text if isinstance(text, str) else text.decode("latin-1")):
        raise yaml.YAMLError(_TOO_DEEP)
    try:
        documents = read()
    except yaml.YAMLError:
        raise
    except RecursionError:
        raise yaml.YAMLError(_TOO_DEEP) from None
    except Exception as error:  # of many types, see the module
        raise yaml.YAMLError(f"a value does not fit its type: {error}") from None
    _check_size(documents)
    return documents


def _check_size(documents: list[Any]) -> None:
    """Raises yaml.YAMLError for documents that are larger, or deeper, than any of a user."""
    count = 0
    levels: list[Iterator[Any]] = [iter(documents)]
    while levels:
        for value in levels[-1]:
            count += 1
            if isinstance(value, dict):
                levels.append(_parts(value))
                break
            if isinstance(value, list | set | tuple):
                levels.append(iter(value))
                break
        else:
            levels.pop()
        if len(levels) > MAX_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        if count > MAX_VALUES:
            raise yaml.YAMLError(f"with its aliases replaced it has more than {MAX_VALUES} values")


def _parts(value: dict[Any, Any]) -> Iterator[Any]:
    yield from value
    yield from value.values()
