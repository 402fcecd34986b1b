"""The metrics of shadow mode."""

from __future__ import annotations

import math
from collections import Counter as Counts
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from volcano_py.scheduler.shadow.comparison import Comparison, Outcome


class ShadowMetrics:
    """Counts of a comparison, in the scheduler's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        own: dict[str, Any] = {"namespace": "volcano_py", "registry": registry}
        self._jobs = Counter(
            "shadow_jobs", "Compared jobs with --shadow, by outcome (same, live-only, ours-only)", ("outcome",), **own
        )
        self._differences = Counter("shadow_differences", "Differences with --shadow, by reason", ("reason",), **own)
        self._agreement = Gauge(
            "shadow_agreement", "The part of compared jobs that both start, 0 to 1; NaN without jobs", **own
        )
        self._nodes = Gauge(
            "shadow_node_agreement", "The part of pods for which both choose one node, 0 to 1; NaN without pods", **own
        )
        self._earlier = Histogram(
            "shadow_earlier_seconds",
            "By how much ours would have started jobs before the live scheduler did",
            buckets=(1, 2, 5, 10, 30, 60, 300, 1800),
            **own,
        )
        self._shown: Counts[Outcome] = Counts()
        self._reasons: Counts[str] = Counts()
        self._agreement.set(math.nan)
        self._nodes.set(math.nan)

    def earlier(self, seconds: float) -> None:
        """The live scheduler has started a job that ours would have started before."""
        self._earlier.observe(seconds)

    def show(self, comparison: Comparison) -> None:
        """Show the counts of a comparison as they are now."""
        for outcome, count in (comparison.outcomes - self._shown).items():
            self._jobs.labels(outcome).inc(count)
        for reason, count in (comparison.reasons - self._reasons).items():
            self._differences.labels(reason).inc(count)
        self._shown, self._reasons = comparison.outcomes.copy(), comparison.reasons.copy()
        for gauge, part in ((self._agreement, comparison.agreement), (self._nodes, comparison.node_agreement)):
            gauge.set(math.nan if part is None else part)
