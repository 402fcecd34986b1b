"""The example gang-permit: members wait at Permit until there is a leader, with the real kubectl."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.cluster import cluster, kubectl, until
from tests.e2e.test_profiles import nodes
from volcano_py.api.kinds import POD

FOLDER = Path(__file__).parents[2] / "examples" / "gang-permit"
FLAGS = (f"--config={FOLDER / 'scheduler.conf'}",)


async def test_workers_wait_for_their_leader_and_a_folder_is_a_gang(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=2, shape="cpu=4,memory=8Gi", scheduler=FLAGS) as (sandbox, client):

        async def done(*arguments: str) -> bool:
            return (await kubectl(sandbox, tmp_path, *arguments))[0] == 0

        async def applied(name: str) -> None:
            await until(lambda: done("apply", "-f", f"{FOLDER}/{name}"), f"{name} is not applied")

        async def reason() -> str:
            conditions = (await client.get(POD, "worker-0", "default")).get("status", {}).get("conditions") or ()
            return next((c["message"] for c in conditions if c["type"] == "PodScheduled"), "")

        async def bound() -> bool:
            found = [*await nodes(client, "worker-"), *await nodes(client, "leader")]
            return len(found) == 3 and all(found)

        async def scheduled() -> bool:
            asked = ("get", "podgroups.scheduling.x-k8s.io", "training", "-o", "json")
            code, out, _ = await kubectl(sandbox, tmp_path, *asked)
            return code == 0 and (json.loads(out).get("status") or {}).get("phase") == "Scheduled"

        async def waits() -> bool:
            return "too few pods: 0 of 1 leader" in await reason()

        for name in ("", "gang/group.yaml", "gang/step-1-workers.yaml"):
            await applied(name)
        await until(waits, "the workers do not wait for a leader")
        await applied("gang/step-2-leader.yaml")
        await until(bound, "the gang is not bound")
        await until(scheduled, "the status is not written")
        await until(lambda: done("delete", "--wait", "-f", f"{FOLDER}/gang/"), "the gang is not deleted")
        await applied("gang/")
        await until(bound, "the gang is not bound when its folder is applied as a whole")
