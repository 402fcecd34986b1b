"""The evaluation of a soak: tenths of the pods, and what counts as a leak."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.line_chart import Series, svg
from benchmarks.soak import FULL, Course, Sample, charts, faults, job, tenths

PODS = 1000


def course(**growth: float) -> Course:
    """A run in which something grows from start to end: 0 is flat, 1 doubles it."""
    made = Course()
    for i in range(0, PODS, 10):
        part = 1 + i / PODS
        memory = {"server": 100 * part, "scheduler": 100 * (1 + growth.get("memory", 0) * (part - 1))}
        descriptors = {"scheduler": 30 * (1 + growth.get("descriptors", 0) * (part - 1))}
        tasks = {"scheduler": 70 * (1 + growth.get("tasks", 0) * (part - 1))}
        made.samples.append(Sample(i, memory, descriptors, tasks))
        made.waits += [(i + k, 0.5 * (1 + growth.get("latency", 0) * (part - 1)) + k / 100) for k in range(10)]
    return made


def test_tenths() -> None:
    rows = tenths(course(), PODS)
    assert len(rows) == 10
    assert rows[0]["memory of scheduler"] == rows[9]["memory of scheduler"] == 100
    assert rows[1]["memory of server"] == pytest.approx(100 * (1 + 0.145))
    assert rows[3]["latency p50"] == pytest.approx(0.55) and rows[3]["latency p99"] == pytest.approx(0.59)


def test_a_flat_run_has_no_fault_whatever_the_server_does() -> None:
    assert faults(tenths(course(), PODS), FULL) == []


@pytest.mark.parametrize(("what", "growth"), [("memory", 0.5), ("descriptors", 0.5), ("tasks", 0.5), ("latency", 4.0)])
def test_what_grows_is_a_fault(what: str, growth: float) -> None:
    found = faults(tenths(course(**{what: growth}), PODS), FULL)
    assert found and all(text.startswith(what) for text in found)


def test_the_logs_of_changes_may_fill_in_a_short_run() -> None:
    rows = tenths(course(memory=0.4), PODS)
    assert faults(rows, FULL - 1) == [] and faults(rows, FULL)
    assert faults(tenths(course(memory=0.9), PODS), FULL - 1)


def test_a_program_that_ends_and_a_run_that_is_too_short_are_faults() -> None:
    gone, short = course(), course()
    for sample in gone.samples[-10:]:
        sample.tasks.clear()
    assert faults(tenths(gone, PODS), FULL) == ["tasks of scheduler: no value in the last tenth"]
    del short.samples[10:20]
    assert any("bind more pods" in text for text in faults(tenths(short, PODS), FULL))


def test_the_chart_is_an_image_with_a_line_for_each_program() -> None:
    root = ElementTree.fromstring(charts(course()))
    lines = [one for one in root if one.tag.endswith("polyline")]
    assert len(lines) == 2 + 1 + 1 + 2
    assert ElementTree.fromstring(svg([("none", [Series("a", [])])], "x")).tag.endswith("svg")


def test_the_load_has_failures_and_important_jobs() -> None:
    rng = random.Random(1)
    jobs = [job(i, rng) for i in range(500)]
    scripts = [one["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"][2] for one in jobs]
    assert 20 < sum("exit 1" in script for script in scripts) < 90
    assert 10 < sum("priorityClassName" in one["spec"] for one in jobs) < 50
    assert {one["spec"]["minAvailable"] for one in jobs} == {1, 2, 4, 8}
