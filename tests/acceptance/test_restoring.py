"""The suite leaves the configuration of a cluster as it was, also after a case that fails or a run that is killed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.acceptance import site as sites
from tests.acceptance.site import CONFIGURATION, ORIGINAL, Manifest, Site
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists
from volcano_py.sandbox.cluster import Sandbox

NAMESPACE, NAME, KEY = CONFIGURATION
BEFORE = "actions: enqueue, allocate, backfill, reclaim"


class WithoutScheduler(Site):
    """Each write of the ConfigMap counts as read by the scheduler."""

    async def _in_force(self) -> int:
        return int((await self.client.get(CONFIGMAP, NAME, NAMESPACE))["metadata"]["resourceVersion"])


@pytest.fixture
async def sandbox(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    monkeypatch.setattr(sites, "Site", WithoutScheduler)
    async with Sandbox(nodes=0) as made, Client.from_kubeconfig(made.kubeconfig) as client:
        body: Manifest = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {KEY: BEFORE, "other": "x"}}
        try:
            await client.create(CONFIGMAP, body, NAMESPACE)
        except AlreadyExists:
            await client.patch(CONFIGMAP, NAME, {"data": body["data"]}, NAMESPACE)
        yield made


async def configuration(sandbox: Sandbox) -> Manifest:
    async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
        found = await client.get(CONFIGMAP, NAME, NAMESPACE)
    return {**found["data"], "annotations": found["metadata"].get("annotations") or {}}


async def test_a_case_that_fails_restores_the_configuration(sandbox: Sandbox) -> None:
    """A case of scheduling left `actions: allocate`: the bare pods of later ones waited for backfill."""
    with pytest.raises(ZeroDivisionError):
        async with sites.site(sandbox, sandbox.kubeconfig) as at:
            await at.configure("actions: allocate")
            assert (await configuration(sandbox))[KEY] == "actions: allocate"
            await at.configure("actions: backfill")
            raise ZeroDivisionError
    assert await configuration(sandbox) == {KEY: BEFORE, "other": "x", "annotations": {}}


async def test_a_run_after_one_that_was_killed_restores_the_configuration(sandbox: Sandbox) -> None:
    async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
        await WithoutScheduler(client, "default").configure("actions: allocate")
    assert (await configuration(sandbox))["annotations"] == {ORIGINAL: BEFORE}
    async with sites.site(sandbox, sandbox.kubeconfig) as at:
        await at.configure("actions: backfill")
    assert await configuration(sandbox) == {KEY: BEFORE, "other": "x", "annotations": {}}


async def test_the_configuration_is_restored_although_objects_remain(sandbox: Sandbox) -> None:
    class Stuck(WithoutScheduler):
        async def _delete_all(self) -> None:
            raise TimeoutError

    async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
        at = Stuck(client, "default")
        await at.configure("actions: allocate")
        with pytest.raises(TimeoutError):
            await at.close()
    assert (await configuration(sandbox))[KEY] == BEFORE
