"""Reservations of one session, and what is expected of jobs that outlive their limits."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers, Reserved, earliest_start
from volcano_py.scheduler.framework.reservations.expected_ends import Estimates, ExpectedEnds, expected_ends
from volcano_py.scheduler.framework.reservations.plans import KeptReservations
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.plugins.reservation import Reservation
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

LIMIT = "volcano.sh/max-run-time"


def limited(limit: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {LIMIT: limit}}, **more}


def cluster(**jobs: Any) -> tuple[Simulation, str]:
    busy = limited("10m", phase="Running", tasks={"x": {"pods": 1, "runsOn": "n1", "cpu": 4}})
    nodes = {"n1": {"cpu": 4}, "n2": {"cpu": 4}}
    own = {"reservation": {"patience": "0s", "large-patience": "0s", "reservations": 2}}
    text = configuration(
        {"actions": "enqueue, reserve, allocate", "plugins": [["gang"], ["predicates", "nodeorder", own]]}
    )
    return Simulation(manifests({"nodes": nodes, "jobs": {"busy": busy, **jobs}})), text


def cycle(simulation: Simulation, text: str, later: float = 0.0) -> CycleReport:
    return run_once(simulation.cluster, load(text, REGISTRY.actions), simulation.now + later)


def gang(limit: str = "1h", cpu: int = 4) -> dict[str, Any]:
    return limited(limit, min=2, pods=2, each={"cpu": cpu})


def sentences(report: CycleReport, job: str) -> list[str]:
    return [sentence_of(cause) for cause in causes(report.session, report.session.jobs[f"default/{job}"])]


def test_the_job_and_those_that_it_delays_are_explained() -> None:
    long = limited("2h", each={"cpu": 1})
    report = cycle(*cluster(g=gang(), h=gang(cpu=3), z=long))
    assert sentences(report, "g")[0] == (
        "2 nodes are reserved for the job, such as n1: it starts at 2026-01-01 00:11 UTC at the latest if what runs "
        "there ends within its limit; 0 jobs are ahead of it."
    )
    assert "it starts at 2026-01-01 01:11 UTC at the latest" in sentences(report, "h")[0]
    assert sentences(report, "h")[0].endswith("1 job is ahead of it.")
    assert sentences(report, "z")[0] == (
        "2 of 2 nodes are reserved for a job that has waited longer (default/g and 1 more), and the pod may not end "
        "before that one starts."
    )


def test_a_reservation_moves_when_a_job_outlives_its_limit_and_the_gang_keeps_its_place() -> None:
    simulation, text = cluster(g=gang())
    report = cycle(simulation, text)
    kept = simulation.cluster.keep(KeptReservations)
    [first], since = kept.reserved, dict(kept.since)
    assert report.session.next_wake == first.start
    simulation.cluster.dirty = True
    cycle(simulation, text, 1200.0)  # the busy pod has no start time: it counts as started now
    [moved] = kept.reserved
    assert moved.start == first.start + 1200 and kept.since == since


@pytest.mark.parametrize(
    ("ran", "expected"),
    [(0, 100), (99, 100), (100, 150), (149, 150), (150, 225), (399, 506.25), (400, inf), (-50, 50)],
)
def test_a_job_that_outlives_its_limit_is_expected_to_need_half_of_it_more(ran: float, expected: float) -> None:
    """Seconds after its start; after four times its limit nothing is expected; a start in the future is now."""
    own = running("default/a", "1970-01-01T00:16:40Z", "100")
    found = expected_ends(own(1000.0 + ran), Estimates())
    assert found.times.tolist() == [pytest.approx(1000.0 + expected)]
    assert found.ends == [t for t in found.times.tolist() if t < inf]


def test_a_job_without_a_limit_never_ends_unless_there_is_a_default() -> None:
    own = running("default/a", "1970-01-01T00:16:40Z", None)
    assert expected_ends(own(1000.0), Estimates()).times.tolist() == [inf]
    assert expected_ends(own(1000.0), Estimates(50.0)).times.tolist() == [1050.0]


def running(job: str, started: str, limit: str | None) -> Callable[[float], Session]:
    """Sessions of a cluster in which one pod runs, by time."""
    each = {"cpu": 1, "runsOn": "n1", "status": {"startTime": started, "phase": "Running"}}
    metadata = {"annotations": {LIMIT: limit}} if limit else {}
    jobs = {job.partition("/")[2]: {"phase": "Running", "metadata": metadata, "each": each}}
    simulation = Simulation(manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": jobs}))
    conf = load(configuration({"plugins": [["gang"]]}), REGISTRY.actions)
    return lambda now: run_once(simulation.cluster, conf, now, assume=False).session


def members(needs: float, count: int, nodes: int) -> list[GangMembers]:
    pods: list[Any] = [None] * count
    return [GangMembers(np.array([needs]), [0], np.full(nodes, -inf), pods)]


def ends(*pods: tuple[float, int, float]) -> ExpectedEnds:
    """(end, node, amount), in order."""
    times, nodes, amounts = zip(*pods, strict=True)
    finite = sorted({t for t in times if t < inf})
    return ExpectedEnds(np.array(times), np.array(nodes, dtype=np.intp), np.array([amounts], dtype=float), finite)


def test_nodes_that_are_free_now_are_not_held_if_others_are_free_in_time() -> None:
    found = earliest_start("g", members(4, 2, 3), 60, 0, np.array([[4.0, 0, 0]]), ends((10, 1, 4.0), (10, 2, 4.0)), [])
    assert found is not None and found.start == 10 and found.nodes.tolist() == [1, 2]


def test_a_gang_starts_before_a_reservation_only_if_it_ends_before() -> None:
    taken = Reserved("a", 100.0, 200.0, np.array([[4.0, 0]]))
    idle, running = np.array([[4.0, 0]]), ends((10, 1, 4.0))
    for limit, start in ((100, 0), (101, 10), (None, 10)):
        found = earliest_start("g", members(4, 1, 2), limit, 0, idle, running, [taken])
        assert found is not None and found.start == start
    both = earliest_start("g", members(4, 2, 2), 95, 0, idle, running, [taken])
    assert both is not None and both.start == 200
    assert earliest_start("g", members(4, 3, 2), 95, 0, idle, running, [taken]) is None


def test_bad_arguments_are_warnings() -> None:
    given = {"patience": "soon", "large-patience": "-1h", "large": 0, "reservations": 100, "short": "1x"}
    given |= {"hold-ratio": -1, "limit-exponent": 3, "default-run-time": "0s"}
    of = "and must be a duration such as 90s or 1h30m,"
    plugin = Reservation(given)
    assert [w.partition(" argument ")[2] for w in plugin.warnings] == [
        f"patience is 'soon', {of} of at least 0; 48h is used",
        f"large-patience is '-1h', {of} of at least 0; 12h is used",
        f"short is '1x', {of} of at least 0; 30m is used",
        f"default-run-time is '0s', {of} above 0; nothing is expected of jobs without a limit",
        "reservations is 100, and must be from 0 to 64; 1 is used",
        "large is 0.0, and must be above 0; 0.125 is used",
        "hold-ratio is -1.0, and must be at least 0; 0 is used",
        "limit-exponent is 3.0, and must be from 0 to 2; 1 is used",
    ]


def test_the_action_without_the_plugin_is_a_fault() -> None:
    simulation, _ = cluster()
    text = configuration({"actions": "reserve", "plugins": [["gang"]]})
    [fault] = cycle(simulation, text).faults
    assert fault.plugin == "reserve" and "the plugin reservation is not configured" in fault.text
