"""Figures of a trace that look at each moment of it."""

from __future__ import annotations

from math import exp, log

import pytest

from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.engine import replay
from volcano_py.simulate.trace.figures import figures, jain
from volcano_py.simulate.trace.jobs import GPU, TraceJob, TraceNode
from volcano_py.simulate.trace.over_time import HALF_LIFE, STEP, jain_of_usage

HOUR = 3600.0
CONF = """
actions: "enqueue, reserve, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: reservation, arguments: {patience: 0s, large-patience: 0s}}]
"""


def job(name: str, at: float, duration: float, user: str = "u", pods: int = 1, **requests: int) -> TraceJob:
    return TraceJob(name, at, duration, user, pods, {"memory": 1, **requests}, (), duration)


@pytest.mark.parametrize(("resource", "amount"), [("cpu", 4000), (GPU, 2000)])
def test_what_is_idle_because_it_is_held(resource: str, amount: int) -> None:
    """n1 is busy for 100 s; until then n2 is held for the gang, and a long job has to wait."""
    node = {"cpu": 4000, "memory": 1000, resource: amount}
    nodes = [TraceNode("n1", node), TraceNode("n2", node)]
    whole = {resource: amount}
    jobs = [job("a", 0, 100, **whole), job("gang", 10, 100, pods=2, **whole), job("long", 20, 200, **whole)]
    found = figures(jobs, outcome := replay(jobs, nodes, configuration(CONF, False), 10.0))
    assert [outcome.started[name] for name in ("a", "gang", "long")] == [10.0, 110.0, 210.0]
    name = "GPU" if resource == GPU else "cpu"
    assert found[f"{name} idle because it is held, mean"] == pytest.approx(100 * 0.5 / 400), "of 10 to 410 s"


def test_nothing_is_held_without_the_plugin() -> None:
    nodes = [TraceNode("n1", {"cpu": 4000, "memory": 1000})]
    jobs = [job("a", 0, 100, cpu=4000), job("b", 0, 100, cpu=4000)]
    text = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
    found = figures(jobs, replay(jobs, nodes, configuration(text, False), 10.0))
    assert not [name for name in found if "held" in name or "decayed" in name]


def test_shares_of_users_while_all_of_them_wait() -> None:
    """a has one core of two all the time, b only from the 40th hour on; both wait until the 60th."""
    jobs = [job("a", 0, 100 * HOUR, "a", cpu=1), job("b", 0, 60 * HOUR, "b", cpu=1)]
    jobs += [job(f"{user}2", 0, HOUR, user, cpu=1) for user in "ab"]
    started = {"a": 0.0, "b": 40 * HOUR, "a2": 60 * HOUR, "b2": 100 * HOUR}
    ended = {"a": 100 * HOUR, "b": 100 * HOUR, "a2": 61 * HOUR, "b2": 101 * HOUR}
    found = jain_of_usage(jobs, started, ended, {"cpu": 2})
    rate = log(2) / HALF_LIFE

    def of(at: float, start: float) -> float:
        return 1 - exp(-rate * (at - start)) if at > start else 0.0

    moments = [HALF_LIFE + n * STEP for n in range(36)]
    assert found == pytest.approx([jain([of(at, 0.0), of(at, 40 * HOUR)]) for at in moments])
    assert found[0] == 0.5 and 0.5 < found[-1] < 1


def test_shares_need_several_users_and_a_half_life() -> None:
    jobs = [job("a", 0, HOUR, "a", cpu=1), job("b", 0, HOUR, "b", cpu=1)]
    times = {"a": 0.0, "b": HOUR}
    assert jain_of_usage(jobs, times, {"a": HOUR, "b": 2 * HOUR}, {"cpu": 1}) == []
    assert jain_of_usage(jobs[:1], times, {"a": 9 * HALF_LIFE}, {"cpu": 1}) == []


def test_a_simulation_learns_run_times_by_user() -> None:
    """Without limits, nothing is held for the gang until a job of the same user has ended; with `learn` afterwards."""
    nodes = [TraceNode(f"n{i}", {"cpu": 4000, "memory": 1000}) for i in (1, 2)]

    def unlimited(name: str, at: float, duration: float, user: str = "u", pods: int = 1) -> TraceJob:
        return TraceJob(name, at, duration, user, pods, {"cpu": 4000, "memory": 1}, ())

    jobs = [unlimited("first-1", 0, 100), unlimited("first-2", 120, 100), unlimited("gang", 130, 100, "v", 2)]
    jobs += [unlimited(f"stream-{i}", 140 + i, 1000, "w") for i in range(3)]
    started = {}
    for learn in ("false", "true"):
        text = CONF.replace("{patience: 0s", f"{{learn: {learn}, observations: 1, patience: 0s")
        outcome = replay(jobs, nodes, configuration(text, False), 10.0)
        assert not outcome.faults
        started[learn] = outcome.started["gang"]
    assert started["true"] == 220.0 and started["false"] > 1000
