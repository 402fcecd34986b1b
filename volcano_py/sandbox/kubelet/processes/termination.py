"""The termination message of a container: the content of its terminationMessagePath, or the end of its log if it
failed. Kubernetes: terminationMessagePolicy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from volcano_py.sandbox.kubelet.processes.rewriting import inside

Object = dict[str, Any]

DEFAULT_PATH = "/dev/termination-log"
LIMIT = 4096  # bytes of a message
LOG_BYTES, LOG_LINES = 2048, 80  # of a log used as the message


def path_of(container: Object) -> str:
    return str(container.get("terminationMessagePath") or DEFAULT_PATH)


def prepare(root: Path, container: Object) -> None:
    """Create an empty file."""
    path = inside(root, path_of(container))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")


def message(root: Path, container: Object, log: Path, code: int) -> str:
    """The message of the container's terminated state."""
    text = _tail(inside(root, path_of(container)), LIMIT)
    if text or not code or container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        return text
    lines = _tail(log, LOG_BYTES * 2).splitlines(keepends=True)[-LOG_LINES:]
    return "".join(line.partition(" ")[2] for line in lines)[-LOG_BYTES:]


def _tail(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - size, 0))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""
