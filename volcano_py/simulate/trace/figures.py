"""The figures of a replayed trace, and plots of them. Times are in seconds, shares between 0 and 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from volcano_py.simulate.trace.engine import Outcome, Sample
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob

SHORT = 10.0
"""The minimum duration of a job in the computation of its slowdown (bounded slowdown), in seconds."""


def figures(jobs: Sequence[TraceJob], outcome: Outcome) -> dict[str, float]:
    """By name; a figure that cannot be computed (no GPU, no completed job) is left out."""
    known = {job.name: job for job in jobs}
    waits = [started - known[name].submitted for name, started in outcome.started.items()]
    completions = [ended - known[name].submitted for name, ended in outcome.ended.items()]
    slowdowns = {
        name: max(1.0, (ended - known[name].submitted) / max(known[name].duration, SHORT))
        for name, ended in outcome.ended.items()
    }
    found: dict[str, float] = {
        "jobs": len(jobs),
        "jobs that started": len(outcome.started),
        "jobs that ended": len(outcome.ended),
        "evicted pods": outcome.evictions,
        "cycles": outcome.cycles,
        "makespan": max(outcome.ended.values(), default=0.0),
    }
    for name, resource in (("GPU", GPU), ("cpu", "cpu"), ("memory", "memory")):
        if outcome.capacity.get(resource):
            shares = [s.used[resource] / outcome.capacity[resource] for s in outcome.samples]
            found[f"{name} allocated, mean"] = _over_time(outcome.samples, shares)
            found[f"{name} allocated, highest"] = max(shares, default=0.0)
    if outcome.capacity.get(GPU):
        found["GPU busy while jobs wait, mean"] = _while_waiting(outcome)
        stranded = [s.stranded / outcome.capacity[GPU] for s in outcome.samples]
        found["GPU fragmentation, mean"] = _over_time(outcome.samples, stranded)
    for name, values in (("wait", waits), ("completion", completions), ("slowdown", list(slowdowns.values()))):
        if values:
            found[f"{name}, mean"] = float(np.mean(values))
            for percentile in (50, 90, 99):
                found[f"{name}, p{percentile}"] = float(np.percentile(values, percentile))
    by_user: dict[str, list[float]] = defaultdict(list)
    for name, slowdown in slowdowns.items():
        by_user[known[name].user].append(slowdown)
    if by_user:
        found["fairness (Jain, slowdown of users)"] = jain([float(np.mean(of)) for of in by_user.values()])
    return found


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    squares = len(values) * sum(v * v for v in values)
    return sum(values) ** 2 / squares if squares else 1.0


def _over_time(samples: Sequence[Sample], values: Sequence[float]) -> float:
    """The mean of values that each hold until the next sample."""
    lengths = np.diff([s.time for s in samples])
    if not len(lengths) or not lengths.sum():
        return float(values[0]) if values else 0.0
    return float(np.average(values[:-1], weights=lengths))


def _while_waiting(outcome: Outcome) -> float:
    pairs = zip(outcome.samples, outcome.samples[1:], strict=False)
    spans = [(b.time - a.time, a.used[GPU] / outcome.capacity[GPU]) for a, b in pairs if a.waiting]
    total = sum(length for length, _ in spans)
    return sum(length * share for length, share in spans) / total if total else 0.0


def plot(outcomes: Mapping[str, Outcome], jobs: Sequence[TraceJob], folder: Path) -> list[Path]:
    """SVG files: allocation, waiting jobs and waits, one line for each configuration. Raises TraceError, OSError."""
    try:
        import matplotlib
    except ImportError:
        raise TraceError("plots need matplotlib: pip install 'volcano-py[plots]'") from None
    matplotlib.use("svg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    known = {job.name: job for job in jobs}
    files = []
    for name, axis in (("allocation", "allocated share"), ("waiting", "waiting jobs"), ("waits", "share of jobs")):
        figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
        for label, outcome in outcomes.items():
            times = [s.time / 3600 for s in outcome.samples]
            resource = GPU if outcome.capacity.get(GPU) else "cpu"
            if name == "allocation":
                axes.step(times, [s.used[resource] / outcome.capacity[resource] for s in outcome.samples], label=label)
            elif name == "waiting":
                axes.step(times, [s.waiting for s in outcome.samples], label=label)
            else:
                waits = sorted(started - known[job].submitted for job, started in outcome.started.items())
                axes.step([w / 3600 for w in waits], np.arange(1, len(waits) + 1) / max(1, len(jobs)), label=label)
        axes.set_xlabel("wait in hours" if name == "waits" else "hours")
        axes.set_ylabel(axis)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
        files.append(folder / f"{name}.svg")
        figure.savefig(files[-1])
        pyplot.close(figure)
    return files
