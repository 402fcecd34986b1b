"""The example sticky-vm: a virtual machine comes back to its node, whatever happens to its pod."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.cluster import cluster, until
from tests.e2e.test_profiles import pod
from volcano_py.api.kinds import NODE, POD, PRIORITYCLASS
from volcano_py.api.resource_types import cluster_kind, namespaced_kind
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound

FOLDER = Path(__file__).parents[2] / "examples" / "sticky-vm"
CRD = cluster_kind("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition")
VM = namespaced_kind("example.volcano.sh/v1", "virtualmachines", "VirtualMachine")
ANNOTATION = "volcano.sh/sticky-node"


@asynccontextmanager
async def controller(kubeconfig: Path) -> AsyncIterator[None]:
    """The controller of the example, in a process of its own."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(FOLDER.parents[1])}
    process = await asyncio.create_subprocess_exec(sys.executable, str(FOLDER / "controller.py"), env=environment)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def launcher(client: Client, but: str = "") -> dict[str, Any] | None:
    """The pod of the virtual machine, unless its UID is `but`."""
    try:
        found: dict[str, Any] = await client.get(POD, "launcher-a", "default")
    except NotFound:
        return None
    return found if found["metadata"]["uid"] != but else None


async def bound(client: Client, but: str = "") -> dict[str, Any] | None:
    found = await launcher(client, but)
    return found if found is not None and found["spec"].get("nodeName") else None


async def annotation(client: Client) -> str:
    found = await client.get(VM, "a", "default")
    return str((found["metadata"].get("annotations") or {}).get(ANNOTATION, ""))


async def test_a_virtual_machine_comes_back_to_its_node(tmp_path: Path) -> None:
    flags = (f"--config={FOLDER / 'scheduler.conf'}",)
    async with cluster(tmp_path, nodes=3, shape="cpu=4,memory=8Gi", scheduler=flags) as (sandbox, client):
        await client.create(PRIORITYCLASS, {"metadata": {"name": "machines"}, "value": 1000})
        for crd in yaml.safe_load_all((FOLDER / "crds.yaml").read_text()):
            await client.create(CRD, crd)

        async def created() -> bool:
            vm = yaml.safe_load((FOLDER / "vm.yaml").read_text())
            vm["spec"]["priorityClassName"] = "machines"
            try:
                await client.create(VM, vm)
            except NotFound:
                return False
            return True

        await until(created, "the kinds are not served")
        async with controller(sandbox.kubeconfig):
            first = await until(lambda: bound(client), "the machine does not run")
            node = first["spec"]["nodeName"]
            await until(lambda: annotation(client), "the node is not remembered")
            assert await annotation(client) == node
            version = (await client.get(VM, "a", "default"))["metadata"]["resourceVersion"]

            await client.delete(POD, "launcher-a", "default")
            second = await until(lambda: bound(client, first["metadata"]["uid"]), "the machine does not come back")
            assert second["spec"]["nodeName"] == node

            # Its node is cordoned: it waits, and says why.
            await client.patch(NODE, node, {"spec": {"unschedulable": True}})
            await client.delete(POD, "launcher-a", "default")

            async def explained() -> str:
                found = await launcher(client, second["metadata"]["uid"])
                conditions = (found or {}).get("status", {}).get("conditions") or ()
                return next((c["message"] for c in conditions if c["type"] == "PodScheduled"), "")

            message = await until(explained, "the pod has no reason")
            assert "1 node(s) were unschedulable" in message
            assert "2 already stuck to another node" in message

            # Meanwhile weaker pods have filled its node, and the others are empty: it preempts there.
            for i in range(4):
                weak = pod(f"weak-{i}", "sticky-vm", "1", nodeName=node, terminationGracePeriodSeconds=0)
                await client.create(POD, weak, "default")
            await client.patch(NODE, node, {"spec": {"unschedulable": False}})
            third = await until(lambda: bound(client, second["metadata"]["uid"]), "the machine does not come back")
            assert third["spec"]["nodeName"] == node
            left = [p for p in await client.list(POD, "default") if p["metadata"]["name"].startswith("weak-")]
            assert len(left) == 2
            assert (await client.get(VM, "a", "default"))["metadata"]["resourceVersion"] == version, "written once"
