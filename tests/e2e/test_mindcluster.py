"""Ascend 310P chips with the real scheduler on a sandbox, whose agents report the chips and create parts of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import cluster, job, pods_of, until
from tests.e2e.test_remote import configured
from volcano_py.api.kinds import CONFIGMAP, JOB, NODE
from volcano_py.kube import Client

pytestmark = pytest.mark.slow


def npu_job(name: str, pods: int, cores: int, **labels: str) -> dict[str, Any]:
    """A Job of which each pod requests AI cores; its pods are placed in one cycle."""
    manifest = job(name, pods, "1", seconds=600, minimum=pods)
    template = manifest["spec"]["tasks"][0]["template"]
    template["metadata"] = {"labels": {"ring-controller.atlas": "ascend-310P", **labels}}
    template["spec"]["containers"][0]["resources"]["limits"] = {"huawei.com/npu-core": str(cores)}
    return manifest


async def real(client: Client, name: str) -> list[str]:
    """The devices of a Job's running pods, without the numbers of the parts."""
    pods = [p for p in await pods_of(client, name) if p["status"].get("phase") == "Running"]
    found = [p["metadata"]["annotations"].get("huawei.com/AscendReal", "") for p in pods]
    return sorted(re.sub(r"-1\d\d-", "-", text) for text in found if text)


async def test_parts_of_chips_and_whole_chips(tmp_path: Path) -> None:
    options = configured(tmp_path, "deviceshare", {"deviceshare.AscendMindClusterVNPUEnable": True})
    async with cluster(tmp_path, nodes=1, shape="cpu=8,memory=8Gi,vnpu=3:310P", scheduler=options) as (_, client):
        await client.create(JOB, npu_job("parts", 3, 2), "default")

        async def parts() -> bool:
            return await real(client, "parts") == [f"Ascend310P-2c.1cpu-0_{group}" for group in range(3)]

        await until(parts, "three pods do not have three groups of the first chip")

        # Three groups are in use: four AI cores go to the next chip, and a whole one is the third.
        await client.create(JOB, npu_job("half", 1, 4, **{"vnpu-level": "high"}), "default")
        await until(lambda: _is(client, "half", "Ascend310P-4c.4cpu-1_0"), "the second chip is not divided")
        await client.create(JOB, npu_job("whole", 1, 8), "default")
        await until(lambda: _is(client, "whole", "Ascend310P-2"), "the third chip is not used as a whole")

        await client.delete(JOB, "half", "default")
        patch = {"metadata": {"annotations": {"sandbox/unhealthy-chips": "1"}}}
        await client.patch(NODE, "node-0", patch)

        async def reported() -> bool:
            found = await client.get(CONFIGMAP, "cluster-info-device-0", "mindx-dl")
            return '"huawei.com/Ascend310P-Unhealthy": "Ascend310P-1"' in found["data"]["cluster-info-device-0"]

        await until(reported, "the agent does not report the unhealthy chip")
        await client.create(JOB, npu_job("late", 1, 4), "default")

        async def waits() -> bool:
            pods = await pods_of(client, "late")
            conditions = pods[0]["status"].get("conditions") or () if pods else ()
            return any("too few AI cores or chips are free" in c.get("message", "") for c in conditions)

        await until(waits, "a pod does not wait for a healthy chip")
        await client.patch(NODE, "node-0", {"metadata": {"annotations": {"sandbox/unhealthy-chips": None}}})
        await until(lambda: _is(client, "late", "Ascend310P-4c.3cpu-1_0"), "the chip is not used again")


async def _is(client: Client, name: str, device: str) -> bool:
    return await real(client, name) == [device]
