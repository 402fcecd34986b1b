"""Pods go on where they were: after a restart of the sandbox, and when a failed node is back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.clients import MERGE, PODS, Http, http, pod
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.kubelet import resume

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
STARTED = "2026-01-01T11:59:00Z"
RUNNING = {"running": {"startedAt": STARTED}}
FAILED = {"terminated": {"exitCode": 2, "startedAt": STARTED}}
ENDED = {"terminated": {"exitCode": 0, "startedAt": STARTED}}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("policy", "state", "running", "over", "elapsed"),
    [
        ("Always", RUNNING, True, False, 60.0),
        ("Always", ENDED, False, False, 0.0),
        ("Always", WAITING, False, False, 0.0),
        ("OnFailure", ENDED, False, True, 0.0),
        ("OnFailure", FAILED, False, False, 0.0),
        ("Never", FAILED, False, True, 0.0),
        ("Never", ENDED, False, True, 0.0),
    ],
)
def test_a_container_from_its_status(
    policy: str, state: dict[str, Any], running: bool, over: bool, elapsed: float
) -> None:
    row = {"name": "c", "state": state, "restartCount": 3}
    found = {"spec": {"restartPolicy": policy, "containers": [{"name": "c"}]}, "status": {"containerStatuses": [row]}}
    (container,) = resume.containers(found, NOON)
    assert (container.running, container.over, container.elapsed, container.restarts) == (running, over, elapsed, 3)


def test_init_containers_go_on_with_the_one_that_had_not_ended() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always"}
    spec = {"initContainers": [{"name": "a"}, sidecar, {"name": "b"}], "containers": []}
    rows = [("a", ENDED), ("s", RUNNING), ("b", RUNNING)]
    status = {"initContainerStatuses": [{"name": name, "state": state} for name, state in rows]}
    assert resume.init_index({"spec": spec, "status": status}) == 2
    status["initContainerStatuses"][1]["state"] = WAITING
    assert resume.init_index({"spec": spec, "status": status}) == 1


def test_addresses_are_numbers_again() -> None:
    assert resume.address_number("10.1.2.3") == 65536 + 2 * 256 + 3
    assert resume.address_number("127.0.0.1") == resume.address_number("") == 0


def sleeper(name: str, seconds: str, node: str = "node-0", **spec: Any) -> dict[str, Any]:
    made = pod(name, nodeName=node, **{"restartPolicy": "Never", **spec})
    made["spec"]["containers"][0]["command"] = ["sleep", seconds]
    return made


def is_in(phase: str) -> Any:
    return lambda found: (found.get("status") or {}).get("phase") == phase


async def test_a_restart_of_the_sandbox_does_not_start_pods_again(tmp_path: Path) -> None:
    async with Sandbox(nodes=1, crds=False, data=tmp_path) as sandbox, http(sandbox) as api:
        for name, seconds in (("short", "1.5"), ("long", "600"), ("over", "0")):
            await api.ok("POST", PODS, sleeper(name, seconds))
        long = await api.until(PODS + "/long", is_in("Running"))
        await api.until(PODS + "/over", is_in("Succeeded"))
    await asyncio.sleep(1.5)
    async with Sandbox(nodes=1, crds=False, data=tmp_path) as sandbox, http(sandbox) as api:
        await api.until(PODS + "/short", is_in("Succeeded"))  # its time was over while the sandbox was down
        assert await api.ok("GET", PODS + "/long") == long
        await api.ok("POST", PODS, sleeper("new", "600"))
        new = await api.until(PODS + "/new", is_in("Running"))
        everyone = [item["status"]["podIP"] for item in (await api.ok("GET", PODS))["items"]]
        assert new["status"]["podIP"] in everyone and len(set(everyone)) == len(everyone) == 4
        await api.ok("DELETE", PODS + "/long")
        assert (await api.call("GET", PODS + "/long"))[0] == 404


async def test_a_failed_node_reports_nothing_until_it_recovers(api: Http) -> None:
    node = "/api/v1/nodes/node-0"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"
    await api.ok("POST", PODS, sleeper("one", "1"))
    await api.ok("POST", PODS, sleeper("two", "600"))
    await api.until(PODS + "/two", is_in("Running"))
    await api.ok("PATCH", node, {"metadata": {"annotations": {"sandbox.volcano.sh/failed": "true"}}}, MERGE)
    await api.ok("POST", PODS, sleeper("late", "600"))
    renewed = (await api.ok("GET", lease))["spec"]["renewTime"]
    assert (await api.ok("DELETE", PODS + "/two"))["metadata"]["deletionTimestamp"]
    await asyncio.sleep(2.2)
    phases = {item["metadata"]["name"]: item["status"]["phase"] for item in (await api.ok("GET", PODS))["items"]}
    assert phases == {"one": "Running", "two": "Running", "late": "Pending"}
    assert (await api.ok("GET", lease))["spec"]["renewTime"] == renewed
    # what the node lifecycle controller says meanwhile
    rows = (await api.ok("GET", node))["status"]["conditions"]
    lost = [{**row, "status": "Unknown", "reason": "NodeStatusUnknown"} for row in rows]
    await api.ok("PATCH", node + "/status", {"status": {"conditions": lost}}, MERGE)
    await api.ok("PATCH", node, {"metadata": {"annotations": {"sandbox.volcano.sh/failed": None}}}, MERGE)
    await api.until(PODS + "/one", is_in("Succeeded"))
    await api.until(PODS + "/late", is_in("Running"))
    assert (await api.call("GET", PODS + "/two"))[0] == 404
    ready = {row["type"]: row["status"] for row in (await api.ok("GET", node))["status"]["conditions"]}
    assert ready["Ready"] == "True" and ready["MemoryPressure"] == "False"
    assert (await api.ok("GET", lease))["spec"]["renewTime"] > renewed
