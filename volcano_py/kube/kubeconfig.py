"""Kubeconfig files: reads them, and merges the files of KUBECONFIG as client-go does.

The first file with an entry of a name wins; relative paths are relative to the file that contains them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from volcano_py.kube.errors import KubeError

_PATHS = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
    "contexts": ("context", ()),
}
"""List to the key of its entries, and the fields that contain paths."""


def paths(path: str | os.PathLike[str] | None) -> list[Path]:
    """The files of a kubeconfig: the argument, else KUBECONFIG, else ~/.kube/config."""
    if path:
        return [Path(path)]
    listed = [Path(p) for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    return listed or [Path.home() / ".kube" / "config"]


def load(files: Sequence[Path]) -> dict[str, Any]:
    """The merged document. Raises KubeError with the file and its problem."""
    merged: dict[str, Any] = {"current-context": "", **{plural: [] for plural in _PATHS}}
    for file in files:
        document = _read(file)
        merged["current-context"] = merged["current-context"] or document.get("current-context")
        for plural in _PATHS:
            known = {entry["name"] for entry in merged[plural]}
            merged[plural] += [entry for entry in _entries(document, plural, file) if entry["name"] not in known]
    return merged


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.load(file.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except OSError as error:
        raise KubeError(f"kubeconfig {file} cannot be read: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        raise KubeError(f"kubeconfig {file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise KubeError(f"kubeconfig {file} is not a mapping; is it a kubeconfig?")
    return document


def _entries(document: dict[str, Any], plural: str, file: Path) -> list[dict[str, Any]]:
    """The entries of a list, with absolute paths."""
    key, fields = _PATHS[plural]
    listed = document.get(plural) or []
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise KubeError(f"kubeconfig {file}: {plural} must be a list of maps with name and {key}")
    made = []
    for entry in listed:
        value = entry.get(key) or {}
        if not isinstance(value, dict):
            raise KubeError(f"kubeconfig {file}: {plural} {entry.get('name')!r}: {key} must be a map")
        absolute = {field: str(file.parent / value[field]) for field in fields if value.get(field)}
        made.append({"name": entry.get("name"), key: {**value, **absolute}})
    return made
