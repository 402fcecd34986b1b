"""Plugins of profiles on the live scheduler: one with all points from --plugins-dir, and a program asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import cluster, until
from tests.e2e.test_profiles import nodes, pod
from tests.e2e.test_sticky_vm import CRD
from tests.scheduler.profiles import all_points
from volcano_py.api.kinds import POD
from volcano_py.api.resource_types import namespaced_kind
from volcano_py.kube.errors import NotFound
from volcano_py.sandbox.volcano import free_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "remote-plugin"
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins:
    multiPoint: {enabled: [{name: AllPoints}], disabled: [{name: PrioritySort}]}
    bind: {enabled: [{name: AllPoints}]}
  pluginConfig: [{name: AllPoints, args: {hold: 2}}]
"""
GROUP = namespaced_kind("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup")
POINTS = ["preEnqueue", "preFilter", "filter", "filter", "preScore", "score", "score", "normalizeScore", "reserve"]


async def test_a_plugin_with_all_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "all_points.py").write_text(Path(all_points.__file__).read_text())
    (tmp_path / "profiles.yaml").write_text(CONFIG)
    report = tmp_path / "calls"
    monkeypatch.setenv(all_points.REPORT, str(report))

    def calls(name: str) -> list[str]:
        """The points at which the plugin was called for a pod."""
        lines = report.read_text().splitlines() if report.exists() else []
        found = [json.loads(line).split() for line in lines]
        return [call[0] for call in found if call[1] == name]

    flags = (f"--config={tmp_path / 'profiles.yaml'}", f"--plugins-dir={folder}")
    async with cluster(tmp_path, nodes=2, scheduler=flags) as (_, client):
        plain, rejected, held = pod("plain", "mine", "1"), pod("rejected", "mine", "1"), pod("held", "mine", "1")
        rejected["metadata"]["labels"] = {"fail": "preBind"}
        held["metadata"]["labels"] = {"wait": ""}
        await client.create(POD, plain, "default")

        async def ran() -> bool:
            return calls("plain")[-1:] == ["postBind"]

        await until(ran, "the plugin has not seen the end of the binding")
        assert calls("plain") == [*POINTS, "permit", "preBind", "bind", "postBind"]
        await client.create(POD, rejected, "default")

        async def undone() -> bool:
            return "unreserve" in calls("rejected")

        await until(undone, "the reservation is not given up")
        assert calls("rejected")[: len(POINTS) + 3] == [*POINTS, "permit", "preBind", "unreserve"]
        assert await nodes(client, "rejected") == [""]
        await client.create(POD, held, "default")

        async def expired() -> bool:
            return "unreserve" in calls("held")

        await until(expired, "the wait at Permit does not end")
        assert calls("held")[: len(POINTS) + 2] == [*POINTS, "permit", "unreserve"]
        assert await nodes(client, "plain") != [""]


GANGS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: gangs
  plugins: {multiPoint: {enabled: [{name: GangPermit}], disabled: [{name: PrioritySort}]}}
"""


async def test_a_gang_waits_at_permit(tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_text(GANGS)
    async with cluster(tmp_path, nodes=2, scheduler=(f"--config={tmp_path / 'profiles.yaml'}",)) as (_, client):
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}
        version = {
            "name": "v1alpha1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": schema,
        }
        names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"}
        crd = {"group": "scheduling.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]}
        await client.create(CRD, {"metadata": {"name": "podgroups.scheduling.x-k8s.io"}, "spec": crd})
        group = {"metadata": {"name": "g"}, "spec": {"minMember": 2, "minTaskMember": {"leader": 1}}}
        group["spec"]["scheduleTimeoutSeconds"] = 2

        async def created() -> bool:
            try:
                await client.create(GROUP, group, "default")
            except NotFound:
                return False
            return True

        await until(created, "the kind is not served")

        def member(name: str, kind: str, cpu: str = "1") -> dict[str, Any]:
            made = pod(name, "gangs", cpu)
            made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g", "volcano.sh/task-spec": kind}
            return made

        await client.create(POD, member("w1", "worker"), "default")
        await client.create(POD, member("w2", "leader", cpu="100"), "default")

        async def phase() -> str:
            found = await client.get(GROUP, "g", "default")
            return str((found.get("status") or {}).get("phase") or "")

        async def reason() -> str:
            conditions = (await client.get(POD, "w2", "default")).get("status", {}).get("conditions") or ()
            return next((c["message"] for c in conditions if c["type"] == "PodScheduled"), "")

        assert "w2 requests 100 cpu, the node with the most has " in await until(
            reason, "the member that fits nowhere has no reason"
        )
        assert await nodes(client, "w1") == [""]
        await client.delete(POD, "w2", "default")
        await client.create(POD, member("w3", "leader"), "default")

        async def bound() -> bool:
            return all(await nodes(client, "w"))

        await until(bound, "the gang is not bound")

        async def scheduled() -> bool:
            return await phase() == "Scheduled"

        await until(scheduled, "the status of the group is not written")


@asynccontextmanager
async def server(port: int) -> AsyncIterator[None]:
    """The program of the example."""
    process = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE / "server.py"), str(port))
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def test_a_program_asked_over_http(tmp_path: Path) -> None:
    port = free_port()
    config = (EXAMPLE / "scheduler.conf").read_text().replace("8099", str(port))
    (tmp_path / "profiles.yaml").write_text(config)
    flags = (f"--config={tmp_path / 'profiles.yaml'}",)
    async with cluster(tmp_path, nodes=2, scheduler=flags) as (_, client), server(port):
        for manifest in yaml.safe_load_all((EXAMPLE / "pods.yaml").read_text()):
            if manifest:
                await client.create(POD, manifest, "default")

        async def spread() -> bool:
            return sorted(await nodes(client, "web-")) == ["", "node-0", "node-0", "node-1", "node-1"]

        await until(spread, "the app is not spread")

        async def explained() -> str:
            for p in await client.list(POD, "default"):
                for c in p.get("status", {}).get("conditions") or ():
                    if c["type"] == "PodScheduled" and c["status"] == "False":
                        return str(c["message"])
            return ""

        assert "had 2 pods of the app" in await until(explained, "there is no reason")
