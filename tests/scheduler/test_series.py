"""The scheduler's own histograms and gauges have the text of prometheus_client's."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from volcano_py.scheduler.runtime.metrics import exponential
from volcano_py.scheduler.runtime.series import CycleGauge, CycleHistogram

BOUNDS = exponential(0.1, 500, 20)
VALUES = (0.0, 0.1, 0.100001, 3.5, 499.99, 500, 10_000)


def test_histogram_without_labels() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own = CycleHistogram("volcano_x_ms", "Some text", BOUNDS, (), ours)
    reference = Histogram("x_ms", "Some text", namespace="volcano", registry=theirs, buckets=BOUNDS)
    assert generate_latest(ours) == generate_latest(theirs), "without a value"
    for value in VALUES:
        own.observe(value)
        reference.observe(value)
    assert generate_latest(ours) == generate_latest(theirs)


def test_histogram_with_labels() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own = CycleHistogram("volcano_x_ms", "Some text", BOUNDS, ("plugin", "at"), ours)
    reference = Histogram("x_ms", "Some text", ("plugin", "at"), namespace="volcano", registry=theirs, buckets=BOUNDS)
    assert generate_latest(ours) == generate_latest(theirs), "without a series"
    for i, value in enumerate(VALUES):
        own.labels(f'p"{i % 2}\n', "open").observe(value)
        reference.labels(f'p"{i % 2}\n', "open").observe(value)
    assert generate_latest(ours) == generate_latest(theirs)


def test_gauge() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own = CycleGauge("volcano_x", "Some text", ("queue", "resource"), ours)
    reference = Gauge("x", "Some text", ("queue", "resource"), namespace="volcano", registry=theirs)
    for i, value in enumerate(VALUES):
        own.values["root", f"r\\{i}"] = value
        reference.labels("root", f"r\\{i}").set(value)
    del own.values["root", "r\\1"]
    reference.remove("root", "r\\1")
    assert generate_latest(ours) == generate_latest(theirs)


def test_names_are_checked_as_by_the_library() -> None:
    registry = CollectorRegistry()
    CycleGauge("volcano_x", "", (), registry)
    for name, labels in (("volcano_x", ()), ("", ()), ("volcano_y", ("__reserved",))):
        with pytest.raises(ValueError):
            CycleGauge(name, "", labels, registry)
