"""Following objects: what is there, what changes, and who may not see all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from volcano_py.api.kinds import CONFIGMAP, ROLE, ROLEBINDING, SECRET
from volcano_py.cli.follow import Source, following
from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import Forbidden
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    users = {"guest-token": User("guest", ("system:authenticated",))}
    async with Sandbox(0, components=(), controllers=None, users=users, path=tmp_path / "kubeconfig") as sandbox:
        yield sandbox


async def test_what_is_there_and_what_changes(sandbox: Sandbox) -> None:
    async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
        await client.create(CONFIGMAP, {"metadata": {"name": "a"}}, "default")
        source = Source.one(CONFIGMAP, "a", "default")
        async with following(client, source, Source(SECRET, "default")) as followed:
            assert [o["metadata"]["name"] for o in followed.objects()] == ["a"] and followed.objects(1) == []
            assert await followed.next(0.05) is None, "what was there is no change"
            await client.create(CONFIGMAP, {"metadata": {"name": "b"}}, "default")
            await client.patch(CONFIGMAP, "a", {"data": {"k": "v"}}, "default")
            changed = await followed.next(10)
            assert changed is not None and changed.object["data"] == {"k": "v"} and not changed.deleted
            await client.delete(CONFIGMAP, "a", "default")
            gone = await followed.next(10)
            assert gone is not None and gone.deleted and followed.objects() == []


async def test_who_may_not_see_what_is_optional_goes_without(sandbox: Sandbox) -> None:
    async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
        await client.create(ROLE, {"metadata": {"name": "reads"}, "rules": [rule]}, "default")
        binding = {
            "metadata": {"name": "reads"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}],
        }
        await client.create(ROLEBINDING, binding, "default")
        admin = client.credentials
        guest = Credentials(admin.server, admin.tls, lambda: {"Authorization": "Bearer guest-token"})
        seen, hidden = Source(CONFIGMAP, "default"), Source(SECRET, "default")
        async with Client(guest) as other:
            async with following(other, seen, hidden._replace(optional=True)) as followed:
                assert followed.objects(1) == []
                await client.create(CONFIGMAP, {"metadata": {"name": "a"}}, "default")
                assert (await followed.next(10)) is not None and len(followed.objects()) == 1
            with pytest.raises(Forbidden):
                async with following(other, seen, hidden):
                    raise AssertionError("a source that is not optional must be seen")
