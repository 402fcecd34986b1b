"""The kubeconfig of a sandbox."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from volcano_py.sandbox import private_files

NAME = "volcano-sandbox"


def document(url: str, authority: bytes, token: str) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()},
            }
        ],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def write(path: Path, url: str, authority: bytes, token: str) -> None:
    """Write a file that only its owner can read; a file or link of that name is replaced. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with private_files.replacing(path) as file:
        yaml.safe_dump(document(url, authority, token), file, sort_keys=False)
