"""One file of a recording: it grows by a cycle at a time, and the folder stays below its limit."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
import zlib
from pathlib import Path

import msgspec

from volcano_py.scheduler.recording import entries
from volcano_py.scheduler.recording.archive import Header

_LEVEL = 1
_PREFIX, _SUFFIX = "cycles-", ".recording"

_encode = msgspec.json.Encoder().encode


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can read, unless it exists. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class RecordingFile:
    """One file of the folder. After each cycle it can be read up to that cycle."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._path = folder / f"{_PREFIX}{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}{_SUFFIX}"
        self._gzip = zlib.compressobj(_LEVEL, wbits=31)
        self._handle = -1
        self._complete = 0
        self.content = 0
        """Bytes before compression."""
        self.failed = False

    def write(self, lines: list[bytes]) -> None:
        """Append. Raises OSError."""
        if self._handle < 0:
            make_folder(self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._handle = os.open(self._path, flags, 0o600)
            lines = [_encode(Header(entries.FORMAT, entries.VERSION)), *lines]
        content = b"\n".join(lines) + b"\n"
        packed = self._gzip.compress(content) + self._gzip.flush(zlib.Z_SYNC_FLUSH)
        try:
            with memoryview(packed) as rest:
                written = 0
                while written < len(rest):
                    written += os.write(self._handle, rest[written:])
        except OSError:
            self._drop_incomplete()
            raise
        self._complete += len(packed)
        self.content += len(content)
        self._delete_oldest()

    def _drop_incomplete(self) -> None:
        """Give back the space of a cycle that was written in part; a file without a cycle is deleted."""
        with contextlib.suppress(OSError):
            if self._complete:
                os.ftruncate(self._handle, self._complete)
            else:
                self._path.unlink()

    def _delete_oldest(self) -> None:
        with os.scandir(self._folder) as found:
            files = sorted(file.name for file in found if file.name.startswith(_PREFIX) and file.name.endswith(_SUFFIX))
        sizes: dict[Path, int] = {}
        for path in map(self._folder.joinpath, files):
            with contextlib.suppress(FileNotFoundError):  # deleted by the user meanwhile
                sizes[path] = path.stat().st_size
        total = sum(sizes.values())
        for path, size in sizes.items():
            if total <= self._limit or path == self._path:
                break
            path.unlink(missing_ok=True)
            total -= size

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
