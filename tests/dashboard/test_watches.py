"""The dashboard's watches on a sandbox: rights, missing definitions, broken objects, outages, and only for viewers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.dashboard.objects import CREATED, UID
from tests.dashboard.story import is_open
from tests.e2e.cluster import bound, job, until
from tests.e2e.cluster import cluster as running
from volcano_py.api.kinds import EVENT, JOB, NAMESPACE, PODGROUP, QUEUE, ROLE, ROLEBINDING
from volcano_py.dashboard import watches as module
from volcano_py.dashboard.actions import CLOSE, SUSPEND, Actions
from volcano_py.dashboard.kept import WATCHED
from volcano_py.dashboard.models import Models
from volcano_py.dashboard.watches import Watches
from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import Unreachable
from volcano_py.kube.wire import Undecodable
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]
ALICE = User("alice", ("system:authenticated",))


@asynccontextmanager
async def cluster(tmp_path: Path, **options: Any) -> AsyncIterator[tuple[Sandbox, Client]]:
    async with (
        Sandbox(2, path=tmp_path / "kubeconfig", controllers=None, hollow=False, **options) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        yield sandbox, client


async def seen(watches: Watches, holds: Any, otherwise: str) -> None:
    async def look() -> bool:
        return bool(holds())

    await waiting.until(look, otherwise)


def group(name: str, namespace: str = "default") -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"minMember": 2, "queue": "default"}}


async def test_objects_are_kept_live_while_there_is_a_viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER", 0.0)
    async with cluster(tmp_path) as (_, client):
        watches = Watches(client, "default")
        assert watches.objects("queues") == {} and not watches.health().loading
        with watches.viewer():
            await waiting.within(watches.synced(), "not all kinds are listed")
            assert {"root", "default"} <= set(watches.objects("queues"))
            await client.create(PODGROUP, group("a"))
            await seen(watches, lambda: "default/a" in watches.objects("podgroups"), "the PodGroup is not seen")
            about = {"namespace": "default", "name": "p"}
            evicted = {
                "metadata": {"name": "p.1", "namespace": "default"},
                "involvedObject": {"kind": "Pod", **about},
                "related": {"kind": "PodGroup", "namespace": "default", "name": "a"},
                "reason": "Evict",
                "message": "Pod is evicted, because of reclaim",
            }
            await client.create(EVENT, evicted)
            await seen(watches, lambda: watches.objects("evictions"), "the eviction is not seen")
            [eviction] = watches.objects("evictions").values()
            assert eviction["evictor"] == ("default", "a")
            health = watches.health()
            assert (health.loading, health.stale, health.missing, health.quarantined) == (False, None, (), ())
        await seen(watches, lambda: not watches._tasks, "the watches have not ended")
        revision = watches.revision
        await client.create(PODGROUP, group("b"))
        assert "default/b" not in watches.objects("podgroups") and watches.revision == revision
        with watches.viewer():
            await seen(watches, lambda: "default/b" in watches.objects("podgroups"), "the watches do not go on")
        watches.stop()


async def test_what_a_user_may_not_list_is_named_with_the_remedy(tmp_path: Path) -> None:
    async with cluster(tmp_path, users={"alices": ALICE}) as (sandbox, client):
        await client.create(NAMESPACE, {"metadata": {"name": "team"}})
        rules = [
            {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        ]
        await client.create(ROLE, {"metadata": {"name": "see", "namespace": "team"}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
        binding = {"metadata": {"name": "see", "namespace": "team"}, "roleRef": reference, "subjects": [subject]}
        await client.create(ROLEBINDING, binding)
        await client.create(PODGROUP, group("mine", "team"))
        await client.create(PODGROUP, group("other"))
        own = Credentials(sandbox.url, client.credentials.tls, lambda: {"Authorization": "Bearer alices"})
        async with Client(own) as alice:
            watches = Watches(alice, "team")
            with watches.viewer():
                await waiting.within(watches.synced(), "not all kinds are settled")
                assert set(watches.objects("podgroups")) == {"team/mine"}
                await seen(watches, lambda: not watches.may_list("nodes"), "the rejection is not seen")
                missing = {m.what: m.remedy for m in watches.health().missing}
                assert "You may list podgroups of namespace team only." in missing
                assert "kubectl create clusterrole" in missing["You may not list nodes."]
                assert watches.may_list("pods") and watches.health().stale is None
            watches.stop()
            actions = Actions(alice)
            assert not await actions.allowed(SUSPEND, "team") and not await actions.allowed(CLOSE)
            assert await Actions(client).allowed(SUSPEND, "team")
            problem = await actions.carry_out(CLOSE, "default")
            assert problem.startswith("The API server rejected it: ") and 'User "alice" cannot get' in problem


async def test_a_cluster_without_the_definitions_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path, crds=False, volcano_admission=False, first_queues=False) as (_, client):
        watches = Watches(client, "default")
        with watches.viewer():
            await waiting.within(watches.synced(), "not all kinds are settled")
            texts = [m.what for m in watches.health().missing]
            assert "The cluster has no queues: their definition is not installed." in texts
            assert len(watches.objects("nodes")) == 2
        watches.stop()


async def test_an_object_that_does_not_decode_is_counted_until_it_does() -> None:
    async with Client(Credentials(server="http://127.0.0.1:9")) as client:
        watches = Watches(client, "")
        [kind] = [k for k in WATCHED if k.rt is QUEUE]
        informer = watches._informer(kind, None)
        broken = Undecodable("", "q", UID, "7", b"", "Expected `int`, got `str` - at `$.spec.weight`")
        informer._report_undecodable(broken)
        assert watches.health().quarantined == ("Queue q: Expected `int`, got `str` - at `$.spec.weight`",)
        informer._clear_error("q")
        assert watches.health().quarantined == ()


async def test_data_ages_while_the_api_server_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE", 0.05)
    async with Client(Credentials(server="http://127.0.0.1:9")) as client:
        watches = Watches(client, "")
        with watches.viewer():
            await seen(watches, lambda: watches.health().stale, "the data does not age")
            assert "127.0.0.1:9" in watches.health().error
            assert await Actions(client).allowed(CLOSE) is False
            problem = await Actions(client).carry_out(CLOSE, "q")
            assert problem.startswith("The API server does not answer: ")
        watches.stop()
        with pytest.raises(Unreachable):
            await client.get(QUEUE, "q")


def test_every_watched_kind_makes_of_an_object_what_informers_need() -> None:
    import msgspec

    from volcano_py.kube.informer import key_of, uid_of

    for kind in WATCHED:
        whole = {"metadata": {"name": "a", "uid": UID, "resourceVersion": "1", "creationTimestamp": CREATED}}
        found = kind.prepare(msgspec.convert(whole, kind.type))
        assert (key_of(found), uid_of(found)) == ("a", UID), kind.name


RECLAIM = """actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@pytest.mark.slow
async def test_evictions_of_a_live_scheduler_name_the_job_that_they_are_for(tmp_path: Path) -> None:
    configuration = tmp_path / "scheduler.conf"
    configuration.write_text(RECLAIM)
    scheduler = (f"--scheduler-conf={configuration}",)
    async with running(tmp_path, shape="cpu=4,memory=8Gi", scheduler=scheduler) as (_, client):

        async def bind(name: str, pods: int, queue: str, minimum: int) -> None:
            await client.create(QUEUE, {"metadata": {"name": queue}, "spec": {"weight": 1, "reclaimable": True}})
            await until(lambda: is_open(client, queue), f"queue {queue} is not opened")
            await client.create(JOB, job(name, pods, "1", seconds=600, queue=queue, minimum=minimum))

            async def all_bound() -> bool:
                return await bound(client, name) >= pods

            await until(all_bound, f"{name} does not run")

        await bind("greedy", 8, "a", 1)
        await bind("starving", 2, "b", 2)
        watches = Watches(client, "default")
        with watches.viewer():
            await waiting.within(watches.synced(), "not all kinds are listed")
            await seen(watches, lambda: len(watches.objects("evictions")) >= 2, "the evictions are not seen")
            rows = Models(watches).evictions().rows
            assert {(row.action, row.evictor) for row in rows} == {("reclaim", "default/starving")}
            assert all(row.pod.startswith("greedy-main-") for row in rows)
        watches.stop()
