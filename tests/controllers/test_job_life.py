"""Jobs through the running controller-manager, against a small API server."""

import asyncio

import pytest

from tests.controllers.small_api import Denied
from tests.controllers.world import command, job, task
from volcano_py.api import kinds


async def test_a_gang_from_start_to_end(world):
    world.api.put(job(task(replicas=3)))
    group = (await world.until(world.podgroups))[0]
    uid = world.job()["metadata"]["uid"]
    assert group["metadata"]["name"] == f"train-{uid}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"work": 3}
    assert group["spec"]["minResources"]["requests.cpu"] == "3"
    await world.quiet()
    assert world.pods() == {}, "pods must wait until the group is admitted"
    assert world.phase() == "Pending"

    world.admit()
    pods = await world.until(lambda: len(world.pods()) == 3 and world.pods())
    assert sorted(pods) == ["train-work-0", "train-work-1", "train-work-2"]
    assert pods["train-work-1"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == f"train-{uid}"
    assert pods["train-work-1"]["spec"]["schedulerName"] == "volcano"
    await world.until(lambda: world.status().get("pending") == 3)

    world.run_pods()
    await world.until(lambda: world.phase() == "Running")
    assert world.status()["taskStatusCount"] == {"work": {"phase": {"Running": 3}}}
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase() == "Completed")
    await world.until(lambda: world.podgroups() == [])
    await world.quiet()
    assert world.status()["succeeded"] == 3
    assert [one["status"] for one in world.status()["conditions"]] == ["Pending", "Running", "Completed"]
    assert len(world.pods()) == 3, "ended pods stay to be looked at"
    assert sum(write.startswith("POST") and "/pods" in write for write in world.api.writes) == 3


async def test_nothing_is_written_when_nothing_changes(world):
    await world.start_running(job())
    await world.quiet(0.5)  # the queue is counted a moment after the last change
    before = list(world.api.writes)
    world.api.change(kinds.JOB, "train", {"metadata": {"labels": {"a": "b"}}})
    world.api.change(kinds.POD, "train-work-0", {"metadata": {"labels": {"a": "b"}}})
    world.api.change(kinds.QUEUE, "default", {"status": {"allocated": {"cpu": "2"}}})
    await world.quiet(0.5)
    assert world.api.writes == before


async def test_a_job_whose_podgroup_cannot_be_deleted_is_tried_again_with_pauses(world):
    await world.start_running(job())
    rejected = []

    def deny(method, path):
        if method != "DELETE" or "/podgroups/" not in path:
            return None
        rejected.append(path)
        return Denied(422, "Invalid", "a webhook rejects it")

    world.api.denial_of = deny
    world.run_pods("Succeeded")
    await world.until(lambda: len(rejected) >= 3)
    before = len(rejected)
    await asyncio.sleep(0.3)
    assert len(rejected) - before <= 8, "a status of this controller causes a synchronization without a pause"


async def test_a_status_that_another_client_has_written_is_corrected(world):
    await world.start_running(job())
    world.api.change(kinds.JOB, "train", {"status": {"running": 1, "pending": 1}})
    await world.until(lambda: world.status().get("running") == 2 and not world.status().get("pending"))


async def test_a_failed_pod_without_policy_fails_the_job_when_all_have_ended(world):
    await world.start_running(job())
    world.run_pods("Failed", "work-0", exit_code=1)
    await world.until(lambda: world.status().get("failed") == 1)
    assert world.phase() == "Running"
    world.run_pods("Succeeded", "work-1")
    await world.until(lambda: world.phase() == "Failed")


async def test_restart_job_policy_until_retries_are_used_up(world):
    policy = [{"event": "PodFailed", "action": "RestartJob"}]
    await world.start_running(job(policies=policy, maxRetry=2))
    first = {pod["metadata"]["uid"] for pod in world.pods().values()}
    group = world.podgroups()[0]["metadata"]["uid"]
    world.run_pods("Failed", "work-0", exit_code=3)
    await world.until(lambda: world.phase() in ("Restarting", "Pending"))
    await world.until(lambda: world.status().get("retryCount") == 1)
    await world.until(lambda: "work-0" not in str(list(world.pods())))
    world.reap()
    new = await world.until(lambda: [g for g in world.podgroups() if g["metadata"]["uid"] != group])
    await world.quiet()
    assert world.pods() == {}, "a new group has to be admitted first"
    assert new[0].get("status", {}).get("phase", "Pending") == "Pending"
    world.admit()
    await world.until(lambda: len(world.pods()) == 2)
    assert not first & {pod["metadata"]["uid"] for pod in world.pods().values()}
    versions = {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in world.pods().values()}
    assert versions == {"1"}
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")

    world.run_pods("Failed", "work-1", exit_code=3)
    await world.until(lambda: world.phase() == "Failed")
    assert world.status()["retryCount"] == 2
    world.reap()
    await world.quiet()
    assert list(world.pods()) == ["train-work-1"], "the last failure is kept"


async def test_exit_code_policy_of_the_task_comes_first(world):
    policies = [{"exitCode": 42, "action": "CompleteJob"}]
    manifest = job(task(policies=policies), policies=[{"event": "*", "action": "AbortJob"}])
    await world.start_running(manifest)
    world.run_pods("Failed", "work-0", exit_code=42)
    await world.until(lambda: world.phase() in ("Completing", "Completed"))
    await world.until(lambda: "deletionTimestamp" in world.pods()["train-work-1"]["metadata"])
    await world.reaped(lambda: world.phase() == "Completed")
    assert list(world.pods()) == ["train-work-0"]


async def test_restart_pod_replaces_one_pod_and_keeps_the_group(world):
    await world.start_running(job(policies=[{"event": "PodEvicted", "action": "RestartPod"}]))
    group = world.podgroups()[0]["metadata"]["uid"]
    kept = world.pods()["train-work-1"]["metadata"]["uid"]
    world.api.delete(kinds.POD, "train-work-0")
    await world.until(lambda: world.events("ExecuteAction") == ["Start to execute action RestartPod"])
    await world.until(lambda: len(world.pods()) == 2)
    world.run_pods()
    await world.until(lambda: world.phase() == "Running" and world.status()["running"] == 2)
    assert world.status().get("retryCount", 0) == 0
    assert world.podgroups()[0]["metadata"]["uid"] == group
    assert world.pods()["train-work-1"]["metadata"]["uid"] == kept
    assert world.status().get("version", 0) == 0


async def test_evictions_use_up_no_retries_and_keep_a_distance(world):
    """maxRetry 1 means: the first restart after a failure is the end. Evictions are not the job's fault."""
    await world.start_running(job(maxRetry=1, policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    for version in (1, 2):
        world.api.delete(kinds.POD, "train-work-0")
        await world.until(lambda version=version: world.status().get("version") == version)
        await world.reaped(lambda: world.phase() == "Pending")
        world.admit()
        await world.until(lambda: len(world.pods()) == 2)
        world.run_pods()
        await world.until(lambda: world.phase() == "Running")
    assert world.status().get("retryCount", 0) == 0
    # the second came a second after the first
    assert any(text.startswith("Execute action RestartJob after ") for text in world.events("ExecuteAction"))


async def test_our_own_deletions_do_not_count_as_evictions(world):
    await world.start_running(job(task(replicas=3), policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    spec = {"tasks": [task(replicas=1)], "minAvailable": 1}
    world.api.change(kinds.JOB, "train", {"spec": spec})
    await world.until(lambda: sum("deletionTimestamp" in p["metadata"] for p in world.pods().values()) == 2)
    await world.reaped(lambda: world.status().get("running") == 1 and not world.status().get("terminating"))
    await world.quiet()
    assert list(world.pods()) == ["train-work-0"]
    assert world.status().get("retryCount", 0) == 0
    assert world.podgroups()[0]["spec"]["minMember"] == 1
    assert world.podgroups()[0]["spec"]["minResources"]["requests.cpu"] == "1"

    world.api.change(kinds.JOB, "train", {"spec": {"tasks": [task(replicas=4)], "minAvailable": 4}})
    await world.until(lambda: len(world.pods()) == 4)
    assert world.podgroups()[0]["spec"]["minMember"] == 4


async def test_suspended_and_resumed_many_times_by_command(world):
    """Each resume counted as a retry: the third one failed the Job."""
    await world.start_running(job())
    for _ in range(5):
        world.api.put(command("AbortJob", kinds.JOB, "train"))
        await world.until(lambda: world.phase() in ("Aborting", "Aborted"))
        await world.reaped(lambda: world.phase() == "Aborted" and world.podgroups() == [])
        await world.until(lambda: world.api.all(kinds.COMMAND) == [] and world.pods() == {})
        world.api.put(command("ResumeJob", kinds.JOB, "train"))
        await world.until(world.podgroups)
        world.admit()
        await world.until(lambda: len(world.pods()) == 2)
        world.run_pods()
        await world.until(lambda: world.phase() == "Running")
        assert world.status().get("retryCount", 0) == 0


async def test_a_restart_that_a_user_requests_is_no_retry(world):
    await world.start_running(job(maxRetry=1))
    world.api.put(command("RestartJob", kinds.JOB, "train"))
    await world.until(lambda: world.phase() == "Restarting")
    await world.reaped(lambda: world.phase() == "Pending")
    assert world.status().get("retryCount", 0) == 0


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
async def test_the_last_attempt_keeps_its_failed_pod(world, action):
    """Its logs say why the Job failed."""
    policies = [{"event": "PodFailed", "action": action}]
    await world.start_running(job(task(replicas=1, minAvailable=1), maxRetry=1, policies=policies))
    world.run_pods("Failed", exit_code=1)
    await world.until(lambda: world.phase() == "Failed")
    await world.quiet()
    [pod] = world.pods().values()
    assert (pod["status"]["phase"], "deletionTimestamp" in pod["metadata"]) == ("Failed", False)


async def test_a_gang_that_lost_members_is_restarted_without_a_retry(world):
    await world.start_running(job(policies=[{"event": "Unknown", "action": "RestartJob"}]))
    [group] = world.podgroups()
    world.api.change(kinds.PODGROUP, group["metadata"]["name"], {"status": {"phase": "Unknown"}})
    await world.until(lambda: world.phase() == "Restarting")
    assert world.status().get("retryCount", 0) == 0


async def test_a_policy_with_timeout_waits_and_is_cancelled_when_the_pod_starts(world):
    policy = [{"event": "PodPending", "action": "AbortJob", "timeout": "250ms"}]
    world.api.put(job(policies=policy))
    await world.until(world.podgroups)
    world.admit()
    await world.until(lambda: len(world.pods()) == 2)
    await world.until(lambda: world.events("ExecuteAction"))
    world.run_pods()
    await asyncio.sleep(0.4)
    assert world.phase() == "Running"

    world.api.put(job(name="stuck", policies=policy))
    await world.until(lambda: len(world.podgroups()) == 2)
    world.admit()
    await world.until(lambda: world.phase("stuck") in ("Aborting", "Aborted"))
    assert world.phase() == "Running"


async def test_tasks_wait_for_those_they_depend_on(world):
    tasks = (task("first", 1), task("second", 1, dependsOn={"name": ["first"]}))
    world.api.put(job(*tasks, minAvailable=1))
    await world.until(world.podgroups)
    world.admit()
    await world.until(world.pods)
    await world.quiet()
    assert list(world.pods()) == ["train-first-0"]
    world.run_pods()
    await world.until(lambda: len(world.pods()) == 2)


async def test_the_gang_leaves_out_tasks_that_wait_for_others(world):
    """With the default minimum, the gang waited for pods that are created when the gang runs: for ever."""
    tasks = (task("first", 1), task("second", 2, dependsOn={"name": ["first"]}))
    world.api.put(job(*tasks))
    [group] = await world.until(world.podgroups)
    spec = group["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (1, {"first": 1, "second": 0})
    assert spec["minResources"]["requests.cpu"] == "1"
    world.admit()
    await world.until(world.pods)
    world.run_pods()
    await world.until(lambda: len(world.pods()) == 3)
    [group] = world.podgroups()
    assert (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == (3, {"first": 1, "second": 2})
    world.run_pods()
    await world.until(lambda: world.phase() == "Running")


@pytest.mark.parametrize(("least", "now", "later"), [(1, 1, 1), (2, 1, 2), (3, 1, 3)])
async def test_a_gang_of_any_minimum_starts_with_dependencies(world, least, now, later):
    tasks = (task("first", 1), task("second", 2, minAvailable=1, dependsOn={"name": ["first"]}))
    world.api.put(job(*tasks, minAvailable=least))
    [group] = await world.until(world.podgroups)
    assert group["spec"]["minMember"] == now
    world.admit()
    await world.until(world.pods)
    world.run_pods()
    await world.until(lambda: len(world.pods()) == 3)
    assert world.podgroups()[0]["spec"]["minMember"] == later


async def test_a_finished_job_is_deleted_with_all_that_belongs_to_it(world):
    await world.start_running(job(ttlSecondsAfterFinished=1, plugins={"svc": []}))
    assert world.api.get(kinds.SERVICE, "train")
    world.run_pods("Succeeded")
    # Completed may last for less than one look: the time to live counts from a whole second.
    await world.until(lambda: world.job() == {})
    await world.until(lambda: world.pods() == {} and world.api.get(kinds.SERVICE, "train") is None)


async def test_svc_and_env_plugins(world):
    await world.start_running(job(task(replicas=2), task("aux", 1), plugins={"svc": [], "env": []}))
    config = world.api.get(kinds.CONFIGMAP, "train-svc")
    assert config["data"]["VC_WORK_HOSTS"] == "train-work-0.train,train-work-1.train"
    assert config["data"]["VC_AUX_NUM"] == "1"
    pod = world.pods()["train-work-1"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("train-work-1", "train")
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert env["VC_TASK_INDEX"] == "1"
    assert "VC_AUX_HOSTS" in env
    assert world.status()["controlledResources"] == {"plugin-env": "env", "plugin-svc": "svc"}
    spec = {"tasks": [task(replicas=3), task("aux", 1)]}
    world.api.change(kinds.JOB, "train", {"spec": spec})
    await world.until(lambda: world.api.get(kinds.CONFIGMAP, "train-svc")["data"]["VC_WORK_NUM"] == "3")
    await world.quiet()
    patches = [write for write in world.api.writes if "configmaps" in write and write.startswith("PATCH")]
    assert len(patches) == 1


async def test_volumes(world):
    volumes = [
        {"mountPath": "/new", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
        {"mountPath": "/old", "volumeClaimName": "data"},
    ]
    world.api.put(job(volumes=volumes))
    await world.until(lambda: any("data is not found" in text for text in world.events("PVCError")))
    assert world.phase() == "Pending"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    world.api.put(claim)
    await world.until(world.podgroups)
    world.admit()
    pods = await world.until(lambda: len(world.pods()) == 2 and world.pods())
    claims = [one["persistentVolumeClaim"]["claimName"] for one in pods["train-work-0"]["spec"]["volumes"]]
    made = world.job()["spec"]["volumes"][0]["volumeClaimName"]
    assert claims == [made, "data"]
    assert world.api.get(kinds.PERSISTENTVOLUMECLAIM, made)["spec"] == {"accessModes": ["ReadWriteOnce"]}
    assert len(world.api.all(kinds.PERSISTENTVOLUMECLAIM)) == 2
