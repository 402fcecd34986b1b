"""What becomes of Jobs: policies, completion, deletion, scaling, suspension, plugins; PodGroups of plain pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.covers import covers
from tests.acceptance.site import GROUPS_OF_SINGLE_PODS, MARKS, Manifest, Site, table, task
from volcano_py.api.kinds import COMMAND, CONFIGMAP, EVENT, JOB, NETWORKPOLICY, POD, PODGROUP, QUEUE, SECRET, SERVICE
from volcano_py.kube.errors import NotFound

pytestmark = MARKS
SEQUENCES = table(Path(__file__).with_name("lifecycle.yaml"))


def _follow(seen: list[str], wanted: list[str]) -> bool:
    """Whether the wanted phases were seen in this order."""
    following = iter(seen)
    return all(phase in following for phase in wanted)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in SEQUENCES])
async def test_policies(at: Site, row: Manifest) -> None:
    command = ["sh", "-c", f"sleep 1; exit {row['fail']}"] if "fail" in row else ["sleep", "600"]
    tasks = [task("acting", 1, command=command, **({"policies": row["task"]} if "task" in row else {}))]
    if row.get("succeed"):
        tasks[0] = {**task("acting", 1, command=["sleep", "1"]), **({"policies": row["task"]} if "task" in row else {})}
    tasks.append(task("other", 1))
    async with at.phases("job") as seen:
        await at.job("job", *tasks, policies=row.get("policies") or [])
        if row.get("delete"):
            await at.becomes("job", "Running")
            await at.delete(POD, "job-acting-0", grace_period_seconds=0)

        async def followed() -> bool:
            return _follow(seen, row["phases"])

        try:
            await at.until(followed, "the phases do not follow")
        except AssertionError as error:
            raise AssertionError(f"seen: {seen}; {error}") from None


async def _gone(at: Site, job: str) -> None:
    async def gone() -> bool:
        try:
            await at.get(JOB, job)
        except NotFound:
            return not await at.client.list(POD, at.namespace) and not await at.group(job)
        return False

    await at.until(gone, f"{job}, its pods and its PodGroup are not gone")


@covers("JP-L01", "JP-L02", "JP-L03", "JP-L06")
@pytest.mark.parametrize("state", ["pending", "running", "completed"])
async def test_a_deleted_job_leaves_nothing_behind(at: Site, state: str) -> None:
    command = ["sleep", "0" if state == "completed" else "600"]
    cpu = "1000" if state == "pending" else "1"
    await at.job("job", task("main", 2, cpu=cpu, command=command))
    await at.becomes("job", state.capitalize())
    await at.delete(JOB, "job")
    await _gone(at, "job")


@covers("JP-L07")
async def test_an_executed_action_is_an_event_of_the_job(at: Site) -> None:
    await at.job(
        "job", task("main", 1, command=["sh", "-c", "exit 1"]), policies=[_policy("PodFailed", "TerminateJob")]
    )

    async def reported() -> bool:
        events = await at.client.list(EVENT, at.namespace, field_selector="involvedObject.name=job")
        return any("TerminateJob" in event["message"] for event in events)

    await at.until(reported, "there is no event of the action")


def _policy(event: str, action: str) -> Manifest:
    return {"event": event, "action": action}


@covers("JP-X01")
async def test_retries_end_and_the_failed_pod_stays(at: Site) -> None:
    failing = task("failing", 1, command=["sh", "-c", "exit 1"])
    await at.job("job", failing, task("other", 1), maxRetry=2, policies=[_policy("PodFailed", "RestartJob")])
    await at.becomes("job", "Failed")
    status = (await at.get(JOB, "job"))["status"]
    assert status["retryCount"] == 2
    assert [pod["metadata"]["name"] for pod in await at.pods("job")] == ["job-failing-0"]


@covers("JP-X02")
async def test_completion_by_a_task_deletes_what_runs(at: Site) -> None:
    done = task("done", 1, command=["sleep", "0"])
    await at.job("job", done, task("other", 1), policies=[_policy("TaskCompleted", "CompleteJob")])
    await at.becomes("job", "Completed")
    assert "retryCount" not in (await at.get(JOB, "job"))["status"]
    assert [pod["metadata"]["name"] for pod in await at.pods("job")] == ["job-done-0"]


async def _hosts(at: Site) -> list[str]:
    found = await at.get(CONFIGMAP, "job-svc")
    return sorted(found["data"].get("main.host", "").split())


@covers("JP-S01", "JP-S02", "JP-S03")
@pytest.mark.parametrize("counts", [(2, 4), (2, 1), (2, 0, 2)])
async def test_scaling_changes_pods_and_hosts(at: Site, counts: tuple[int, ...]) -> None:
    await at.job("job", task("main", counts[0]), plugins={"svc": []})
    await at.runs("job", counts[0])
    for count in counts[1:]:
        found = await at.get(JOB, "job")
        tasks = [{**found["spec"]["tasks"][0], "replicas": count, "minAvailable": count}]
        await at.patch(JOB, "job", {"spec": {"minAvailable": count, "tasks": tasks}})
        await at.runs("job", count)
        expected = [f"job-main-{index}.job" for index in range(count)]

        async def listed(expected: list[str] = expected) -> bool:
            return await _hosts(at) == expected

        await at.until(listed, f"the hosts are not {expected}")


@covers("JP-M01")
async def test_min_success(at: Site) -> None:
    await at.job("job", task("main", 2, command=["sleep", "0"]), task("other", 1), minSuccess=2)
    await at.becomes("job", "Completed")


@covers("JP-R02")
async def test_min_resources_of_the_podgroup(at: Site) -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {
            "requests": {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"},
            "limits": {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"},
        },
    }
    await at.job("job", task("main", 2, pod={"containers": [container]}))

    async def grouped() -> Manifest:
        return await at.group("job")

    resources = (await at.until(grouped, "there is no PodGroup"))["spec"]["minResources"]
    assert resources["cpu"] == "2" and resources["memory"] == "2000Mi" and resources["pods"] == "2"
    assert resources["requests.cpu"] == "2" and resources["limits.cpu"] == "2"
    assert resources["nvidia.com/gpu"] == "2" and resources["count/pods"] == "2"


@covers("VC-2", "VC-3")
@pytest.mark.parametrize("fits", [True, False])
async def test_suspend_and_resume(at: Site, fits: bool) -> None:
    await at.job("job", task("main", 2, cpu="1" if fits else "1000"))
    await at.becomes("job", "Running" if fits else "Pending")
    await command(at, JOB.api_version, "Job", "job", "AbortJob")
    await at.becomes("job", "Aborted")
    assert await at.pods("job") == []
    if fits:
        await command(at, JOB.api_version, "Job", "job", "ResumeJob")
        await at.runs("job", 2)


async def command(at: Site, version: str, kind: str, name: str, action: str) -> None:
    """Send a Command to an object, as vcctl does."""
    owner = await at.get(JOB if kind == "Job" else QUEUE, name)
    target = {"apiVersion": version, "kind": kind, "name": name, "uid": owner["metadata"]["uid"], "controller": True}
    metadata = {"generateName": "command-", "ownerReferences": [target]}
    document = {"apiVersion": COMMAND.api_version, "kind": "Command", "metadata": metadata}
    await at.create({**document, "action": action, "target": target})


def _variables(pod: Manifest) -> set[str]:
    return {row["name"] for container in pod["spec"]["containers"] for row in container.get("env") or ()}


@covers("JS-P01", "JS-P02", "JS-P05")
async def test_svc_ssh_and_env_together(at: Site) -> None:
    await at.job("job", task("main", 2), plugins={"svc": [], "ssh": [], "env": []})
    await at.runs("job", 2)
    await at.get(SERVICE, "job")
    await at.get(SECRET, "job-ssh")
    await at.get(NETWORKPOLICY, "job")
    assert await _hosts(at) == ["job-main-0.job", "job-main-1.job"]
    for pod in await at.pods("job"):
        volumes = pod["spec"]["volumes"]
        sources = {row["configMap"]["name"] for row in volumes if "configMap" in row}
        sources |= {row["secret"]["secretName"] for row in volumes if "secret" in row}
        assert {"job-svc", "job-ssh"} <= sources
        assert {"VC_MAIN_HOSTS", "VC_MAIN_NUM", "VC_TASK_INDEX"} <= _variables(pod)


@covers("JS-P03", "JS-P04")
async def test_arguments_of_svc(at: Site) -> None:
    arguments = ["--disable-network-policy=true", "--inject-hosts-env=false"]
    await at.job("job", task("main", 1), plugins={"svc": arguments})
    await at.runs("job", 1)
    assert await _hosts(at) == ["job-main-0.job"]
    with pytest.raises(NotFound):
        await at.get(NETWORKPOLICY, "job")
    [pod] = await at.pods("job")
    assert not {name for name in _variables(pod) if name.startswith("VC_MAIN_")}


@covers("JS-P06", "JS-P07", "JS-P08", "JS-P09", "JS-P10", "JS-P11")
@pytest.mark.parametrize(
    ("plugins", "roles", "variable"),
    [
        ({"ssh": [], "svc": [], "env": []}, ("master", "worker"), "VC_WORKER_HOSTS"),
        ({"mpi": []}, ("master", "worker"), "MPI_HOST"),
        ({"pytorch": []}, ("master", "worker"), "MASTER_ADDR"),
        ({"ray": []}, ("head", "worker"), ""),
        ({"svc": [], "env": []}, ("ps", "worker"), "VC_PS_HOSTS"),
        ({"tensorflow": []}, ("ps", "worker"), "TF_CONFIG"),
    ],
)
async def test_frameworks(at: Site, plugins: Any, roles: tuple[str, str], variable: str) -> None:
    first = {**task(roles[0], 1, command=["sleep", "2"]), "policies": [_policy("TaskCompleted", "CompleteJob")]}
    async with at.phases("job") as seen:
        await at.job("job", first, task(roles[1], 1), plugins=plugins)
        await at.runs("job", 2)
        pods = await at.pods("job")
        assert not variable or any(variable in _variables(pod) for pod in pods)
        if "ray" not in plugins:
            await at.get(SERVICE, "job")
        await at.becomes("job", "Completed")

        async def followed() -> bool:
            return _follow(seen, ["Pending", "Running", "Completing", "Completed"])

        await at.until(followed, f"seen: {seen}")


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A plain pod of the scheduler."""
    container = {"name": "main", "image": "busybox", "command": ["sleep", "600"]}
    body = {"schedulerName": "volcano", "terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": labels or {}}, "spec": body}


async def _pod_runs(at: Site, name: str) -> bool:
    return bool((await at.get(POD, name))["status"].get("phase") == "Running")


@covers("JP-A05")
async def test_a_plain_pod_gets_a_podgroup(at: Site) -> None:
    await at.create(pod("plain"))
    await at.until(lambda: _pod_runs(at, "plain"), "the pod does not run")

    async def has_group() -> bool:  # the scheduler does not wait for the group of a pod alone
        return len(await at.client.list(PODGROUP, at.namespace)) == int(GROUPS_OF_SINGLE_PODS)

    await at.until(has_group, "the number of PodGroups")
    groups = await at.client.list(PODGROUP, at.namespace)
    assert all(group["metadata"]["name"].startswith("podgroup-") for group in groups)


@covers("JP-A06", "JP-A07", "JS-Q05")
async def test_pods_of_a_users_podgroup(at: Site) -> None:
    group = {
        "apiVersion": PODGROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "mine"},
        "spec": {"minMember": 2},
    }
    await at.create(group)
    for name in ("a", "b"):
        await at.create(pod(name, {"scheduling.k8s.io/group-name": "mine"}))
    for name in ("a", "b"):
        await at.until(lambda name=name: _pod_runs(at, name), f"pod {name} does not run")  # type: ignore[misc]

    async def is_(phase: str) -> bool:
        return bool((await at.get(PODGROUP, "mine")).get("status", {}).get("phase") == phase)

    await at.until(lambda: is_("Running"), "the PodGroup is not Running")
    await at.delete(POD, "a", grace_period_seconds=0)
    await at.until(lambda: is_("Unknown"), "the PodGroup is not Unknown")


@covers("JS-Q01", "JS-Q02", "JP-A31", "JP-A33", "AD-QV19", "AD-QV21")
async def test_queues_close_and_open_with_their_parents(at: Site) -> None:
    parent = await at.queue("parent")
    child = await at.queue("child", parent=parent)

    async def states(*wanted: str) -> None:
        async def hold() -> bool:
            found = [(await at.get(QUEUE, name))["status"].get("state") for name in (parent, child)]
            return found == list(wanted)

        await at.until(hold, f"parent and child are not {wanted}")

    with pytest.raises(Exception, match="can only submit job to leaf queue"):
        await at.job("inner", queue=parent)
    await command(at, QUEUE.api_version, "Queue", parent, "CloseQueue")
    await states("Closed", "Closed")
    await command(at, QUEUE.api_version, "Queue", child, "OpenQueue")
    await at.settle()
    await states("Closed", "Closed")
    await command(at, QUEUE.api_version, "Queue", parent, "OpenQueue")
    await states("Open", "Open")
    await at.delete(QUEUE, child)


@covers("ST-1", "ST-4", "ST-5")
async def test_ten_jobs_and_ten_queues(at: Site) -> None:
    queues = [await at.queue(f"q{number}") for number in range(10)]
    for number, queue in enumerate(queues):
        await at.job(f"job-{number}", task("main", 1, cpu="100m"), queue=queue)
    for number in range(10):
        await at.becomes(f"job-{number}", "Running")
        await at.delete(JOB, f"job-{number}")
    for queue in queues:
        await at.delete(QUEUE, queue)
