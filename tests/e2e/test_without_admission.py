"""A cluster without webhooks and policies: what admission would reject is reported, and nothing else stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.acceptance.site import task
from volcano_py.api.kinds import CRONJOB, EVENT, HYPERNODE, JOB, JOBFLOW, PODGROUP, QUEUE, ResourceType
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

pytestmark = pytest.mark.slow

CIRCLE = [
    {"name": "a", "dependsOn": {"targets": ["b"]}},
    {"name": "b", "dependsOn": {"targets": ["a"]}},
]


def job(**spec: Any) -> dict[str, Any]:
    rows = {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task("main", 1)]}
    return {**rows, **spec}


BAD: list[tuple[ResourceType, str, dict[str, Any], str]] = [
    (JOB, "no-queue", job(queue="missing"), "queue 'missing' not found: create it"),
    (JOB, "root", job(queue="root"), "can not submit job to root queue"),
    (JOB, "inner", job(queue="parent"), "use a leaf queue below it, such as child"),
    (JOB, "circle", job(tasks=[task("a", 1, dependsOn={"name": ["a"]})]), "check dependsOn of a"),
    (JOB, "too-few", job(minAvailable=5), "job 'minAvailable' should not be greater than total replicas"),
    (JOB, "plugin", job(plugins={"nothing": []}), "unable to find job plugin: nothing"),
    (QUEUE, "orphan", {"parent": "nowhere"}, "failed to get parent queue nowhere"),
    (QUEUE, "greedy", {"deserved": {"cpu": "1"}, "guarantee": {"resource": {"cpu": "2"}}}, "deserved[cpu] must be >="),
    (QUEUE, "large", {"parent": "parent", "capability": {"cpu": "9"}}, "exceeds its ancestor's capability"),
    (PODGROUP, "group", {"minMember": 1, "queue": "missing"}, "queue missing does not exist; create it"),
    (
        HYPERNODE,
        "pattern",
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "a(b"}}}]},
        "spec.members[0].selector.regexMatch.pattern: Invalid value: 'a(b': member regexMatch pattern is invalid",
    ),
    (CRONJOB, "cron", {"schedule": "x", "jobTemplate": {"spec": job()}}, "spec.schedule"),
    (JOBFLOW, "flow", {"flows": CIRCLE}, "dependsOn"),
]
"""Objects that webhooks reject, and what the report on each must contain."""


def made(rt: ResourceType, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": "default"} if rt.namespaced else {})
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": meta, "spec": spec}


async def reports(client: Client, rt: ResourceType, name: str) -> str:
    """Conditions, the Job's state, and Warning Events of an object."""
    found = await client.get(rt, name, "default" if rt.namespaced else None)
    status = found.get("status") or {}
    rows = status.get("conditions") or []
    texts = [row.get("message", "") for row in rows] if isinstance(rows, list) else []
    texts.append((status.get("state") or {}).get("message", "") if isinstance(status.get("state"), dict) else "")
    for event in await client.list(EVENT, field_selector=f"involvedObject.name={name}"):
        if event["type"] == "Warning" and event["involvedObject"]["kind"] == rt.kind:
            texts.append(event["message"])
    return "\n".join(texts)


async def test_what_is_wrong_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    async with (
        Sandbox(
            2,
            components=("scheduler", "controller-manager"),
            component_arguments={"controller-manager": ("--controllers=*",)},
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            volcano_admission=False,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        await client.create(QUEUE, made(QUEUE, "parent", {"capability": {"cpu": "8"}}))
        await client.create(QUEUE, made(QUEUE, "child", {"parent": "parent"}))
        for rt, name, spec, _ in BAD:
            await client.create(rt, made(rt, name, spec))
        quick = job(tasks=[task("main", 1, command=["sleep", "0"])], queue="child")
        await client.create(JOB, made(JOB, "good", quick))

        for rt, name, _, words in BAD:
            seen: list[str] = []

            async def reported(
                rt: ResourceType = rt, name: str = name, words: str = words, seen: list[str] = seen
            ) -> bool:
                seen[:] = [await reports(client, rt, name)]
                return words in seen[0]

            try:
                await waiting.until(reported, f"{rt.kind} {name} does not report {words!r}", 0.3)
            except AssertionError as error:
                raise AssertionError(f"{error}\nit reports: {seen}") from None

        async def phase(name: str) -> str:
            state = ((await client.get(JOB, name, "default")).get("status") or {}).get("state") or {}
            return str(state.get("phase", ""))

        async def completed() -> bool:
            return await phase("good") == "Completed"

        await waiting.until(completed, "a good Job does not complete")
        assert [await phase(name) for rt, name, *_ in BAD if rt is JOB] == [""] * 6

        # The remedy is enough.
        for name in ("missing", "nowhere"):
            await client.create(QUEUE, made(QUEUE, name, {}))

        async def goes_on() -> bool:
            orphan = (await client.get(QUEUE, "orphan"))["status"]
            return await phase("no-queue") == "Running" and not orphan.get("conditions")

        await waiting.until(goes_on, "the Job and the queue do not go on when their queue is there")
