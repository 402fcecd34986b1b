"""Kubeconfig files: reads them, and merges the files of KUBECONFIG as client-go does.

The first file with an entry of a name wins; relative paths are relative to the file that contains them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from volcano_py.api import yaml_documents
from volcano_py.kube.errors import KubeError

_PATHS = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
    "contexts": ("context", ()),
}
"""List to the key of its entries, and the fields that contain paths."""

_TEXTS = {
    *("server", "tls-server-name", "proxy-url", "certificate-authority", "certificate-authority-data"),
    *("cluster", "user", "namespace"),
    *("token", "tokenFile", "username", "password"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
}
_OTHERS: dict[str, tuple[type, str]] = {
    "insecure-skip-tls-verify": (bool, "true or false"),
    "disable-compression": (bool, "true or false"),
    "exec": (dict, "a map"),
    "auth-provider": (dict, "a map"),
}


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
        document = yaml_documents.load(file.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
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
    if not isinstance(listed, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str | None) for entry in listed
    ):
        raise KubeError(f"kubeconfig {file}: {plural} must be a list of maps with name and {key}")
    made = []
    for entry in listed:
        value = entry.get(key) or {}
        if not isinstance(value, dict):
            raise KubeError(f"kubeconfig {file}: {plural} {entry.get('name')!r}: {key} must be a map")
        _check(value, f"kubeconfig {file}: {plural} {entry.get('name')!r}: {key}")
        absolute = {field: str(file.parent / value[field]) for field in fields if value.get(field)}
        made.append({"name": entry.get("name"), key: {**value, **absolute}})
    return made


def _check(value: dict[str, Any], where: str) -> None:
    """Raises KubeError for a field of another type than the clients read."""
    for field, found in value.items():
        if field in _OTHERS:
            kind, word = _OTHERS[field]
            if not isinstance(found, kind | None):
                raise KubeError(f"{where}.{field} must be {word}, found {found!r}")
        elif field in _TEXTS and not isinstance(found, str | None):
            raise KubeError(f"{where}.{field} must be a string, found {found!r}")
        elif field == "token" and found and not (found.isascii() and found.isprintable()):
            raise KubeError(f"{where}.token contains characters that no token has; copy it again")
    program = value.get("exec") or {}
    for field in ("env", "args"):
        if not isinstance(program.get(field), list | None):
            raise KubeError(f"{where}.exec.{field} must be a list, found {program[field]!r}")
    if not all(isinstance(argument, str) for argument in program.get("args") or ()):
        raise KubeError(f"{where}.exec.args must be a list of strings, found {program['args']!r}")
    for row in program.get("env") or ():
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("name", "value")):
            raise KubeError(f"{where}.exec.env must be a list of maps with name and value, found {row!r}")
