"""Orders of jobs by time: bad arguments, what is counted between sessions, and what users read."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.plugins.least_attained_service import LONGEST_GAP, Attained, LeastAttainedService
from volcano_py.scheduler.plugins.shortest_remaining import ShortestRemaining
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (
            ShortestRemaining({"longest-wait": "-1h"}),
            "longest-wait is '-1h', and must be a duration such as 90s or 1h30m, of at least 0; 24h",
        ),
        (ShortestRemaining({"longest-wait": "soon"}), "24h is used"),
        (
            LeastAttainedService({"level": "0s"}),
            "level is '0s', and must be a duration such as 90s or 1h30m, above 0; 1m is used",
        ),
        (LeastAttainedService({"level": "x"}), "1m is used"),
    ],
)
def test_bad_arguments_are_warnings(plugin: ShortestRemaining | LeastAttainedService, text: str) -> None:
    [warning] = plugin.warnings
    assert text in warning


def test_service_accrues_by_what_is_held_and_stays_after_an_eviction() -> None:
    attained = Attained()
    attained.advance(0.0, {"a": 0.5, "b": 0.25})
    attained.advance(100.0, {"b": 0.25})  # a is evicted
    attained.advance(200.0, {})
    assert attained.service == {"a": 50.0, "b": 50.0}
    attained.advance(50.0, {"a": 1.0})  # the clock jumps back
    attained.advance(50.0 + 10 * LONGEST_GAP, {})
    assert attained.service["a"] == 50.0 + LONGEST_GAP
    attained.forget({"a": None})
    assert set(attained.service) == {"a"}


def test_a_deadline_that_cannot_be_met_is_explained() -> None:
    annotations = {"volcano.sh/deadline": "1h", "volcano.sh/max-run-time": "2h"}
    jobs = {"missed": {"min": 1, "minResources": {"cpu": 1}, "pods": 0, "metadata": {"annotations": annotations}}}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 2}}, "jobs": jobs}))
    text = configuration({"actions": "enqueue, allocate", "plugins": [["gang"], ["earliest-deadline"]]})
    report = run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now)
    text_of_job = " ".join(
        sentence_of(cause) for cause in causes(report.session, report.session.jobs["default/missed"])
    )
    assert "cannot be met: the limit of its run time ends 360" in text_of_job and "change the annotation" in text_of_job


def test_a_deadline_that_cannot_be_read_is_reported() -> None:
    annotations = {"volcano.sh/deadline": "tomorrow"}
    jobs = {"soon": {"min": 1, "minResources": {"cpu": 1}, "pods": 0, "metadata": {"annotations": annotations}}}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 2}}, "jobs": jobs}))
    text = configuration({"actions": "enqueue, allocate", "plugins": [["gang"], ["earliest-deadline"]]})
    report = run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now)
    [event] = [each for notes in report.session.notes.values() for each in notes if each.reason == "InvalidDeadline"]
    assert "'tomorrow' is neither a time" in event.message and event.name == "soon"


def test_the_scheduler_wakes_when_a_deadline_can_no_longer_be_met() -> None:
    annotations = {"volcano.sh/deadline": "3h", "volcano.sh/max-run-time": "2h"}
    jobs = {"later": {"min": 1, "minResources": {"cpu": 9}, "pods": 0, "metadata": {"annotations": annotations}}}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 2}}, "jobs": jobs}))
    plugins = [["gang"], ["earliest-deadline", "overcommit"]]
    text = configuration({"actions": "enqueue, allocate", "plugins": plugins})
    report = run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now)
    created = report.session.jobs["default/later"].created
    assert report.session.next_wake == created + 3600
