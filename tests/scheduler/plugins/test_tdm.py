"""The hours of revocable zones, as users write them."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.plugins.tdm import window

DAY = 24 * 3600.0
NOON = 100 * DAY + 12 * 3600


@pytest.mark.parametrize(
    ("text", "opens", "closes"),
    [
        ("00:00-01:00", 0, 3600),
        ("9:30-17:05", 34200, 61500),
        (" 1:00-0:00 ", 3600, DAY),
        ("23:59-23:59", 86340, 172740),
    ],
)
def test_hours_are_those_of_today_and_may_end_tomorrow(text: str, opens: float, closes: float) -> None:
    assert window(text, NOON) == (100 * DAY + opens, 100 * DAY + closes)


@pytest.mark.parametrize(
    "text",
    ["00:00_01:00", "0:00", "1:0-2:00", "63:59-23:59", "1:60-2:00", "001:00-2:00", "1:00 - 2:00", "+1:00-2:00", 5],
)
def test_hours_that_cannot_be_read_are_none(text: object) -> None:
    assert window(text, NOON) is None
