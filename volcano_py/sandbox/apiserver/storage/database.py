"""The SQLite file of a data folder: every write as a row with a checksum and a revision, and facts about the server.

A row contains an object after a write (ADDED, MODIFIED) or its last state (DELETED). The newest row of an object is the
object; older ones are kept for a while, so that watches can continue after a restart. After the revision `compacted`
all revisions exist without gaps. Kubernetes: etcd's revisions and compaction.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from volcano_py.sandbox.apiserver.storage.store import FIRST_REVISION

FILE = "objects.db"
LOCK = "lock"
FORMAT = "1"
CHECKED_LOG = 32 * 1024 * 1024  # size of a write-ahead log after a reset, in bytes
SKIP_FIRST = 1  # revisions that a salvage skips after a damaged page; doubled until it can read again

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS writes (revision INTEGER PRIMARY KEY, type TEXT NOT NULL, collection TEXT NOT NULL,"
    " key TEXT NOT NULL, tail BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL)",
)
_COLUMNS = "revision, type, collection, key, tail, checksum"


class DataError(Exception):
    """The data folder is not usable; the text is one line with the remedy."""


class Row(NamedTuple):
    """One write. `key` is namespace/name, or the name alone; `tail` is as in store.Entry."""

    revision: int
    type: str
    collection: str
    key: str
    tail: bytes
    checksum: int


def row(revision: int, type_: str, collection: str, key: str, tail: bytes) -> Row:
    """A row with its checksum."""
    return Row(revision, type_, collection, key, tail, _checksum(revision, type_, collection, key, tail))


def _checksum(revision: int, type_: str, collection: str, key: str, tail: bytes) -> int:
    return zlib.crc32(tail, zlib.crc32(f"{revision} {type_} {collection} {key}".encode()))


class Database:
    """The open file of a folder, locked until it is closed. One writer: `begin`, `add`, `remove`, `commit`."""

    def __init__(self, folder: Path, *, fsync: bool = False, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / FILE
        if not create and not self.path.is_file():
            raise DataError(f"{folder} has no {FILE}; use the folder of `sandbox up --data`")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(f"cannot use {folder} ({error.strerror}); choose another folder with --data") from None
        try:
            self._take_lock()
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with self.guarded():
                self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
                self._prepare(fsync)
        except OSError as error:
            os.close(self._lock)
            raise DataError(f"cannot open {self.path} ({error.strerror}); choose another folder with --data") from None
        except DataError:
            os.close(self._lock)
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
            raise DataError(
                f"{self.folder} is in use by a sandbox (pid {holder}); stop it, or choose another with --data"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _prepare(self, fsync: bool) -> None:
        self.connection.execute("PRAGMA journal_mode=WAL")
        # NORMAL protects against the end of the process, FULL also against that of the machine
        self.connection.execute(f"PRAGMA synchronous={'FULL' if fsync else 'NORMAL'}")
        self.connection.execute("PRAGMA wal_autocheckpoint=0")
        self.connection.execute(f"PRAGMA journal_size_limit={CHECKED_LOG}")
        for statement in _SCHEMA:
            self.connection.execute(statement)
        found = self.fact("format")
        if found is None:
            self.set_fact("format", FORMAT)
            self.set_fact("compacted", str(FIRST_REVISION))
        elif found != FORMAT:
            raise DataError(f"{self.path} has format {found}, supported is {FORMAT}; use the version that created it")

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Convert errors of SQLite to one line."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise DataError(self._cannot_write(error) or self.damaged(str(error))) from None

    def _cannot_write(self, error: sqlite3.Error) -> str:
        """The message if the disk or the permissions are the cause, and the data are intact; else empty."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return f"the disk of {self.folder} is full; free space, or choose another folder with --data"
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            free = os.statvfs(self.folder).f_bavail
            why = "its disk is full; free space" if not free else f"{error}; check the disk and the permissions"
            return f"{self.path} cannot be written: {why}, or choose another folder with --data"
        return ""

    def damaged(self, what: str) -> str:
        """The message for a damaged file, with the remedy."""
        return (
            f"{self.path} is damaged ({what}); save what can be read with `volcano-py sandbox dump --data {self.folder}"
            " -o saved.yaml`, then start with another folder and `volcano-py sandbox load saved.yaml`"
        )

    def close(self) -> None:
        """Checkpoint the write-ahead log, and unlock the folder."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()
        os.close(self._lock)

    # --- facts: data of the server other than objects ----------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """A stored fact; DataError when it is damaged."""
        found = self.connection.execute("SELECT value, checksum FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        if not isinstance(found[0], str) or found[1] != zlib.crc32(f"{name} {found[0]}".encode()):
            raise DataError(self.damaged(f"the fact {name!r} has a wrong checksum"))
        return found[0]

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact; part of the open transaction if there is one."""
        checksum = zlib.crc32(f"{name} {value}".encode())
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (name, value, checksum))

    @property
    def compacted(self) -> int:
        """Set the revision from which watches and lists can start."""
        return int(self.fact("compacted") or 0)

    # --- writing -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def add(self, rows: Iterable[Row]) -> None:
        self.connection.executemany("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?)", rows)

    def remove(self, revisions: Iterable[int], compacted: int) -> None:
        """Delete rows that no object and no event after `compacted` requires."""
        self.connection.executemany("DELETE FROM writes WHERE revision = ?", ((number,) for number in revisions))
        self.set_fact("compacted", str(compacted))

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def checkpoint(self) -> None:
        """Checkpoint the write-ahead log, concurrently with a writer; for another thread than the writer's."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def log_bytes(self) -> int:
        """The size of the write-ahead log."""
        with contextlib.suppress(FileNotFoundError):
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        return 0

    # --- reading -----------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[Row]:
        """All rows by revision; DataError at the first damaged one, or where one is missing."""
        with self.guarded():
            before = self.compacted
            for found in map(Row._make, self.connection.execute(f"SELECT {_COLUMNS} FROM writes ORDER BY revision")):
                fault = _fault(found)
                if not fault and found.revision > before + 1:
                    fault = f"revision {before + 1} is missing"
                if fault:
                    raise DataError(self.damaged(fault))
                before = max(before, found.revision)
                yield found

    def readable(self, report: Callable[[str], None]) -> Iterator[Row]:
        """The rows that can be read, by revision; faults are reported one by one."""
        position, leap = -1, SKIP_FIRST
        last = self._last_revision()
        while position < last:
            try:
                for values in self.connection.execute(
                    f"SELECT {_COLUMNS} FROM writes WHERE revision > ? ORDER BY revision", (position,)
                ):
                    found = Row._make(values)
                    fault = _fault(found)
                    if fault:
                        report(fault)
                    else:
                        yield found
                    position, leap = found.revision, SKIP_FIRST
                return
            except sqlite3.DatabaseError as error:
                report(f"revisions from {position + 1} on: {error}; continuing after revision {position + leap}")
                position, leap = position + leap, leap * 2

    def _last_revision(self) -> int:
        try:
            return int(self.connection.execute("SELECT max(revision) FROM writes").fetchone()[0] or 0)
        except sqlite3.DatabaseError:
            return 1 << 40  # above any revision; the doubled skips reach it soon


def _fault(found: Row) -> str:
    """The error of a row, with its object; empty for a valid one."""
    try:
        if _checksum(*found[:5]) == found.checksum:
            return ""
    except TypeError:
        pass
    return f"{found.collection} {found.key} at revision {found.revision} has a wrong checksum"
