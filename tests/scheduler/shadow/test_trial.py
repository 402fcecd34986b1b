"""Starts of a live scheduler, according to events, and the shadow's decision about each in the state before it."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from tests.scheduler.trial import configured
from volcano_py.scheduler.run_once import CycleReport, run_once
from volcano_py.scheduler.runtime.command import scheduler
from volcano_py.scheduler.shadow.observed import ObservedCluster
from volcano_py.scheduler.shadow.trial import Verdict, evaluate
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import as_struct
from volcano_py.testing.table import manifests

NOW = 1_800_000_000.0
SETTLE = 3.0
CONF = configured([["priority", "gang"], ["predicates", "nodeorder"]])


class Live:
    """A cluster in which a live scheduler acts, in virtual time."""

    def __init__(self, scenario: dict[str, Any], late: str = "") -> None:
        """The pods and the PodGroup of the job `late` are created later, by `arrive`."""
        self.now = NOW
        self.model = ObservedCluster(shadow_schedulers=frozenset(("volcano",)))
        self.model.clock = lambda: self.now
        found, _ = complete(manifests(scenario), frozenset(("volcano",)), NOW)
        self.objects = {(o["kind"], o["metadata"]["name"]): o for o in found}
        self.late = [o for o in found if late and o["kind"] in ("Pod", "PodGroup") and self._job_of(o) == late]
        for manifest in found:
            if manifest not in self.late:
                self.model.upsert(manifest["kind"], as_struct(manifest))

    def _job_of(self, manifest: dict[str, Any]) -> str:
        annotations = manifest["metadata"].get("annotations") or {}
        return str(annotations.get("scheduling.k8s.io/group-name", manifest["metadata"]["name"]))

    def arrive(self) -> None:
        for manifest in self.late:
            self.model.upsert(manifest["kind"], as_struct(manifest))

    def pods(self, job: str) -> list[dict[str, Any]]:
        return [o for (kind, _), o in self.objects.items() if kind == "Pod" and self._job_of(o) == job]

    def bind(self, job: str, node: str, count: int = 100) -> None:
        for manifest in self.pods(job)[:count]:
            manifest["spec"]["nodeName"] = node
            self.model.upsert("Pod", as_struct(manifest))

    def delete(self, job: str) -> None:
        for manifest in self.pods(job):
            self.model.remove("Pod", "default", manifest["metadata"]["name"])

    def verdicts(self) -> dict[str, Verdict]:
        """By job, for the starts that are compared."""
        found = {}
        for start in self.model.settled(self.now, SETTLE):
            found[start.job.partition("/")[2]] = evaluate(self.model, start, SETTLE, self._decide)
            self.model.evaluated(start)
        return found

    def _decide(self) -> CycleReport:
        return run_once(self.model, CONF, self.now, assume=False)


def jobs(**given: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodes": {"n1": {"cpu": 4}},
        "priorities": {"high": 1000},
        "jobs": {
            name: {"phase": "Inqueue", "min": 2, "pods": 2, "each": {"cpu": 2}} | job for name, job in given.items()
        },
    }


def test_a_start_is_compared_after_the_settle_time_without_events() -> None:
    live = Live(jobs(g={}))
    live.bind("g", "n1", 1)
    live.now += 2
    live.bind("g", "n1")
    live.now += 2
    assert live.verdicts() == {}
    live.now += 1
    assert live.verdicts() == {"g": Verdict(True, 2)}
    assert live.model.starts == {}


def test_the_model_is_restored() -> None:
    live = Live(jobs(g={}, waits={}))
    live.bind("g", "n1")

    def state() -> object:
        model = live.model
        return (
            {key: (t.status, t.pod.spec.node_name) for key, t in model.tasks.items()},
            {uid: (tuple(j.counts), j.allocated.as_dict(), j.pod_group) for uid, j in model.jobs.items()},
            model.dirty,
            model.jobs_moved,
            dict(model.arrived),
        )

    before = state()
    live.now += SETTLE
    assert set(live.verdicts()) == {"g"}
    assert state() == before


def test_part_of_a_gang_is_a_difference_with_its_reason() -> None:
    live = Live(jobs(g={"min": 3, "pods": 3}))
    live.bind("g", "n1", 2)
    live.now += SETTLE
    verdict = live.verdicts()["g"]
    assert not verdict.started and verdict.code != "NotStated" and verdict.why


@pytest.mark.parametrize(("seconds_before", "agrees"), [(1.0, True), (10.0, False)])
def test_a_job_that_arrived_just_before_does_not_count(seconds_before: float, agrees: bool) -> None:
    live = Live(jobs(low={}, high={"priority": "high"}), late="high")
    live.now += 20
    live.arrive()
    live.now += seconds_before
    live.bind("low", "n1")
    live.now += SETTLE
    assert live.verdicts()["low"].started is agrees


@pytest.mark.parametrize(("seconds_before", "agrees"), [(1.0, True), (10.0, False)])
def test_capacity_freed_just_before_does_not_count(seconds_before: float, agrees: bool) -> None:
    """When all of `old` has ended, the shadow starts `high`, which needs the whole node."""
    old = {"phase": "Running", "pods": 1, "min": 1, "each": {"cpu": 2, "runsOn": "n1"}}
    live = Live(jobs(old=old, low={"pods": 1, "min": 1}, high={"priority": "high"}))
    live.now += 20
    live.delete("old")
    live.now += seconds_before
    live.bind("low", "n1")
    live.now += SETTLE
    assert live.verdicts()["low"].started is agrees
    live.now += 2 * SETTLE
    assert live.verdicts() == {} and not live.model.ended and not live.model.arrived


def test_starts_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano_py.scheduler.shadow.observed._STARTS_KEPT", 1)
    live = Live(jobs(g={"each": {"cpu": 1}}, h={"each": {"cpu": 1}}))
    live.bind("g", "n1")
    live.bind("h", "n1")
    live.now += SETTLE
    assert set(live.verdicts()) == {"g"} and live.model.skipped == 2


def test_a_pod_that_ends_at_once_is_compared_too() -> None:
    live = Live(jobs(g={}))
    live.bind("g", "n1")
    live.delete("g")
    live.now += SETTLE
    assert live.verdicts()["g"].started
    assert live.pods("g")[0]["metadata"]["name"] not in {t.name for t in live.model.tasks.values()}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--shadow", "--record", "x"), "--shadow does not go with --record"),
        (("--shadow", "--scheduler-sharding-mode", "hard"), "--shadow does not go with --scheduler-sharding-mode"),
        (("--shadow", "--shadow-settle", "0s"), "--shadow-settle must be longer than 0"),
    ],
)
def test_incompatible_flags(flags: tuple[str, ...], text: str) -> None:
    answer = CliRunner().invoke(scheduler, flags)
    assert answer.exit_code == 2 and text in answer.output
