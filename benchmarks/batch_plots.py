"""Plots of a batch trace in docs/decisions-over-time.md: allocation with what is held, waits by size, shares of users.

python -m benchmarks.batch_plots --seed 7           # writes docs/images/batch-*.svg
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from math import exp, log
from pathlib import Path

import numpy as np

from benchmarks.batch_traces import HOUR
from benchmarks.line_chart import Series, svg
from benchmarks.reservations import replayed
from volcano_py.simulate.trace.engine import Outcome
from volcano_py.simulate.trace.jobs import TraceJob
from volcano_py.simulate.trace.over_time import HALF_LIFE

IMAGES = Path(__file__).parent.parent / "docs" / "images"
_STEPS = 300
_USERS = 4
TITLES = {"today": "the default configuration", "batch": "volcano-scheduler-batch.conf"}


def allocation(outcomes: Mapping[str, Outcome]) -> str:
    """The share of the cores that is allocated, and the share that is idle because it is held."""
    end = _end(outcomes)
    panels = []
    for name, outcome in outcomes.items():
        cores = outcome.capacity["cpu"]
        lines = [
            Series("allocated", _over_time([(s.time, 100 * s.used["cpu"] / cores) for s in outcome.samples], end)),
            Series("held and idle", _over_time([(s.time, 100 * s.held_idle / cores) for s in outcome.samples], end)),
        ]
        panels.append((f"% of the cores, {TITLES[name]}", lines))
    return svg(panels, "hours")


def waits(jobs: Sequence[TraceJob], waited: Mapping[str, Mapping[str, float]]) -> str:
    """The waits of jobs of a size, from the shortest to the longest."""
    by_size = sorted(jobs, key=lambda job: (-job.pods * job.requests["cpu"], job.submitted, job.name))
    groups = {"the largest 5 %": by_size[: len(jobs) // 20], "the smallest half": by_size[len(jobs) // 2 :]}
    panels = []
    for title, members in groups.items():
        lines = []
        for name, of in waited.items():
            values = sorted(of[job.name] / HOUR for job in members)
            lines.append(Series(name, [(100 * (i + 1) / len(values), value) for i, value in enumerate(values)]))
        panels.append((f"wait in hours, {title} of the jobs", lines))
    return svg(panels, "% of these jobs that wait at most so long")


def shares(jobs: Sequence[TraceJob], outcomes: Mapping[str, Outcome]) -> str:
    """What the users with the most work have used, decayed with a half-life of a day, as a share of what all have."""
    work: dict[str, float] = {}
    for job in jobs:
        work[job.user] = work.get(job.user, 0.0) + job.pods * job.requests["cpu"] * job.duration
    users = sorted(work, key=lambda user: (-work[user], user))[:_USERS]
    end = _end(outcomes)
    moments = [end * step / _STEPS for step in range(1, _STEPS + 1)]
    panels = []
    for name, outcome in outcomes.items():
        used = {user: np.zeros(_STEPS) for user in work}
        for job in jobs:
            begin, until = outcome.started[job.name], outcome.ended[job.name]
            used[job.user] += np.array([_decayed(begin, until, t) * job.pods * job.requests["cpu"] for t in moments])
        total = np.maximum(sum(used.values(), np.zeros(_STEPS)), 1e-9)
        lines = [
            Series(user, [(t / HOUR, float(v)) for t, v in zip(moments, 100 * used[user] / total, strict=True)])
            for user in users
        ]
        panels.append((f"% of the usage, {TITLES[name]}", lines))
    return svg(panels, "hours")


def _end(outcomes: Mapping[str, Outcome]) -> float:
    """When all have ended, in whole parts of the axis."""
    last = max(outcome.samples[-1].time for outcome in outcomes.values())
    return -(-last // (20 * HOUR)) * 20 * HOUR


def _decayed(begin: float, until: float, now: float) -> float:
    """What a job has used by now, decayed."""
    rate = log(2) / HALF_LIFE
    if begin >= now:
        return 0.0
    return exp(-rate * max(0.0, now - until)) - exp(-rate * (now - begin))


def _over_time(samples: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """The mean of a value that holds until the next sample, by step."""
    times = np.array([time for time, _ in samples] + [end])
    sums = np.concatenate([[0.0], np.cumsum(np.diff(times) * np.array([value for _, value in samples]))])
    grid = np.linspace(0.0, end, _STEPS + 1)
    at = np.interp(grid, times, sums)
    return [(float(t) / HOUR, float(v)) for t, v in zip(grid[1:], np.diff(at) / np.diff(grid), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--into", type=Path, default=IMAGES)
    given = parser.parse_args()
    result = replayed(given.seed, 0.90 + 0.005 * (given.seed % 11), None)
    jobs, outcomes = result.jobs, result.outcomes
    submitted = {job.name: job.submitted for job in jobs}
    waited: dict[str, Mapping[str, float]] = {
        name: {job: at - submitted[job] for job, at in outcome.started.items()} for name, outcome in outcomes.items()
    }
    waited["EASY"] = result.easy
    given.into.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("allocation", allocation(outcomes)),
        ("waits", waits(jobs, waited)),
        ("shares", shares(jobs, outcomes)),
    ):
        file = given.into / f"batch-{name}.svg"
        file.write_text(text)
        print(file)


if __name__ == "__main__":
    main()
