"""The figures of a replayed trace, and plots of them. Times are in seconds, shares between 0 and 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from volcano_py.simulate.trace.engine import Outcome, Sample
from volcano_py.simulate.trace.jobs import GPU, TraceError, TraceJob
from volcano_py.simulate.trace.over_time import jain_of_usage

_ENDED = 99
"""Plots over time end when this percentage of the jobs has ended."""
_STYLES = ("solid", "dashed", "dotted", "dashdot")
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
    if outcome.lost:
        found["core-seconds lost by evictions"] = outcome.lost
    for name, resource in (("GPU", GPU), ("cpu", "cpu"), ("memory", "memory")):
        if outcome.capacity.get(resource):
            shares = [s.used[resource] / outcome.capacity[resource] for s in outcome.samples]
            found[f"{name} allocated, mean"] = _over_time(outcome.samples, shares)
            found[f"{name} allocated, highest"] = max(shares, default=0.0)
    if outcome.capacity.get(GPU):
        found["GPU busy while jobs wait, mean"] = _while_waiting(outcome, GPU)
        stranded = [s.stranded / outcome.capacity[GPU] for s in outcome.samples]
        found["GPU fragmentation, mean"] = _over_time(outcome.samples, stranded)
    if outcome.capacity.get("cpu"):
        found["cpu busy while jobs wait, mean"] = _while_waiting(outcome, "cpu")
    for name, values in (("wait", waits), ("completion", completions), ("slowdown", list(slowdowns.values()))):
        if values:
            found[f"{name}, mean"] = float(np.mean(values))
            for percentile in (50, 90, 95, 99):
                found[f"{name}, p{percentile}"] = float(np.percentile(values, percentile))
            found[f"{name}, max"] = float(max(values))
    found |= _waits_by_size(jobs, outcome)
    if any(s.held_idle for s in outcome.samples):
        kind = GPU if outcome.capacity.get(GPU) else "cpu"
        held = [s.held_idle / outcome.capacity[kind] for s in outcome.samples]
        found[f"{'GPU' if kind == GPU else kind} idle because it is held, mean"] = _over_time(outcome.samples, held)
    usage = jain_of_usage(jobs, outcome.started, outcome.ended, outcome.capacity)
    if usage:
        found["fairness (Jain, decayed usage of users), mean"] = float(np.mean(usage))
        found["fairness (Jain, decayed usage of users), lowest"] = min(usage)
    by_user: dict[str, list[float]] = defaultdict(list)
    for name, slowdown in slowdowns.items():
        by_user[known[name].user].append(slowdown)
    if by_user:
        found["fairness (Jain, slowdown of users)"] = jain([float(np.mean(of)) for of in by_user.values()])
    return found


def _waits_by_size(jobs: Sequence[TraceJob], outcome: Outcome) -> dict[str, float]:
    """The waits of the largest and of the smallest jobs. The size of a job is its largest share of a resource."""
    capacity = {resource: amount for resource, amount in outcome.capacity.items() if amount}

    def size(job: TraceJob) -> float:
        return max((job.pods * job.requests.get(r, 0) / amount for r, amount in capacity.items()), default=0.0)

    by_size = sorted(jobs, key=lambda job: (-size(job), job.submitted, job.name))
    groups = {
        "the largest 5 %": by_size[: -(-len(by_size) // 20)],
        "the smallest half": by_size[-(len(by_size) // 2) :] if len(by_size) > 1 else [],
    }
    found = {}
    for name, members in groups.items():
        waits = [outcome.started[job.name] - job.submitted for job in members if job.name in outcome.started]
        if waits:
            found[f"wait of {name}, mean"] = float(np.mean(waits))
            for percentile in (50, 95, 99):
                found[f"wait of {name}, p{percentile}"] = float(np.percentile(waits, percentile))
            found[f"wait of {name}, max"] = float(max(waits))
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


def _while_waiting(outcome: Outcome, resource: str) -> float:
    pairs = zip(outcome.samples, outcome.samples[1:], strict=False)
    spans = [(b.time - a.time, a.used[resource] / outcome.capacity[resource]) for a, b in pairs if a.waiting]
    total = sum(length for length, _ in spans)
    return sum(length * share for length, share in spans) / total if total else 0.0


def require_matplotlib() -> Any:
    """The module. Raises TraceError if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise TraceError("plots need matplotlib: pip install 'volcano-py[plots]'") from None
    return matplotlib


def plot(outcomes: Mapping[str, Outcome], jobs: Sequence[TraceJob], folder: Path) -> list[Path]:
    """SVG files: allocation, waiting jobs and waits, one line for each configuration. Raises TraceError, OSError."""
    matplotlib = require_matplotlib()
    matplotlib.use("svg")
    from matplotlib import pyplot, ticker

    folder.mkdir(parents=True, exist_ok=True)
    known = {job.name: job for job in jobs}
    resource = GPU if any(outcome.capacity.get(GPU) for outcome in outcomes.values()) else "cpu"
    # a few jobs often run much longer than the others; the rest of the plot would be a spike
    ends = [ended for outcome in outcomes.values() for ended in outcome.ended.values()]
    until = float(np.percentile(ends, _ENDED)) / 3600 if ends else 0.0
    titles = {
        "allocation": f"{'GPU' if resource == GPU else resource} allocated, until {_ENDED} % of the jobs have ended",
        "waiting": f"Waiting jobs, until {_ENDED} % of the jobs have ended",
        "waits": "Jobs that started within a wait",
    }
    files = []
    for name, title in titles.items():
        figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
        for number, (label, outcome) in enumerate(outcomes.items()):
            # equal lines stay visible: later ones are thinner and dashed
            style: dict[str, Any] = {
                "label": label,
                "linestyle": _STYLES[number % len(_STYLES)],
                "linewidth": max(1.2, 3.0 - number),
            }
            times = [s.time / 3600 for s in outcome.samples]
            if name == "allocation":
                of = outcome.capacity.get(resource) or 1
                axes.step(times, [100 * s.used[resource] / of for s in outcome.samples], where="post", **style)
            elif name == "waiting":
                axes.step(times, [s.waiting for s in outcome.samples], where="post", **style)
            else:
                waits = sorted(started - known[job].submitted for job, started in outcome.started.items())
                shares = 100 * np.arange(1, len(waits) + 1) / max(1, len(jobs))
                axes.step([w / 3600 for w in waits], shares, where="post", **style)
        axes.set_title(title)
        axes.set_xlabel("wait in hours" if name == "waits" else "hours since the start of the trace")
        axes.set_ylabel({"allocation": "% of the capacity", "waiting": "jobs", "waits": "% of the jobs"}[name])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        axes.set_xlim(left=0, right=until if name != "waits" and until else None)
        axes.grid(alpha=0.3)
        axes.legend()
        files.append(folder / f"{name}.svg")
        figure.savefig(files[-1])
        pyplot.close(figure)
    return files
