"""What the controllers of flows, schedules and topology do in a whole cluster, watched by kopf and by informers."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import cluster, job, kubectl, log_of, phase_of, until
from volcano_py.api.kinds import CONFIGMAP, CRONJOB, EVENT, HYPERNODE, JOB, JOBFLOW, JOBTEMPLATE, NAMESPACE, NODE
from volcano_py.controllers.hypernode.config import KEY
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists
from volcano_py.sandbox.cluster import Sandbox

pytestmark = pytest.mark.slow
Manifest = dict[str, Any]
RACK = "example.com/rack"


def template(name: str, seconds: int, replicas: int = 1) -> Manifest:
    return {
        "apiVersion": JOBTEMPLATE.api_version,
        "kind": JOBTEMPLATE.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": job(name, replicas, "100m", seconds)["spec"],
    }


async def names(client: Client) -> set[str]:
    return {one["metadata"]["name"] for one in await client.list(JOB, "default")}


async def test_a_flow_with_a_probe_and_a_patch(tmp_path: Path) -> None:
    """server ← client (as soon as the server runs) ← report (when the client is completed, with two pods)."""
    async with cluster(tmp_path) as (sandbox, client):
        for one in (template("server", 600), template("client", 1), template("report", 1)):
            await client.create(JOBTEMPLATE, one)
        probe = {"taskStatusList": [{"taskName": "main", "phase": "Running"}]}
        patch = {"jobSpec": {"minAvailable": 2, "tasks": [{"name": "main", "replicas": 2}]}}
        flows = [
            {"name": "server"},
            {"name": "client", "dependsOn": {"targets": ["server"], "probe": probe}},
            {"name": "report", "dependsOn": {"targets": ["client"]}, "patch": patch},
        ]
        flow = {
            "apiVersion": JOBFLOW.api_version,
            "kind": JOBFLOW.kind,
            "metadata": {"name": "f", "namespace": "default"},
            "spec": {"flows": flows, "jobRetainPolicy": "delete"},
        }
        code, out, err = await kubectl(sandbox, tmp_path, "apply", "-f", "-", stdin=yaml.safe_dump(flow))
        assert code == 0, out + err
        await until(lambda: _phase(client, "f-report", "Completed"), "the report is not completed")
        assert await phase_of(client, "f-server") == "Running"
        report = await client.get(JOB, "f-report", "default")
        assert report["spec"]["tasks"][0]["replicas"] == 2 and report["spec"]["queue"] == "default"
        assert report["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] == "busybox"

        async def told() -> Manifest | None:
            one: Manifest = await client.get(JOBFLOW, "f", "default")
            completed = one["status"].get("completedJobs") or []
            return one if sorted(completed) == ["f-client", "f-report"] else None

        found = await until(told, "the flow does not tell what is completed")
        assert found["status"]["state"]["phase"] == "Running"
        assert "finalizers" not in found["metadata"]  # kopf leaves no trace
        assert set(found["metadata"].get("annotations") or {}) <= {"kubectl.kubernetes.io/last-applied-configuration"}
        # a template knows its jobs
        made_from = await client.get(JOBTEMPLATE, "report", "default")
        assert made_from["status"]["jobDependsOnList"] == ["f-report"]
        await client.delete(JOBFLOW, "f", "default")
        await until(lambda: _none(client), "the jobs do not go with their flow")


async def _phase(client: Client, name: str, phase: str) -> bool:
    return name in await names(client) and await phase_of(client, name) == phase


async def _none(client: Client) -> bool:
    return not await names(client)


SERVER = """
import http.server, os, time
time.sleep(3)  # it runs long before it answers
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ready" and self.headers["X-Key"] == "v" else 404)
        self.end_headers()
http.server.HTTPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pods have addresses of their own on Linux alone")
async def test_a_flow_waits_until_a_server_answers(tmp_path: Path) -> None:
    """With real processes: the client is made when the server answers, not when it runs."""
    async with (
        Sandbox(
            1,
            components=("scheduler", "controller-manager"),
            path=tmp_path / "kubeconfig",
            logs=tmp_path,
            run_commands=True,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        server = template("server", 0)
        container = server["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
        container["command"] = [sys.executable, "-c", SERVER]
        container["env"] = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        header = {"name": "X-Key", "value": "v"}
        probe = {
            "httpGetList": [{"taskName": "main", "path": "ready", "port": 8080, "httpHeader": header}],
            "tcpSocketList": [{"taskName": "main", "port": 8080}],
        }
        flows = [{"name": "server"}, {"name": "client", "dependsOn": {"targets": ["server"], "probe": probe}}]
        flow = {
            "apiVersion": JOBFLOW.api_version,
            "kind": JOBFLOW.kind,
            "metadata": {"name": "f", "namespace": "default"},
            "spec": {"flows": flows},
        }
        for one in (server, template("client", 1)):
            await client.create(JOBTEMPLATE, one)
        await client.create(JOBFLOW, flow)
        await until(lambda: _phase(client, "f-server", "Running"), "the server does not run")
        await asyncio.sleep(1.5)
        assert await names(client) == {"f-server"}
        await until(lambda: _phase(client, "f-client", "Completed"), log_of(sandbox, "controller-manager"))


async def test_a_cronjob_starts_and_tidies_up(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, client):
        spec = {"schedule": "@every 2s", "successfulJobsHistoryLimit": 1, "concurrencyPolicy": "Forbid"}
        cronjob = {
            "apiVersion": CRONJOB.api_version,
            "kind": CRONJOB.kind,
            "metadata": {"name": "tick", "namespace": "default"},
            "spec": {**spec, "jobTemplate": {"spec": job("tick", 1, "100m", 1)["spec"]}},
        }
        await client.create(CRONJOB, cronjob)
        seen: set[str] = set()

        async def three() -> bool:
            seen.update(await names(client))
            return len(seen) >= 3

        await until(three, "three starts did not happen")
        await until(lambda: _told(client, "SuccessfulDelete"), "nothing is tidied up")
        assert len(await names(client)) <= 3  # one that is kept, one that runs, one about to go
        found = await client.get(CRONJOB, "tick", "default")
        assert found["status"]["lastSuccessfulTime"] and found["status"]["lastScheduleTime"]
        assert not {"finalizers", "annotations"} & set(found["metadata"])
        await client.patch(CRONJOB, "tick", {"spec": {"suspend": True}}, "default")
        await asyncio.sleep(3)
        before = await names(client)
        await asyncio.sleep(4)
        assert await names(client) <= before


async def _told(client: Client, reason: str) -> bool:
    return any(one.get("reason") == reason for one in await client.list(EVENT))


DISCOVERY = {
    "networkTopologyDiscovery": [
        {
            "source": "label",
            "enabled": True,
            "config": {"networkTopologyTypes": {"net": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}},
        }
    ]
}


def configmap() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-controller-configmap", "namespace": "volcano-system"},
        "data": {KEY: yaml.safe_dump(DISCOVERY)},
    }


async def racks(client: Client) -> dict[str, int]:
    """Rack → how many nodes its HyperNode counts."""
    return {
        one["metadata"]["labels"][RACK]: (one.get("status") or {}).get("nodeCount", 0)
        for one in await client.list(HYPERNODE)
    }


async def label(client: Client, node: str, rack: str | None) -> None:
    await client.patch(NODE, node, {"metadata": {"labels": {RACK: rack}}})


async def test_hypernodes_follow_labels(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=4) as (sandbox, client):
        nodes = sorted(one["metadata"]["name"] for one in await client.list(NODE))
        await _namespace(client)
        await client.create(CONFIGMAP, configmap())
        await label(client, nodes[0], "a")
        await label(client, nodes[1], "a")

        async def are(wanted: dict[str, int]) -> bool:
            return await racks(client) == wanted

        await until(lambda: are({"a": 2}), "no HyperNode for the rack")
        await label(client, nodes[1], "b")
        await until(lambda: are({"a": 1, "b": 1}), "the HyperNodes do not follow the labels")
        for node in nodes[:2]:
            await label(client, node, None)
        await until(lambda: are({}), "the HyperNodes stay")
        assert "Traceback" not in log_of(sandbox, "controller-manager")


async def test_hypernodes_by_a_process_of_their_own(tmp_path: Path) -> None:
    async with (
        Sandbox(2, components=(), path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        await _namespace(client)
        await client.create(CONFIGMAP, configmap())
        node = (await client.list(NODE))[0]["metadata"]["name"]
        arguments = ("hypernode-controller", f"--kubeconfig={sandbox.kubeconfig}", "--enable-healthz", "-v=4")
        log = tmp_path / "hypernode.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "volcano_py.cli.main", *arguments, "--healthz-address=127.0.0.1:0",
                stdout=out, stderr=out,
            )  # fmt: skip
        try:
            await label(client, node, "a")

            async def counted() -> bool:
                return await racks(client) == {"a": 1}

            await until(counted, log.read_text() or "no HyperNode")
            lease = await client.raw(
                "GET", "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/vc-hypernode-controller-manager"
            )
            assert b"holderIdentity" in lease
        finally:
            process.terminate()
            await process.wait()


async def _namespace(client: Client) -> None:
    with contextlib.suppress(AlreadyExists):
        metadata = {"name": "volcano-system"}
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
