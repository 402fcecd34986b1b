"""What pages draw: names are escaped, numbers and words say what color says, nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dashboard.objects import CREATED, UID, eviction, group, job, node, pod, queue, reservation
from volcano_py.cli.explain_answer import Answer, Blocker, Help
from volcano_py.dashboard.cycles import CyclePage, Point
from volcano_py.dashboard.evictions import evictions
from volcano_py.dashboard.job_page import job_page
from volcano_py.dashboard.jobs import Filter, JobRow, JobTable, job_list, seconds
from volcano_py.dashboard.nodes import heat_map, node_page, node_table
from volcano_py.dashboard.queues import queue_page
from volcano_py.dashboard.reservations import ReservationPage, reservation_page
from volcano_py.dashboard.shares import share_page
from volcano_py.dashboard.ui.draw_cycles import draw_cycles
from volcano_py.dashboard.ui.draw_evictions import draw_evictions
from volcano_py.dashboard.ui.draw_job import draw_answer, draw_job, draw_pods, draw_timeline
from volcano_py.dashboard.ui.draw_jobs import draw_jobs
from volcano_py.dashboard.ui.draw_nodes import draw_heat, draw_node, heat
from volcano_py.dashboard.ui.draw_queues import draw_queues
from volcano_py.dashboard.ui.draw_reservations import draw_reservations
from volcano_py.dashboard.ui.draw_shares import draw_shares
from volcano_py.dashboard.ui.draw_status import draw_banner, draw_state
from volcano_py.dashboard.ui.markup import Markup, link, tag
from volcano_py.dashboard.watches import Health, Missing
from volcano_py.scheduler.plugins.fairshare.usage import OwnerUsage, UsageDocument

UI = Path(__file__).parents[2] / "volcano_py" / "dashboard" / "ui"
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
NOW = seconds(CREATED) + 600
LIVE = Health(False, None, "", (), ())


def evil_row() -> JobRow:
    return JobRow(f"lab/{EVIL}", "lab/g", EVIL, EVIL, "waiting", 0, 1, 1, NOW - 60, 0, 0, EVIL, EVIL, True, "")


def evil_reservations() -> ReservationPage:
    table = JobTable()
    waits = group("", "Inqueue", why=EVIL, job=EVIL, queue=EVIL, code="Reserved")
    table.update({"lab/g": waits, "lab/r": group(EVIL, "Running", limit="1h")}, {f"lab/{EVIL}": job(EVIL, "Pending")})
    owners = [{"queue": EVIL}]
    return reservation_page([reservation(EVIL, {"message": EVIL}, nodes=[EVIL], owners=owners)], table.rows.values())


def evil_pages() -> list[Markup]:
    """Every page with a name, or a text of the API, that is an attack."""
    table = node_table([node(EVIL)], [pod(EVIL, EVIL)], [])
    g, j = (
        group("", "Pending", why=EVIL, job=EVIL, queue=EVIL),
        job(EVIL, "Pending", queue=EVIL, priorityClassName=EVIL),
    )
    page = job_page(evil_row(), g, j, [pod(EVIL, EVIL, group="g", role=EVIL)])
    found = node_page(table, EVIL, [pod(EVIL, EVIL)])
    assert found is not None
    return [
        draw_queues(queue_page([queue(EVIL, parent=EVIL, allocated={EVIL: "1"})], [], [node("n", **{EVIL: "4"})])),
        draw_jobs(job_list([evil_row()], Filter()), NOW),
        draw_job(page, NOW),
        draw_pods(page, NOW),
        draw_timeline(page.timeline),
        draw_heat(heat_map(table)),
        draw_node(found, NOW),
        draw_evictions(evictions([eviction(EVIL, CREATED, EVIL, EVIL)], {}), NOW),
        draw_answer(
            Answer(EVIL, EVIL, EVIL, [Blocker(EVIL, EVIL, {}, EVIL)] * 2, unblock=[Help(EVIL, EVIL)], notes=[EVIL])
        ),
        draw_reservations(evil_reservations(), NOW),
        draw_shares(share_page(UsageDocument(NOW, owners=[OwnerUsage(EVIL, EVIL, 1.0)]), [queue(EVIL)]), EVIL, NOW),
        draw_cycles(None, EVIL),
        draw_cycles(CyclePage((), 1, 1.0, 1.0, 1.0, ((EVIL, 1, 1.0),), 0), EVIL),
        draw_banner(Health(False, 9.0, EVIL, (Missing(EVIL, EVIL),), (EVIL,))),
    ]


def test_no_text_of_an_object_becomes_html() -> None:
    for number, page in enumerate(evil_pages()):
        assert "alert(1)" in page or number == 4, f"page {number} does not show the text at all"
        assert "<script" not in page and "<img" not in page, f"page {number}"
        for attribute in re.findall(r"<[a-z][^>]*>", page):
            assert "onerror" not in re.sub(r'"[^"]*"', "", attribute), f"page {number}: {attribute}"


def test_links_stay_in_the_dashboard_whatever_the_name_is() -> None:
    assert link("x", "jobs", "a/b", "../c?d#e") == '<a href="/jobs/a%2Fb/..%2Fc%3Fd%23e">x</a>'
    assert link("x", "jobs", queue='"&') == '<a href="/jobs?queue=%22%26">x</a>'


def test_only_markup_is_left_as_it_is() -> None:
    assert tag("p", "<b>", tag("b", "&"), None, title='"') == '<p title="&quot;">&lt;b&gt;<b>&amp;</b></p>'


@pytest.mark.parametrize("file", [*UI.glob("*.py"), *UI.glob("*.css"), *UI.glob("*.js")], ids=lambda f: f.name)
def test_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\(", text)


def test_a_queue_says_in_words_what_its_bar_shows() -> None:
    page = queue_page(
        [queue("root"), queue("vision", "root", {"cpu": "20"}, deserved={"cpu": "16"}, capability={"cpu": "24"})],
        [],
        [node("n-1")],
    )
    text = draw_queues(page)
    assert 'aria-label="vision, cpu: held 20, deserved 16, limit 24"' in text
    assert "over" in text and 'class="limit"' in text


def test_a_job_that_waits_shows_its_reason_and_a_line_of_its_time() -> None:
    table = JobTable()
    table.update({"lab/g": group("g", "Inqueue", why="2 of 2 nodes have too little cpu")}, {})
    text = draw_jobs(job_list(table.rows.values(), Filter()), NOW)
    assert "2 of 2 nodes have too little cpu" in text
    assert 'aria-label="waited 10m"' in text
    assert 'href="/jobs/lab/g"' in text


def test_every_page_has_a_text_for_having_nothing_to_show() -> None:
    nothing = JobTable().rows.values()
    pages = [
        draw_queues(queue_page([], [], [])),
        draw_jobs(job_list(nothing, Filter()), NOW),
        draw_heat(heat_map(node_table([], [], []))),
        draw_evictions(evictions([], {}), NOW),
        draw_timeline(()),
        draw_cycles(None, ""),
        draw_reservations(reservation_page([], []), NOW),
        draw_shares(None, "", NOW),
    ]
    for page in pages:
        assert 'class="empty"' in page


def test_colors_of_the_heat_map_cover_all_shares() -> None:
    assert [heat(s) for s in (None, -1.0, 0.0, 0.5, 1.0, 1.7)] == ["unknown", "h0", "h0", "h4", "h8", "h8"]


def test_the_state_of_the_data_is_a_word() -> None:
    assert "live" in draw_state(LIVE)
    assert "loading" in draw_state(LIVE._replace(loading=True))
    assert "75s old" in draw_state(LIVE._replace(stale=75.0))
    assert draw_banner(LIVE) == ""
    text = draw_banner(
        Health(False, 75.0, "connection refused", (Missing("You may not list pods.", "grant it"),), ("x",))
    )
    assert "connection refused" in text and "You may not list pods." in text and "1 object does not decode" in text


def test_the_chart_has_a_bar_for_each_sample_with_cycles() -> None:
    points = (Point(NOW, 2, 30.0), Point(NOW + 5, 0, None), Point(NOW + 10, 1, 1500.0))
    text = draw_cycles(CyclePage(points, 3, 520.0, 10.0, float("inf"), (("allocate", 3, 2.5),), 1), "")
    assert text.count("<rect") == 2
    assert "520 ms" in text and "over 5 s" in text and "1.50 s" in text


def test_an_answer_lists_what_would_help() -> None:
    found = Answer("job a", "pending", "It waits.", [Blocker("Gang", "2 of 4 fit.", {}, "Add nodes.")])
    assert "No single change" in draw_answer(found)
    found.unblock = [Help("nodes", "add 2 nodes")]
    assert "add 2 nodes" in draw_answer(found)


def test_the_uid_of_a_podgroup_is_not_part_of_the_name_of_a_job() -> None:
    text = draw_evictions(evictions([eviction("p", CREATED, f"train-{UID}")], {}), NOW)
    assert 'href="/jobs/lab/train"' in text
