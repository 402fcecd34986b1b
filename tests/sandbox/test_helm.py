"""The real helm installs, upgrades, rolls back, lists and uninstalls a chart of ours on the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import helm, waiting
from tests.sandbox.clients import CONFIGMAPS, PODS, Http, http
from volcano_py.sandbox.cluster import Sandbox

CHART = str(Path(__file__).parent / "chart")
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/shop"
SHELF = "/apis/shop.example.com/v1/namespaces/default/shelves/shop"
SECRETS = "/api/v1/namespaces/default/secrets"
CHECK = "/apis/batch/v1/namespaces/default/jobs/shop-check"


class Helm:
    """helm with a home of its own; a command that fails is an error."""

    def __init__(self, sandbox: Sandbox, home: Path) -> None:
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": sandbox.kubeconfig}

    async def __call__(self, *arguments: str) -> str:
        program = helm.find()
        assert program is not None, "no helm: run python -m tests.kubectl, or put helm v4 on PATH"
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
        )
        out, err = await waiting.within(process.communicate(), f"helm {arguments} has not ended", 2)
        assert process.returncode == 0, f"helm {' '.join(arguments)}: {err.decode()}"
        return out.decode()

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self(*arguments, "-o", "json"))


@pytest.fixture
def run_helm(sandbox: Sandbox, tmp_path: Path) -> Helm:
    return Helm(sandbox, tmp_path)


async def test_a_release_from_install_to_uninstall(run_helm: Helm, api: Http) -> None:
    await run_helm("install", "shop", CHART, "--set", "check=false", "--wait=hookOnly")
    prepared = await api.ok("GET", PODS + "/shop-prepare")
    assert prepared["status"]["phase"] == "Succeeded", "the hook ran before anything else was made"
    assert (await api.ok("GET", CONFIGMAPS + "/shop"))["data"] == {"greeting": "hello", "revision": "1"}
    assert (await api.ok("GET", SHELF))["spec"] == {"books": 2, "label": "new"}
    assert [row["status"] for row in await run_helm.json("list")] == ["deployed"]

    await run_helm("upgrade", "shop", CHART, "--set", "check=false,replicas=3,greeting=bye")
    assert (await api.ok("GET", DEPLOYMENT))["spec"]["replicas"] == 3
    assert (await api.ok("GET", SHELF))["spec"]["books"] == 3
    assert (await api.ok("GET", CONFIGMAPS + "/shop"))["data"] == {"greeting": "bye", "revision": "2"}

    await run_helm("rollback", "shop", "1")
    assert (await api.ok("GET", DEPLOYMENT))["spec"]["replicas"] == 2
    assert (await api.ok("GET", CONFIGMAPS + "/shop"))["data"] == {"greeting": "hello", "revision": "1"}
    history = await run_helm.json("history", "shop")
    assert [row["status"] for row in history] == ["superseded", "superseded", "deployed"]
    assert "name: shop" in await run_helm("get", "manifest", "shop")
    assert (await run_helm.json("status", "shop"))["info"]["status"] == "deployed"

    await run_helm("uninstall", "shop")
    assert await run_helm.json("list") == []
    assert (await api.call("GET", DEPLOYMENT))[0] == 404 and (await api.call("GET", SHELF))[0] == 404
    assert (await api.ok("GET", SECRETS))["items"] == []


async def test_helm_applies_on_the_server_and_keeps_others_fields(run_helm: Helm, api: Http) -> None:
    await run_helm("install", "shop", CHART, "--set", "check=false")
    managers = {row["manager"]: row["operation"] for row in (await api.ok("GET", SHELF))["metadata"]["managedFields"]}
    assert managers == {"helm": "Apply"}
    label = {"metadata": {"labels": {"mine": "yes"}}}
    await api.ok("PATCH", SHELF, label, "application/merge-patch+json")
    await run_helm("upgrade", "shop", CHART, "--set", "check=false,replicas=4")
    shelf = await api.ok("GET", SHELF)
    assert shelf["metadata"]["labels"]["mine"] == "yes" and shelf["spec"]["books"] == 4


async def test_an_invalid_value_is_rejected_by_the_definition(run_helm: Helm, api: Http) -> None:
    with pytest.raises(AssertionError, match=r"spec\.books"):
        await run_helm("install", "shop", CHART, "--set", "check=false,replicas=-1")
    assert [row["status"] for row in await run_helm.json("list")] == ["failed"]


async def test_helm_waits_for_the_workload_and_its_hooks(tmp_path: Path) -> None:
    wait = ("--wait", waiting.KUBECTL)
    async with Sandbox(nodes=2, components=("scheduler",), logs=tmp_path / "logs") as sandbox, http(sandbox) as api:
        run_helm = Helm(sandbox, tmp_path)
        await run_helm("install", "shop", CHART, *wait)
        assert (await api.ok("GET", DEPLOYMENT))["status"]["availableReplicas"] == 2
        assert (await api.call("GET", CHECK))[0] == 404, "it goes when it was well"
        await run_helm("upgrade", "shop", CHART, "--set", "replicas=3", *wait)
        assert (await api.ok("GET", DEPLOYMENT))["status"]["availableReplicas"] == 3
        await run_helm("rollback", "shop", "1", *wait)
        assert (await api.ok("GET", DEPLOYMENT))["status"]["availableReplicas"] == 2
        await run_helm("uninstall", "shop", *wait)
        assert (await api.call("GET", DEPLOYMENT))[0] == 404
