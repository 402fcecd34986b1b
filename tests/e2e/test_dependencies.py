"""A Job whose tasks depend on each other, with the scheduler."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cluster import Manifest, cluster, job, phase_of, pods_of, until
from volcano_py.api.kinds import JOB


async def test_a_worker_starts_after_its_master_with_the_default_minimum(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, client):
        manifest: Manifest = job("first", 1, "1", seconds=300)
        [master] = manifest["spec"]["tasks"]
        worker = {**master, "name": "worker", "dependsOn": {"name": [master["name"]]}}
        del manifest["spec"]["minAvailable"]
        manifest["spec"]["tasks"] = [master, worker]
        await client.create(JOB, manifest, "default")

        async def running() -> bool:
            pods = await pods_of(client, "first")
            phases = [pod["status"]["phase"] for pod in pods]
            return phases == ["Running", "Running"] and await phase_of(client, "first") == "Running"

        await until(running, "the worker does not run")
