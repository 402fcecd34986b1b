"""`volcano-py doctor` on a healthy installation, and on the same one with each problem injected through the API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from copy import deepcopy
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.doctor.healthy import (
    BINDINGS,
    NAMESPACE,
    WEBHOOK,
    Manifest,
    ca,
    deployment,
    examined,
    healthy,
    now,
    pod,
)
from volcano_py import __version__
from volcano_py.api.kinds import (
    CONFIGMAP,
    CUSTOMRESOURCEDEFINITION,
    DEPLOYMENT,
    LEASE,
    NODE,
    POD,
    QUEUE,
    SERVICE,
    VALIDATINGWEBHOOKCONFIGURATION,
    ResourceType,
)
from volcano_py.api.resource_types import SERVICEACCOUNT
from volcano_py.cli.main import main
from volcano_py.doctor import facts as reading
from volcano_py.doctor.facts import gather
from volcano_py.doctor.installation import installation_findings
from volcano_py.doctor.machine import machine_findings
from volcano_py.doctor.objects import object_findings
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

Change = Callable[[Client, AsyncExitStack], Any]


def patched(rt: ResourceType, name: str, patch: Any, where: str | None = None, sub: str | None = None) -> Change:
    """Patch an object, and restore it."""

    async def change(client: Client, after: AsyncExitStack) -> None:
        before = await client.get(rt, name, where)

        async def restore() -> None:
            current = await client.get(rt, name, where)
            old = deepcopy(before)
            old["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            await client.update(rt, old, sub)

        value = patch() if callable(patch) else patch
        await client.patch(rt, name, value, where, subresource=sub)
        after.push_async_callback(restore)

    return change


def deleted(rt: ResourceType, name: str, where: str | None = None) -> Change:
    async def change(client: Client, after: AsyncExitStack) -> None:
        before = await client.get(rt, name, where)
        await client.delete(rt, name, where, grace_period_seconds=0)

        async def restore() -> None:
            for key in ("resourceVersion", "uid"):
                before["metadata"].pop(key)
            await client.create(rt, before, where)
            if rt in (DEPLOYMENT, POD):
                await client.patch(rt, name, {"status": before["status"]}, where, subresource="status")

        after.push_async_callback(restore)

    return change


def created(rt: ResourceType, manifest: Manifest, where: str | None = None, status: Any = None) -> Change:
    async def change(client: Client, after: AsyncExitStack) -> None:
        await client.create(rt, manifest, where)
        name = manifest["metadata"]["name"]
        after.push_async_callback(client.delete, rt, name, where, grace_period_seconds=0)
        if status is not None:
            await client.patch(rt, name, {"status": status}, where, subresource="status")

    return change


def several(*changes: Change) -> Change:
    async def change(client: Client, after: AsyncExitStack) -> None:
        for one in changes:
            await one(client, after)

    return change


def container(reason: str, message: str) -> Manifest:
    waiting = {"state": {"waiting": {"reason": reason, "message": message}}}
    row = {"name": "main", "image": "i:9", "imageID": "", "ready": False, "restartCount": 3, **waiting}
    return {"phase": "Pending", "containerStatuses": [row]}


NOT_READY = patched(DEPLOYMENT, "volcano-scheduler", {"status": {"readyReplicas": 0}}, NAMESPACE, "status")
OF_SCHEDULER = {"app": "volcano-scheduler"}


def bundle(text: str) -> Callable[[], Manifest]:
    service = {"namespace": NAMESPACE, "name": "volcano-admission-service", "path": "/jobs/validate"}
    hook = {
        "name": "validatejob.volcano.sh",
        "clientConfig": {"service": service, **({"caBundle": text} if text else {})},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return lambda: {"webhooks": [hook]}


CASES: dict[str, tuple[Change, str, str, str]] = {
    "no scheduler": (
        deleted(DEPLOYMENT, "volcano-scheduler", NAMESPACE),
        "error",
        "runs `volcano-py scheduler`",
        "install the chart",
    ),
    "scaled to 0": (
        patched(DEPLOYMENT, "volcano-controllers", {"spec": {"replicas": 0}}, NAMESPACE),
        "error",
        "has no replicas",
        "kubectl scale -n volcano-system deployment/volcano-controllers --replicas=1",
    ),
    "image cannot be pulled": (
        several(NOT_READY, created(POD, pod("s", OF_SCHEDULER), NAMESPACE, container("ImagePullBackOff", "no such"))),
        "error",
        "image i:9 cannot be pulled: ImagePullBackOff no such",
        "build it, and load it",
    ),
    "crash loop": (
        several(NOT_READY, created(POD, pod("s", OF_SCHEDULER), NAMESPACE, container("CrashLoopBackOff", "back-off"))),
        "error",
        "pod s ends again and again",
        "--previous",
    ),
    "not ready": (NOT_READY, "error", "0 of 1 replicas are ready", "kubectl describe"),
    "different images": (
        patched(
            DEPLOYMENT,
            "volcano-controllers",
            lambda: {
                "spec": deployment("volcano-controllers", "controller-manager", "r.example/volcano-py:old")["spec"]
            },
            NAMESPACE,
        ),
        "warning",
        "the programs have different images",
        "one image.tag",
    ),
    "other version": (
        patched(
            DEPLOYMENT,
            "volcano-controllers",
            lambda: {
                "spec": deployment("volcano-controllers", "controller-manager", "r.example/volcano-py:9.9.9")["spec"]
            },
            NAMESPACE,
        ),
        "note",
        f"runs 9.9.9, and this is volcano-py {__version__}",
        "pip install 'volcano-py==9.9.9'",
    ),
    "two schedulers": (
        created(DEPLOYMENT, deployment("old", "--logtostderr", "volcanosh/vc-scheduler:v1.9.0"), NAMESPACE),
        "error",
        "Deployment old runs Volcano's scheduler beside",
        "scale one of them to 0",
    ),
    "no lease": (deleted(LEASE, "volcano", NAMESPACE), "error", "Lease volcano-system/volcano", "kubectl logs"),
    "no leader": (
        patched(LEASE, "vc-controller-manager", {"spec": {"holderIdentity": ""}}, NAMESPACE),
        "error",
        "has no holder: no replica leads",
        "kubectl logs",
    ),
    "dead leader": (
        patched(LEASE, "volcano", lambda: {"spec": {"renewTime": now(-500)}}, NAMESPACE),
        "error",
        "s ago by pod-1: its holder does not run",
        "kubectl rollout restart",
    ),
    "missing right of a program": (
        deleted(BINDINGS, "volcano-scheduler"),
        "error",
        "service account volcano-scheduler of the scheduler may not create pods/binding",
        "--serviceaccount=volcano-system:volcano-scheduler",
    ),
    "missing CRD": (
        deleted(CUSTOMRESOURCEDEFINITION, "jobflows.flow.volcano.sh"),
        "error",
        "CRDs are missing: jobflows.flow.volcano.sh",
        "kubectl apply --server-side",
    ),
    "no webhook server": (
        deleted(POD, "admission-1", NAMESPACE),
        "error",
        "behind which no pod is ready: Jobs cannot be created",
        f"kubectl delete validatingwebhookconfiguration {WEBHOOK}",
    ),
    "no service": (
        deleted(SERVICE, "volcano-admission-service", NAMESPACE),
        "error",
        "volcano-admission-service, which does not exist",
        "kubectl delete",
    ),
    "no CA": (
        patched(VALIDATINGWEBHOOKCONFIGURATION, WEBHOOK, bundle("")),
        "error",
        "has no caBundle",
        "kubectl rollout restart",
    ),
    "expired CA": (
        patched(VALIDATINGWEBHOOKCONFIGURATION, WEBHOOK, bundle(ca(-1))),
        "error",
        "its CA has expired",
        "kubectl rollout restart",
    ),
    "CA that expires": (
        patched(VALIDATINGWEBHOOKCONFIGURATION, WEBHOOK, bundle(ca(9.5))),
        "warning",
        "its CA expires in 9 days",
        "kubectl rollout restart",
    ),
    "closed queue": (
        patched(QUEUE, "default", {"status": {"state": "Closed"}}, sub="status"),
        "error",
        "queue default is Closed",
        "vcctl queue operate -n default -a open",
    ),
    "queue without state": (
        created(QUEUE, {"metadata": {"name": "fresh"}, "spec": {"weight": 1}}),
        "error",
        "queue fresh has no state",
        "controller-manager",
    ),
    "invalid configuration": (
        patched(
            CONFIGMAP,
            "volcano-scheduler-configmap",
            {"data": {"volcano-scheduler.conf": 'actions: "alocate"\ntiers: []\n'}},
            NAMESPACE,
        ),
        "error",
        "alocate",
        "",
    ),
    "cordoned": (
        several(*(patched(NODE, f"node-{n}", {"spec": {"unschedulable": True}}) for n in (0, 1))),
        "error",
        "all nodes are cordoned",
        "kubectl uncordon node-0",
    ),
    "nodes not ready": (
        several(*(patched(NODE, f"node-{n}", {"status": {"conditions": None}}, sub="status") for n in (0, 1))),
        "error",
        "none of the 2 nodes is Ready",
        "kubectl describe nodes",
    ),
    "unknown scheduler": (
        created(POD, pod("lost", scheduler="vulcano"), "default"),
        "warning",
        "wait for the scheduler 'vulcano'",
        "schedulerName: volcano",
    ),
    "clock of a node": (
        created(LEASE, {"metadata": {"name": "node-0"}, "spec": {"renewTime": now(3600)}}, "kube-node-lease"),
        "warning",
        "the clock of node node-0 is",
        "timedatectl",
    ),
}


async def test_each_injected_problem_is_found_and_nothing_else(tmp_path: Path) -> None:
    async with healthy(tmp_path) as (_, client):
        assert await examined(client) == []
        for name, (change, level, what, remedy) in CASES.items():
            async with AsyncExitStack() as after:
                await change(client, after)
                found = await examined(client)
                matching = [one for one in found if one.level == level and what in one.what and remedy in one.remedy]
                assert matching, (name, found)
                assert all(one.remedy for one in found)
        assert await examined(client) == [], "all were restored"


async def test_queues_that_webhooks_would_deny(tmp_path: Path) -> None:
    async with (
        Sandbox(1, path=tmp_path / "kubeconfig", volcano_admission=False, hollow=False, controllers=None) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        amounts = {"guarantee": {"resource": {"cpu": "9"}}, "deserved": {"cpu": "8"}, "capability": {"cpu": "4"}}
        await client.create(QUEUE, {"metadata": {"name": "q"}, "spec": {"parent": "nosuch", **amounts}})
        await client.delete(QUEUE, "default")
        found = await gather(client, NAMESPACE)
        texts = [one.what for one in object_findings(found)]
    for text in (
        "queue default does not exist: jobs without a queue are denied",
        "queue q: spec.parent 'nosuch' does not exist",
        "queue q: guarantee cpu=9 is above deserved cpu=8",
        "queue q: deserved cpu=8 is above capability cpu=4",
    ):
        assert text in texts


async def test_versions_clock_and_older_crds(tmp_path: Path) -> None:
    async with healthy(tmp_path) as (_, client):
        found = await gather(client, NAMESPACE)
        assert found.sandbox and found.skew == 0.0 and found.user == "admin"
        for version, level in (("v1.29.3", "error"), ("v1.31.0", ""), ("v1.36.9", ""), ("v1.40.1", "warning")):
            found.version = version
            levels = [one.level for one in installation_findings(found) if one.check == "version"]
            assert levels == ([level] if level else [])
        definition = await client.get(CUSTOMRESOURCEDEFINITION, "queues.scheduling.volcano.sh")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        del schema["properties"]["spec"]["properties"]["parent"]
        await client.update(CUSTOMRESOURCEDEFINITION, definition)
        for _ in range(100):
            texts = [one.what for one in await examined(client)]
            if any("queues.scheduling.volcano.sh is older" in text and "spec.parent" in text for text in texts):
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError(texts)


@pytest.mark.parametrize("ahead", [120.0, -120.0])
async def test_the_clock_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    import time

    async with (
        Sandbox(1, path=tmp_path / "kubeconfig", hollow=False, controllers=None) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        real = time.time
        shifted = type("Clock", (), {"time": staticmethod(lambda: real() + ahead)})
        monkeypatch.setattr(reading, "time", shifted)
        found = await gather(client, NAMESPACE)
    [one] = [one for one in installation_findings(found) if one.check == "clock"]
    seconds = int(re.findall(r"(\d+) s", one.what)[0])
    assert ("ahead of" if ahead > 0 else "behind") in one.what and 118 <= seconds <= 121


async def test_what_the_user_may_not_do(tmp_path: Path) -> None:
    async with healthy(tmp_path) as (sandbox, client):
        await client.create(SERVICEACCOUNT, {"metadata": {"name": "guest"}}, "default")
        answer = await client.create_subresource(SERVICEACCOUNT, "guest", "token", {"spec": {}}, "default")
        text = re.sub(r"token: .*", f"token: {answer['status']['token']}", Path(sandbox.kubeconfig).read_text())
        (tmp_path / "guest").write_text(text)
        result = await asyncio.to_thread(CliRunner().invoke, main, ["doctor", "-k", str(tmp_path / "guest")])
    words = " ".join(result.output.split())
    assert "may not create jobs.batch.volcano.sh, list jobs.batch.volcano.sh" in words
    assert "kubectl create clusterrole volcano-user --verb=create,get,list --resource=jobs.batch.volcano.sh" in words
    assert "not read: nodes" in words


async def test_the_command(tmp_path: Path) -> None:
    async with healthy(tmp_path) as (sandbox, client):
        run = CliRunner().invoke
        result = await asyncio.to_thread(run, main, ["doctor", "-k", sandbox.kubeconfig])
        assert result.exit_code == 0 and "0 errors, 0 warnings" in result.output, result.output
        await client.patch(QUEUE, "default", {"status": {"state": "Closed"}}, subresource="status")
        result = await asyncio.to_thread(run, main, ["doctor", "-k", sandbox.kubeconfig, "-o", "json"])
        assert result.exit_code == 1
        [error] = [one for one in json.loads(result.output) if one["level"] == "error"]
        assert error["check"] == "queues"
        wrong = re.sub(r"token: .*", "token: wrong", Path(sandbox.kubeconfig).read_text())
        (tmp_path / "wrong").write_text(wrong)
        result = await asyncio.to_thread(run, main, ["doctor", "-k", str(tmp_path / "wrong")])
        assert result.exit_code == 1 and "does not accept the credentials" in result.output
    for path, text in (
        (sandbox.kubeconfig, "cannot be read"),
        (str(tmp_path / "nosuch"), "does not exist"),
    ):
        result = await asyncio.to_thread(run, main, ["doctor", "-k", path])
        assert result.exit_code == 1 and text in result.output and "Traceback" not in result.output
    assert "Checked this machine: " in run(main, ["doctor", "--machine"]).output


def test_the_machine() -> None:
    def old(name: str) -> str:
        if name == "orjson":
            raise PackageNotFoundError(name)
        return "0.1" if name == "click" else installed_version(name)

    found = list(machine_findings((3, 9, 1), old, lambda module: False, lambda program: None))
    texts = {one.what: one for one in found}
    assert texts["Python is 3.9.1"].level == "error"
    assert "pip install --upgrade 'click>=8.1'" in texts["package click is 0.1, older than 8.1"].remedy
    assert texts["package orjson is not installed"].level == "error"
    assert "kubectl is not in PATH" in texts and "helm is not in PATH" in texts
    assert sum("extra [" in text for text in texts) == 3
    assert not list(machine_findings((3, 11, 0), installed_version, lambda module: True, lambda program: "/bin/x"))
