"""A full disk is no damage: the message names the disk, and the data stay as they are."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from volcano_py.sandbox.apiserver.storage import database
from volcano_py.sandbox.apiserver.storage.database import Database, DataError


def test_a_full_disk_is_not_called_damaged(tmp_path: Path) -> None:
    base = Database(tmp_path)
    base.set_fact("before", "kept")
    base.connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(DataError) as e, base.guarded():
        for number in range(1000):
            base.set_fact(f"fact-{number}", "x" * 4000)
    assert str(e.value) == f"the disk of {tmp_path} is full; free space, or choose another folder with --data"
    assert base.fact("before") == "kept"
    base.close()


@pytest.mark.parametrize(
    ("free", "text"), [(0, "its disk is full; free space"), (9, "check the disk and the permissions")]
)
def test_a_failed_write_names_the_disk(free: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Database(tmp_path)
    monkeypatch.setattr(database.os, "statvfs", lambda path: SimpleNamespace(f_bavail=free))
    failed = sqlite3.OperationalError("disk I/O error")
    failed.sqlite_errorcode = sqlite3.SQLITE_IOERR
    with pytest.raises(DataError) as e, base.guarded():
        raise failed
    assert text in str(e.value) and "damaged" not in str(e.value)
    base.close()


def test_other_errors_are_damage(tmp_path: Path) -> None:
    base = Database(tmp_path)
    with pytest.raises(DataError, match="is damaged"), base.guarded():
        raise sqlite3.DatabaseError("file is not a database")
    base.close()
    (tmp_path / database.FILE).write_bytes(os.urandom(9000))
    with pytest.raises(DataError, match="is damaged"):
        Database(tmp_path)
