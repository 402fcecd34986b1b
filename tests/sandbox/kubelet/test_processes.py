"""Containers as real processes: how they begin, what they print, how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.sandbox.clients import PODS, Http, Kubectl, http, pod
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.kubelet.processes import logs

PATH = PODS + "/p"
EVENTS = "/api/v1/namespaces/default/events"


def script(text: str, name: str = "p", **spec: Any) -> dict[str, Any]:
    """A pod whose container runs a shell script."""
    made = pod(name, **{"nodeName": "node-0", "restartPolicy": "Never", **spec})
    made["spec"]["containers"][0]["command"] = ["sh", "-c", text]
    return made


def phase(name: str) -> Any:
    return lambda found: (found.get("status") or {}).get("phase") == name


def state(found: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = found["status"]["containerStatuses"][0]["state"]
    return state


async def ended(api: Http, body: dict[str, Any], name: str) -> dict[str, Any]:
    """Create a pod and wait for its phase; what its container's status says of the end."""
    await api.ok("POST", PODS, body)
    found = await api.until(f"{PODS}/{body['metadata']['name']}", phase(name))
    terminated: dict[str, Any] = state(found)["terminated"]
    return terminated


async def log(api: Http, query: str = "", name: str = "p") -> str:
    code, text = await api.call("GET", f"{PODS}/{name}/log{query}")
    assert code == 200, text
    return str(text)


async def printed(api: Http, word: str, name: str = "p") -> None:
    """Wait for a word in a pod's log."""

    async def look() -> None:
        while word not in str((await api.call("GET", f"{PODS}/{name}/log"))[1]):
            await asyncio.sleep(0.02)

    await waiting.within(look(), f"{word!r} was not printed")


async def said(api: Http, reason: str) -> str:
    """Wait for an Event; its message."""
    found = await api.until(EVENTS, lambda v: any(row["reason"] == reason for row in v["items"]))
    return next(str(row["message"]) for row in found["items"] if row["reason"] == reason)


async def test_output_and_exit_code_are_the_process_s(real: Http) -> None:
    end = await ended(real, script("echo out; echo err >&2; printf rest; exit 3"), "Failed")
    assert (end["exitCode"], end["reason"]) == (3, "Error")
    assert await log(real) == "out\nerr\nrest"
    assert await log(real, "?tailLines=2&limitBytes=5") == "err\nr"
    stamped = (await log(real, "?timestamps=true")).splitlines()
    assert [line.partition(" ")[2] for line in stamped] == ["out", "err", "rest"] and "T" in stamped[0][:20]


async def test_a_signal_is_128_and_its_number(real: Http) -> None:
    # in a command, $$ is how a $ is written
    assert (await ended(real, script("kill -SEGV $$$$"), "Failed"))["exitCode"] == 139


async def test_a_command_that_cannot_start_has_a_reason(real: Http) -> None:
    body = pod("p", nodeName="node-0", restartPolicy="Never")
    body["spec"]["containers"][0]["command"] = ["no-such-program"]
    end = await ended(real, body, "Failed")
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert end["message"] == 'exec: "no-such-program": executable file not found in $PATH'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", ["sh", "-c", "a\0b"]),
        ("env", [{"name": "A", "value": "x" * (3 << 20)}]),
        ("terminationMessagePath", "/"),
        ("workingDir", "/dev/termination-log"),
        ("workingDir", "/" + "x" * 300),
    ],
)
async def test_what_no_process_can_have_does_not_hurt_the_others(real: Http, field: str, value: Any) -> None:
    await real.ok("POST", PODS, script("echo up; sleep 600", "other"))
    await printed(real, "up", "other")
    body = script("true")
    body["spec"]["containers"][0][field] = value
    code, _ = await real.call("POST", PODS, body)
    if code < 300:

        def rejected(found: dict[str, Any]) -> bool:
            now = next(iter(state(found).values())) if found["status"].get("containerStatuses") else {}
            return now.get("reason") in ("StartError", "CreateContainerError") and bool(now["message"])

        await real.until(PATH, rejected)
    other = await real.ok("GET", PODS + "/other")
    assert "running" in state(other) and other["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_a_pod_deleted_while_it_starts_harms_no_other(real: Http) -> None:
    await real.ok("POST", PODS, script("echo up; sleep 600", "other"))
    await printed(real, "up", "other")
    for _ in range(20):
        await real.ok("POST", PODS, script("sleep 600"))
        await real.ok("DELETE", PATH + "?gracePeriodSeconds=0")
    assert "running" in state(await real.ok("GET", PODS + "/other"))


async def test_the_termination_message_is_the_file_s_or_the_log_s(real: Http) -> None:
    end = await ended(real, script("echo why > /dev/termination-log; exit 1"), "Failed")
    assert end["message"] == "why\n"
    body = script("echo because", "q")
    body["spec"]["containers"][0] |= {"terminationMessagePolicy": "FallbackToLogsOnError"}
    body["spec"]["containers"][0]["command"][2] += "; exit 1"
    assert (await ended(real, body, "Failed"))["message"] == "because\n"


async def test_a_container_without_a_command_stays_hollow_with_an_event(real: Http) -> None:
    await real.ok("POST", PODS, pod("p", nodeName="node-0"))
    await real.until(PATH, phase("Running"))
    assert "no command" in await said(real, "Hollow")
    await real.ok("DELETE", PATH)
    await real.until(PATH, lambda found: found.get("code") == 404)


async def test_termination_sends_sigterm_and_kills_after_the_grace_period(real: Http) -> None:
    await real.ok("POST", PODS, script("trap 'echo asked' TERM; echo up; while true; do sleep 0.05; done"))
    await printed(real, "up")
    started = time.monotonic()
    await real.ok("DELETE", PATH + "?gracePeriodSeconds=1")
    await printed(real, "asked")
    terminating = await real.ok("GET", PATH)
    assert terminating["metadata"]["deletionTimestamp"] and "running" in state(terminating)
    await real.until(PATH, lambda found: found.get("code") == 404)
    assert 0.9 < time.monotonic() - started < 25  # not the 30 seconds of the default


async def test_a_shorter_time_than_the_first_holds(real: Http) -> None:
    await real.ok("POST", PODS, script("trap '' TERM; echo up; while true; do sleep 0.05; done"))
    await printed(real, "up")
    await real.ok("DELETE", PATH + "?gracePeriodSeconds=60")
    await real.ok("DELETE", PATH + "?gracePeriodSeconds=1")
    await real.until(PATH, lambda found: found.get("code") == 404)


async def test_the_result_is_reported_before_the_pod_is_removed(real: Http) -> None:
    body = script("trap 'exit 5' TERM; echo up; while true; do sleep 0.05; done")
    await real.ok("POST", PODS, body)
    await printed(real, "up")
    revision = (await real.ok("GET", PODS))["metadata"]["resourceVersion"]
    await real.ok("DELETE", PATH)
    rows = await real.events(f"{PODS}?watch=1&resourceVersion={revision}", 3)
    assert [row["type"] for row in rows] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert state(rows[1]["object"])["terminated"]["exitCode"] == 5


async def test_a_hook_runs_before_the_signal(real: Http, tmp_path: Path) -> None:
    body = script("trap 'echo asked; exit 0' TERM; echo up; while true; do sleep 0.05; done")
    marker = tmp_path / "marker"
    hook = {"exec": {"command": ["sh", "-c", f"sleep 0.3; echo first > {marker}"]}}
    body["spec"]["containers"][0]["lifecycle"] = {"preStop": hook}
    await real.ok("POST", PODS, body)
    await printed(real, "up")
    await real.ok("DELETE", PATH)
    await real.until(PATH, lambda found: found.get("code") == 404)
    assert marker.read_text() == "first\n"


async def test_force_kills_at_once(real: Http, machine: Sandbox) -> None:
    await real.ok("POST", PODS, script("trap '' TERM; echo up $$$$; while true; do sleep 0.05; done"))
    await printed(real, "up")
    pid = int((await log(real)).split()[1])
    await real.ok("DELETE", PATH + "?gracePeriodSeconds=0")
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            break
        await asyncio.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()
    assert machine.processes is not None
    await asyncio.sleep(0.1)
    assert list(machine.processes.root.iterdir()) == []


async def test_the_deadline_ends_it(real: Http) -> None:
    await real.ok("POST", PODS, script("sleep 60", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1))
    found = await real.until(PATH, lambda v: phase("Failed")(v) and "terminated" in state(v))
    assert found["status"]["reason"] == "DeadlineExceeded" and state(found)["terminated"]["exitCode"] == 143


async def test_restarts_keep_the_log_before(real: Http, real_kubectl: Kubectl) -> None:
    await real.ok("POST", PODS, script("date +%N; exit 1", restartPolicy="OnFailure"))
    await real.until(PATH, lambda v: v["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2)
    await real.until(PATH, lambda v: "waiting" in state(v))
    assert (await real_kubectl("logs", "p", "--previous")).strip().isdigit()


async def test_a_missing_previous_log_is_reported_as_by_the_kubelet(real: Http) -> None:
    await ended(real, script("true"), "Succeeded")
    code, answer = await real.call("GET", PATH + "/log?previous=true")
    assert (code, answer["message"]) == (400, 'previous terminated container "c" in pod "p" not found')


async def test_logs_are_followed_to_the_end(real: Http, real_kubectl: Kubectl) -> None:
    await real.ok("POST", PODS, script("for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; printf end"))
    await printed(real, "line")
    assert await real_kubectl("logs", "-f", "p") == "line 1\nline 2\nline 3\nline 4\nline 5\nend"


async def test_init_containers_and_sidecars_run(real: Http) -> None:
    inits = [
        {"name": "first", "image": "x", "command": ["sh", "-c", "echo one > /shared/file"]},
        {"name": "beside", "image": "x", "restartPolicy": "Always", "command": ["sh", "-c", "echo here; sleep 600"]},
    ]
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    body = script("cat /shared/file; sleep 0.3", initContainers=inits, volumes=[{"name": "shared", "emptyDir": {}}])
    for container in (body["spec"]["containers"][0], inits[0]):
        container["volumeMounts"] = mounts
    await real.ok("POST", PODS, body)
    await real.until(PATH, phase("Running"))
    await printed(real, "one")
    assert await log(real, "?container=beside") == "here\n"
    done = await real.until(PATH, phase("Succeeded"))
    done = await real.until(PATH, lambda v: "terminated" in v["status"]["initContainerStatuses"][1]["state"])
    codes = [row["state"]["terminated"]["exitCode"] for row in done["status"]["initContainerStatuses"]]
    assert codes == [0, 143]


async def test_a_process_gets_no_more_memory_than_its_limit(real: Http) -> None:
    body = pod("p", nodeName="node-0", restartPolicy="Never")
    container = body["spec"]["containers"][0]
    container["command"] = [sys.executable, "-c", "print(len(bytearray(300 << 20)))"]
    container["resources"] = {"limits": {"memory": "128Mi", "cpu": "1"}}
    end = await ended(real, body, "Failed")
    assert end["exitCode"] == 1 and "MemoryError" in await log(real)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tie processes to cores")
async def test_a_cpu_limit_is_a_number_of_cores(real: Http) -> None:
    body = pod("p", nodeName="node-0", restartPolicy="Never")
    container = body["spec"]["containers"][0]
    container["command"] = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    container["resources"] = {"limits": {"cpu": "500m"}}
    await ended(real, body, "Succeeded")
    assert await log(real) == "1\n"


async def test_a_supervisor_that_ended_is_replaced_and_its_runs_have_ended(real: Http, machine: Sandbox) -> None:
    await real.ok("POST", PODS, script("echo up; sleep 600", restartPolicy="OnFailure"))
    await printed(real, "up")
    assert machine.processes is not None
    supervisor = machine.processes.connection._process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGKILL)
    found = await real.until(PATH, lambda v: v["status"]["containerStatuses"][0]["restartCount"] == 1)
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
    assert (await ended(real, script("echo again", "q"), "Succeeded"))["exitCode"] == 0


async def test_processes_that_went_with_the_sandbox_start_again_where_they_may(tmp_path: Path) -> None:
    def sandbox() -> Sandbox:
        return Sandbox(
            1, crds=False, data=tmp_path / "data", path=tmp_path / "kubeconfig", run_commands=True, backoff=0.05
        )

    async with sandbox() as first, http(first) as api:
        await api.ok("POST", PODS, script("echo up; sleep 600", "always", restartPolicy="Always"))
        await api.ok("POST", PODS, script("echo up; sleep 600", "never"))
        await api.ok("POST", PODS, script("echo over", "over"))
        await api.until(PODS + "/over", phase("Succeeded"))
        for name in ("always", "never"):
            await printed(api, "up", name)
    async with sandbox() as second, http(second) as api:
        lost = await api.until(PODS + "/never", phase("Failed"))
        assert state(lost)["terminated"]["reason"] == "ContainerStatusUnknown"
        again = await api.until(PODS + "/always", lambda v: "running" in state(v))
        assert again["status"]["containerStatuses"][0]["restartCount"] == 1
        assert await log(api, name="over") == "over\n"
        addresses = [item["status"]["podIP"] for item in (await api.ok("GET", PODS))["items"]]
        assert len(set(addresses)) == 3


async def test_what_is_not_a_pod_s_folder_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "kubeconfig.pods"
    stale, other = root / f"default_p_{'0' * 36}", root / "holiday-pictures"
    for folder in (stale, other):
        folder.mkdir(parents=True)
    async with Sandbox(1, crds=False, path=tmp_path / "kubeconfig", run_commands=True):
        assert other.exists() and not stale.exists()
        assert root.stat().st_mode & 0o777 == 0o700


async def test_a_log_is_followed_from_before_its_process_has_started(machine: Sandbox, real: Http) -> None:
    """A pod is "running" as soon as the supervisor was asked to start it, which may take a while."""
    assert machine.processes is not None and machine.processes.connection._process is not None
    supervisor = machine.processes.connection._process.pid
    os.kill(supervisor, signal.SIGSTOP)
    try:
        await real.ok("POST", PODS, script("echo here; sleep 600"))
        await real.until(PATH, phase("Running"))
        headers = {"Authorization": f"Bearer {machine.token}"}
        url = f"{machine.url}{PATH}/log?follow=true"
        async with waiting.limit("no line came"), asyncio.TaskGroup() as group:
            follower = group.create_task(real.session.get(url, headers=headers))
            # the follower's request is answered after the pod's state was read for it
            await real.until(PATH, phase("Running"))
            await asyncio.sleep(0.3)
            os.kill(supervisor, signal.SIGCONT)
            answer = await follower
            assert await answer.content.readline() == b"here\n"
            answer.close()
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_the_log_of_a_new_run_is_not_that_of_the_last(tmp_path: Path) -> None:
    first = logs.path_for(tmp_path, "c")
    first.write_text("first run")
    second = logs.path_for(tmp_path, "c")
    assert logs.find(tmp_path, "c", -1) == second and second.read_text() == ""
    assert logs.find(tmp_path, "c", -2) == first
    third = logs.path_for(tmp_path, "c")
    assert [logs.find(tmp_path, "c", index) for index in (-1, -2, -3)] == [third, second, None]
