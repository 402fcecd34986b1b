"""kill -9 of the controller-manager every five seconds, while 200 jobs with policies live and die.

The same jobs are run twice, once undisturbed: every job has to end in the same phase, and as many pods have to be made
for it as without the kills. A watch from the first moment on counts the pods.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.cluster import cluster, until
from volcano_py.api.kinds import JOB, POD
from volcano_py.kube.client import Client
from volcano_py.kube.informer import Informer
from volcano_py.sandbox.cluster import Sandbox

JOBS = 200
PERIOD = 5.0
SPREAD = 25.0
"""Seconds over which the jobs are submitted, so that every kill meets some in every state."""
ENDS = ("Completed", "Failed", "Aborted", "Terminated")


def task(name: str, replicas: int, command: list[str], **fields: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": command,
        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}} | fields


def sleeping(seconds: float, code: int = 0) -> list[str]:
    return ["sh", "-c", f"sleep {seconds}; exit {code}"]


def kinds(seconds: float) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, the end that its author expects, spec): a job of each kind, whose pods live for so long."""
    fails = [task("work", 2, sleeping(seconds, 1))]
    forever = ["sleep", "infinity"]

    def on(event: str, action: str, **more: Any) -> list[dict[str, Any]]:
        return [{"event": event, "action": action, **more}]

    return [
        ("plain", "Completed", {"tasks": [task("work", 3, sleeping(seconds))]}),
        ("fails", "Failed", {"tasks": fails}),
        ("abort", "Aborted", {"tasks": fails, "policies": on("PodFailed", "AbortJob")}),
        ("terminate", "Terminated", {"tasks": fails, "policies": on("PodFailed", "TerminateJob")}),
        (
            "exit-code",
            "Completed",
            {"tasks": [task("work", 2, sleeping(seconds, 3))], "policies": [{"exitCode": 3, "action": "CompleteJob"}]},
        ),
        ("restart", "Failed", {"tasks": fails, "maxRetry": 2, "policies": on("PodFailed", "RestartJob")}),
        (
            "driver",
            "Completed",
            {
                "tasks": [
                    task("driver", 1, sleeping(seconds), policies=on("TaskCompleted", "CompleteJob")),
                    task("worker", 2, forever),
                ]
            },
        ),
        (
            "enough",
            "Completed",
            {"tasks": [task("work", 2, sleeping(seconds)), task("rest", 1, forever)], "minSuccess": 2},
        ),
    ]


def jobs() -> dict[str, tuple[str, dict[str, Any]]]:
    """Name → (expected end, manifest)."""
    random = Random(6)
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    while len(made) < JOBS:
        for kind, end, spec in kinds(round(random.uniform(0.5, 6.0), 1)):
            name = f"{kind}-{len(made):03d}"
            metadata = {"name": name, "namespace": "default"}
            made[name] = (end, {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": spec})
    return dict(list(made.items())[:JOBS])


class Lives:
    """What a watch showed of the pods of each job."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self._seen: dict[str, list[str]] = {}

    def add(self, pod: dict[str, Any]) -> None:
        self.made[pod["metadata"]["labels"]["volcano.sh/job-name"]] += 1
        self._note("added", pod)

    def update(self, _old: dict[str, Any], pod: dict[str, Any]) -> None:
        self._note("updated", pod)

    def delete(self, pod: dict[str, Any]) -> None:
        self._note("deleted", pod)

    def killed(self) -> None:
        for seen in self._seen.values():
            seen.append(f"{time.time():.3f} kill -9")

    def story(self, job: str) -> str:
        return "\n".join(self._seen[job])

    def _note(self, change: str, pod: dict[str, Any]) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        version = (metadata.get("annotations") or {}).get("volcano.sh/job-version")
        ends = " terminating" if "deletionTimestamp" in metadata else ""
        self._seen.setdefault(metadata["labels"]["volcano.sh/job-name"], []).append(
            f"{time.time():.3f} {change} {metadata['name']} {metadata['uid'][:8]} version {version} "
            f"{status.get('phase')}{ends}"
        )


async def lives(tmp_path: Path, disturb: bool) -> tuple[dict[str, str], Lives, int]:
    """(phase of each job at the end, its pods, kills)."""
    made = Lives()
    async with cluster(tmp_path, nodes=40, shape="cpu=64,memory=256Gi") as (sandbox, client):
        watching: Informer[Any] = Informer(client, POD)
        watching.on(add=made.add, update=made.update, delete=made.delete)
        tasks = [asyncio.create_task(watching.run())]
        await watching.synced.wait()
        killing = asyncio.create_task(_kill(sandbox, made)) if disturb else None
        wanted = jobs()
        for _, manifest in wanted.values():
            await client.create(JOB, manifest)
            await asyncio.sleep(SPREAD / JOBS)
        phases = await until(lambda: _ended(client, wanted), "some jobs never end", 120.0)
        kills = 0
        if killing is not None:
            killing.cancel()
            kills = await killing
        await asyncio.sleep(1)
        for one in tasks:
            one.cancel()
        return phases, made, kills


async def _kill(sandbox: Sandbox, made: Lives) -> int:
    kills = 0
    try:
        while True:
            await asyncio.sleep(PERIOD)
            assert sandbox.components is not None
            process = sandbox.components.processes["controller-manager"]
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
            made.killed()
            await asyncio.shield(process.wait())
            await asyncio.shield(sandbox.components.start(["controller-manager"]))
    except asyncio.CancelledError:
        return kills


async def _ended(client: Client, wanted: dict[str, Any]) -> dict[str, str] | None:
    found = {one["metadata"]["name"]: _phase(one) for one in await client.list(JOB, "default")}
    await asyncio.sleep(0.3)
    return found if len(found) == len(wanted) and all(phase in ENDS for phase in found.values()) else None


def _phase(job: dict[str, Any]) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


@pytest.mark.slow
async def test_every_job_ends_as_it_would_have_and_no_pod_is_made_twice(tmp_path: Path) -> None:
    wanted = jobs()
    calm, calm_pods, _ = await lives(tmp_path / "calm", disturb=False)
    assert calm == {name: end for name, (end, _) in wanted.items()}
    stormy, stormy_pods, kills = await lives(tmp_path / "stormy", disturb=True)
    ends, pods = dict(Counter(stormy.values())), sum(stormy_pods.made.values())
    print(f"\n{kills} kills during {JOBS} jobs: {ends}; {pods} pods made")
    assert kills >= 4
    assert {name: (calm[name], phase) for name, phase in stormy.items() if phase != calm[name]} == {}
    other = [name for name, count in stormy_pods.made.items() if count != calm_pods.made[name]]
    assert not other, "\n".join(
        f"{name}: {calm_pods.made[name]} pods without kills\n{stormy_pods.story(name)}" for name in other
    )
