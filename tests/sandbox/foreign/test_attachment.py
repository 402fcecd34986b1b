"""`volcano-py sandbox nodes` at a control plane in a process of its own, which has neither kubelets nor controllers."""

from __future__ import annotations

import asyncio
import base64
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import waiting
from tests.sandbox.clients import pod
from tests.sandbox.test_commands import PROGRAM, program
from volcano_py.api.resource_types import (
    BATCH_JOB,
    CLUSTERROLE,
    CLUSTERROLEBINDING,
    CONFIGMAP,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    SERVICEACCOUNT,
    ResourceType,
)
from volcano_py.kube import certificates
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound

pytestmark = pytest.mark.slow

GROUP = "hollow-kubelets"


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a control plane."""
    kubeconfig = tmp_path / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.sandbox.foreign.plane", str(kubeconfig), str(tmp_path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    assert await waiting.within(process.stdout.readline(), "the control plane does not start")
    yield kubeconfig
    process.stdin.close()
    await waiting.within(process.wait(), "the control plane does not end")


@pytest.fixture
async def client(plane: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(plane) as made:
        yield made


@asynccontextmanager
async def attached(kubeconfig: Path, *arguments: str) -> AsyncIterator[list[str]]:
    """The command, which is interrupted at the end; the list gets its exit code and errors."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("nodes", "--kubeconfig", str(kubeconfig), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await waiting.within(process.stdout.readline(), "the nodes are not attached")
    ended: list[str] = []
    if not line:
        raise AssertionError((await process.communicate())[1].decode())
    try:
        yield ended
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = await waiting.within(process.communicate(), "the command does not end")
        ended += [str(process.returncode), errors.decode()]


async def gone(client: Client, rt: ResourceType, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(rt, name, namespace)
    except NotFound:
        return True
    return False


async def running(client: Client, name: str, namespace: str = "default") -> bool:
    found = await client.get(POD, name, namespace)
    return bool(found["status"].get("phase") == "Running")


async def test_nodes_run_pods_and_leave_nothing(plane: Path, client: Client) -> None:
    async with attached(plane, "--nodes", "3", "--node-shape", "cpu=4,memory=8Gi") as ended:
        found = await client.list(NODE)
        assert [node["metadata"]["name"] for node in found] == ["hollow-0", "hollow-1", "hollow-2"]
        assert found[0]["status"]["capacity"]["cpu"] == "4"
        await client.create(POD, pod("stays", nodeName="hollow-0"))
        await waiting.until(lambda: running(client, "stays"), "the pod does not run")
        over = pod("over", nodeName="hollow-1", restartPolicy="Never")
        over["metadata"]["annotations"] = {"sandbox.volcano.sh/run-seconds": "0"}
        await client.create(POD, over)

        async def succeeded() -> bool:
            return bool((await client.get(POD, "over", "default"))["status"].get("phase") == "Succeeded")

        await waiting.until(succeeded, "the pod does not succeed")
        await client.create(POD, pod("goes", nodeName="hollow-2"))
        await waiting.until(lambda: running(client, "goes"), "the pod does not run")
        await client.delete(POD, "goes", "default", grace_period_seconds=1)
        await waiting.until(lambda: gone(client, POD, "goes", "default"), "a deleted pod stays")
        code, _, errors = await program("nodes", "--kubeconfig", plane, "--nodes", "1")
        assert code == 1 and "have a kubelet already; choose another --name" in errors
    assert ended == ["0", ""]
    assert not await client.list(NODE) and not await client.list(POD)
    assert not await client.list(LEASE, "kube-node-lease")


async def test_kept_nodes_continue_with_their_pods(plane: Path, client: Client) -> None:
    async with attached(plane, "--nodes", "1", "--keep"):
        await client.create(POD, pod("p", nodeName="hollow-0"))
        await waiting.until(lambda: running(client, "p"), "the pod does not run")
    before = await client.get(POD, "p", "default")
    async with attached(plane, "--nodes", "1") as ended:
        await client.create(POD, pod("q", nodeName="hollow-0"))
        await waiting.until(lambda: running(client, "q"), "the pod does not run")
        after = await client.get(POD, "p", "default")
        assert after["status"]["podIP"] == before["status"]["podIP"]
        assert (await client.get(POD, "q", "default"))["status"]["podIP"] != before["status"]["podIP"]
    assert ended == ["0", ""] and not await client.list(NODE)


async def test_nodes_of_others_are_left_alone(plane: Path, client: Client) -> None:
    await client.create(NODE, {"metadata": {"name": "real"}})
    await client.create(NODE, {"metadata": {"name": "hollow-0"}})
    await client.create(POD, pod("theirs", nodeName="real"))
    code, _, errors = await program("nodes", "--kubeconfig", plane, "--nodes", "1")
    assert code == 1 and errors == "sandbox: node hollow-0 exists without the label; choose another --name\n"
    async with attached(plane, "--nodes", "1", "--name", "big") as ended:
        await client.create(POD, pod("ours", nodeName="big-0"))
        await waiting.until(lambda: running(client, "ours"), "the pod does not run")
        assert not await running(client, "theirs")
    assert ended == ["0", ""]
    assert [node["metadata"]["name"] for node in await client.list(NODE)] == ["hollow-0", "real"]
    assert [one["metadata"]["name"] for one in await client.list(POD)] == ["theirs"]


async def test_controllers_of_a_bare_server(plane: Path, client: Client) -> None:
    """Deployment, Job, garbage, namespaces and default service accounts, by the API only."""
    containers = [{"name": "c", "image": "busybox:1"}]
    async with attached(plane, "--nodes", "2", "--controllers") as ended:
        await client.create(NAMESPACE, {"metadata": {"name": "team"}})
        async with scheduler(client):
            await client.create(DEPLOYMENT, deployment(containers), "team")
            await waiting.until(lambda: ready(client, 3), "the Deployment is not ready")
            work = {"restartPolicy": "Never", "containers": containers}
            template = {"metadata": {"annotations": {"sandbox.volcano.sh/run-seconds": "0"}}, "spec": work}
            job = {"metadata": {"name": "work"}, "spec": {"completions": 2, "template": template}}
            await client.create(BATCH_JOB, job, "team")

            async def complete() -> bool:
                return bool((await client.get(BATCH_JOB, "work", "team")).get("status", {}).get("succeeded") == 2)

            await waiting.until(complete, "the Job does not complete")
        assert (await client.get(SERVICEACCOUNT, "default", "team"))["metadata"]["name"] == "default"
        assert "BEGIN CERTIFICATE" in (await client.get(CONFIGMAP, "kube-root-ca.crt", "team"))["data"]["ca.crt"]
        await client.delete(DEPLOYMENT, "web", "team", propagation_policy="Foreground")
        await waiting.until(lambda: gone(client, DEPLOYMENT, "web", "team"), "the Deployment stays")

        async def without_pods() -> bool:
            return not [one for one in await client.list(POD, "team") if one["metadata"]["name"].startswith("web")]

        await waiting.until(without_pods, "its pods stay")
        await client.delete(NAMESPACE, "team")
        await waiting.until(lambda: gone(client, NAMESPACE, "team"), "the namespace stays")
    assert ended == ["0", ""]
    assert not await client.list(NODE)


def deployment(containers: list[Any]) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


async def ready(client: Client, count: int) -> bool:
    found = await client.get(DEPLOYMENT, "web", "team")
    return bool((found.get("status") or {}).get("readyReplicas") == count)


@asynccontextmanager
async def scheduler(client: Client) -> AsyncIterator[None]:
    """Binds every pod to the first node."""

    async def bind() -> None:
        bound: set[str] = set()
        while True:
            for one in await client.list(POD, field_selector="spec.nodeName="):
                meta = one["metadata"]
                if meta["uid"] not in bound:
                    bound.add(meta["uid"])
                    target = {"kind": "Node", "name": "hollow-0"}
                    body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": meta["name"]}, "target": target}
                    await client.create_subresource(POD, meta["name"], "binding", body, meta["namespace"])
            await asyncio.sleep(0.05)

    task = asyncio.create_task(bind())
    try:
        yield
    finally:
        task.cancel()


async def test_a_client_certificate_with_the_rights_of_kubelets(plane: Path, client: Client, tmp_path: Path) -> None:
    authority = certificates.Authority(
        (tmp_path / "authority.pem").read_bytes(), (tmp_path / "authority.key").read_bytes()
    )
    certificate, key = certificates.make_client("kubelets", (GROUP,), authority)
    document = yaml.safe_load(plane.read_text())
    document["users"][0]["user"] = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    own = tmp_path / "certificate-kubeconfig"
    own.write_text(yaml.safe_dump(document))
    code, _, errors = await program("nodes", "--kubeconfig", own, "--nodes", "1")
    assert code == 1 and 'User "kubelets" cannot' in errors and "sandbox nodes --print-role | kubectl apply" in errors
    code, out, _ = await program("nodes", "--print-role")
    assert code == 0
    await client.create(CLUSTERROLE, yaml.safe_load(out))
    binding = {
        "metadata": {"name": "hollow"},
        "roleRef": {"apiGroup": CLUSTERROLE.group, "kind": "ClusterRole", "name": "volcano-sandbox-nodes"},
        "subjects": [{"kind": "Group", "apiGroup": CLUSTERROLE.group, "name": GROUP}],
    }
    await client.create(CLUSTERROLEBINDING, binding)
    async with attached(own, "--nodes", "2") as ended:
        await client.create(POD, pod("p", nodeName="hollow-1"))
        await waiting.until(lambda: running(client, "p"), "the pod does not run")
        await client.delete(POD, "p", "default")
        await waiting.until(lambda: gone(client, POD, "p", "default"), "a deleted pod stays")
    assert ended == ["0", ""]
    assert not await client.list(NODE)
