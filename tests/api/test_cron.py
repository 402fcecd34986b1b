"""Schedules as Volcano reads them."""

import pytest

from volcano_py.api.cron import Every, parse_schedule


def test_fields_are_read():
    calendar = parse_schedule("*/20 6-10/2,23 10/10 * mon-fri")
    assert calendar.minutes == {0, 20, 40}
    assert calendar.hours == {6, 8, 10, 23}
    assert calendar.days == {10, 20, 30}
    assert calendar.months == set(range(1, 13))
    assert calendar.weekdays == {1, 2, 3, 4, 5}
    assert (calendar.any_day, calendar.any_weekday) == (False, False)


def test_a_star_leaves_the_day_open_but_one_with_a_step_does_not():
    assert parse_schedule("0 0 * * 1").any_day
    assert parse_schedule("0 0 */1 * 1").any_day
    assert not parse_schedule("0 0 */2 * 1").any_day


@pytest.mark.parametrize(("text", "seconds"), [("1h30m", 5400), ("2.9s", 2), ("10ms", 1), ("-5m", 1)])
def test_every(text, seconds):
    assert parse_schedule(f"@every {text}") == Every(seconds)
