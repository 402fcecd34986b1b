"""Histograms and gauges that are written in each cycle and read once in a scrape. Volcano: client_golang.

A write is a few operations without a lock, and creates no object per series: those of prometheus_client cost a tenth of
the cycle for one pod. They are written and read in one event loop only. The text that Prometheus reads is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class HistogramSeries:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """By bucket, not cumulative; the last one is for values above all bounds."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class CycleHistogram(Collector):
    """A histogram. Without labels it has one series from the beginning."""

    def __init__(
        self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._label_names = name, text, tuple(labels)
        self._bounds = tuple(bounds)
        self._texts = [*map(floatToGoString, self._bounds), "+Inf"]
        self._series: dict[tuple[str, ...], HistogramSeries] = {}
        if not labels:
            self.labels()
        registry.register(self)

    def labels(self, *values: str) -> HistogramSeries:
        """The series with these values of the labels."""
        found = self._series.get(values)
        if found is None:
            found = self._series[values] = HistogramSeries(self._bounds)
        return found

    def observe(self, value: float) -> None:
        """Add a value to the series without labels."""
        self._series[()].observe(value)

    def describe(self) -> Iterable[Metric]:
        yield HistogramMetricFamily(self._name, self._text, labels=self._label_names)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._label_names)
        for values, series in self._series.items():
            buckets = zip(self._texts, accumulate(map(float, series.counts)), strict=True)
            family.add_metric(values, list(buckets), series.sum)
        yield family


class CycleGauge(Collector):
    """A gauge with labels, or with one series. `values`: by the values of the labels, for writers."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        # The library checks the names: those of a user's plugin can be invalid.
        Gauge(name, text, labels, registry=None)
        self._name, self._text, self.label_names = name, text, tuple(labels)
        self.values: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(self._name, self._text, labels=self.label_names)

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=self.label_names)
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        yield family
