"""An upgrade from Kubernetes 1.36 to 1.37 with native gangs in use, with the real kubectl: the steps of
docs/native-gangs.md on a cluster whose objects stay in a folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from tests import waiting
from tests.e2e.cluster import until
from tests.e2e.test_native_gangs import CONF, GATES, GROUPS, NODE, Site, group, member
from tests.kubectl import find as found_kubectl
from volcano_py.api.kinds import NATIVE_PODGROUP, NATIVE_PODGROUP_BETA, PODGROUP
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox, SandboxError
from volcano_py.sandbox.shapes import parse

PAGE = Path(__file__).parents[2] / "docs" / "native-gangs.md"


def kept(folder: Path, version: str, components: tuple[str, ...] = ()) -> Sandbox:
    """The cluster of a folder, with a version of Kubernetes."""
    return Sandbox(
        2,
        node_shapes=[parse("cpu=2,memory=8Gi")],
        components=components,
        component_arguments={"scheduler": (f"--scheduler-conf={folder / 'scheduler.conf'}",)},
        path=folder / "kubeconfig",
        logs=folder / "logs",
        data=folder / "data",
        feature_gates=GATES,
        kubernetes_version=version,
    )


@asynccontextmanager
async def running(folder: Path, version: str) -> AsyncIterator[Site]:
    async with (
        kept(folder, version, ("scheduler", "controller-manager")) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        yield Site(sandbox, client, folder)


async def groups_as_manifests(site: Site) -> list[str]:
    command = [sys.executable, "-m", "volcano_py.cli.main", "migrate", "groups", "-k", site.sandbox.kubeconfig]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return [yaml.safe_dump(document) for document in yaml.safe_load_all(out)]


async def remove_groups(site: Site, folder: Path) -> None:
    """Run the commands of the page that delete the groups of v1alpha2."""
    section = PAGE.read_text().partition("### Upgrade from 1.36 to 1.37")[2].partition("Upgrade the control plane")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    script = "set -euo pipefail\n" + "".join(blocks).replace("volcano-py migrate groups > groups.yaml", "true")
    program = found_kubectl()
    assert program is not None, "no kubectl: install it, or run python -m tests.kubectl"
    environment = {
        "PATH": f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": site.sandbox.kubeconfig,
    }
    process = await asyncio.create_subprocess_exec("bash", "-c", script, env=environment)
    assert await waiting.within(process.wait(), "the commands do not end") == 0


async def pods(site: Site, name: str) -> list[tuple[str, str]]:
    """UID and node of the pods of a gang."""
    found = json.loads(await site.run("get", "pods", "-l", f"group={name}", "-o", "json"))["items"]
    return [(pod["metadata"]["uid"], pod["spec"].get("nodeName", "")) for pod in found]


@pytest.mark.slow
async def test_running_pods_stay_and_gangs_that_wait_keep_their_place(tmp_path: Path) -> None:
    (tmp_path / "scheduler.conf").write_text(CONF)
    async with running(tmp_path, "1.36") as site:
        await site.apply(group("old", 2, disruptionMode="PodGroup"), *(member("old", i) for i in range(2)))
        await site.waits_for("old", "PodGroupScheduled")
        for name in ("first", "second"):
            await site.apply(group(name, 1), member(name, 0))
            await site.waits_for(name, "PodGroupScheduled=false")
            if name == "first":
                await asyncio.sleep(1.0)  # times of creation are whole seconds
        before = await pods(site, "old")
        manifests = await groups_as_manifests(site)
        await remove_groups(site, tmp_path)
        assert await site.client.list(NATIVE_PODGROUP, "default") == [], "a finalizer keeps a group"

        async def waits() -> bool:
            return "podgroup.scheduling.k8s.io/first, which does not exist" in await site.reason("first-0")

        await until(waits, "the pod does not state that its group is missing")
        assert await pods(site, "old") == before

    async with running(tmp_path, "1.37") as site:
        await site.apply(*reversed(manifests))
        old = json.loads(await site.run("get", f"{GROUPS}/old", "-o", "json"))
        assert (old["apiVersion"], old["spec"]["disruptionMode"]) == ("scheduling.k8s.io/v1beta1", {"all": {}})
        for name, condition in (("old", ""), ("first", "=false"), ("second", "=false")):
            await site.waits_for(name, f"PodGroupInitiallyScheduled{condition}")
        assert await pods(site, "old") == before
        await site.apply(NODE)
        await site.waits_for("first", "PodGroupInitiallyScheduled")
        assert await site.nodes("first") == ["added"] and await site.nodes("second") == [""]
        assert await site.client.list(PODGROUP, "default") == [], "a pod has two groups"
        assert await pods(site, "old") == before


async def test_a_folder_with_groups_that_the_new_version_cannot_read_is_rejected(tmp_path: Path) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    async with kept(tmp_path, "1.36") as sandbox, Client.from_kubeconfig(sandbox.kubeconfig) as client:
        await client.create(NATIVE_PODGROUP, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    with pytest.raises(SandboxError, match=r"1 podgroups.scheduling.k8s.io of Kubernetes 1.36, .* delete them first"):
        async with kept(tmp_path, "1.37"):
            pass
    async with kept(tmp_path, "1.36") as sandbox, Client.from_kubeconfig(sandbox.kubeconfig) as client:
        await client.delete(NATIVE_PODGROUP, "g", "default")
    async with kept(tmp_path, "1.37") as sandbox, Client.from_kubeconfig(sandbox.kubeconfig) as client:
        assert await client.list(NATIVE_PODGROUP_BETA, "default") == []
