"""A job whose objects are missing or rejected, and controllers that end in the middle of their work."""

import asyncio

import pytest

from tests.controllers.small_api import Denied
from tests.controllers.world import job, queue, task
from volcano_py.api import kinds


async def test_a_missing_queue_is_reported_and_does_not_stop_others(world):
    world.api.put(job(queue="nowhere"))
    await world.until(lambda: any("'nowhere' not found" in text for text in world.events("JobStatusError")))
    world.api.put(job(name="other"))
    await world.until(lambda: world.phase("other") == "Pending")
    world.api.put(queue("nowhere"))
    await world.until(lambda: world.phase() == "Pending")


def in_the_way(world):
    state = world.status().get("state", {})
    return state.get("reason"), state.get("message", "")


async def test_a_missing_object_is_reported_and_the_job_continues_when_it_exists(world):
    """A queue, a claim and room in a quota may come late: no number of attempts is too many."""
    await world.kill()
    world.options.max_requeue_num = 1
    await world.start()
    full = True

    def deny(method, path):
        if full and method == "POST" and path.endswith("/pods"):
            return Denied(403, "Forbidden", "pods is forbidden: exceeded quota: small, requested: pods=1")
        return None

    world.api.denial_of = deny
    world.api.put(job(queue="late", volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]))
    await world.until(lambda: in_the_way(world)[0] == "JobStatusError" and "'late' not found" in in_the_way(world)[1])
    world.api.put(queue("late"))
    await world.until(lambda: in_the_way(world)[0] == "PVCError" and "pvc data is not found" in in_the_way(world)[1])
    await world.until(lambda: any("pvc data is not found" in text for text in world.events("PVCError")))
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    world.api.put(claim)
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: in_the_way(world)[0] == "FailedCreate" and "exceeded quota" in in_the_way(world)[1])
    await world.until(lambda: any("exceeded quota" in text for text in world.events("FailedCreate")))
    full = False
    await world.until(lambda: len(world.pods()) == 2)
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")
    assert in_the_way(world) == (None, "")


NO_CLASS = 'pods "train-work-0" is forbidden: no PriorityClass with name urgent was found'


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (403, "Forbidden", NO_CLASS),
        (400, "BadRequest", 'admission webhook "policy.example.com" denied the request: no image from here'),
        (422, "Invalid", 'Pod "train-work-0" is invalid: spec.containers[0].image: Required value'),
    ],
)
async def test_pods_that_cannot_be_created(world, status, reason, message):
    """Such a Job was terminated after some minutes, and shown as suspended; until then it held its part of a queue."""
    await world.kill()
    world.options.max_requeue_num = 1
    await world.start()
    rejected = True

    def deny(method, path):
        return Denied(status, reason, message) if rejected and method == "POST" and path.endswith("/pods") else None

    world.api.denial_of = deny
    world.api.put(job(task(replicas=1)))
    await world.until(world.podgroups)
    assert "conditions" not in world.podgroups()[0].get("status", {})
    world.admit()

    def condition():
        conditions = world.podgroups()[0]["status"].get("conditions") or [{}]
        return {key: conditions[0].get(key) for key in ("type", "status", "reason", "message")}

    await world.until(lambda: in_the_way(world) == ("FailedCreate", message))
    stated = {"type": "FailedCreate", "status": "True", "reason": "FailedCreate", "message": message}
    await world.until(lambda: condition() == stated)
    await world.until(lambda: message in world.events("FailedCreate"))
    await world.quiet(0.5)
    assert world.phase() == "Pending" and condition() == stated

    group = world.podgroups()[0]["metadata"]["name"]
    world.api.change(kinds.PODGROUP, group, {"status": {"phase": "Pending"}})
    await world.quiet()
    assert in_the_way(world) == ("FailedCreate", message), "the scheduler has ended its claim: the reason is the same"

    rejected = False
    world.admit()
    await world.until(world.pods)
    await world.until(lambda: in_the_way(world) == (None, "") and not world.podgroups()[0]["status"].get("conditions"))
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")


async def test_a_missing_class_is_reported_once_and_tried_again_when_it_exists(world, caplog):
    pod = task(replicas=1)
    pod["template"]["spec"]["priorityClassName"] = "urgent"

    def deny(method, path):
        exists = world.api.get(kinds.PRIORITYCLASS, "urgent") is not None
        return (
            Denied(403, "Forbidden", NO_CLASS) if method == "POST" and path.endswith("/pods") and not exists else None
        )

    world.api.denial_of = deny
    world.api.put(job(pod))
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: in_the_way(world) == ("FailedCreate", NO_CLASS))
    await world.until(lambda: world.events("MissingPriorityClass"))
    world.api.put(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    )
    await world.until(world.pods)
    assert len(world.events("MissingPriorityClass")) == 1
    assert "PriorityClass" not in "".join(
        r.getMessage() for r in caplog.records if r.levelname == "WARNING" and "job lab" not in r.getMessage()
    )


async def test_the_queue_of_a_running_job_is_deleted_and_comes_back(world):
    world.api.put(queue("team"))
    await world.start_running(job(queue="team"))
    world.api.delete(kinds.QUEUE, "team")
    world.run_pods("Succeeded", "work-0")
    await world.until(lambda: "'team' not found" in in_the_way(world)[1])
    assert world.phase() == "Running"
    assert len(world.pods()) == 2
    world.api.put(queue("team"))
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase() == "Completed" and in_the_way(world) == (None, ""))


async def test_a_job_that_cannot_be_worked_on_is_terminated_in_the_end(world):
    await world.kill()
    world.options.max_requeue_num = 3
    await world.start()
    world.api.put(job(plugins={"magic": []}))
    await world.until(lambda: world.phase() in ("Terminating", "Terminated"))
    await world.until(lambda: any("retry limit reached" in text for text in world.events("ExecuteAction")))
    await world.until(lambda: world.phase() == "Terminated")


async def test_denied_writes_are_tried_again(world):
    faults = {"POST": 2, "PUT": 2, "PATCH": 1}

    def deny(method, path):
        if "/events" not in path and faults.get(method, 0) > 0:
            faults[method] -= 1
            return Denied(500, "InternalError") if method == "POST" else Denied(409, "Conflict")
        return None

    world.api.denial_of = deny
    await world.start_running(job())
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase() == "Completed")
    assert faults["POST"] == faults["PUT"] == 0


async def test_killed_at_any_moment_it_goes_on_without_making_anything_twice(world):
    """The manager is ended and started again between any two writes, over and over."""
    budget = 1
    done = 0

    def deny(method, path):
        nonlocal done
        if "/events" in path or "/leases" in path:
            return None
        done += 1
        return Denied(503, "ServiceUnavailable", "killed") if done > budget else None

    world.api.denial_of = deny
    uids: dict[str, set[str]] = {}

    async def again():
        """A new manager, which may write a few times more."""
        nonlocal done, budget
        await world.kill()
        for name, pod in world.pods().items():
            uids.setdefault(name, set()).add(pod["metadata"]["uid"])
        done, budget = 0, budget % 7 + 1
        await world.start()

    async def go_on_until(condition):
        for _ in range(60):
            for _ in range(20):
                if condition():
                    return
                await asyncio.sleep(0.005)
            await again()
        raise AssertionError(f"did not converge: {world.status()}, {world.api.writes[-10:]}")

    await again()
    world.api.put(job(task(replicas=4), plugins={"svc": []}))
    await go_on_until(lambda: len(world.podgroups()) == 1)
    world.admit()
    await go_on_until(lambda: len(world.pods()) == 4)
    world.run_pods()
    await go_on_until(lambda: world.phase() == "Running")
    world.run_pods("Succeeded")
    await go_on_until(lambda: world.phase() == "Completed" and world.podgroups() == [])
    assert all(len(seen) == 1 for seen in uids.values()), "a pod was made twice"
    assert len(uids) == 4
    assert world.status()["succeeded"] == 4


async def test_a_failure_while_no_controller_ran_is_handled_after_the_start(world):
    await world.start_running(job(policies=[{"event": "PodFailed", "action": "AbortJob"}]))
    await world.kill()
    world.run_pods("Failed", "work-0", exit_code=1)
    await world.start()
    await world.until(lambda: world.phase() in ("Aborting", "Aborted"))


async def test_deleting_a_job_takes_everything_with_it_and_a_new_one_starts_afresh(world):
    await world.start_running(job())
    world.api.delete(kinds.JOB, "train")
    await world.until(lambda: world.podgroups() == [] and world.pods() == {})
    await world.quiet()
    world.api.put(job())
    await world.until(world.podgroups)
    assert world.podgroups()[0]["metadata"]["name"].endswith(world.job()["metadata"]["uid"])


async def test_counters_alone_wait_for_a_moment_and_are_not_forgotten(world):
    await world.start_running(job(task(replicas=6), minAvailable=1))
    await world.quiet()
    before = len([write for write in world.api.writes if write.endswith("/jobs/train/status")])
    for index in range(3):
        world.run_pods("Succeeded", f"work-{index}")
        await asyncio.sleep(0.05)
    await world.until(lambda: world.status().get("succeeded") == 3)
    await world.quiet()
    after = len([write for write in world.api.writes if write.endswith("/jobs/train/status")])
    assert after - before == 1
