"""Claims that a native PodGroup shares, with the real kubectl: of the session, and of a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cluster import cluster, until
from tests.e2e.test_native_gangs import CONF, Site
from volcano_py.api.kinds import POD

GATES = "AllAlpha=true"
PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: profile
"""
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.sandbox}}]}}}
"""
GROUP = """\
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""
CLAIMS = "resourceclaims"


def member(scheduler: str, name: str, group: str = "train") -> str:
    of = f"  schedulingGroup: {{podGroupName: {group}}}\n" if group else ""
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{group: {group or name}}}}}
spec:
  schedulerName: {scheduler}
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
{of}  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
  containers:
  - {{name: c, image: busybox, command: [sleep, "3600"], resources: {{requests: {{cpu: 1}}, claims: [{{name: gpu}}]}}}}
"""


async def phases(site: Site) -> dict[str, str]:
    found = await site.client.list(POD, "default")
    return {pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in found}


@pytest.mark.parametrize("scheduler", ["volcano", pytest.param("profile", marks=pytest.mark.slow)])
async def test_members_share_one_device_that_is_free_when_their_group_is_gone(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "scheduler.conf").write_text(CONF)
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    flags = [f"--scheduler-conf={tmp_path / 'scheduler.conf'}"]
    if scheduler == "profile":
        gates = "GenericWorkload=true,DRAWorkloadResourceClaims=true"
        flags += [f"--config={tmp_path / 'profiles.yaml'}", f"--feature-gates={gates}"]
    options = {"feature_gates": GATES, "kubernetes_version": "1.37", "shape": "cpu=4,memory=8Gi,gpu=1:A100:80Gi"}
    async with cluster(tmp_path, 1, scheduler=tuple(flags), **options) as (sandbox, client):
        site = Site(sandbox, client, tmp_path)
        await site.apply(TEMPLATE, GROUP, *(member(scheduler, f"train-{i}") for i in range(2)))

        async def run() -> bool:
            return (await phases(site)) == {"train-0": "Running", "train-1": "Running"}

        await until(run, "the members do not run")
        [claim] = json.loads(await site.run("get", CLAIMS, "-o", "json"))["items"]
        group = json.loads(await site.run("get", "podgroups.scheduling.k8s.io", "train", "-o", "json"))
        uid, name = group["metadata"]["uid"], claim["metadata"]["name"]
        consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid}
        assert claim["status"]["reservedFor"] == [consumer]
        assert group["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]

        await site.apply(member(scheduler, "alone", group=""), member(scheduler, "train-2"))

        async def late_runs() -> bool:
            found = await phases(site)
            return (found.get("train-2"), found.get("alone")) == ("Running", "Pending")

        await until(late_runs, "a late member does not share the device, or a pod alone has it")
        claims = json.loads(await site.run("get", CLAIMS, "-o", "json"))["items"]
        reserved = {c["metadata"]["name"]: c["status"].get("reservedFor") for c in claims}
        assert reserved.pop(name) == [consumer] and set(reserved.values()) == {None}

        await site.run("delete", "pods", "-l", "group=train", "--wait=false")
        await site.run("delete", "podgroups.scheduling.k8s.io", "train", "--wait=false")

        async def alone_runs() -> bool:
            return (await phases(site)) == {"alone": "Running"}

        await until(alone_runs, "the device is not free when the group is gone")
