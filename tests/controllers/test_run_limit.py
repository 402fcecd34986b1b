"""The enforcement of stated run times: what is enforced, when a run ends, and what becomes of the Job."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.controllers.world import World, job
from volcano_py.api import kinds
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.meta import format_time, parse_time
from volcano_py.controllers.job.run_limit import EnforcedLimit, end_of_run, enforced_limit, problem_of

START = parse_time("2026-01-01T00:00:00Z")


def limited(
    limit: str | None = "1h", action: str | None = "TerminateJob", labels: Any = None, **spec: Any
) -> dict[str, Any]:
    made = job(**spec)
    made["metadata"]["annotations"] = {
        name: value
        for name, value in (("volcano.sh/max-run-time", limit), ("volcano.sh/on-max-run-time", action))
        if value is not None
    }
    made["metadata"]["labels"] = labels or {}
    return made


def read(manifest: dict[str, Any], phase: str = "Running", version: int = 0) -> Job:
    return from_manifest(Job, manifest | {"status": {"state": {"phase": phase}, "version": version}})


@pytest.mark.parametrize(
    ("manifest", "default", "expected"),
    [
        (limited(), "", (3600, "TerminateJob")),
        (limited("90"), "", (90, "TerminateJob")),
        (limited(None, labels={"kueue.x-k8s.io/max-exec-time-seconds": "60"}), "", (60, "TerminateJob")),
        (limited(action=None), "", None),
        (limited(action=None), "AbortJob", (3600, "AbortJob")),
        (limited(action="RestartJob"), "AbortJob", (3600, "RestartJob")),
        (limited(action="RestartPod"), "", None),
        (limited(action="RestartPod"), "AbortJob", (3600, "AbortJob")),
        (limited(None), "AbortJob", None),
        (limited("soon"), "AbortJob", None),
        (limited("0"), "AbortJob", None),
        (limited("10000h"), "AbortJob", None),
    ],
)
def test_a_limit_is_enforced_by_choice(
    manifest: dict[str, Any], default: str, expected: tuple[float, str] | None
) -> None:
    found = enforced_limit(read(manifest), default)
    assert (None if found is None else (found.seconds, found.action)) == expected


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (limited(), ""),
        (limited(action=None), ""),
        (limited(action="Kill"), "annotation volcano.sh/on-max-run-time is 'Kill', and must be one of TerminateJob,"),
        (limited(None), "has no effect without a limit; set the annotation volcano.sh/max-run-time"),
        (limited("soon"), "has no effect: annotation volcano.sh/max-run-time is not usable"),
    ],
)
def test_a_choice_that_is_not_usable_is_reported(manifest: dict[str, Any], problem: str) -> None:
    found = problem_of(read(manifest))
    assert problem in found and bool(found) == bool(problem)


def pod(start: float | None, phase: str = "Running", version: int = 0, **metadata: Any) -> Pod:
    times = {} if start is None else {"startTime": format_time(START + start)}
    annotations = {"volcano.sh/job-version": str(version)}
    metadata = {"name": "p", "namespace": "lab", "annotations": annotations, **metadata}
    return from_manifest(Pod, {"metadata": metadata, "status": {"phase": phase, **times}})


@pytest.mark.parametrize(
    ("pods", "phase", "version", "end"),
    [
        ([pod(5), pod(3)], "Running", 0, 63),
        ([pod(5), pod(3)], "Pending", 0, 63),
        ([pod(5), pod(3, "Succeeded")], "Running", 0, 63),
        ([pod(3, "Succeeded")], "Running", 0, None),
        ([pod(3, "Pending")], "Running", 0, None),
        ([pod(None)], "Running", 0, None),
        ([pod(3), pod(9, version=1)], "Running", 1, 69),
        ([pod(3, deletionTimestamp=format_time(START)), pod(9)], "Running", 0, 69),
        ([pod(3)], "Terminating", 0, None),
        ([pod(3)], "Restarting", 0, None),
        ([], "Running", 0, None),
    ],
)
def test_a_run_begins_with_its_first_pod(pods: list[Pod], phase: str, version: int, end: float | None) -> None:
    limit = EnforcedLimit(60.0, "TerminateJob", "annotation x")
    found = end_of_run(read(limited(), phase, version), pods, limit)
    assert (None if found is None else found - START) == end


def started(world: World, seconds_ago: float) -> None:
    """Let the pods have started before now."""
    whole, part = divmod(time.time() - seconds_ago, 1)
    stamp = format_time(whole).replace("Z", f".{int(part * 1000):03}Z")
    for name in world.pods():
        world.api.change(kinds.POD, name, {"status": {"startTime": stamp}})


async def test_a_job_that_outlives_its_limit_is_terminated_and_says_why(world: World) -> None:
    await world.start_running(limited())
    started(world, 1800)
    await world.quiet()
    assert world.phase() == "Running"
    started(world, 3601)
    await world.reaped(lambda: world.phase() == "Terminated")
    state, status = world.status()["state"], world.status()
    assert state["reason"] == "MaxRunTimeExceeded"
    assert state["message"] == (
        "the Job has run for 1h0m0s, its limit (annotation volcano.sh/max-run-time); the action is TerminateJob"
    )
    assert status.get("retryCount", 0) == 0 and not world.pods()
    assert world.events("MaxRunTimeExceeded")[0] == state["message"]
    await world.quiet()
    assert world.phase() == "Terminated" and world.status()["state"]["reason"] == "MaxRunTimeExceeded"


async def test_the_end_of_a_limit_needs_no_other_event(world: World) -> None:
    await world.start_running(limited("1h"))
    started(world, 3599.7)
    await world.reaped(lambda: world.phase() == "Terminated")
    assert world.status()["state"]["reason"] == "MaxRunTimeExceeded"


async def test_a_limit_that_ends_while_no_controller_runs(world: World) -> None:
    await world.start_running(limited(action="AbortJob"))
    await world.kill()
    started(world, 4000)
    await world.start()
    await world.reaped(lambda: world.phase() == "Aborted")
    assert world.status()["state"]["reason"] == "MaxRunTimeExceeded"


async def test_without_a_choice_a_job_may_outlive_its_limit(world: World) -> None:
    await world.start_running(limited(action=None))
    started(world, 4000)
    await world.quiet()
    assert world.phase() == "Running" and not world.events("MaxRunTimeExceeded")
    # the user chooses while it runs
    annotations = {"annotations": {"volcano.sh/max-run-time": "1h", "volcano.sh/on-max-run-time": "CompleteJob"}}
    world.api.change(kinds.JOB, "train", {"metadata": annotations})
    await world.reaped(lambda: world.phase() == "Completed")


async def test_the_flag_is_for_all_jobs_that_state_a_limit(world: World) -> None:
    await world.kill()
    world.options.on_max_run_time = "TerminateJob"
    await world.start()
    await world.start_running(limited(action=None))
    started(world, 4000)
    await world.reaped(lambda: world.phase() == "Terminated")


async def test_a_restart_must_be_chosen_and_counts(world: World) -> None:
    await world.start_running(limited(action="RestartJob", maxRetry=2))
    before = set(uids(world))
    started(world, 4000)
    await world.until(lambda: world.events("MaxRunTimeExceeded"))
    await world.reaped(lambda: world.phase() in ("Restarting", "Pending"))

    def begun_again() -> bool:
        world.reap()
        world.admit()
        now = uids(world)
        return len(now) == 2 and not now & before

    await world.until(begun_again)
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")
    state = world.status()["state"]
    assert world.status()["retryCount"] == 1 and not state.get("reason")
    started(world, 10)
    await world.quiet()
    assert world.phase() == "Running", "the second run has its own time"
    started(world, 4000)
    await world.reaped(lambda: world.phase() == "Failed")


def uids(world: World) -> set[str]:
    return {each["metadata"]["uid"] for each in world.pods().values()}


async def test_a_policy_for_failed_pods_does_not_restart_a_job_that_is_ended(world: World) -> None:
    policies = [{"event": "*", "action": "RestartJob"}]
    await world.start_running(limited(policies=policies))
    started(world, 4000)
    await world.until(lambda: world.phase() == "Terminating")
    world.run_pods("Failed", exit_code=143)
    await world.reaped(lambda: world.phase() == "Terminated")
    assert world.status().get("retryCount", 0) == 0


async def test_a_choice_that_is_not_usable_is_an_event(world: World) -> None:
    await world.start_running(limited(action="Kill"))
    started(world, 4000)
    await world.until(lambda: world.events("InvalidMaxRunTime"))
    await world.quiet()
    assert world.phase() == "Running" and len(world.events("InvalidMaxRunTime")) == 1
