"""The admission configuration: resource groups, from a file that is reloaded on change. Volcano: `--admission-conf`.

An invalid file is logged once, and the last valid configuration stays active. Unlike in Volcano, a file that is
invalid at startup is loaded as soon as it is valid.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import yaml

from volcano_py.api import yaml_documents
from volcano_py.webhooks.pods import ResourceGroup

log = logging.getLogger(__name__)

_TEXTS = ("resourceGroup", "schedulerName", "affinity")
_LISTS = ("tolerations",)
_MAPS = ("object", "labels")


def parse(text: str) -> list[ResourceGroup]:
    """The resource groups of a file. Raises ValueError with the position of the error."""
    try:
        document = yaml_documents.load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{place}{getattr(error, 'problem', None) or error}") from None
    if document is None:
        return []
    if not isinstance(document, dict):
        raise ValueError(f"must be a mapping with resourceGroups, got {type(document).__name__}")
    groups = document.get("resourceGroups") or []
    if not isinstance(groups, list):
        raise ValueError("resourceGroups: must be a list")
    for index, group in enumerate(groups):
        _check(group, f"resourceGroups[{index}]")
    return groups


def _check(group: Any, place: str) -> None:
    if not isinstance(group, dict):
        raise ValueError(f"{place}: must be a mapping")
    for kind, word, keys in ((str, "string", _TEXTS), (list, "list", _LISTS), (dict, "mapping", _MAPS)):
        for key in keys:
            if not isinstance(group.get(key), kind | None):
                raise ValueError(f"{place}.{key}: must be a {word}")
    chosen = group.get("object") or {}
    if not isinstance(chosen.get("key"), str | None) or not isinstance(chosen.get("value"), list | None):
        raise ValueError(f"{place}.object: key must be a string, value a list")


class AdmissionConfiguration:
    """`groups` is the active configuration; None until a file was loaded."""

    def __init__(self, path: str) -> None:
        self.groups: list[ResourceGroup] | None = None
        self._path = Path(path) if path else None
        self._seen: object = None
        self.refresh()

    def refresh(self) -> bool:
        """Reload the file if it changed. Returns whether the active configuration changed."""
        if self._path is None:
            return False
        try:
            status = self._path.stat()
            seen: object = (status.st_ino, status.st_size, status.st_mtime_ns)
            if seen == self._seen:
                return False
            groups = parse(self._path.read_text())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            seen = why if isinstance(error, OSError) else seen
            if self._seen != seen:
                self._seen = seen
                kept = "the last valid one stays active" if self.groups is not None else "pods are not changed"
                log.error("--admission-conf %s: %s; %s", self._path, why, kept)
            return False
        self._seen = seen
        changed = groups != self.groups
        self.groups = groups
        return changed
