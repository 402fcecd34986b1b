"""From when on nodes are held for a job, and which large jobs come first."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from benchmarks.batch_limits import Trace, rule
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.book import book_of
from volcano_py.scheduler.framework.reservations.first_jobs import FirstJobsRule
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

RULE = FirstJobsRule(80, 0.125, 40, 60, "slowdown", 0.75, 1.0)


@pytest.mark.parametrize(
    ("ratio", "start", "expected"),
    [(0, 100, -inf), (1, 40, 20), (1, 0, 0), (3, 40, 30), (1, 1000, 60), (0.5, 30, 10)],
)
def test_nodes_are_held_once_the_job_has_waited_long_enough_for_it(ratio: float, start: float, expected: float) -> None:
    """A job created at 0: at the expected time it has waited `ratio` times as long as until its start, or for
    oldest-first, 60."""
    own = FirstJobsRule(80, 0.125, 40, 60, "size", 0.75, ratio)
    assert own.held_from(0.0, start) == pytest.approx(expected)


@pytest.mark.parametrize(("size", "patience"), [(0.1, 80), (0.125, 40), (0.25, 20), (1.0, 5)])
def test_larger_jobs_have_less_patience(size: float, patience: float) -> None:
    assert RULE.patience_of(size) == patience


@pytest.mark.parametrize(("exponent", "first"), [(0, "long"), (0.5, "long"), (0.75, "brief"), (1, "brief")])
def test_the_exponent_weighs_the_limit_against_the_wait(exponent: float, first: str) -> None:
    """The long job has waited four times as long, and its limit is eight times as long."""
    jobs: dict[str, Any] = {}
    for name, created, limit in (("long", "2026-01-01T00:00:00Z", "8h"), ("brief", "2026-01-01T03:00:00Z", "1h")):
        meta = {"annotations": {"volcano.sh/max-run-time": limit}, "creationTimestamp": created}
        jobs[name] = {"min": 1, "pods": 1, "metadata": meta, "each": {"cpu": 8}}
    own = {"reservation": {"large-patience": "0s", "large-order": "slowdown", "limit-exponent": exponent}}
    text = configuration({"actions": "reserve", "plugins": [["gang"], ["predicates", "nodeorder", own]]})
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": jobs}))
    at = simulation.cluster.jobs["default/long"].created + 4 * 3600
    book = book_of(run_once(simulation.cluster, load(text, REGISTRY.actions), at).session)
    assert book is not None and book.first[0].name == first


def test_with_exact_limits_the_model_of_the_rule_is_better_than_easy_with_stated_ones() -> None:
    """A trace of `python -m benchmarks.batch_limits`; every job starts."""
    trace = Trace(101)
    assert trace.ratios(1.0, 0.0)[1] <= 1.0
    started = rule(1.0).run([replace(job) for job in trace.jobs], trace.interval)
    assert len(started) == len(trace.jobs)


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({"annotations": {"volcano.sh/max-run-time": "soon"}}, "annotation volcano.sh/max-run-time: 'soon' is not"),
        ({"annotations": {"volcano.sh/max-run-time": "0"}}, "annotation volcano.sh/max-run-time: '0' is not"),
        ({"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "-1"}}, "max-exec-time-seconds: '-1' is not"),
        ({"annotations": {"volcano.sh/max-run-time": "2h"}}, ""),
        ({}, ""),
    ],
)
def test_a_limit_that_is_not_usable_is_reported(meta: dict[str, Any], text: str) -> None:
    jobs = {"a": {"min": 1, "minResources": {"cpu": 1}, "pods": 0, "metadata": meta}}
    conf = configuration({"actions": "enqueue, reserve, allocate", "plugins": [["gang"], ["reservation"]]})
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 2}}, "jobs": jobs}))
    notes = run_once(simulation.cluster, load(conf, REGISTRY.actions), simulation.now).session.notes
    found = [each.message for of in notes.values() for each in of if each.reason == "InvalidMaxRunTime"]
    assert len(found) == bool(text) and all(text in message and "has no limit" in message for message in found)
