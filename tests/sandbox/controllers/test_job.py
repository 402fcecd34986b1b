"""Batch Jobs: what counts, how they end, on the wire and with the real kubectl."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import MERGE, PODS, Http, Kubectl, http
from tests.sandbox.controllers.objects import BATCH
from tests.sandbox.controllers.test_replicaset import seen
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.batch import job_indexes
from volcano_py.sandbox.controllers.batch.job_plan import FINALIZER, INDEX, end_of, step_of, tally
from volcano_py.sandbox.controllers.batch.job_status import status_of
from volcano_py.sandbox.controllers.batch.ttl_after_finished import seconds_left
from volcano_py.sandbox.controllers.manager import Options
from volcano_py.sandbox.controllers.runtime.pods import Pod

Object = dict[str, Any]
NOW = 1_800_000_000.0
JOB = BATCH + "/jobs/once"


def job(command: str = "true", **spec: Any) -> Object:
    containers = [{"name": "c", "image": "busybox:1", "command": ["sh", "-c", command]}]
    pod = {"containers": containers, "restartPolicy": spec.pop("restartPolicy", "Never"), "nodeName": "node-0"}
    return {"metadata": {"name": "once"}, "spec": {"template": {"spec": pod}, **spec}}


def stored(**spec: Any) -> Object:
    """A Job as the API server has completed it."""
    parts = {"parallelism": 2, "completions": 3, "backoffLimit": 6, **spec}
    meta = {"name": "once", "namespace": "default"}
    return {"metadata": meta, "spec": {"template": {"spec": {}}, **parts}, "status": {}}


def pods(text: str, **fields: Any) -> list[Pod]:
    """One word a pod: r running, s succeeded, f failed, d deleted; S, F without the finalizer; a number: its index."""
    out = []
    for place, word in enumerate(text.split()):
        row: Object = {"finalizers": (FINALIZER,) if word[0].islower() else (), "ended": NOW - 100}
        row["phase"] = {"s": "Succeeded", "f": "Failed"}.get(word[0].lower(), "Running")
        row |= {"deleting": word[0] == "d", "labels": {INDEX: word[1:]} if word[1:] else {}, **fields}
        out.append(seen(f"once-{place}", **row))
    return out


@pytest.mark.parametrize(
    ("wanted", "there", "create", "delete"),
    [
        (stored(), "", 2, 0),
        (stored(), "r", 1, 0),
        (stored(), "r r", 0, 0),
        (stored(), "s s", 1, 0),  # no more than are still needed
        (stored(), "s r r r", 0, 1),
        (stored(parallelism=0), "r", 0, 1),
        (stored(completions=None), "r s", 0, 0),  # the first success: no more are made
        (stored(), "d", 2, 0),
        (stored(podReplacementPolicy="Failed"), "d", 1, 0),
    ],
)
def test_how_many_pods(wanted: Object, there: str, create: int, delete: int) -> None:
    rows = pods(there)
    step = step_of(wanted, tally(wanted, rows), rows, 10.0, NOW)
    assert (len(step.create), len(step.delete)) == (create, delete)


def test_indexes_are_filled_and_kept_apart() -> None:
    wanted = stored(completionMode="Indexed", completions=5, parallelism=4)
    rows = pods("s0 r2 r2 r9")
    found = tally(wanted, rows)
    step = step_of(wanted, found, rows, 10.0, NOW)
    assert (step.create, sorted(pod.name for pod in step.delete)) == ([1, 3, 4], ["once-2", "once-3"])
    assert found.completed == {0} and found.succeeded == 1


def test_a_pod_is_counted_once() -> None:
    wanted = stored(backoffLimit=1)
    wanted["status"] = status_of(wanted, tally(wanted, pods("s f r")), None, NOW)
    noted = {"succeeded": ["once-0"], "failed": ["once-1"]}
    assert wanted["status"]["uncountedTerminatedPods"] == noted and "succeeded" not in wanted["status"]
    again = tally(wanted, pods("s f r"))
    assert (again.succeeded, again.failed) == (1, 1), "the finalizers could not be taken away"
    wanted["status"] = status_of(wanted, tally(wanted, pods("S F r")), None, NOW)
    assert (wanted["status"]["succeeded"], wanted["status"]["failed"]) == (1, 1)
    assert wanted["status"]["uncountedTerminatedPods"] == {}
    after = tally(wanted, pods("r"))
    assert (after.succeeded, after.failed) == (1, 1), "pods that are gone stay counted"


def exits(code: int) -> Object:
    ended = {"terminated": {"exitCode": code}}
    meta = {"namespace": "default", "name": "once-0"}
    return {"metadata": meta, "status": {"containerStatuses": [{"name": "c", "state": ended}]}}


@pytest.mark.parametrize(
    ("spec", "there", "started", "reason"),
    [
        ({}, "s s s", 1.0, "CompletionsReached"),
        ({}, "s s r", 1.0, None),
        ({"completions": None}, "s", 1.0, "CompletionsReached"),
        ({"completions": None}, "s r", 1.0, None),
        ({"backoffLimit": 1}, "f f", 1.0, "BackoffLimitExceeded"),
        ({"backoffLimit": 1}, "f d", 1.0, "BackoffLimitExceeded"),  # deleted before it could end
        ({"backoffLimit": 2}, "f f", 1.0, None),
        ({"activeDeadlineSeconds": 60}, "r", NOW - 60, "DeadlineExceeded"),
        ({"activeDeadlineSeconds": 60}, "r", NOW - 59, None),
        ({"activeDeadlineSeconds": 60, "suspend": True}, "r", NOW - 60, None),
    ],
)
def test_how_it_ends(spec: Object, there: str, started: float, reason: str | None) -> None:
    wanted = stored(**spec)
    end = end_of(wanted, tally(wanted, pods(there)), started, NOW)
    assert (end.reason if end else None) == reason


def test_indexes_fail_on_their_own() -> None:
    indexed = {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1, "backoffLimit": 2**31 - 1}
    wanted = stored(**indexed)
    assert end_of(wanted, tally(wanted, pods("s0 f1 r1 r2")), 1.0, NOW) is None
    found = tally(wanted, pods("s0 f1 f1 r2"))
    assert found.failed_indexes == {1} and end_of(wanted, found, 1.0, NOW) is None
    end = end_of(wanted, tally(wanted, pods("s0 f1 f1 s2")), 1.0, NOW)
    assert end is not None and (end.final, end.reason) == ("Failed", "FailedIndexes")
    end = end_of(stored(**indexed, maxFailedIndexes=0), found, 1.0, NOW)
    assert end is not None and end.reason == "MaxFailedIndexesExceeded"


@pytest.mark.parametrize(
    ("rule", "there", "over"),
    [
        ({"succeededIndexes": "0-1"}, "s0 s1 r2", True),
        ({"succeededIndexes": "0-1"}, "s0 r1 s2", False),
        ({"succeededCount": 2}, "s0 r1 s2", True),
        ({"succeededIndexes": "1-2", "succeededCount": 1}, "s0 r1 r2", False),
    ],
)
def test_a_success_policy_ends_it_early(rule: Object, there: str, over: bool) -> None:
    wanted = stored(completionMode="Indexed", successPolicy={"rules": [rule]})
    end = end_of(wanted, tally(wanted, pods(there)), 1.0, NOW)
    assert (end is not None and end.reason == "SuccessPolicy") is over


def test_failed_pods_are_replaced_later_and_later() -> None:
    wanted = stored()
    for there, wait in (("f", 5.0), ("f f", 15.0), ("f f f", 35.0)):
        rows = pods(there, ended=NOW - 5)
        assert step_of(wanted, tally(wanted, rows), rows, 10.0, NOW).wait == wait
    rows = [*pods("f", ended=NOW - 5), *pods("s", ended=NOW - 4)]
    assert step_of(wanted, tally(wanted, rows), rows, 10.0, NOW).create, "a success is a new beginning"


def test_index_lists() -> None:
    assert job_indexes.render({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert job_indexes.parse("0-2,5,7-8", 8) == {0, 1, 2, 5, 7}
    assert job_indexes.parse("", 3) == set() and job_indexes.render([]) == ""


def test_the_time_to_live_begins_at_the_end() -> None:
    finished = stored(ttlSecondsAfterFinished=30)
    assert seconds_left(finished, NOW) is None
    row = {"type": "Failed", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    finished["status"]["conditions"] = [row]
    assert seconds_left(finished, NOW + 10) == 20 and seconds_left(finished, NOW + 99) == 0


@pytest.fixture
async def hasty() -> Any:
    """A client of a cluster in which failed pods of Jobs are replaced at once."""
    async with Sandbox(nodes=2, controllers=Options(job_backoff=0.1)) as made, http(made) as client:
        yield client


def ended(type_: str) -> Any:
    return lambda value: any(
        row["type"] == type_ and row["status"] == "True" for row in value["status"].get("conditions", [])
    )


async def test_it_runs_to_completion(api: Http) -> None:
    await api.ok("POST", BATCH + "/jobs", job(completions=3, parallelism=2))
    done = await api.until(JOB, ended("Complete"))
    status = done["status"]
    assert (status["succeeded"], status["ready"], status["terminating"]) == (3, 0, 0)
    assert status["uncountedTerminatedPods"] == {} and status["completionTime"] and status["startTime"]
    assert [row["type"] for row in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    rows = (await api.ok("GET", PODS))["items"]
    assert len(rows) == 3 and not any(row["metadata"].get("finalizers") for row in rows)


async def test_it_fails_after_its_last_try(hasty: Http) -> None:
    await hasty.ok("POST", BATCH + "/jobs", job("exit 3", backoffLimit=2))
    done = await hasty.until(JOB, ended("Failed"))
    assert done["status"]["failed"] == 3 and done["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert len((await hasty.ok("GET", PODS))["items"]) == 3


async def test_a_rule_ends_it_at_once(hasty: Http) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    await hasty.ok("POST", BATCH + "/jobs", job("exit 42", podFailurePolicy={"rules": [rule]}))
    done = await hasty.until(JOB, ended("Failed"))
    row = done["status"]["conditions"][-1]
    assert row["reason"] == "PodFailurePolicy" and "failed with exit code 42" in row["message"]
    assert done["status"]["failed"] == 1


async def test_indexed_pods_know_their_number(api: Http) -> None:
    await api.ok("POST", BATCH + "/jobs", job(completions=3, parallelism=3, completionMode="Indexed"))
    done = await api.until(JOB, ended("Complete"))
    assert done["status"]["completedIndexes"] == "0-2"
    rows = (await api.ok("GET", PODS))["items"]
    assert sorted(row["spec"]["hostname"] for row in rows) == ["once-0", "once-1", "once-2"]
    assert rows[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


async def test_it_is_suspended_and_resumed(api: Http) -> None:
    await api.ok("POST", BATCH + "/jobs", job("sleep 600", parallelism=2, completions=2))
    await api.until(JOB, lambda v: v["status"].get("ready") == 2)
    await api.ok("PATCH", JOB, {"spec": {"suspend": True}}, MERGE)
    away = await api.until(JOB, lambda v: ended("Suspended")(v) and not v["status"].get("active"))
    assert "startTime" not in away["status"]
    await api.until(PODS, lambda v: not v["items"])
    await api.ok("PATCH", JOB, {"spec": {"suspend": False}}, MERGE)
    back = await api.until(JOB, lambda v: v["status"].get("ready") == 2)
    assert back["status"]["startTime"] and not ended("Suspended")(back)


async def test_a_deadline_stops_it_and_its_time_to_live_removes_it(api: Http) -> None:
    await api.ok("POST", BATCH + "/jobs", job("sleep 600", activeDeadlineSeconds=1, ttlSecondsAfterFinished=1))
    done = await api.until(JOB, ended("Failed"))
    assert done["status"]["conditions"][-1]["reason"] == "DeadlineExceeded"
    await api.until(JOB, lambda v: v.get("code") == 404)
    await api.until(PODS, lambda v: not v["items"])


async def test_pods_of_a_job_that_is_gone_can_go(api: Http, kubectl: Kubectl) -> None:
    await api.ok("POST", BATCH + "/jobs", job("sleep 600"))
    await api.until(JOB, lambda v: v["status"].get("ready") == 1)
    await kubectl("delete", "job", "once", "--cascade=orphan")
    rows = await api.until(PODS, lambda v: not v["items"][0]["metadata"].get("finalizers"))
    await api.ok("DELETE", f"{PODS}/{rows['items'][0]['metadata']['name']}")
    await api.until(PODS, lambda v: not v["items"])
    await api.ok("POST", BATCH + "/jobs", job("sleep 600"))
    await api.until(JOB, lambda v: v["status"].get("ready") == 1)
    await kubectl("delete", "job", "once")
    await api.until(PODS, lambda v: not v["items"])


async def test_kubectl_creates_and_waits(scheduled: tuple[Http, Kubectl]) -> None:
    _, kubectl = scheduled
    await kubectl("create", "job", "hello", "--image=busybox", "--", "sh", "-c", "echo hello")
    await kubectl("wait", "--for=condition=complete", "job/hello", waiting.KUBECTL)
    assert await kubectl("logs", "job/hello") == "hello\n"
    assert (await kubectl("get", "job", "hello", "--no-headers")).split()[:3] == ["hello", "Complete", "1/1"]
    await kubectl("delete", "job", "hello", "--cascade=foreground")
    for _ in range(50):
        if not (await kubectl("get", "pods", "--no-headers")).strip():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("its pods are still there")
