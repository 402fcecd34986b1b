"""The report of shadow mode: lines for the log, and JSON for `GET /shadow`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from volcano_py.api.meta import format_time
from volcano_py.scheduler.shadow.comparison import OUTCOMES, Comparison

_SHOWN = 20
"""Differences and jobs in the text; the JSON has all that are kept."""


def lines(comparison: Comparison) -> Iterator[str]:
    """All so far as text."""
    counts = comparison.outcomes
    if comparison.agreement is None:
        yield "shadow: no job was compared yet, which is no agreement: no job of these scheduler names has started"
        return
    yield (
        f"shadow: {100 * comparison.agreement:.1f} % agreement over {_jobs(counts.total())}: "
        f"{counts['same']} started by both, {counts['live-only']} by the live scheduler only, "
        f"{counts['ours-only']} by ours only"
    )
    yield f"shadow: same node for {comparison.same_nodes} of {comparison.pods} pods"
    if comparison.skipped:
        yield f"shadow: {comparison.skipped} pods are not compared: jobs start faster than they can be compared"
    if comparison.earlier_jobs:
        mean = comparison.earlier_seconds / comparison.earlier_jobs
        yield f"shadow: ours would have started {_jobs(comparison.earlier_jobs)} earlier, by {mean:.1f} s on average"
    for code, count in comparison.reasons.most_common():
        yield f"shadow: {count} x {code}"
    for d in list(comparison.differences)[-_SHOWN:]:
        yield f"shadow: {d.outcome} {d.job}: {d.code}: {d.why}"
    for job in list(comparison.earlier)[-_SHOWN:]:
        yield f"shadow: {job.job} would have started {job.seconds:.1f} s earlier"


def document(comparison: Comparison, begun: float, now: float) -> dict[str, Any]:
    """All so far as data; times as RFC 3339."""
    return {
        "from": format_time(begun),
        "until": format_time(now),
        "agreement": None if comparison.agreement is None else round(comparison.agreement, 4),
        "jobs": {outcome: comparison.outcomes[outcome] for outcome in OUTCOMES},
        "nodes": {"pods": comparison.pods, "same": comparison.same_nodes},
        "skippedPods": comparison.skipped,
        "reasons": dict(comparison.reasons.most_common()),
        "earlier": {
            "count": comparison.earlier_jobs,
            "seconds": round(comparison.earlier_seconds, 3),
            "jobs": [e._asdict() | {"time": format_time(e.time)} for e in comparison.earlier],
        },
        "differences": [d._asdict() | {"time": format_time(d.time)} for d in comparison.differences],
    }


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
