"""The metrics of requests to API servers, under client-go's names: `rest_client_requests_total` and
`rest_client_request_duration_seconds`. client-go: component-base/metrics/prometheus/restclient.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from volcano_py.kube.request_counts import BOUNDS, RequestCounts


class RequestMetrics(Collector):
    """Exposes `counts` when the metrics are read."""

    def __init__(self, counts: RequestCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        """One counter for each host, method and code; one histogram for each host and method."""
        requests = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server, by code and method", labels=("code", "host", "method")
        )
        durations = HistogramMetricFamily(
            "rest_client_request_duration_seconds", "Duration of requests to the API server", labels=("host", "verb")
        )
        of_verb: dict[tuple[str, str], tuple[list[int], float]] = {}
        for series in self._counts.series():
            requests.add_metric((series.code, series.host, series.method), sum(series.durations))
            numbers, seconds = of_verb.get((series.host, series.method), ([0] * (len(BOUNDS) + 1), 0.0))
            numbers = [a + b for a, b in zip(numbers, series.durations, strict=True)]
            of_verb[series.host, series.method] = numbers, seconds + series.seconds
        names = [*map(str, BOUNDS), "+Inf"]
        for labels, (numbers, seconds) in of_verb.items():
            durations.add_metric(labels, list(zip(names, accumulate(numbers), strict=True)), seconds)
        yield from (requests, durations)
