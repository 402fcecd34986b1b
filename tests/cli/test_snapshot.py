"""`volcano-py snapshot save` against a live cluster."""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from functools import partial
from pathlib import Path

from tests import waiting
from volcano_py.api.kinds import NAMESPACE, POD, ROLE, ROLEBINDING
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.simulate import snapshot as snapshots
from volcano_py.simulate.replay import replay


async def volcano_py(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "volcano_py.cli.main", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def pod(name: str, namespace: str) -> dict[str, object]:
    container = {"name": "main", "image": "busybox", "env": [{"name": "A", "value": "private"}]}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


async def test_a_live_cluster_is_read_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "cluster.snapshot"
    async with Sandbox(nodes=2, path=tmp_path / "kubeconfig", audit=tmp_path / "audit.log") as sandbox:
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
            await client.create(POD, pod("a", "default"), "default")
        code, out, err = await volcano_py("snapshot", "save", "--kubeconfig", sandbox.kubeconfig, str(file))
        assert code == 0 and "1 Pod" in out and "2 Node" in out, (out, err)
        requests = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
        assert [r["verb"] for r in requests if r["verb"] not in ("get", "list")] == ["create"], "of the pod"
    found = snapshots.load(file)
    assert [p.metadata.key for p in found.of("Pod")] == ["default/a"]
    assert found.of("Pod")[0].spec.containers[0].env is None
    assert "actions" in found.configuration and not found.unread
    hidden = tmp_path / "no" / "folder"
    code, _, err = await volcano_py("snapshot", "save", "-k", str(tmp_path / "kubeconfig"), str(hidden))
    assert code == 255, "the cluster is gone"


async def test_what_may_not_be_listed_is_left_out_and_named(tmp_path: Path) -> None:
    users = {"token-of-bob": User("bob", ("system:authenticated",))}
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig", users=users, rbac=True) as sandbox:
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
            await client.create(NAMESPACE, {"metadata": {"name": "lab"}})
            await client.create(POD, pod("mine", "lab"), "lab")
            await client.create(POD, pod("other", "default"), "default")
            group = "rbac.authorization.k8s.io"
            rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
            await client.create(ROLE, {"metadata": {"name": "pods"}, "rules": rules}, "lab")
            role = {"apiGroup": group, "kind": "Role", "name": "pods"}
            bob = {"apiGroup": group, "kind": "User", "name": "bob"}
            binding = {"metadata": {"name": "pods"}, "roleRef": role, "subjects": [bob]}
            await client.create(ROLEBINDING, binding, "lab")
        config = json.dumps(
            {
                "current-context": "bob",
                "clusters": [
                    {"name": "c", "cluster": {"server": sandbox.url, "insecure-skip-tls-verify": True}},
                ],
                "users": [{"name": "bob", "user": {"token": "token-of-bob"}}],
                "contexts": [{"name": "bob", "context": {"cluster": "c", "user": "bob", "namespace": "lab"}}],
            }
        )
        (tmp_path / "bob").write_text(config)
        file = tmp_path / "bob.snapshot"
        code, _, err = await volcano_py("snapshot", "save", "-k", str(tmp_path / "bob"), str(file))
    assert code == 0, err
    found = snapshots.load(file)
    assert [p.metadata.key for p in found.of("Pod")] == ["lab/mine"] and not found.of("Node")
    named = [u.kind for u in found.unread]
    assert {"Pod", "Node", "Queue", "configuration"} <= set(named) and len(named) == len(set(named))
    assert err.count("not in the snapshot: no permission to list: ") == 1 and err.count(" Node,") == 1
    assert len(err.splitlines()) == 3 and "Traceback" not in err


async def test_a_live_scheduler_records_cycles_that_replay(tmp_path: Path) -> None:
    arguments = {"scheduler": ["--record", str(tmp_path / "cycles")]}
    async with (
        Sandbox(nodes=2, components=("scheduler",), component_arguments=arguments) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        for name in ("a", "b"):
            await client.create(POD, pod(name, "default"), "default")
            await waiting.until(partial(is_bound, client, name), f"pod {name} is not bound")
    (file,) = (tmp_path / "cycles").iterdir()
    found = list(replay(file))
    assert all(each.identical for each in found) and sum(each.report.bound for each in found) == 2
    assert b"private" not in zlib.decompressobj(wbits=31).decompress(file.read_bytes())


async def is_bound(client: Client, name: str) -> bool:
    found = await client.get(POD, name, "default")
    return bool(found["spec"].get("nodeName"))
