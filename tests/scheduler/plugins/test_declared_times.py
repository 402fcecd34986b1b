"""The times at which plugins decide something else without any event, and that they declare them."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tests.scheduler.trial import Trial
from volcano_py.scheduler.plugins.tdm import changes

DAY = 24 * 3600.0
MIDNIGHT = 20_000 * DAY
Manifest = dict[str, Any]
RUNNING: Manifest = {"min": 1, "pods": 1, "phase": "Running", "each": {"runsOn": "n0"}}


def trial(scenario: Manifest, plugins: list[list[Any]], actions: str, now: float | None = None) -> Trial:
    made = Trial(scenario, plugins, actions)
    if now is not None:
        made.simulation.now = now
    return made


def declared(made: Trial, jump: float = 0.0) -> float:
    """The seconds until the declared time after one more cycle."""
    made.cycle(jump)
    return made.report.session.next_wake - made.report.session.now


def test_a_session_without_plugins_that_depend_on_time_declares_nothing() -> None:
    assert declared(trial({"nodes": {"n0": {}}, "jobs": {"j": RUNNING}}, [["gang"], ["predicates"]], "allocate")) == inf


@pytest.mark.parametrize(
    ("hours", "now", "seconds"),
    [
        ("09:00-17:00", 8 * 3600, 3600),
        ("09:00-17:00", 10 * 3600, 7 * 3600 + 1),
        ("09:00-17:00", 18 * 3600, 6 * 3600),
        ("22:00-06:00", 23 * 3600, 3600),
    ],
)
def test_tdm_declares_when_a_zone_opens_or_closes(hours: str, now: float, seconds: float) -> None:
    plugins: list[list[Any]] = [["gang"], [{"tdm": {"tdm.revocable-zone.z": hours}}, "predicates"]]
    assert declared(trial({"nodes": {"n0": {}}}, plugins, "allocate", MIDNIGHT + now)) == seconds
    assert changes("never", MIDNIGHT) == ()


def test_tdm_declares_the_next_eviction_while_pods_are_left_in_a_closed_zone() -> None:
    lent = {"labels": {"volcano.sh/revocable-zone": "z"}}
    pods = {"preemptable": True, "annotations": {"volcano.sh/preemptable": "true"}}
    job = {**RUNNING, "min": 0, "pods": 2, "metadata": {"annotations": {"volcano.sh/preemptable": "true"}}}
    plugins: list[list[Any]] = [["gang"], [{"tdm": {"tdm.revocable-zone.z": "09:00-10:00"}}, "predicates"]]
    scenario = {"nodes": {"n0": {**lent, "cpu": 8}}, "jobs": {"j": {**job, "each": {"runsOn": "n0", **pods}}}}
    made = trial(scenario, plugins, "shuffle", MIDNIGHT + 12 * 3600)
    assert declared(made) == 60 and len(made.evicted) == 1
    assert declared(made, 19) == 40 and not made.evicted


def test_rescheduling_declares_the_end_of_its_interval() -> None:
    made = trial({"nodes": {"n0": {}}}, [["gang"], [{"rescheduling": {"interval": "2m"}}, "predicates"]], "shuffle")
    assert declared(made) == pytest.approx(120.01)
    assert declared(made, 99) == pytest.approx(20.01)
    assert declared(made, 19.01) == pytest.approx(120.01), "it has run"


def test_sla_declares_when_the_waiting_time_of_a_job_ends() -> None:
    jobs = {"j": {"min": 1, "pods": 0, "minResources": {"cpu": 9}}}
    plugins: list[list[Any]] = [[{"sla": {"sla-waiting-time": "10m"}}], ["gang", "overcommit"]]
    made = trial({"nodes": {"n0": {"cpu": 1}}, "jobs": jobs}, plugins, "enqueue, allocate")
    made.simulation.now = made.simulation.cluster.jobs["default/j"].created + 60
    assert declared(made) == pytest.approx(540)


def test_gang_declares_when_a_broken_gang_is_released() -> None:
    tasks = {"old": {"pods": 2, "cpu": 2, "runsOn": "n0"}, "new": {"cpu": 9}}
    jobs = {"g": {"min": 3, "phase": "Running", "tasks": tasks}}
    made = trial({"nodes": {"n0": {"cpu": 4}}, "jobs": jobs}, [["gang"], ["predicates"]], "allocate")
    assert declared(made) == pytest.approx(300)
    assert declared(made, 99) == pytest.approx(200)


def test_cdp_declares_when_a_candidate_is_no_longer_protected() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-02-01T00:00:00Z"}
    young = {
        "kind": "Pod",
        "metadata": {
            "name": "young",
            "namespace": "default",
            "labels": {"volcano.sh/cooldown-time": "100s"},
            "annotations": {"scheduling.k8s.io/group-name": "low"},
        },
        "spec": {"nodeName": "n0", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]},
        "status": {"phase": "Running", "conditions": [scheduled]},
    }
    scenario = {
        "nodes": {"n0": {"cpu": 1}},
        "priorities": {"high": 100, "low": 1},
        "pods": [young],
        "jobs": {
            "low": {"min": 0, "pods": 0, "phase": "Running", "priority": "low"},
            "high": {"min": 1, "priority": "high", "phase": "Inqueue", "each": {"cpu": 1}},
        },
    }
    made = trial(scenario, [["priority", "gang", "cdp"], ["predicates"]], "allocate, preempt", 31 * DAY + 30)
    assert declared(made) == pytest.approx(70) and not made.evicted
    assert declared(made, 71) == inf and made.evicted == {"young"}
