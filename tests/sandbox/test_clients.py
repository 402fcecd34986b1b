"""Clients that others wrote run unchanged: the official client's informer, a kopf operator, kr8s."""

from __future__ import annotations

import asyncio
import functools
import logging
import queue
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kr8s.asyncio
import kubernetes
import pytest
from kopf.testing import KopfRunner
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class
from kubernetes.dynamic import DynamicClient
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

from tests import waiting
from tests.sandbox.clients import CONFIGMAPS, MERGE, Http, pod
from volcano_py.sandbox.cluster import Sandbox

SECONDS = waiting.budget()
JOBS = ("batch.volcano.sh", "v1alpha1", "default", "jobs")
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}],
    },
}


# ---- the official client


class Seen:
    """The events of an informer, as (type, name), in the order in which they came."""

    def __init__(self, informer: SharedInformer) -> None:
        self.events: queue.Queue[tuple[str, str]] = queue.Queue()
        for type_ in (ADDED, MODIFIED, DELETED):
            informer.add_event_handler(type_, functools.partial(self._note, type_))

    def _note(self, type_: str, obj: Any) -> None:
        self.events.put((type_, obj.metadata.name))

    def until(self, wanted: tuple[str, str]) -> None:
        """Take events until the one that is waited for."""
        while self.events.get(timeout=SECONDS) != wanted:
            pass


def _informed(sandbox: Sandbox) -> None:
    client = kubernetes.config.new_client_from_config(sandbox.kubeconfig)
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_pod("default", pod("before"))
    informer = SharedInformer(core.list_namespaced_pod, namespace="default", label_selector="a!=b")
    seen = Seen(informer)
    informer.start()
    try:
        seen.until((ADDED, "before"))
        core.create_namespaced_pod("default", pod("later"))
        seen.until((ADDED, "later"))
        core.patch_namespaced_pod("later", "default", {"metadata": {"annotations": {"k": "v"}}})
        seen.until((MODIFIED, "later"))
        assert informer.cache.get_by_key("default/later").metadata.annotations == {"k": "v"}
        core.patch_namespaced_pod("later", "default", {"metadata": {"labels": {"a": "b"}}})
        seen.until((DELETED, "later"))  # it left the selection
        core.delete_namespaced_pod("before", "default", grace_period_seconds=0)
        seen.until((DELETED, "before"))
        assert informer.cache.list() == []
    finally:
        informer.stop()
        client.close()


async def test_informer_of_the_official_client(sandbox: Sandbox) -> None:
    await asyncio.to_thread(_informed, sandbox)


def _watched_jobs(sandbox: Sandbox) -> list[tuple[str, str]]:
    client = kubernetes.config.new_client_from_config(sandbox.kubeconfig)
    jobs = DynamicClient(client).resources.get(api_version=JOB["apiVersion"], kind="Job")
    jobs.server_side_apply(body=JOB, namespace="default", field_manager="test")
    seen = []
    for event in jobs.watch(namespace="default", timeout=int(SECONDS)):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "ADDED":
            jobs.status.patch({"status": {"running": 1}}, "train", "default", content_type=MERGE)
        elif event["type"] == "MODIFIED":
            jobs.delete("train", "default")
        else:
            break
    client.close()
    return seen


async def test_custom_resources_through_the_dynamic_client(sandbox: Sandbox) -> None:
    seen = await asyncio.to_thread(_watched_jobs, sandbox)
    assert seen == [("ADDED", "train"), ("MODIFIED", "train"), ("DELETED", "train")]


# ---- kopf

OPERATOR = """
import kopf

@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)

@kopf.on.create("batch.volcano.sh", "v1alpha1", "jobs")
def created(name, patch, **_):
    patch.metadata.annotations["seen-by"] = "kopf"
    return {"made": name}

@kopf.on.field("batch.volcano.sh", "v1alpha1", "jobs", field="spec.minAvailable")
def changed(old, new, patch, body, **_):
    if old is not None:
        kopf.info(body, reason="Changed", message=f"{old} to {new}")
        patch.metadata.annotations["changed"] = f"{old}-{new}"

@kopf.on.delete("batch.volcano.sh", "v1alpha1", "jobs")
def deleted(**_):
    pass
"""


def _operated(sandbox: Sandbox, operator: Path) -> str:
    client = kubernetes.config.new_client_from_config(sandbox.kubeconfig)
    custom = kubernetes.client.CustomObjectsApi(client)
    core = kubernetes.client.CoreV1Api(client)

    def until(test: Callable[[dict[str, Any]], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not test(custom.list_namespaced_custom_object(*JOBS)):
            assert time.monotonic() < end, "the operator did not do its part"
            time.sleep(0.02)

    with KopfRunner(["run", "--namespace=default", "--standalone", str(operator)], timeout=SECONDS) as runner:
        custom.create_namespaced_custom_object(*JOBS, JOB)
        until(lambda jobs: _annotations(jobs).get("seen-by") == "kopf")
        assert custom.get_namespaced_custom_object(*JOBS, "train")["metadata"]["finalizers"]
        custom.patch_namespaced_custom_object(*JOBS, "train", {"spec": {"minAvailable": 0}})
        until(lambda jobs: _annotations(jobs).get("changed") == "1-0")
        custom.delete_namespaced_custom_object(*JOBS, "train")
        until(lambda jobs: not jobs["items"])
        while "Changed" not in {event.reason for event in core.list_namespaced_event("default").items}:
            time.sleep(0.02)
    client.close()
    assert runner.exit_code == 0 and runner.exception is None
    return str(runner.output)


def _annotations(jobs: dict[str, Any]) -> dict[str, str]:
    return jobs["items"][0]["metadata"].get("annotations") or {}


@pytest.fixture
def kopf_speaks() -> Iterator[None]:
    """A test before this one may have run our own controllers, which make kopf quiet."""
    log = logging.getLogger("kopf")
    before = log.level
    log.setLevel(logging.INFO)
    yield
    log.setLevel(before)


@pytest.mark.usefixtures("kopf_speaks")
async def test_a_kopf_operator(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = tmp_path / "operator.py"
    operator.write_text(textwrap.dedent(OPERATOR))
    monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
    output = await asyncio.to_thread(_operated, sandbox, operator)
    assert "Handler 'deleted' succeeded" in output and "Traceback" not in output


# ---- kr8s


@pytest.mark.filterwarnings("ignore:Kubernetes version")  # newer than it knows
async def test_kr8s(sandbox: Sandbox, api: Http) -> None:
    client = await kr8s.asyncio.api(kubeconfig=sandbox.kubeconfig)
    made = await Pod({**pod("web", nodeName="node-0"), "metadata": {"name": "web", "namespace": "default"}}, api=client)
    await made.create()
    await made.wait("condition=Ready", timeout=int(waiting.budget()))
    await made.label({"app": "web"})
    await made.annotate({"k": "v"})
    assert [found.name async for found in client.get("pods", label_selector="app=web")] == ["web"]
    await made.refresh()
    assert made.annotations["k"] == "v" and await made.ready()

    watching = asyncio.create_task(_first_change(client))
    await asyncio.sleep(0.2)
    config = await ConfigMap({"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "b"}}, api=client)
    await config.create()
    assert await waiting.within(watching, "the watch got no event") == ("ADDED", "c")
    await config.patch({"data": {"a": "c"}})
    assert (await api.ok("GET", CONFIGMAPS + "/c"))["data"] == {"a": "c"}

    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = await Deployment({"metadata": {"name": "d", "namespace": "default"}, "spec": spec}, api=client)
    await deployment.create()
    await deployment.patch({"spec": {"replicas": 3}}, subresource="scale")
    await deployment.refresh()
    assert deployment.replicas == 3

    kind = new_class(kind="Job", version="batch.volcano.sh/v1alpha1", namespaced=True, plural="jobs", asyncio=True)
    job = await kind({**JOB, "metadata": {"name": "train", "namespace": "default"}}, api=client)
    await job.create()
    assert [found.name async for found in client.get("jobs.batch.volcano.sh")] == ["train"]
    await job.delete()
    await made.delete(grace_period=0)
    await made.wait("delete", timeout=int(waiting.budget()))
    assert not await made.exists()


async def _first_change(client: Any) -> tuple[str, str]:
    async for type_, found in client.watch("configmaps"):
        return type_, found.name
    raise AssertionError("the watch ended")
