"""Learned run times: what counts, for which jobs, and what a restart continues with."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.history import History
from volcano_py.scheduler.framework.reservations.job_kinds import pattern_of
from volcano_py.scheduler.framework.reservations.learned_run_times import (
    CLASSES,
    OBSERVATIONS,
    LearnedRunTimes,
    Observed,
)
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.plugins.fairshare.usage import DecayedUsage
from volcano_py.scheduler.plugins.reservation import Reservation
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

A, B = ("q", "a", "train-#"), ("q", "a", "eval-#")
LIMIT = "volcano.sh/max-run-time"


def learned(**runs: list[float]) -> LearnedRunTimes:
    found = LearnedRunTimes(quantile=0.5, least=3)
    for name, times in runs.items():
        for ran in times:
            found.record(("q", *name.split("_", 1)), Observed(ran, None))
    return found


def test_the_narrowest_class_with_enough_jobs_counts() -> None:
    known = learned(a_train=[10, 20, 30], a_eval=[100], b_eval=[1000])
    assert known.limit(("q", "a", "train"), None) == 20
    assert known.limit(("q", "a", "eval"), None) == 20, "of the owner: 10, 20, 30, 100"
    assert known.limit(("q", "b", "eval"), None) == 30, "of the queue: all five"
    assert known.limit(("other", "a", "train"), None) is None
    known.set(0.9, 3)
    assert known.limit(("q", "a", "train"), None) == 30
    known.set(0.5, 6)
    assert known.limit(("q", "a", "train"), None) is None


def test_a_stated_limit_counts_until_jobs_lie_again_and_again() -> None:
    known = LearnedRunTimes(least=1)
    for lies in range(3):
        assert known.limit(A, 10.0) == 10, f"after {lies} lies"
        known.record(A, Observed(100.0, 10.0))
    assert known.limit(A, 10.0) == 100
    assert known.limit(B, 10.0) == 10, "another kind of job of the same owner"
    for _ in range(3):
        known.record(A, Observed(5.0, 10.0))
    assert known.limit(A, 10.0) == 10, "half of the jobs kept their limits"


def test_memory_is_bounded() -> None:
    known = LearnedRunTimes()
    for number in range(2 * CLASSES):
        known.record(("q", "a", f"name-{number}x"), Observed(1.0, None))
    assert len(known.classes) == CLASSES and ("q",) in known.classes and ("q", "a") in known.classes
    assert len(known.classes["q",]) == OBSERVATIONS


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("train-17", "train-#"),
        ("train-x7k2p", "train"),
        ("train-large", "train-large"),
        ("2026-11-28-run", "#-#-#-run"),
        ("x" * 300, "x" * 128),
    ],
)
def test_patterns_of_names(name: str, pattern: str) -> None:
    assert pattern_of(name) == pattern


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "Expected `object`, got `array`"),
        ({"classes": [{"of": ["q"]}]}, "missing required field `runs`"),
        ({"classes": [{"of": [], "runs": []}]}, "must have one to three"),
        ({"classes": [{"of": ["q"], "runs": [[-1, None]]}]}, "is not from 0 to"),
        ({"classes": [{"of": ["q"], "runs": [[inf, None]]}]}, "is not from 0 to"),
        ({"classes": [{"of": ["q"], "runs": [["long", None]]}]}, "Expected `float`, got `str`"),
    ],
)
def test_a_stored_document_that_is_not_valid_leaves_nothing(document: Any, problem: str) -> None:
    known = learned(a_train=[1, 2, 3])
    assert problem in known.load(document)
    assert not known.classes and known.limit(A, None) is None


def test_bad_arguments_are_warnings() -> None:
    plugin = Reservation({"quantile": 0, "observations": 0, "queue-share": 2})
    assert [w.partition(" argument ")[2] for w in plugin.warnings] == [
        "queue-share is 2.0, and must be above 0 and at most 1; 1 is used",
        "quantile is 0.0, and must be above 0 and at most 1; 0.9 is used",
        "observations is 0, and must be from 1 to 32; 5 is used",
    ]


def of(started: str, node: str, **more: Any) -> dict[str, Any]:
    status = {"startTime": started, "phase": "Running"}
    return {"phase": "Running", "tasks": {"x": {"pods": 1, "runsOn": node, "cpu": 4, "status": status}}, **more}


class Cluster:
    """Jobs of which one has ended, one runs, and a gang waits."""

    own = {"reservation": {"patience": "0s", "large-patience": "0s", "learn": True, "observations": 1}}

    def __init__(self) -> None:
        jobs = {
            "train-1": of("2026-01-01T00:00:00Z", "n1"),
            "train-2": of("2026-01-01T00:00:00Z", "n2"),
            "gang": {"min": 2, "pods": 2, "each": {"cpu": 4}},
        }
        nodes = {"n1": {"cpu": 4}, "n2": {"cpu": 4}}
        self.simulation = Simulation(manifests({"nodes": nodes, "jobs": jobs}))
        plugins = [["gang"], [{"fairshare": {"half-life": "1h"}}, "predicates", self.own]]
        text = configuration({"actions": "enqueue, reserve, allocate", "plugins": plugins})
        self.conf = load(text, REGISTRY.actions)

    def cycle(self, later: float) -> CycleReport:
        self.simulation.cluster.dirty = True
        report = run_once(self.simulation.cluster, self.conf, self.simulation.now + later, assume=False)
        assert not report.faults, report.faults
        return report

    def end(self, job: str, phase: str = "Succeeded") -> None:
        pod = self.simulation.objects["Pod", f"default/{job}-x-0"]
        self.simulation.put({**pod, "status": {**pod["status"], "phase": phase}})

    @property
    def reserved(self) -> list[float]:
        return [held.start for held in self.simulation.cluster.keep(KeptReservations).reserved]


def test_a_job_that_has_succeeded_is_what_similar_jobs_are_expected_to_do() -> None:
    own = Cluster()
    own.cycle(0)
    assert own.reserved == []
    own.end("train-1")
    report = own.cycle(98)  # it has run for 100 s, and train-2 for as long, so that half of it more is expected
    assert own.simulation.cluster.keep(LearnedRunTimes).classes["default", "default", "train-#"][0].ran == 100
    assert own.reserved == [report.session.now + 50]


def test_a_job_that_has_failed_says_nothing() -> None:
    own = Cluster()
    own.cycle(0)
    own.end("train-1", "Failed")
    own.cycle(98)
    assert not own.simulation.cluster.keep(LearnedRunTimes).classes and own.reserved == []


def test_a_restart_in_the_middle_of_a_day_continues() -> None:
    """Two schedulers see the same cluster; one is restarted, and has what the other one has."""
    kept, restarted = Cluster(), Cluster()
    for own in (kept, restarted):
        own.cycle(0)
        own.end("train-1")
        own.cycle(98)
    history = restarted.simulation.cluster.keep(History)
    stored = json.loads(json.dumps({name: state.document() for name, state in history.states.items()}))
    assert set(stored) == {"fairshare", "reservation"}
    objects = [restarted.simulation.objects[key] for key in sorted(restarted.simulation.objects)]
    restarted.simulation = Simulation(objects, raw=True, now=restarted.simulation.now)
    restarted.simulation.cluster.keep(History).put(stored)
    for own in (kept, restarted):
        own.cycle(120)
        assert not [w for w in own.cycle(121).warnings if "stored" in w]
    usage = [own.simulation.cluster.keep(DecayedUsage) for own in (kept, restarted)]
    assert usage[0].used and usage[1].used == pytest.approx(usage[0].used, rel=1e-3)
    assert usage[1].held == pytest.approx(usage[0].held)
    assert kept.reserved == restarted.reserved != []
    learnt = [own.simulation.cluster.keep(LearnedRunTimes).classes for own in (kept, restarted)]
    assert learnt[0] == learnt[1] != {}


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"fairshare": {"at": 1e9, "owners": [{"queue": "q", "owner": "o", "used": -1}]}}, "the stored usage is not"),
        ({"fairshare": {"owners": []}}, "missing required field `at`"),
        ({"fairshare": {"at": "yesterday"}}, "the stored usage is not valid"),
        ({"reservation": 7}, "the stored run times are not valid"),
    ],
)
def test_a_part_that_is_not_valid_is_one_warning(part: dict[str, Any], text: str) -> None:
    own = Cluster()
    own.simulation.cluster.keep(History).put(part)
    assert [text in warning for warning in own.cycle(0).warnings] == [True]
    assert own.cycle(1).warnings == []


def test_a_stored_usage_of_a_clock_that_was_ahead_neither_accrues_nor_decays() -> None:
    own = Cluster()
    owners = [{"queue": "default", "owner": "o", "used": 64.0, "held": 1.0}]
    own.simulation.cluster.keep(History).put({"fairshare": {"at": 4e9, "owners": owners}})
    report = own.cycle(0)
    usage = own.simulation.cluster.keep(DecayedUsage)
    assert usage.at == report.session.now and usage.used["default", "o"] == 64.0  # type: ignore[index]
