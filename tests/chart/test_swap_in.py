"""docs/migration.md, step by step, with Jobs in flight as Volcano leaves them: no pod restarts, no status changes."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import helm, waiting
from tests.chart.cluster import LOCAL, NAMESPACE, Cluster, Manifest, cluster
from tests.e2e.cluster import job
from tests.kubectl import newest
from volcano_py.api.kinds import JOB, POD, PODGROUP, ResourceType
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "migration.md").read_text()
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
COUNT = 100
LONG_AGO = "2026-01-01T00:00:00.000000Z"
LEFT_BY_VOLCANO: Manifest = {
    "conditions": [{"status": "Running", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "controlledResources": {"plugin-svc": "svc"},
    "version": 1,
}
"""Fields of a Job's status that Volcano writes in this form."""


@pytest.fixture
async def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, monkeypatch) as made:
        yield made


def steps(word: str) -> list[str]:
    """The commands of the page's blocks with this word."""
    return re.findall(rf"^<!-- {word} -->\n```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


async def follow(at: Cluster, word: str, *values: str) -> str:
    """Run the commands of the page as an operator would, in the repository."""
    program, kubectl = helm.find(), newest()
    assert program and kubectl, "no helm or kubectl: run python -m tests.kubectl"
    path = os.pathsep.join([str(Path(program).parent), str(Path(kubectl).parent), os.environ["PATH"]])
    environment = {
        "PATH": path,
        "HOME": str(at.folder),
        "KUBECONFIG": at.sandbox.kubeconfig,
        "VALUES": " ".join((*LOCAL, *values)),
    }
    printed = ""
    for text in steps(word):
        process = await asyncio.create_subprocess_exec(
            "sh",
            "-ec",
            text,
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await waiting.within(process.communicate(), f"{text} has not ended", 2)
        assert process.returncode == 0, f"{text}\n{out.decode()}"
        printed += out.decode()
    return printed


@asynccontextmanager
async def changes(at: Cluster) -> AsyncIterator[list[str]]:
    """What happens to pods, and to the phases of Jobs and PodGroups, from the watch."""
    seen: list[str] = []

    def key(obj: Manifest) -> str:
        return f"{obj.get('kind', '')} {obj['metadata']['name']}".strip()

    def state(obj: Manifest) -> Any:
        status = obj.get("status") or {}
        restarts = [row.get("restartCount", 0) for row in status.get("containerStatuses") or ()]
        return (status.get("state") or {}).get("phase") or status.get("phase"), restarts, obj["metadata"]["uid"]

    def updated(old: Manifest, new: Manifest) -> None:
        if state(old) != state(new) or "deletionTimestamp" in new["metadata"]:
            seen.append(f"{key(new)}: {state(old)} -> {state(new)}")

    async with Client.from_kubeconfig(at.sandbox.kubeconfig) as client:
        informers = []
        for rt in (POD, JOB, PODGROUP):
            informers.append(_informer(client, rt, seen, updated, key))
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.synced.wait()
        seen.clear()
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()


def _informer(client: Client, rt: ResourceType, seen: list[str], updated: Any, key: Any) -> Informer[Any]:
    informer: Informer[Any] = Informer(client, rt, dict, namespace="default")
    return informer.on(
        add=lambda obj: seen.append(f"{rt.kind} {key(obj)} is new"),
        update=updated,
        delete=lambda obj: seen.append(f"{rt.kind} {key(obj)} is gone"),
    )


async def _running(at: Cluster) -> bool:
    """All Jobs run, and so do their PodGroups, whose status the scheduler writes a little later."""
    jobs = (await at.api.ok("GET", JOBS))["items"]
    groups = (await at.api.ok("GET", PODGROUPS))["items"]
    phases = [((one.get("status") or {}).get("state") or {}).get("phase") for one in jobs]
    phases += [(one.get("status") or {}).get("phase") for one in groups]
    return phases.count("Running") == 2 * COUNT


async def _as_volcano_leaves_them(at: Cluster) -> None:
    """Statuses in Volcano's form, and Leases of holders that are gone."""
    for one in (await at.api.ok("GET", JOBS))["items"]:
        status = {**one["status"], **LEFT_BY_VOLCANO}
        await at.api.ok("PUT", f"{JOBS}/{one['metadata']['name']}/status", {**one, "status": status})
    for name in ("volcano", "vc-controller-manager"):
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
        spec = {
            "holderIdentity": "volcano-pod_gone",
            "leaseDurationSeconds": 1,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }
        lease = {"metadata": {"name": name}, "spec": spec}
        await at.api.ok("POST", path, lease)


async def test_jobs_in_flight_are_not_disturbed_in_either_direction(release: Cluster) -> None:
    # Our own release plays Volcano's part: it makes the Jobs, and its programs are gone afterwards.
    await release.install()
    await release.available("scheduler", "controllers", "admission")
    await release.serving()
    for number in range(COUNT):
        await release.api.ok("POST", JOBS, job(f"job-{number}", 1, "100m", seconds=3600))
    await waiting.until(lambda: _running(release), "the Jobs do not run")

    async with changes(release) as seen:
        await follow(release, "back")
        await _as_volcano_leaves_them(release)
        assert "blocks:" not in await follow(release, "check")
        await follow(release, "swap")
        await release.serving()
        await release.api.ok("POST", JOBS, job("probe", 1, "100m", seconds=0))

        async def completed() -> bool:
            found = await release.api.ok("GET", f"{JOBS}/probe")
            return bool(found.get("status", {}).get("state", {}).get("phase") == "Completed")

        await waiting.until(completed, "a new Job does not complete")
        assert [line for line in seen if "probe" not in line] == []
        await follow(release, "back")
        assert [line for line in seen if "probe" not in line] == []
