"""The kubeconfig of a sandbox, and the state file beside it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

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
    """Write it for the owner's eyes only; OSError when that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(document(url, authority, token), sort_keys=False)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    path.chmod(0o600)


@dataclass(slots=True)
class State:
    """Which process runs the sandbox of a kubeconfig."""

    pid: int
    url: str
    nodes: int

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def state_path(path: Path) -> Path:
    return path.with_name(path.name + ".state")


def write_state(path: Path, state: State) -> None:
    data = orjson.dumps({"pid": state.pid, "url": state.url, "nodes": state.nodes})
    state_path(path).write_bytes(data)


def read_state(path: Path) -> State | None:
    """The state beside a kubeconfig; None when there is none or it cannot be read."""
    try:
        raw = orjson.loads(state_path(path).read_bytes())
        return State(int(raw["pid"]), str(raw["url"]), int(raw["nodes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_state(path: Path) -> None:
    state_path(path).unlink(missing_ok=True)
