"""The life of bound pods, and of nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.sandbox.clients import PODS, Http, pod

PATH = PODS + "/p"


def running(command: list[str], policy: str = "Never", **spec: Any) -> dict[str, Any]:
    made = pod("p", nodeName="node-0", restartPolicy=policy, **spec)
    made["spec"]["containers"][0]["command"] = command
    return made


def phase(name: str) -> Any:
    return lambda value: value.get("status", {}).get("phase") == name


async def test_a_bound_pod_runs_and_succeeds(api: Http) -> None:
    await api.ok("POST", PODS, running(["sleep", "0.2"]))
    started = await api.until(PATH, phase("Running"))
    status = started["status"]
    assert status["podIP"] and status["startTime"] and status["hostIP"]
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"]
    conditions = {row["type"]: row["status"] for row in status["conditions"]}
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"
    ended = await api.until(PATH, phase("Succeeded"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert {row["type"]: row["status"] for row in ended["status"]["conditions"]}["Ready"] == "False"


async def test_addresses_differ(api: Http) -> None:
    for index in range(5):
        await api.ok("POST", PODS, {**pod(f"p{index}", nodeName="node-0")})
    value = await api.until(PODS, lambda v: all(item["status"].get("podIP") for item in v["items"]))
    assert len({item["status"]["podIP"] for item in value["items"]}) == 5


async def test_a_failure_is_final_with_never(api: Http) -> None:
    await api.ok("POST", PODS, running(["sh", "-c", "sleep 0.1; exit 3"]))
    ended = await api.until(PATH, phase("Failed"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize(("policy", "command"), [("OnFailure", ["false"]), ("Always", ["true"])])
async def test_containers_start_again_after_a_pause(api: Http, policy: str, command: list[str]) -> None:
    await api.ok("POST", PODS, running(command, policy))
    value = await api.until(PATH, lambda v: v["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2)
    assert value["status"]["phase"] == "Running"
    assert value["status"]["containerStatuses"][0]["lastState"]["terminated"]
    value = await api.until(PATH, lambda v: "waiting" in v["status"]["containerStatuses"][0]["state"])
    assert value["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


async def test_success_ends_on_failure(api: Http) -> None:
    await api.ok("POST", PODS, running(["true"], "OnFailure"))
    await api.until(PATH, phase("Succeeded"))


async def test_init_containers_run_in_order(api: Http) -> None:
    inits = [
        {"name": f"i{index}", "image": "x", "command": ["sh", "-c", f"echo {index}; sleep 0.1"]} for index in range(2)
    ]
    await api.ok("POST", PODS, running(["sleep", "60"], initContainers=inits))
    first = await api.until(PATH, lambda v: v["status"].get("initContainerStatuses"))
    states = [next(iter(row["state"])) for row in first["status"]["initContainerStatuses"]]
    assert states == ["running", "waiting"] and first["status"]["phase"] == "Pending"
    done = await api.until(PATH, phase("Running"))
    assert all(row["state"]["terminated"]["exitCode"] == 0 for row in done["status"]["initContainerStatuses"])
    assert (await api.call("GET", PATH + "/log?container=i1"))[1] == "1\n"


async def test_a_failing_init_container_fails_the_pod(api: Http) -> None:
    inits = [{"name": "i", "image": "x", "command": ["false"]}]
    await api.ok("POST", PODS, running(["sleep", "60"], initContainers=inits))
    await api.until(PATH, phase("Failed"))


async def test_one_container_of_two_keeps_the_pod_running(api: Http) -> None:
    body = running(["true"])
    body["spec"]["containers"].append({"name": "d", "image": "x", "command": ["sleep", "0.4"]})
    await api.ok("POST", PODS, body)
    value = await api.until(
        PATH, lambda v: any("terminated" in r["state"] for r in v["status"].get("containerStatuses", []))
    )
    assert value["status"]["phase"] == "Running"
    await api.until(PATH, phase("Succeeded"))


async def test_deletion_is_graceful_and_ends(api: Http) -> None:
    await api.ok("POST", PODS, running(["sleep", "60"]))
    await api.until(PATH, phase("Running"))
    listing = await api.ok("GET", PODS)
    terminating = await api.ok("DELETE", PATH)
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 30
    revision = listing["metadata"]["resourceVersion"]
    events = await api.events(f"{PODS}?watch=1&resourceVersion={revision}", 2)
    assert [row["type"] for row in events] == ["MODIFIED", "DELETED"]
    assert (await api.call("GET", PATH))[0] == 404


async def test_a_pod_without_a_node_goes_at_once(api: Http) -> None:
    await api.ok("POST", PODS, pod("p"))
    await api.ok("DELETE", PATH)
    assert (await api.call("GET", PATH))[0] == 404


async def test_nodes_of_users_get_a_kubelet(api: Http) -> None:
    waiting = pod("p", nodeName="mine")
    await api.ok("POST", PODS, waiting)
    await asyncio.sleep(0.05)
    assert (await api.ok("GET", PATH))["status"]["phase"] == "Pending"
    node = {"metadata": {"name": "mine"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}
    await api.ok("POST", "/api/v1/nodes", node)
    value = await api.until("/api/v1/nodes/mine", lambda v: v["status"].get("conditions"))
    ready = {row["type"]: row["status"] for row in value["status"]["conditions"]}
    assert ready["Ready"] == "True" and ready["MemoryPressure"] == "False"
    assert value["status"]["capacity"]["cpu"] == "4" and value["status"]["allocatable"]["pods"] == "110"
    lease = await api.ok("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/mine")
    assert lease["spec"]["holderIdentity"] == "mine"
    await api.until(PATH, phase("Running"))
    await api.ok("DELETE", "/api/v1/nodes/mine")
    await api.until(PODS, lambda v: not v["items"])


async def test_a_node_can_do_without(api: Http) -> None:
    node = {"metadata": {"name": "real", "annotations": {"sandbox.volcano.sh/hollow": "false"}}}
    await api.ok("POST", "/api/v1/nodes", node)
    await api.ok("POST", PODS, pod("p", nodeName="real"))
    await asyncio.sleep(0.1)
    assert "conditions" not in (await api.ok("GET", "/api/v1/nodes/real"))["status"]
    assert (await api.ok("GET", PATH))["status"]["phase"] == "Pending"


async def test_a_burst_of_pods_all_run(api: Http) -> None:
    await asyncio.gather(*(api.ok("POST", PODS, pod(f"p{index}", nodeName="node-0")) for index in range(200)))
    value = await api.until(PODS, lambda v: all(phase("Running")(item) for item in v["items"]))
    assert len(value["items"]) == 200
