"""Rows of docs/security.md that have no test beside the code they are about."""

from __future__ import annotations

import asyncio

import pytest

from tests.controllers.test_exploding_jobs import creations, large
from volcano_py.api import kinds
from volcano_py.api.batch import CronJob, JobStatus
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.controllers.cronjob.reconcile import make_job
from volcano_py.controllers.instructions import Create, Ensure
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.observed import Unready
from volcano_py.controllers.jobflow.prober import ask
from volcano_py.controllers.jobflow.probes import Question
from volcano_py.kube.events import Correlator
from volcano_py.scheduler.model.jobs.group_names import group_of, reference

FOREIGN = {"namespace": "kube-system", "name": "chosen"}


def test_what_follows_from_an_object_stays_in_its_namespace() -> None:
    one = large(3, plugins={"ssh": [], "svc": [], "env": []})
    assert one.spec.tasks is not None and one.spec.tasks[0].template is not None
    one.spec.tasks[0].template["metadata"] = FOREIGN
    made = [*creations(one), *plugins.on_job_add(one, JobStatus())]
    objects = [step.obj["metadata"] for step in made if isinstance(step, Create | Ensure)]
    assert len(objects) >= 6
    assert {(meta["namespace"], meta["name"].startswith("chosen")) for meta in objects} == {("lab", False)}
    template = {"metadata": FOREIGN, "spec": {"tasks": [{"name": "t", "replicas": 1, "template": {}}]}}
    metadata = {"name": "c", "namespace": "lab", "uid": "u"}
    cron = from_manifest(CronJob, {"metadata": metadata, "spec": {"schedule": "@daily", "jobTemplate": template}})
    made_by_cron = make_job(cron, 1_800_000_000.0)["metadata"]
    assert made_by_cron["namespace"] == "lab" and made_by_cron["name"].startswith("c-")


@pytest.mark.parametrize("group", ["g", "other/g", "../other/g", f"{kinds.NATIVE_PODGROUP.group}/g"])
def test_the_group_of_a_pod_is_in_its_namespace(group: str) -> None:
    annotations = {"scheduling.k8s.io/group-name": group}
    pod = from_manifest(Pod, {"metadata": {"name": "p", "namespace": "lab", "annotations": annotations}})
    assert reference(group_of(pod))[1].partition("/")[0] == "lab"


def test_more_pods_than_a_cluster_can_have() -> None:
    with pytest.raises(Unready, match="the limit of a Kubernetes cluster is 150000"):
        creations(large(150_001))


async def test_a_probe_follows_no_redirect() -> None:
    """The address is that of a pod; a pod cannot send the controllers elsewhere."""
    asked: list[str] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[1])
        target = f"http://127.0.0.1:{port}/secret"
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        injected = Question("127.0.0.1", port, "/ready", ("X-Name", "a\r\nInjected: b"))
        assert await ask([injected]) == {injected: False}
        plain = Question("127.0.0.1", port, "/ready")
        assert await ask([plain]) == {plain: True}
    assert asked == ["/ready"]


def test_the_message_of_an_event_is_bounded() -> None:
    about = {"kind": "Job", "namespace": "lab", "name": "j", "uid": "u"}
    first = Correlator("volcano").correlate(about, "Warning", "Failed", "x" * 100_000, 1.0)
    again = Correlator("volcano").correlate(about, "Warning", "Failed", "\u00e9" * 100_000, 2.0)
    assert first is not None and again is not None
    assert len(first.create["message"]) == len(again.create["message"]) == 1024
