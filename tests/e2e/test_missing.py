"""What is missing is reported with the command that adds it, and each program continues when it is there.

Permissions: the programs start without any, and the test runs the commands that they log, until a Job completes, a
HyperNode is counted, and the API server asks the webhook manager.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import waiting
from tests.acceptance.site import task
from tests.kubectl import newest
from volcano_py.api.kinds import HYPERNODE, JOB, QUEUE
from volcano_py.api.resource_types import CONFIGMAP, CUSTOMRESOURCEDEFINITION
from volcano_py.kube.client import Client
from volcano_py.kube.errors import ApiError, KubeError
from volcano_py.sandbox import volcano
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.components import Components

pytestmark = pytest.mark.slow

OLDER = re.compile(r"CRD (\S+) is older than this program: it does not have (.*?); update it: (kubectl apply [^(\n]*)")
COMMAND = re.compile(r"kubectl create (?:cluster)?role .*? && kubectl create (?:cluster)?rolebinding [^\n\"]*")
PROGRAMS = {"scheduler": ("--leader-elect=true",), "controller-manager": ("--leader-elect=true", "--controllers=*")}
ALL_PROGRAMS = {
    **PROGRAMS,
    "controller-manager": ("--leader-elect=true", "--controllers=*,-hyperNode-controller"),
    "webhook-manager": (),
    "hypernode-controller": ("--leader-elect=true",),
}


def job(name: str, queue: str = "default") -> dict[str, object]:
    quick = task("main", 1, command=["sleep", "0"])
    spec = {"schedulerName": "volcano", "queue": queue, "minAvailable": 1, "tasks": [quick]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def shell(sandbox: Sandbox, folder: Path, command: str) -> str:
    """Run a command of a log as an administrator does."""
    kubectl = newest()
    assert kubectl, "no kubectl: run python -m tests.kubectl"
    environment = {"PATH": f"{Path(kubectl).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", command),
        env={**environment, "KUBECONFIG": sandbox.kubeconfig},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return (await waiting.within(process.communicate(), f"{command} does not end"))[0].decode()


def discovery() -> dict[str, object]:
    """The ConfigMap by which the HyperNode controller makes one HyperNode of all nodes."""
    levels = [{"nodeLabel": "kubernetes.io/os"}, {"nodeLabel": "kubernetes.io/hostname"}]
    source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": {"all": levels}}}
    text = yaml.safe_dump({"networkTopologyDiscovery": [source]})
    meta = {"namespace": volcano.SYSTEM_NAMESPACE, "name": "volcano-controller-configmap"}
    return {"metadata": meta, "data": {"volcano-controller.conf": text}}


def command(name: str, kubeconfig: Path) -> list[str]:
    """The module that runs a program, and its arguments; the sandbox itself has no separate HyperNode controller."""
    if name in volcano.COMPONENTS:
        return volcano.component_command(name, kubeconfig, ALL_PROGRAMS)
    return [volcano.PROGRAM, name, "--kubeconfig", str(kubeconfig), *ALL_PROGRAMS[name]]


async def discovered(client: Client) -> bool:
    """Whether HyperNodes were made of the nodes' labels, and counted."""
    try:
        found = await client.list(HYPERNODE)
    except KubeError:
        return False
    return any((one.get("status") or {}).get("nodeCount") == 2 for one in found)


async def denied(client: Client) -> bool:
    """Whether the API server asks the webhook manager about new Jobs."""
    try:
        await client.create(JOB, job("bad", queue="nowhere"))
    except ApiError as error:
        return 'webhook "validatejob.volcano.sh" denied the request' in str(error)
    return False


async def submitted(client: Client, name: str) -> bool:
    """Create a Job; False while its definition is not served."""
    try:
        await client.create(JOB, job(name))
    except ApiError:
        return False
    return True


async def completed(client: Client, name: str) -> bool:
    try:
        found = await client.get(JOB, name, "default")
    except KubeError:
        return False
    return bool((found.get("status") or {}).get("state", {}).get("phase") == "Completed")


async def test_the_logged_commands_grant_every_permission(tmp_path: Path) -> None:
    user = User("volcano", ("system:authenticated",))
    async with (
        Sandbox(2, path=tmp_path / "kubeconfig", users={"token-of-volcano": user}, volcano_admission=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        document = yaml.safe_load(Path(sandbox.kubeconfig).read_text())
        document["users"][0]["user"] = {"token": "token-of-volcano"}
        limited = tmp_path / "limited"
        limited.write_text(yaml.safe_dump(document))
        logs = tmp_path / "logs"
        programs = Components(lambda name: command(name, limited), logs)
        await client.create(JOB, job("quick"))
        await client.create(CONFIGMAP, discovery())
        ran: Counter[str] = Counter()
        try:
            await programs.start(tuple(ALL_PROGRAMS))

            async def granted() -> bool:
                assert not programs.ended(), "a program ended instead of waiting"
                for log in logs.glob("*.log"):
                    for line in COMMAND.findall(log.read_text(errors="replace")):
                        if line not in ran:
                            ran[line] += 1
                            await shell(sandbox, tmp_path, line)
                return await completed(client, "quick") and await discovered(client) and await denied(client)

            await waiting.until(granted, "no Job completes, no HyperNode is counted, or admission is not asked", 3)
        except AssertionError as error:
            text = "\n".join((logs / f"{name}.log").read_text()[-3000:] for name in ALL_PROGRAMS)
            raise AssertionError(f"{error}\n{text}\n" + "\n".join(ran)) from None
        finally:
            await programs.stop()
        assert len(ran) > 10
        assert not [line for line in ran if "clusterrole" in line and "resource=secrets" in line], "of all namespaces"


async def test_definitions_that_come_late_and_kinds_of_newer_versions(tmp_path: Path) -> None:
    """Without CRDs, and without resource.k8s.io/v1 (Kubernetes 1.33): one line for a kind; work when it is there."""
    async with (
        Sandbox(2, path=tmp_path / "kubeconfig", crds=False, first_queues=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        for resource in list(sandbox.api.registry.groups["resource.k8s.io"]["v1"].values()):
            sandbox.api.registry.remove("resource.k8s.io", "v1", resource.plural)
        await client.create(CONFIGMAP, volcano.scheduler_configmap())
        logs = tmp_path / "logs"
        programs = Components(lambda name: volcano.component_command(name, Path(sandbox.kubeconfig), PROGRAMS), logs)
        try:
            await programs.start(tuple(PROGRAMS))

            async def reported() -> bool:
                texts = [(logs / f"{name}.log").read_text() for name in PROGRAMS]
                return all("install the CRD queues.scheduling.volcano.sh: kubectl apply" in text for text in texts)

            await waiting.until(reported, "a program does not report the missing definitions", 0.2)
            for document in volcano.definitions():
                await client.create(CUSTOMRESOURCEDEFINITION, document)

            async def opened() -> bool:
                try:
                    return (await client.get(QUEUE, "default")).get("status", {}).get("state") == "Open"
                except ApiError:
                    return False

            await waiting.until(opened, "there is no default queue")
            assert await submitted(client, "late")
            await waiting.until(lambda: completed(client, "late"), "the Job does not complete")
        finally:
            await programs.stop()
        lines = [line for name in PROGRAMS for line in (logs / f"{name}.log").read_text().splitlines()]
        about = [line for line in lines if "resourceclaims" in line or "deviceclasses" in line]
        assert 1 <= len(about) <= 4, about


def older_definitions() -> list[dict[str, Any]]:
    """Our CRDs without what Volcano did not have some releases ago: fields, kinds, and one status subresource."""
    documents = {document["metadata"]["name"]: document for document in volcano.definitions()}
    for name in ("hypernodes.topology.volcano.sh", "jobflows.flow.volcano.sh", "numatopologies.nodeinfo.volcano.sh"):
        del documents[name]
    for name, fields in (
        ("jobs.batch.volcano.sh", ("networkTopology", "minSuccess")),
        ("queues.scheduling.volcano.sh", ("parent", "deserved")),
        ("podgroups.scheduling.volcano.sh", ("networkTopology", "subGroupPolicy")),
    ):
        properties = documents[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for field in fields:
            del properties["spec"]["properties"][field]
    del documents["jobs.batch.volcano.sh"]["spec"]["versions"][0]["subresources"]
    return list(documents.values())


async def test_definitions_of_an_older_release(tmp_path: Path) -> None:
    """Each program reports what the CRDs do not have, and works on when the logged command has updated them."""
    expected = {
        "scheduler": ("spec.parent", "spec.networkTopology, spec.subGroupPolicy"),
        "controller-manager": (
            "jobs.batch.volcano.sh has no subresource status",
            "spec.minSuccess",
            "spec.parent",
            "jobflows.flow.volcano.sh",
        ),
        "webhook-manager": ("spec.minSuccess", "spec.parent"),
        "hypernode-controller": ("hypernodes.topology.volcano.sh",),
    }
    async with (
        Sandbox(2, path=tmp_path / "kubeconfig", crds=False, first_queues=False, volcano_admission=False) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        for document in older_definitions():
            await client.create(CUSTOMRESOURCEDEFINITION, document)
        await client.create(CONFIGMAP, volcano.scheduler_configmap())
        await client.create(CONFIGMAP, discovery())
        await waiting.until(lambda: submitted(client, "early"), "a Job cannot be created", 0.1)
        logs = tmp_path / "logs"
        programs = Components(lambda name: command(name, Path(sandbox.kubeconfig)), logs)

        def text(name: str) -> str:
            return (logs / f"{name}.log").read_text(errors="replace")

        try:
            await programs.start(tuple(ALL_PROGRAMS))

            async def reported() -> bool:
                assert not programs.ended(), "a program ended instead of waiting"
                return all(words in text(name) for name, found in expected.items() for words in found)

            await waiting.until(reported, "a program does not report what the CRDs do not have", 0.3)
            assert not await completed(client, "early")
            updates = {found[2] for name in ALL_PROGRAMS for found in OLDER.findall(text(name))}
            assert len(updates) == 1
            await shell(sandbox, tmp_path, updates.pop())

            async def goes_on() -> bool:
                assert not programs.ended(), "a program ended instead of waiting"
                return await completed(client, "early") and await discovered(client) and await denied(client)

            await waiting.until(goes_on, "the programs do not go on with the CRDs that were updated", 0.5)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *(text(name)[-3000:] for name in ALL_PROGRAMS)])) from None
        finally:
            await programs.stop()
        older = [found[0] for found in OLDER.findall(text("scheduler"))]
        assert sorted(older) == ["podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"], "once a kind"
