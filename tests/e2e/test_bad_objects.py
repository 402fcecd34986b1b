"""Objects that the schema rejects, and objects that got past it and cannot be used: the rest is scheduled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.e2e.cluster import (
    SERVE_METRICS,
    Manifest,
    bound,
    cluster,
    group_phase,
    job,
    kubectl,
    log_of,
    metrics_of,
    node,
    phase_of,
    until,
)
from volcano_py.api.kinds import EVENT, JOB, POD
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.assembly import put
from volcano_py.sandbox.cluster import Sandbox

ABSURD = "1" + "0" * 30


def pod(name: str, cpu: str = "1", group: str = "", **metadata: Any) -> Manifest:
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": annotations | metadata.pop("annotations", {}),
            **metadata,
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Pending"},
    }


def group(name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default", **spec},
        "status": {"phase": "Pending"},
    }


def changed(manifest: Manifest, **spec: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], **spec}}


REFUSED = {
    "a wrong type": (
        changed(job("odd", 1, "1"), minAvailable="one"),
        'is invalid: spec.minAvailable: Invalid value: "string": spec.minAvailable in body must be of type integer',
    ),
    "a negative number": (
        changed(job("odd", 1, "1"), maxRetry=-1, minAvailable=-1),
        "spec.minAvailable: Invalid value: -1: spec.minAvailable in body should be greater than or equal to 0",
    ),
    "no quantity": (
        group("odd", minResources={"cpu": "lots"}),
        'is invalid: spec.minResources.cpu: Invalid value: "lots"',
    ),
    "a negative quantity": (
        pod("odd", "-1"),
        'Pod "odd" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "-1"',
    ),
    "annotations of 1 MiB": (
        pod("odd", annotations={"note": "x" * 2**20}),
        'Pod "odd" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes',
    ),
}


async def test_what_the_schema_rejects_is_shown_with_its_field(tmp_path: Path) -> None:
    async with Sandbox(1, components=(), path=tmp_path / "kubeconfig") as sandbox:
        for what, (manifest, says) in REFUSED.items():
            code, out, err = await kubectl(sandbox, tmp_path, "create", "-f", "-", stdin=json.dumps(manifest))
            assert code == 1 and not out, what
            assert err.startswith("The ") and says in err, f"{what}: {err}"


async def _warnings(client: Client, kind: str, name: str) -> list[str]:
    return [
        f"{e['reason']}: {e['message']}"
        for e in await client.list(EVENT)
        if e["type"] == "Warning" and e["involvedObject"]["kind"] == kind and e["involvedObject"]["name"] == name
    ]


async def _told(client: Client, kind: str, name: str, words: str) -> None:
    async def said() -> bool:
        return any(words in text for text in await _warnings(client, kind, name))

    try:
        await until(said, "")
    except AssertionError:
        raise AssertionError(f"{kind} {name}: {words!r} is not in {await _warnings(client, kind, name)}") from None


async def test_what_cannot_be_used_is_told_and_counted_and_the_rest_is_scheduled(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=2, scheduler=SERVE_METRICS) as (sandbox, client):
        # Straight into the store: a real cluster holds what older versions and other validations let in.
        def store(resource: str, manifest: Manifest, group: str = "") -> None:
            put(sandbox.api, group, resource, manifest)

        store("nodes", node("below-zero", "-8"))
        store("pods", pod("below-zero", "-1"))
        store("pods", pod("absurd", ABSURD))
        store("pods", pod("wordy", annotations={"note": "x" * 2**20}))
        store("pods", pod("homeless-0", group="homeless"))
        store("podgroups", group("below-zero", minResources={"cpu": "-5"}), "scheduling.volcano.sh")
        store("podgroups", group("absurd", minMember=2**31 - 1, minResources={"cpu": ABSURD}), "scheduling.volcano.sh")
        store("podgroups", group("homeless", queue="nowhere"), "scheduling.volcano.sh")
        await client.create(JOB, job("good", 2, "1", seconds=600), "default")

        async def scheduled() -> bool:
            wordy = await client.get(POD, "wordy", "default")
            return await bound(client, "good") == 2 and bool(wordy["spec"].get("nodeName"))

        await until(scheduled, "the good ones are not bound")
        for kind, name, words in (
            (
                "Node",
                "below-zero",
                "Quarantined: volcano-py cannot use this Node and ignores it: status.allocatable.cpu: a neg",
            ),
            ("Pod", "below-zero", "container 'c': resources.requests.cpu: -1 is negative; use 0 or more"),
            ("PodGroup", "below-zero", "spec.minResources.cpu: a negative amount; use 0 or more"),
            ("PodGroup", "homeless", "queue nowhere does not exist; create it or name another in spec.queue"),
            ("Pod", "absurd", "FailedScheduling"),
        ):
            await _told(client, kind, name, words)
        counted = await metrics_of(sandbox)
        assert counted['volcano_py_quarantined_objects{kind="Node"}'] == 1
        assert counted['volcano_py_quarantined_objects{kind="Pod"}'] == 1
        assert (
            counted['volcano_py_quarantined_objects{kind="PodGroup"}'] >= 1
        )  # the controllers may have made one of the pod's
        assert counted["volcano_py_jobs_without_queue"] == 1
        for name in ("below-zero", "absurd", "homeless-0"):
            assert not (await client.get(POD, name, "default"))["spec"].get("nodeName"), name
        for component in ("scheduler", "controller-manager"):
            assert "Traceback" not in log_of(sandbox, component)


async def test_an_absurd_request_leaves_nothing_behind_when_it_is_gone(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=2) as (_, client):
        await client.create(POD, pod("absurd", ABSURD), "default")
        await client.create(JOB, job("beside", 1, "1", seconds=600), "default")

        async def beside() -> bool:
            return await phase_of(client, "beside") == "Running" and await group_phase(client, "beside") == "Running"

        await until(beside, "what came beside it does not run")
        await asyncio.sleep(0.5)  # the scheduler has seen that
        await client.delete(POD, "absurd", "default")
        await client.create(JOB, job("later", 1, "1", seconds=600), "default")

        async def later() -> bool:
            return await bound(client, "later") == 1

        await until(later, "what came later is not bound", 5)


async def test_a_job_of_two_thousand_million_pods_is_told_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (_, client):
        odd = job("odd", 1, "1")
        odd["spec"]["tasks"][0]["replicas"] = 2**31 - 1
        await client.create(JOB, odd, "default")
        await client.create(JOB, job("good", 2, "1"), "default")
        await _told(client, "Job", "odd", "reduce spec.tasks[].replicas")

        async def good() -> bool:
            return await bound(client, "good") == 2

        await until(good, "the good job is not bound")
        assert await bound(client, "odd") == 0
