"""How many requests were sent to API servers, with which results and durations. client-go: tools/metrics.

The counts of another process can be added: the dispatcher has no endpoint for metrics and sends its counts to the
scheduler. `kube.request_metrics` exposes them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from msgspec import Struct

BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""The upper bounds of the durations in seconds, as in client-go's metrics."""
NO_RESPONSE = "<error>"
"""The code of requests without a response, as in client-go."""


class RequestSeries(Struct, array_like=True):
    """The requests to one host with one method and result."""

    host: str
    method: str
    code: str
    durations: list[int]
    """The number of requests for each of `BOUNDS`, and of longer ones; not cumulative."""
    seconds: float = 0.0


class RequestCounts:
    """Sums of requests. Each attempt counts, also one that is repeated."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str], RequestSeries] = {}

    def observe(self, host: str, method: str, status: int | None, seconds: float) -> None:
        """Count one request. `status` is None if there was no response."""
        series = self._of(host, method, NO_RESPONSE if status is None else str(status))
        series.durations[bisect_left(BOUNDS, seconds)] += 1
        series.seconds += seconds

    def add(self, counts: Iterable[RequestSeries]) -> None:
        """Add the counts of another process."""
        for theirs in counts:
            series = self._of(theirs.host, theirs.method, theirs.code)
            series.durations = [a + b for a, b in zip(series.durations, theirs.durations, strict=True)]
            series.seconds += theirs.seconds

    def take(self) -> list[RequestSeries]:
        """All counts since the last call, which start from zero again."""
        taken, self._series = list(self._series.values()), {}
        return taken

    def series(self) -> list[RequestSeries]:
        """All counts."""
        return list(self._series.values())

    def _of(self, host: str, method: str, code: str) -> RequestSeries:
        key = host, method, code
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = RequestSeries(host, method, code, [0] * (len(BOUNDS) + 1))
        return found
