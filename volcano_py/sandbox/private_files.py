"""Files that only their owner may read: kubeconfigs, dumps with Secrets, the audit log.

Such a file is never readable by others. It is first written beside its path with a random name, so that a link that
another user has created is not followed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """A new file (mode 0600) that replaces `path`, or a link of that name, when it is complete.

    When the block raises, the old file is not changed. A device or pipe of that name is written to directly.
    Raises OSError when the file cannot be written.
    """
    if _is_special(path):
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def open_for_append(path: Path) -> IO[bytes]:
    """A file to append to, without a buffer; a new one has mode 0600. Raises OSError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0)


def _is_special(path: Path) -> bool:
    """Whether a path is, or leads to, something other than a file or folder, such as /dev/stdout."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
