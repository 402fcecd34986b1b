"""Pods without a Job: of other controllers, of the default scheduler, with gates, and invalid ones."""

from __future__ import annotations

import pytest

from tests.acceptance.covers import covers
from tests.acceptance.site import GROUPS_OF_SINGLE_PODS, MARKS, Manifest, Site, task
from volcano_py.api.kinds import POD, PODGROUP
from volcano_py.kube.errors import Invalid

pytestmark = MARKS
GATE = "example.com/hold"


def spec(scheduler: str = "volcano", **more: object) -> Manifest:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "600"]}
    return {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **more}


async def running(at: Site, count: int) -> None:
    """Wait until this number of pods runs in the namespace."""

    async def run() -> bool:
        return sum(pod["status"]["phase"] == "Running" for pod in await at.client.list(POD, at.namespace)) == count

    await at.until(run, f"not {count} pods run")


async def group_phases(at: Site) -> list[str]:
    return [str((g.get("status") or {}).get("phase", "")) for g in await at.client.list(PODGROUP, at.namespace)]


def workload(kind: str, replicas: int, pod: Manifest) -> Manifest:
    labels = {"app": "main"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "main"}, "spec": body}


@covers("JP-A04")
async def test_a_pod_of_the_default_scheduler_runs_without_a_podgroup(at: Site) -> None:
    await at.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec("default-scheduler")}
    )
    await running(at, 1)
    assert await group_phases(at) == []


@covers("JP-P01", "JP-P02")
@pytest.mark.parametrize(("scheduler", "phases"), [("volcano", ["Running"]), ("default-scheduler", [])])
async def test_podgroups_are_made_for_pods_of_the_scheduler(at: Site, scheduler: str, phases: list[str]) -> None:
    await at.create(workload("ReplicaSet", 2, spec(scheduler)))
    await running(at, 2)
    phases = phases if GROUPS_OF_SINGLE_PODS else []

    async def reached() -> bool:
        return await group_phases(at) == phases

    await at.until(reached, f"the PodGroups are not {phases}")
    await at.settle()
    assert await group_phases(at) == phases


async def open_gates(at: Site) -> None:
    for pod in await at.client.list(POD, at.namespace):
        await at.patch(POD, pod["metadata"]["name"], {"spec": {"schedulingGates": None}})


@covers("SA-A06")
async def test_a_gated_job_runs_when_its_gates_are_removed(at: Site) -> None:
    await at.job("g", task("main", 2, pod={"schedulingGates": [{"name": GATE}]}))

    async def pods() -> bool:
        return len(await at.pods("g")) == 2

    await at.until(pods, "the pods are not created")
    await at.settle()
    assert await at.running("g") == 0
    await open_gates(at)
    await at.runs("g", 2)
    await at.becomes("g", "Running")


@covers("SA-A07")
async def test_gated_pods_of_a_deployment_run_when_their_gates_are_removed(at: Site) -> None:
    await at.create(workload("Deployment", 2, spec(schedulingGates=[{"name": GATE}])))

    async def enqueued() -> bool:
        return await group_phases(at) == ["Inqueue"]

    await at.until(enqueued, "the PodGroup is not Inqueue")
    await running(at, 0)
    await open_gates(at)
    await running(at, 2)
    await at.until(lambda: _is_running(at), "the PodGroup is not Running")


async def _is_running(at: Site) -> bool:
    return await group_phases(at) == ["Running"]


@covers("SB-11")
async def test_a_rejected_batch_job_does_not_block_its_name(at: Site) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "main"}}
    with pytest.raises(Invalid, match="restartPolicy"):
        await at.create({**job, "spec": {"template": {"spec": spec(restartPolicy="Always")}}})
    await at.create({**job, "spec": {"template": {"spec": spec(restartPolicy="Never")}}})
    await running(at, 1)
    await at.until(lambda: _is_running(at), "the PodGroup is not Running")
