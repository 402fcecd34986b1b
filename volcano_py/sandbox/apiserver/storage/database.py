"""The SQLite file of a data folder: every write as a checksummed row under its revision, and facts about the server.

A row holds what an object became (ADDED, MODIFIED) or was last (DELETED). The newest row of an object is the object;
older ones are kept for a while, so that watches can go on after a restart. Revisions after the one called `compacted`
follow each other without a gap. Kubernetes: etcd's revisions and compaction.
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
CHECKED_LOG = 32 * 1024 * 1024  # bytes that a write-ahead log keeps when it is reset
SKIP_FIRST = 1  # revisions that a salvage leaps over after a damaged page; doubled until it can read again

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS writes (revision INTEGER PRIMARY KEY, type TEXT NOT NULL, collection TEXT NOT NULL,"
    " key TEXT NOT NULL, tail BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL)",
)
_COLUMNS = "revision, type, collection, key, tail, checksum"


class DataError(Exception):
    """The data folder cannot be used; the text is one line with the remedy."""


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
    """The open file of a folder, ours alone until it is closed. One writer: `begin`, `add`, `remove`, `commit`."""

    def __init__(self, folder: Path, *, fsync: bool = False, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / FILE
        if not create and not self.path.is_file():
            raise DataError(f"{folder} has no {FILE}; name the folder that `sandbox up --data` was given")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(f"cannot use {folder} ({error.strerror}); name another folder with --data") from None
        try:
            self._take_lock()
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with self.guarded():
                self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10)
                self._prepare(fsync)
        except OSError as error:
            os.close(self._lock)
            raise DataError(f"cannot open {self.path} ({error.strerror}); name another folder with --data") from None
        except DataError:
            os.close(self._lock)
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
            raise DataError(
                f"{self.folder} is in use by a sandbox (pid {holder}); stop that one, or name another with --data"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _prepare(self, fsync: bool) -> None:
        self.connection.execute("PRAGMA journal_mode=WAL")
        # NORMAL survives the death of the process, FULL that of the machine, too
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
            raise DataError(f"{self.path} has format {found}, we know {FORMAT}; use the version that made it")

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn errors of SQLite into one line."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise DataError(self.damaged(str(error))) from None

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

    # --- facts: what belongs to the server and is no object ----------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """Something remembered by name; DataError when it is damaged."""
        found = self.connection.execute("SELECT value, checksum FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        if not isinstance(found[0], str) or found[1] != zlib.crc32(f"{name} {found[0]}".encode()):
            raise DataError(self.damaged(f"the fact {name!r} has a wrong checksum"))
        return found[0]

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact; a part of the open transaction if there is one."""
        checksum = zlib.crc32(f"{name} {value}".encode())
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (name, value, checksum))

    @property
    def compacted(self) -> int:
        """Watches and lists can start from this revision or later."""
        return int(self.fact("compacted") or 0)

    # --- writing -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def add(self, rows: Iterable[Row]) -> None:
        self.connection.executemany("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?)", rows)

    def remove(self, revisions: Iterable[int], compacted: int) -> None:
        """Forget rows that no object and no event after `compacted` needs."""
        self.connection.executemany("DELETE FROM writes WHERE revision = ?", ((number,) for number in revisions))
        self.set_fact("compacted", str(compacted))

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, beside a writer; for another thread than the writer's."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def log_bytes(self) -> int:
        """How large the write-ahead log is."""
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
                report(f"revisions from {position + 1} on: {error}; trying on behind revision {position + leap}")
                position, leap = position + leap, leap * 2

    def _last_revision(self) -> int:
        try:
            return int(self.connection.execute("SELECT max(revision) FROM writes").fetchone()[0] or 0)
        except sqlite3.DatabaseError:
            return 1 << 40  # beyond any; the leaps get there soon


def _fault(found: Row) -> str:
    """What is wrong with a row, naming its object; empty for a valid one."""
    try:
        if _checksum(*found[:5]) == found.checksum:
            return ""
    except TypeError:
        pass
    return f"{found.collection} {found.key} at revision {found.revision} has a wrong checksum"
