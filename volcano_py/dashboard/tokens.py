"""The dashboard's token, in a file that only its user can read. Jupyter: its runtime files `jpserver-PID.json`.

The loopback address is open to every user of the machine, and the dashboard acts with the rights of one of them. So a
token is always required: programs of the same user find it in the file, and the browser gets it with the address that
the command prints.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path


def new() -> str:
    """A new token."""
    return secrets.token_urlsafe(24)


def folder() -> Path:
    """The folder of the files: `$XDG_RUNTIME_DIR/volcano-py`, else `~/.local/share/volcano-py/runtime`."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(runtime, "volcano-py") if runtime else Path("~/.local/share/volcano-py/runtime").expanduser()


@contextlib.contextmanager
def written(port: int, token: str) -> Iterator[Path]:
    """A file with the token of the dashboard on a port, while the context is active. Raises OSError."""
    where = folder()
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    if where.stat().st_uid != os.getuid():
        raise PermissionError(1, "the folder belongs to another user", str(where))
    where.chmod(0o700)
    path = where / f"dashboard-{port}.token"
    # Beside the path first: a new file has mode 0600, and a link of that name is not followed.
    handle, name = tempfile.mkstemp(dir=where, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"{token}\n")
    os.replace(name, path)
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
