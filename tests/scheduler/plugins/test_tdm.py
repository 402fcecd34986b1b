"""tdm: the hours of revocable zones in their notation, and which pods their end and a preemptor may evict."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Trial, opened, tasks
from volcano_py.scheduler.plugins.tdm import Tdm, most_victims, window

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
def test_invalid_hours(text: object) -> None:
    assert window(text, NOON) is None


# ---- victims --------------------------------------------------------------------------------------------------

LENT = {"labels": {"volcano.sh/revocable-zone": "z"}}
TDM: list[list[Any]] = [["gang"], [{"tdm": {"tdm.revocable-zone.z": "never"}}, "predicates"]]


@pytest.mark.parametrize(
    ("annotations", "most"),
    [
        ({}, 1),
        ({"volcano.sh/jdb-min-available": "1"}, 3),
        ({"volcano.sh/jdb-min-available": "50%"}, 2),
        ({"volcano.sh/jdb-min-available": "-1"}, 5),
        ({"volcano.sh/jdb-min-available": "200%"}, 1),
        ({"volcano.sh/jdb-min-available": "x"}, 1),
        ({"volcano.sh/jdb-max-unavailable": "3"}, 3),
        ({"volcano.sh/jdb-max-unavailable": "30%"}, 2),
        ({"volcano.sh/jdb-max-unavailable": "-1"}, 0),
        ({"volcano.sh/jdb-max-unavailable": "200%"}, 8),
        ({"volcano.sh/jdb-max-unavailable": "%"}, 1),
    ],
)
def test_how_many_pods_of_a_job_may_be_evicted_together(annotations: dict[str, str], most: int) -> None:
    job = {"min": 0, "pods": 4, "phase": "Running", "each": {"runsOn": "n1"}, "metadata": {"annotations": annotations}}
    session = opened({"nodes": {"n1": {}}, "jobs": {"j": job}}, [["gang"]])
    assert most_victims(session.jobs["default/j"]) == most


def test_missing_pods_count_as_evicted() -> None:
    roles = {"a": {"pods": 2, "runsOn": "n1"}, "b": {"pods": 1}}
    annotations = {"volcano.sh/jdb-max-unavailable": "2"}
    job = {"min": 0, "phase": "Running", "tasks": roles, "metadata": {"annotations": annotations}}
    session = opened({"nodes": {"n1": {}}, "jobs": {"j": job}}, [["gang"]])
    assert most_victims(session.jobs["default/j"]) == 1


@pytest.mark.parametrize(
    ("preemptor", "node", "victims"),
    [
        ({}, {}, 1),
        ({"volcano.sh/preemptable": "true"}, {}, 0),
        ({"volcano.sh/revocable-zone": "*"}, {}, 0),
        ({"volcano.sh/revocable-zone": "other"}, {}, 1),
        ({}, LENT, 0),
    ],
)
def test_pods_without_the_zone_preempt_outside_of_it(
    preemptor: dict[str, str], node: dict[str, Any], victims: int
) -> None:
    preemptable = {"annotations": {"volcano.sh/preemptable": "true"}}
    jobs = {
        "old": {"min": 0, "pods": 2, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1", **preemptable}},
        "new": {
            "min": 1,
            "phase": "Inqueue",
            "each": {"cpu": 1, "annotations": {"volcano.sh/preemptable": "false", **preemptor}},
        },
    }
    session = opened({"nodes": {"n1": node, "n2": {}}, "jobs": jobs}, [[{"tdm": {}}]])
    found = session.victims.preemptable(tasks(session, "new")[0], tasks(session, "old"))
    assert len(found) == victims


def test_pods_that_are_not_preemptable_stay_in_a_zone_whose_hours_are_over() -> None:
    fixed = {"annotations": {"volcano.sh/preemptable": "false"}}
    jobs = {"j": {"min": 0, "pods": 2, "phase": "Running", "each": {"runsOn": "n1", **fixed}}}
    trial = Trial({"nodes": {"n1": LENT}, "jobs": jobs}, TDM, "shuffle")
    trial.cycle()
    assert not trial.evicted


def test_invalid_arguments() -> None:
    plugin = Tdm({"tdm.evict.period": "often"})
    assert plugin.period == 60 and "1m stays in force" in plugin.warnings[0]
    assert Tdm({"tdm.evict.period": "5s", "tdm.revocable-zone.z": "1:00-2:00"}).period == 5
    assert Tdm({}).closed_reason("z", NOON) == "revocable zone z not support"
    hours = {"tdm.revocable-zone.z": "1:00-2:00"}
    assert Tdm(hours).closed_reason("z", NOON) == "current time beyond revocable zone z:1:00-2:00"
    assert Tdm({"tdm.revocable-zone.z": "12:00-12:01"}).closed_reason("z", NOON) == ""
    assert Tdm({"tdm.revocable-zone.z": "11:00-12:00"}).closed_reason("z", NOON) == "", "both ends are within"
