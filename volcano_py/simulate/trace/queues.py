"""The queues of a replayed trace, as the Queue manifests that kubectl reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from volcano_py.api import scheduling
from volcano_py.api.codec import from_manifest
from volcano_py.simulate.trace.jobs import TraceError


def read_queues(path: Path) -> list[scheduling.Queue]:
    """The Queues of a YAML file. Raises TraceError, OSError."""
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: not a YAML file: {error}") from None
    found: dict[str, scheduling.Queue] = {}
    for number, document in enumerate(documents, 1):
        name = _name(path, number, document)
        if name in found:
            raise TraceError(f"{path}: two Queues have the name {name}; remove one of them")
        manifest = {**document, "metadata": {"uid": name, **document["metadata"]}}
        manifest.setdefault("status", {"state": "Open"})
        try:
            found[name] = from_manifest(scheduling.Queue, manifest)
        except (msgspec.ValidationError, ValueError) as error:
            raise TraceError(f"{path}: Queue {name}: {error}") from None
    if not found:
        raise TraceError(f"{path} has no Queue; write manifests as for kubectl, separated by ---")
    return list(found.values())


def _name(path: Path, number: int, document: Any) -> str:
    """The name of a Queue manifest."""
    kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if kind != "Queue":
        raise TraceError(f"{path}: document {number} is a {kind}, and must be a Queue")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise TraceError(f"{path}: document {number} has no metadata.name; set it")
    return name
