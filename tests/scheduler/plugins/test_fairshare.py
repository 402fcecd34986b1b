"""fairshare: decayed usage, and shares over time. The scenarios have the orders."""

from __future__ import annotations

import random
from collections import defaultdict
from math import exp, log

import pytest

from volcano_py.scheduler.plugins.fairshare.plugin import Fairshare
from volcano_py.scheduler.plugins.fairshare.usage import LONGEST_GAP, DecayedUsage, Owner
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace import engine
from volcano_py.simulate.trace.engine import Outcome, replay
from volcano_py.simulate.trace.figures import jain
from volcano_py.simulate.trace.jobs import TraceJob, TraceNode
from volcano_py.simulate.trace.objects import group_object

A, B = Owner("q", "a"), Owner("q", "b")
HALF = 3600.0


def integral(seconds: float) -> float:
    """What one cluster that is held for so long counts at its end."""
    return (1 - exp(-log(2) / HALF * seconds)) * HALF / log(2)


def test_usage_of_a_half_life_ago_counts_half() -> None:
    usage = DecayedUsage({A: 100.0}, {}, 0.0)
    usage.advance(HALF, HALF, {})
    assert usage.used[A] == pytest.approx(50.0)


def test_usage_does_not_depend_on_how_often_sessions_run() -> None:
    often, rarely = DecayedUsage(at=0.0, held={A: 0.5}), DecayedUsage(at=0.0, held={A: 0.5})
    for second in range(1, 601):
        often.advance(float(second), HALF, {A: 0.5})
    rarely.advance(600.0, HALF, {A: 0.5})
    assert often.used[A] == pytest.approx(rarely.used[A]) == pytest.approx(0.5 * integral(600))


def test_a_clock_that_jumps() -> None:
    usage = DecayedUsage(at=10_000.0, held={A: 1.0}, used={B: 64.0})
    usage.advance(5_000.0, HALF, {A: 1.0})
    assert usage.used == {B: 64.0} and usage.at == 5_000.0
    usage.advance(5_000.0 + 10 * HALF, HALF, {})
    assert usage.used[A] == pytest.approx(integral(LONGEST_GAP)) and usage.used[B] == pytest.approx(64 / 1024)
    usage.advance(5_000.0 + 1000 * HALF, HALF, {})
    assert usage.used == {}


def test_after_a_restart_what_runs_counts_since_its_start() -> None:
    usage = DecayedUsage()
    usage.begin(HALF, HALF, [(A, 0.25, 0.0), (A, 0.25, 0.0), (B, 1.0, 2 * HALF)])
    assert usage.used[A] == pytest.approx(0.5 * integral(HALF)) and usage.used[B] == 0 and usage.at == HALF


def test_bad_arguments_are_warnings() -> None:
    given = {"half-life": "0s", "ahead": "x", "weights": {"a": 0, "b": float("inf"), "c": 2}}
    plugin = Fairshare(given)
    assert [w.partition(" argument ")[2].split(";")[-1] for w in plugin.warnings] == [
        " 168h is used",
        " 1h is used",
        " 1 is used",
        " 1 is used",
    ]
    assert plugin.weights == {"c": 2.0} and plugin.half_life == 7 * 86_400


CONF = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: gang}, PLUGIN{name: predicates}, {name: nodeorder}]\n"
FAIR = CONF.replace("PLUGIN", "{name: fairshare, arguments: {half-life: 2h, ahead: 10m, weights: {u0: 2}}}, ")
WEIGHTS = {"u0": 2.0, "u1": 1.0, "u2": 1.0, "u3": 1.0}


def saturated() -> list[TraceJob]:
    """Four users with work for many hours; u3 submits three times as many jobs as the others, and first."""
    rng = random.Random(7)
    jobs = []
    for user, count in (("u3", 150), ("u2", 50), ("u1", 50), ("u0", 100)):
        for number in range(count):
            requests = {"cpu": 1000 * rng.randint(1, 4), "memory": 1}
            at = 60.0 * (user != "u3") + number / 100
            jobs.append(TraceJob(f"{user}-{number}", at, rng.randint(300, 1500), user, 1, requests))
    return jobs


def of_users(jobs: list[TraceJob], outcome: Outcome, at: float) -> dict[str, float]:
    """The decayed usage of each user at a time, from starts and ends alone."""
    rate, used = log(2) / 7200, defaultdict[str, float](float)
    for job in jobs:
        start = outcome.started.get(job.name)
        if start is not None and start < at:
            end = min(at, start + job.duration)
            used[job.user] += job.requests["cpu"] * (exp(-rate * (at - end)) - exp(-rate * (at - start)))
    return used


def test_users_of_a_saturated_queue_have_usage_by_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, nodes = saturated(), [TraceNode(f"n{i}", {"cpu": 20_000, "memory": 1000}) for i in range(1)]
    of = {job.name: job.user for job in jobs}

    def owned(job: TraceJob, queue: str, phase: str = "Pending"):  # type: ignore[no-untyped-def]
        group = group_object(job, queue, phase)
        group.metadata.labels = {"volcano.sh/owner": of[job.name]}
        return group

    monkeypatch.setattr(engine, "group_object", owned)
    lowest = {}
    for name, text in (("fair", FAIR), ("default", CONF.replace("PLUGIN", ""))):
        outcome = replay(jobs, nodes, configuration(text, False), 120.0)
        assert not outcome.faults
        last = min(max(outcome.started[j.name] for j in jobs if j.user == user) for user in WEIGHTS)
        windows = [of_users(jobs, outcome, at) for at in range(7200, int(last), 600)] if name == "fair" else []
        windows = windows or [of_users(jobs, outcome, 7200.0)]
        lowest[name] = min(jain([used[user] / weight for user, weight in WEIGHTS.items()]) for used in windows)
    assert lowest["fair"] >= 0.95 and lowest["default"] < 0.6, lowest
