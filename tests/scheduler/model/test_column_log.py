"""The log of changed columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as s

from volcano_py.scheduler.model.column_log import ColumnLog

COLUMNS = s.integers(0, 6)


@given(s.lists(s.one_of(COLUMNS, s.lists(COLUMNS, max_size=4)), max_size=40), s.data())
def test_each_changed_column_is_read_once(changes: list[int | list[int]], data: s.DataObject) -> None:
    log, written = ColumnLog(), []
    for change in changes:
        if isinstance(change, int):
            log.add(change)
            written.append(change)
        else:
            log.add_all(change)
            written += change
    assert log.position == len(written)
    position = data.draw(s.integers(0, len(written)))
    found = log.since(position)
    assert sorted(found) == sorted(set(written[position:]))


def test_the_last_change_comes_first() -> None:
    log = ColumnLog()
    log.add_all([1, 2, 3, 1])
    assert log.since(0) == [1, 3, 2] and log.since(2) == [1, 3] and log.since(4) == []
