"""The rules of a platform hold for a Job, a PodGroup, a native PodGroup and a single pod, on the live scheduler: prints
the table of docs/every-pod.md."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import cluster, job, until
from tests.e2e.test_profiles import pod
from volcano_py.api.kinds import CONFIGMAP, JOB, NATIVE_PODGROUP, NODE, POD, PODGROUP
from volcano_py.kube.client import Client
from volcano_py.kube.errors import NotFound

PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: platform
  plugins: {multiPoint: {enabled: [{name: MachineGroups}, {name: CardTypes}, {name: Sticky}]}}
  pluginConfig:
  - name: CardTypes
    args: {labels: {example.com/card: example.com/card-type}, rare: [H100]}
  - name: Sticky
    args: {owners: [{apiVersion: v1, kind: ConfigMap}], perPod: true}
- schedulerName: platform-jobs
  plugins: {multiPoint: {enabled: [{name: MachineGroups}, {name: CardTypes}, {name: Sticky}]}}
  pluginConfig:
  - name: CardTypes
    args: {labels: {example.com/card: example.com/card-type}, rare: [H100]}
  - name: Sticky
    args: {owners: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}], perPod: true}
"""
RED = {"volcano.sh/machine-group": "red"}
H100 = {"volcano.sh/card-types": "H100"}
RULES: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "no wish": ({}, {}, "free"),
    "reserved machines": (RED, {}, "red"),
    "rare cards": ({}, H100, "rare"),
    "no such machines": ({"volcano.sh/machine-group": "blue"}, {}, ""),
}
"""Rule → labels and annotations of the pods, and the only node that may run them ("": none)."""
KINDS = ("Job", "PodGroup", "native PodGroup", "pod")
REASON = "node(s) didn't belong to the pod's machine group"


async def create(client: Client, kind: str, name: str, labels: dict[str, str], annotations: dict[str, str]) -> None:
    """A workload of one kind with two pods, or one."""
    if kind == "Job":
        manifest = job(name, 2, "100m", seconds=3600)
        manifest["spec"]["schedulerName"] = "platform-jobs"
        manifest["spec"]["tasks"][0]["template"]["metadata"] = {"labels": labels, "annotations": annotations}
        await client.create(JOB, manifest, "default")
        return
    if kind == "PodGroup":
        await client.create(PODGROUP, {"metadata": {"name": name}, "spec": {"minMember": 2}}, "default")
    if kind == "native PodGroup":
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await client.create(NATIVE_PODGROUP, {"metadata": {"name": name}, "spec": spec}, "default")
    for i in range(1 if kind == "pod" else 2):
        await client.create(POD, await member(client, kind, name, i, labels, annotations), "default")


async def member(
    client: Client, kind: str, name: str, i: int, labels: dict[str, str], annotations: dict[str, str]
) -> dict[str, Any]:
    made = pod(f"{name}-{i}", "platform", "100m")
    group = {"scheduling.k8s.io/group-name": name} if kind == "PodGroup" else {}
    owner = await client.get(CONFIGMAP, "owner", "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    made["metadata"] |= {"labels": labels, "annotations": annotations | group, "ownerReferences": [reference]}
    if kind == "native PodGroup":
        made["spec"]["schedulingGroup"] = {"podGroupName": name}
    return made


async def pods(client: Client, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await client.list(POD, "default")
    return [
        p for p in found if p["metadata"]["name"].startswith(f"{name}-") and not p["metadata"].get("deletionTimestamp")
    ]


async def placed(client: Client, name: str, count: int) -> list[str]:
    """The nodes of the pods of a workload, once all of them are bound."""
    nodes = [p["spec"].get("nodeName", "") for p in await pods(client, name)]
    return nodes if len(nodes) == count and all(nodes) else []


async def explained(client: Client, name: str) -> str:
    """The reason in the conditions of a workload's pods."""
    conditions = [c for p in await pods(client, name) for c in p["status"].get("conditions") or ()]
    return next((c["message"] for c in conditions if REASON in c.get("message", "")), "")


async def test_every_rule_holds_for_every_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "profiles.yaml"
    config.write_text(PROFILES)
    flags = (f"--config={config}",)
    async with cluster(tmp_path, 4, "cpu=8,memory=16Gi", flags, "AllAlpha=true") as (sandbox, client):
        nodes = {"node-0": "red", "node-1": "rare", "node-2": "free", "node-3": "free"}
        await client.patch(NODE, "node-0", {"metadata": {"labels": RED}})
        await client.patch(NODE, "node-1", {"metadata": {"labels": {"example.com/card-type": "H100"}}})
        amounts = {"capacity": {"example.com/card": "8"}, "allocatable": {"example.com/card": "8"}}
        await client.patch(NODE, "node-1", {"status": amounts}, subresource="status")
        await client.create(CONFIGMAP, {"metadata": {"name": "owner"}}, "default")
        table = []
        for number, (rule, (labels, annotations, expected)) in enumerate(RULES.items()):
            row = [rule]
            names = {kind: f"w{number}-{kind.split()[0].lower()}" for kind in KINDS}
            for kind, name in names.items():
                await create(client, kind, name, labels, annotations)
            for kind, name in names.items():
                if not expected:
                    await until(lambda n=name: explained(client, n), f"{name} has no reason")
                    assert not any(p["spec"].get("nodeName") for p in await pods(client, name))
                    row.append("waits")
                    continue
                count = 1 if kind == "pod" else 2
                found = await until(lambda n=name, c=count: placed(client, n, c), f"{name} is not bound")
                row.append("+".join(sorted({nodes[node] for node in found})))
                assert row[-1] == expected, (rule, kind, found)
            table.append(row)
        table.append(["sticky", *[await again(client, kind, f"w0-{kind.split()[0].lower()}") for kind in KINDS]])
        assert table[-1][1:] == ["same node"] * len(KINDS)
        words = ["-m", "volcano_py.cli.vcctl", "explain", "job", "w3-job", f"--kubeconfig={sandbox.kubeconfig}"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE, env={**os.environ, "COLUMNS": "300"}
        )
        text = " ".join((await process.communicate())[0].decode().split())
        assert REASON in text and "MachineGroups of profile platform-jobs" in text
        with capsys.disabled():
            print()
            for row in [["", *KINDS], *table]:
                print("".join(f"{cell:20}" for cell in row).rstrip())


async def again(client: Client, kind: str, name: str) -> str:
    """Delete a pod of a workload whose other node is empty: where it is placed again."""
    before = min(await pods(client, name), key=lambda p: p["metadata"]["name"])
    node, uid, of_name = before["spec"]["nodeName"], before["metadata"]["uid"], before["metadata"]["name"]
    # The other node is emptier from now on, so that the scores prefer it.
    await client.create(POD, pod(f"beside-{of_name}", "platform", "1", nodeName=node), "default")
    await until(lambda: remembered(client, kind, name, of_name), f"the node of {of_name} is not stored")
    await client.delete(POD, of_name, "default")

    async def gone() -> bool:
        try:
            return bool((await client.get(POD, of_name, "default"))["metadata"]["uid"] != uid)
        except NotFound:
            return True

    await until(gone, f"{of_name} is not deleted")
    if kind != "Job":
        i = int(of_name.rpartition("-")[2])
        await client.create(POD, await member(client, kind, name, i, {}, {}), "default")

    async def bound_again() -> str:
        try:
            found = await client.get(POD, of_name, "default")
        except NotFound:
            return ""
        return str(found["spec"].get("nodeName", "")) if found["metadata"]["uid"] != uid else ""

    return "same node" if await until(bound_again, f"{of_name} is not bound again") == node else "another node"


async def remembered(client: Client, kind: str, name: str, of_pod: str) -> str:
    owner = await client.get(JOB, name, "default") if kind == "Job" else await client.get(CONFIGMAP, "owner", "default")
    return str((owner["metadata"].get("annotations") or {}).get(f"volcano.sh/sticky-node.{of_pod}", ""))
