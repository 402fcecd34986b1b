"""The pages of reservations and of shares: from objects to bars and rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.objects import CREATED, group, queue, reservation
from volcano_py.dashboard.jobs import JobRow, JobTable, seconds
from volcano_py.dashboard.reservations import MOST_RUNNING, latest_start, reservation_page, timeline_of
from volcano_py.dashboard.shares import share_page
from volcano_py.dashboard.ui.draw_reservations import draw_reservations
from volcano_py.dashboard.ui.draw_shares import draw_shares
from volcano_py.dashboard.watches import Missing
from volcano_py.scheduler.explain.reserved_nodes import clock_time
from volcano_py.scheduler.explain.table import JOB_RESERVED, sentence_of
from volcano_py.scheduler.plugins.fairshare.usage import OwnerUsage, UsageDocument

START = seconds(CREATED)
HOUR = 3600.0


def jobs(*groups: dict[str, Any]) -> list[JobRow]:
    table = JobTable()
    table.update({f"lab/{each['metadata']['name']}": each for each in groups}, {})
    return list(table.rows.values())


def running(name: str, limit: str = "4h") -> dict[str, Any]:
    began = {"type": "Scheduled", "status": "True", "reason": "", "message": "", "lastTransitionTime": CREATED}
    return group(name, "Running", limit=limit, conditions=[began])


def test_the_sentence_of_a_reservation_has_the_start_that_the_page_draws() -> None:
    why = sentence_of(JOB_RESERVED.because(count=2, node="n1", start=clock_time(START + 90), ahead=1))
    assert latest_start(why) == START + 120, "the minute that has begun by then"
    assert latest_start("2 nodes are full") == 0


def test_bars_of_reservations_of_jobs_and_of_what_runs() -> None:
    why = sentence_of(JOB_RESERVED.because(count=2, node="n1", start=clock_time(START + 3 * HOUR), ahead=0))
    rows = jobs(
        running("runs"),
        running("no-limit", ""),
        group("gang", "Inqueue", why=why, code="Reserved", limit="2h"),
        group("full", "Inqueue", why="2 nodes are full"),
    )
    exam = reservation("exam", {"phase": "Active", "nodes": ["a", "b", "c", "d"], "used": {"cpu": "4"}})
    later = reservation("later", {"phase": "Pending"}, startTime="2026-01-01T05:00:00Z")
    page = reservation_page([later, exam], rows)
    assert [(row.name, row.phase, row.nodes, row.used) for row in page.reservations] == [
        ("exam", "Active", "a, b, c and 1 more", "cpu 4"),
        ("later", "Pending", "n-1", ""),
    ]
    assert [(row.key, row.start) for row in page.held] == [("lab/gang", START + 3 * HOUR)]
    found = timeline_of(page, START + 600)
    assert [(bar.label, bar.kind, bar.start - START, bar.end - START) for bar in found.bars] == [
        ("exam", "active", 0, 2 * HOUR),
        ("later", "reserved", 5 * HOUR, 7 * HOUR),
        ("lab/gang", "held", 3 * HOUR, 5 * HOUR),
        ("lab/runs", "runs", 0, 4 * HOUR),
    ]
    assert (found.begin - START, found.end - START) == (600 - HOUR, 7 * HOUR)
    text = draw_reservations(page, START + 600)
    assert 'aria-label="later: a Reservation, from Jan 01, 05:00:00 UTC, for 120m"' in text
    assert '<span style="left:0.00%">23:10</span>' in text, "the first mark, to the minute"
    assert "begins in" in text and 'href="/jobs/lab/gang"' in text


def test_what_has_ended_and_what_is_invalid() -> None:
    bad = reservation("bad", duration="", nodes=["n-1"])
    page = reservation_page([bad, reservation("old", {"phase": "Ended"})], [])
    assert [(row.name, row.phase) for row in page.reservations] == [("bad", "Invalid"), ("old", "Ended")]
    assert page.reservations[0].message == "spec: set either duration or endTime"
    assert timeline_of(page, START + 10 * HOUR).bars == ()
    text = draw_reservations(page, START + 10 * HOUR)
    assert "Nothing is reserved in the next hours." in text and "ended 8h ago" in text


def test_reservations_that_may_not_be_listed_are_named_on_their_page() -> None:
    text = draw_reservations(reservation_page([], []), START, Missing("You may not list reservations.", "grant <it>"))
    assert "You may not list reservations." in text and "grant &lt;it&gt;" in text and "Nothing is reserved" in text


def test_a_page_of_many_jobs_shows_those_that_end_first() -> None:
    rows = jobs(*(running(f"j{i:02}", f"{60 - i}m") for i in range(40)))
    page = reservation_page([], rows)
    assert len(page.running) == MOST_RUNNING and page.hidden == 15
    assert page.running[0].label == "lab/j39"
    assert "15 more jobs with a limit end later." in draw_reservations(page, START)


@pytest.mark.parametrize(("now", "held"), [(START, True), (START + 200 * HOUR, False)])
def test_the_timeline_has_at_most_three_days(now: float, held: bool) -> None:
    page = reservation_page([reservation("long", {"phase": "Active"}, duration="150h")], [])
    found = timeline_of(page, now)
    assert bool(found.bars) is held and found.end - now == (72 * HOUR if held else 6 * HOUR)


def test_usage_against_share_in_bars_and_words() -> None:
    owners = [OwnerUsage("ml", "ann", 3 * HOUR, 0.5), OwnerUsage("ml", "bob", HOUR, 0.0, 3.0)]
    document = UsageDocument(START, half_life=168 * HOUR, owners=owners)
    page = share_page(document, [queue("root"), queue("ml")])
    assert [(row.owner, row.order) for row in page.rows] == [("", 1), ("bob", 1), ("ann", 2)]
    text = draw_shares(page, "", START + 60)
    assert 'aria-label="owner ann of ml: used 75%, share 25%"' in text and "held over" in text
    assert "it halves every 7d" in text
    assert "no longer" in draw_shares(page, "It can no longer be read.", START)
