"""The page of cycles as data: how long the scheduler's cycles take, from its metrics endpoint."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

_CYCLE = "volcano_e2e_scheduling_latency_milliseconds"
_ACTION = "volcano_action_scheduling_latency_milliseconds"
KEPT = 120
"""Samples that are kept: ten minutes at one in five seconds."""


class MetricsError(ValueError):
    """The answer is no metrics of a scheduler."""


class Sample(NamedTuple):
    """What the endpoint reported once; times are milliseconds. `buckets`: pairs of a bound and the cycles up to it."""

    time: float
    cycles: float
    spent: float
    buckets: tuple[tuple[float, float], ...]
    actions: dict[str, tuple[float, float]]
    """By action: how often it ran, and its milliseconds."""
    evicting: float
    """Statements with evictions."""


class Point(NamedTuple):
    """The cycles between two samples: their mean time in milliseconds, None if there was none."""

    time: float
    cycles: int
    mean: float | None


class CyclePage(NamedTuple):
    """Cycle times in milliseconds; None where no cycle was seen. `actions`: name, runs and mean time."""

    points: tuple[Point, ...]
    cycles: int
    mean: float | None
    median: float | None
    slow: float | None
    """The 95th percentile, as an upper bound of its bucket."""
    actions: tuple[tuple[str, int, float], ...]
    evicting: int


def read(text: str, now: float) -> Sample:
    """A sample from the endpoint's text. Raises MetricsError."""
    cycles = spent = evicting = 0.0
    buckets: list[tuple[float, float]] = []
    actions: dict[str, tuple[float, float]] = {}
    seen = False
    try:
        for family in text_string_to_metric_families(text):
            for name, labels, value, *_ in family.samples:
                if name == f"{_CYCLE}_count":
                    cycles, seen = value, True
                elif name == f"{_CYCLE}_sum":
                    spent = value
                elif name == f"{_CYCLE}_bucket":
                    buckets.append((float(labels["le"]), value))
                elif name == f"{_ACTION}_count":
                    actions[labels["action"]] = (value, actions.get(labels["action"], (0.0, 0.0))[1])
                elif name == f"{_ACTION}_sum":
                    actions[labels["action"]] = (actions.get(labels["action"], (0.0, 0.0))[0], value)
                elif name == "volcano_eviction_transactions_total":
                    evicting += value
    except (ValueError, KeyError) as error:
        raise MetricsError(f"the answer is not Prometheus' text format: {error}") from None
    if not seen:
        raise MetricsError(f"the answer has no metric {_CYCLE}; is it the endpoint of the scheduler?")
    return Sample(now, cycles, spent, tuple(sorted(buckets)), actions, evicting)


class History:
    """The samples of the last minutes. A scheduler that starts again starts the history again."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=KEPT)

    def add(self, sample: Sample) -> None:
        """Keep a sample."""
        if self._samples and sample.cycles < self._samples[-1].cycles:
            self._samples.clear()
        self._samples.append(sample)

    def page(self) -> CyclePage | None:
        """The page; None without a sample."""
        if not self._samples:
            return None
        last = self._samples[-1]
        return CyclePage(
            tuple(_point(a, b) for a, b in zip(self._samples, list(self._samples)[1:], strict=False)),
            int(last.cycles),
            last.spent / last.cycles if last.cycles else None,
            quantile(last, 0.5),
            quantile(last, 0.95),
            tuple((name, int(n), spent / n) for name, (n, spent) in last.actions.items() if n),
            int(last.evicting),
        )


def quantile(sample: Sample, part: float) -> float | None:
    """The bucket's upper bound below which a part of all cycles are; None without cycles."""
    for bound, count in sample.buckets:
        if sample.cycles and count >= part * sample.cycles:
            return bound
    return None


def _point(before: Sample, after: Sample) -> Point:
    cycles = int(after.cycles - before.cycles)
    return Point(after.time, cycles, (after.spent - before.spent) / cycles if cycles else None)
