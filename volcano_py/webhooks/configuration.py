"""The admission configuration: resource groups, from a file that may change. Volcano: `--admission-conf`.

A file that cannot be used is one line in the log, and the last good one stays in force. Unlike in Volcano, a file that
was bad at the start is used as soon as it is mended.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import yaml

from volcano_py.webhooks.pods import ResourceGroup

log = logging.getLogger(__name__)

_TEXTS = ("resourceGroup", "schedulerName", "affinity")
_LISTS = ("tolerations",)
_MAPS = ("object", "labels")


def parse(text: str) -> list[ResourceGroup]:
    """The resource groups of a file. Raises ValueError that says where it cannot be read."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{place}{getattr(error, 'problem', None) or error}") from None
    if document is None:
        return []
    if not isinstance(document, dict):
        raise ValueError(f"a mapping with resourceGroups is expected, this is a {type(document).__name__}")
    groups = document.get("resourceGroups") or []
    if not isinstance(groups, list):
        raise ValueError("resourceGroups: a list is expected")
    for index, group in enumerate(groups):
        _check(group, f"resourceGroups[{index}]")
    return groups


def _check(group: Any, place: str) -> None:
    if not isinstance(group, dict):
        raise ValueError(f"{place}: a mapping is expected")
    for kind, word, keys in ((str, "text", _TEXTS), (list, "list", _LISTS), (dict, "mapping", _MAPS)):
        for key in keys:
            if not isinstance(group.get(key), kind | None):
                raise ValueError(f"{place}.{key}: a {word} is expected")
    chosen = group.get("object") or {}
    if not isinstance(chosen.get("key"), str | None) or not isinstance(chosen.get("value"), list | None):
        raise ValueError(f"{place}.object: key is a text, value a list")


class AdmissionConfiguration:
    """`groups` is what is in force; None until a file could be read."""

    def __init__(self, path: str) -> None:
        self.groups: list[ResourceGroup] | None = None
        self._path = Path(path) if path else None
        self._seen: object = None
        self.refresh()

    def refresh(self) -> bool:
        """Read the file if it changed; whether another configuration is in force now."""
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
                kept = "the last good one stays in force" if self.groups is not None else "pods are left as they are"
                log.error("--admission-conf %s: %s; %s", self._path, why, kept)
            return False
        self._seen = seen
        changed = groups != self.groups
        self.groups = groups
        return changed
