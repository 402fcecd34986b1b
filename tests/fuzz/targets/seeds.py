"""Valid objects of all kinds: of the examples, and of the scenarios of decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from volcano_py.api.yaml_documents import FAST_LOADER

ROOT = Path(__file__).parents[3]
_FOLDERS = ("examples", "tests/acceptance", "tests/chart", "tests/fuzz/objects")
MOST = 12
"""Objects of one kind."""
STAMPS = {"uid": "0b5a4c1e-0000-4000-8000-000000000001", "resourceVersion": "7"}


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        typed = isinstance(document.get("kind"), str) and isinstance(document.get("apiVersion"), str)
        if typed and isinstance(document.get("metadata"), dict):
            yield document
            return
        for value in document.values():
            yield from _objects(value)
    elif isinstance(document, list):
        for value in document:
            yield from _objects(value)


@cache
def by_kind() -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Objects by apiVersion and kind; of one kind those with most fields."""
    found: dict[tuple[str, str], dict[bytes, dict[str, Any]]] = defaultdict(dict)
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            text = path.read_text()
            if "{{" in text:
                continue
            for document in yaml.load_all(text, Loader=FAST_LOADER):
                for obj in _objects(document):
                    obj = orjson.loads(orjson.dumps(obj, default=str, option=orjson.OPT_NON_STR_KEYS))
                    obj["metadata"] = {"name": "x", "namespace": "default", **STAMPS, **obj["metadata"]}
                    found[obj["apiVersion"], obj["kind"]][orjson.dumps(obj)] = obj
    return {key: sorted(rows.values(), key=lambda o: -len(orjson.dumps(o)))[:MOST] for key, rows in found.items()}


def objects(api_version: str, kind: str) -> list[dict[str, Any]]:
    """Objects of a kind; at least one with metadata alone."""
    bare = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "default", **STAMPS}}
    return [*by_kind().get((api_version, kind), ()), bare]
