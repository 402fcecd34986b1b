"""Policies that wait, what happens to a job while no controller runs or while one stumbles, and recreated jobs."""

import asyncio

from tests.controllers.world import command, job, task
from volcano_py.api import kinds

PENDING_TOO_LONG = {"event": "PodPending", "action": "AbortJob", "timeout": "300ms"}


async def restart(world):
    """By command, until there are new pods."""
    before = {group["metadata"]["uid"] for group in world.podgroups()}
    world.api.put(command("RestartJob", kinds.JOB, "train"))
    await world.until(lambda: {group["metadata"]["uid"] for group in world.podgroups()} - before)
    world.admit()
    await world.until(world.pods)


async def test_running_pods_do_not_pend_when_a_controller_takes_over(world):
    await world.start_running(job(policies=[PENDING_TOO_LONG]))
    await world.kill()
    await world.start()
    await asyncio.sleep(0.6)
    assert world.phase() == "Running"


async def test_a_pending_pod_that_was_given_up_is_no_reason_to_abort(world):
    manifest = job(task(replicas=2, minAvailable=1), policies=[PENDING_TOO_LONG])
    world.api.put(manifest)
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: len(world.pods()) == 2)
    world.run_pods(only="work-0")
    await world.until(lambda: world.phase() == "Running")
    smaller = manifest["spec"]["tasks"][0] | {"replicas": 1}
    world.api.change(kinds.JOB, "train", {"spec": {"tasks": [smaller]}})
    await world.until(lambda: list(world.pods()) == ["train-work-0"])
    await asyncio.sleep(0.5)
    assert world.phase() == "Running"


async def test_a_pod_does_not_pay_for_a_pending_one_of_its_name(world):
    policies = [{"event": "PodPending", "action": "RestartPod", "timeout": "700ms"}]
    world.api.put(job(task(replicas=1), policies=policies))
    await world.until(world.podgroups)
    world.admit()
    await world.until(world.pods)
    await world.until(lambda: world.events("ExecuteAction"))
    await restart(world)
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")
    await asyncio.sleep(0.9)
    assert (world.phase(), world.status().get("retryCount", 0)) == ("Running", 0)


async def test_a_new_pending_pod_has_its_own_time(world):
    """It may be as long in waiting as the first one of its name, and no longer."""
    policies = [{"event": "PodPending", "action": "TerminateJob", "timeout": "2s"}]
    world.api.put(job(task(replicas=1), policies=policies))
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: len(world.events("ExecuteAction")) == 1)
    await asyncio.sleep(1.1)
    await restart(world)
    await asyncio.sleep(1.1)
    assert world.phase() in ("Restarting", "Pending")
    await world.until(lambda: world.phase() in ("Terminating", "Terminated"))


async def test_a_task_that_completes_while_no_controller_runs_has_completed(world):
    tasks = (task("master", 1, policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), task("worker", 1))
    await world.start_running(job(*tasks))
    await world.kill()
    world.run_pods("Succeeded", "master", exit_code=0)
    await world.start()
    await world.reaped(lambda: world.phase() == "Completed")
    assert list(world.pods()) == ["train-master-0"]


async def test_a_gang_that_breaks_while_no_controller_runs_is_broken(world):
    await world.start_running(job(policies=[{"event": "Unknown", "action": "AbortJob"}]))
    await world.kill()
    world.api.change(kinds.PODGROUP, world.podgroups()[0]["metadata"]["name"], {"status": {"phase": "Unknown"}})
    await world.start()
    await world.reaped(lambda: world.phase() == "Aborted")


async def test_a_job_whose_requests_are_no_quantities_reports_it(world):
    """Only where no webhook and no schema has seen it."""
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "lots"}}}
    world.api.put(job(task(template={"spec": {"containers": [container]}})))
    message = (await world.until(lambda: world.events("InvalidJob")))[0]
    assert "'lots'" in message
    assert "spec.task[0].template.spec" in message
    await world.until(lambda: world.status()["state"].get("reason") == "InvalidJob")


async def test_what_has_happened_is_not_forgotten_over_a_mistake_of_ours(world, monkeypatch):
    await world.start_running(job(policies=[{"event": "PodFailed", "action": "AbortJob"}]))
    stumbles = []

    def stumble(*arguments, **options):
        stumbles.append(arguments)
        raise RuntimeError("unexpected")

    with monkeypatch.context() as patched:
        patched.setattr("volcano_py.controllers.job.controller.reconcile", stumble)
        world.run_pods("Failed", "work-0", exit_code=1)
        await world.until(lambda: len(stumbles) > 1)
    await world.reaped(lambda: world.phase() == "Aborted")


async def test_a_job_without_partitions_ends_though_its_policy_restarts_them(world):
    await world.start_running(job(task(replicas=1), policies=[{"event": "*", "action": "RestartPartition"}]))
    world.run_pods("Succeeded", exit_code=0)
    await world.until(lambda: world.phase() == "Completed")
    await world.until(lambda: any("partitionPolicy" in message for message in world.events("ExecuteAction")))


async def test_a_job_waits_until_the_objects_of_a_former_job_of_its_name_are_gone(world):
    """The garbage collector is not as fast as `kubectl replace --force`, and only it deletes what is not the job's."""
    reference = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "former"}
    leftovers = ((kinds.CONFIGMAP, "train-svc"), (kinds.SERVICE, "train"), (kinds.SECRET, "train-ssh"))
    stored = {}
    for rt, name in leftovers:
        metadata = {"name": name, "namespace": "lab", "ownerReferences": [reference | {"controller": True}]}
        stored[rt] = world.api.put({"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata})
    keys = ["--ssh-private-key=a", "--ssh-public-key=b"]
    world.api.put(job(plugins={"svc": [], "ssh": keys}))
    await world.until(lambda: world.phase() == "Pending")
    await asyncio.sleep(0.2)
    assert {rt: world.api.get(rt, name) for rt, name in leftovers} == stored and not world.podgroups()
    for rt, name in leftovers:
        world.api.delete(rt, name)
    await world.until(world.podgroups)
    uid = world.job()["metadata"]["uid"]
    for rt, name in leftovers:
        owners = world.api.get(rt, name)["metadata"]["ownerReferences"]
        assert [owner["uid"] for owner in owners] == [uid], name
