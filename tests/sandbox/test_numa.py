"""NUMA nodes of the sandbox: whole CPUs for guaranteed pods, and what is published of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import waiting
from volcano_py.api.codec import from_manifest
from volcano_py.api.kinds import NUMATOPOLOGY
from volcano_py.api.nodeinfo import Numatopology
from volcano_py.api.resource_types import NODE, POD
from volcano_py.kube import Client
from volcano_py.kube.errors import NotFound
from volcano_py.sandbox import npu, numa
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.resource.numa_exporter import topology
from volcano_py.sandbox.shapes import manifest, parse
from volcano_py.scheduler.plugins.numaaware.cpu_topology import read_numa
from volcano_py.scheduler.plugins.numaaware.plugin import NumaDemand, _assign


def guaranteed(name: str, *cpus: str) -> dict[str, Any]:
    """A pod that requests an amount of CPUs in each container."""
    limits = [{"limits": {"cpu": amount, "memory": "1Mi"}} for amount in cpus]
    containers = [{"name": f"c{i}", "image": "x", "resources": each} for i, each in enumerate(limits)]
    return {
        "metadata": {"name": name, "uid": name, "namespace": "default"},
        "spec": {"containers": containers},
        "status": {"qosClass": "Guaranteed"},
    }


@pytest.mark.parametrize("text", ["numa=2", "numa=2:x", "numa=2:2:nearest", "numa=0:4", "numa=1000:1000", "numa=9:1"])
def test_a_bad_shape_states_the_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"write numa=|from 1 to 1024"):
        parse(text)


def given_to(policy: str, *requests: str) -> list[str]:
    """The CPUs, or the problem, of pods that come one after the other to a node with two NUMA nodes of four CPUs."""
    node = manifest("n", parse(f"numa=2:4:{policy}"))
    assert node["status"]["capacity"]["cpu"] == "8"
    pods: list[dict[str, Any]] = []
    found = []
    for i, request in enumerate(requests):
        pod = guaranteed(f"p{i}", request)
        problem = numa.assign(pod, node, pods)
        pods.append(pod)
        found.append(problem[:9] or numa.assigned(node).get(f"p{i}", {}).get("c0", "shared"))
    return found


def test_cpus_are_on_as_few_numa_nodes_as_the_policy_requires() -> None:
    assert given_to("single-numa-node", "3", "2", "1", "2", "1") == ["0-2", "4-5", "3", "6-7", "Resources"]
    assert given_to("single-numa-node", "5") == ["Resources"]
    assert given_to("single-numa-node", "1", "2", "2", "3") == ["0", "1-2", "4-5", "Resources"]
    assert given_to("restricted", "5", "2") == ["0-4", "5-6"]
    assert given_to("restricted", "1", "5") == ["0", "1,4-7"], "whole NUMA nodes first"
    assert given_to("restricted", "3", "3", "2") == ["0-2", "4-6", "Resources"]
    assert given_to("best-effort", "3", "3", "2", "500m") == ["0-2", "4-6", "3,7", "shared"]


@given(
    st.sampled_from(numa.POLICIES[1:]),
    st.integers(1, 3),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 7))),
)
def test_the_scheduler_chooses_the_same_cpus(policy: str, nodes: int, cpus: int, steps: list[tuple[int, int]]) -> None:
    node = manifest("n", parse(f"numa={nodes}:{cpus}:{policy}"))
    layout = numa.layout_of(node)
    assert layout is not None
    alive: dict[str, dict[str, Any]] = {}
    for index, number in steps:
        name = f"p{index}"
        if name in alive:
            del alive[name]
            continue
        spec = topology(layout, numa.assigned(node), alive)
        published = read_numa(from_manifest(Numatopology, {"metadata": {"name": "n"}, "spec": spec}), True)
        code, chosen = _assign(NumaDemand(policy, (number,)), published, published.available or frozenset())
        pod = guaranteed(name, str(number))
        problem = numa.assign(pod, node, alive.values())
        assert bool(problem) is bool(code or len(chosen) < number), (code, chosen, problem)
        if not problem:
            alive[name] = pod
            assert chosen == frozenset(numa.members(numa.assigned(node)[name]["c0"]))


def test_annotations_that_users_have_broken_are_as_absent() -> None:
    node = manifest("n", parse("numa=2:2"))
    annotations = node["metadata"]["annotations"]
    for broken in ("{", "[1]", '{"p": {"c": 7}}', '{"p": {"c": "x,9-x,0-99999999"}}', "[" * 100_000):
        annotations[numa.STATE] = broken
        assert not numa.assign(guaranteed("p", "1"), node, []) and numa.assigned(node) == {"p": {"c0": "0"}}
    annotations[numa.LAYOUT] = "2:many"
    assert numa.layout_of(node) is None and not numa.assign(guaranteed("q", "1"), node, [])
    chips = manifest("n", parse("vnpu=2:310P"))
    assert npu.chips_of(chips) == [0, 1]
    for broken in ("{", "[1]", '{"Ascend310P-x": {}}', "[" * 100_000):
        chips["metadata"]["annotations"]["baseDeviceInfos"] = broken
        assert npu.chips_of(chips) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5))))
def test_no_cpu_has_two_pods_and_those_of_ended_pods_are_free(steps: list[tuple[int, int]]) -> None:
    node = manifest("n", parse("numa=2:4"))
    alive: dict[str, dict[str, Any]] = {}
    for index, cpus in steps:
        name = f"p{index}"
        if name in alive:
            del alive[name]
            continue
        pod = guaranteed(name, str(cpus))
        if not numa.assign(pod, node, alive.values()):
            alive[name] = pod
        held = numa.assigned(node)
        texts = [text for uid, of_pod in held.items() if uid in alive for text in of_pod.values()]
        assert sum(len(list(numa.members(text))) for text in texts) == len(numa.used({k: held[k] for k in alive}))


async def test_a_topology_is_published_and_a_pod_that_does_not_fit_fails(tmp_path: Path) -> None:
    shape = parse("numa=2:2:single-numa-node,memory=1Gi")
    async with (
        Sandbox(1, node_shapes=[shape], path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):

        async def topology() -> dict[str, Any]:
            try:
                return dict((await client.get(NUMATOPOLOGY, "node-0"))["spec"])
            except NotFound:
                return {}

        async def allocatable(text: str) -> bool:
            spec = await topology()
            return bool(spec) and spec["numares"]["cpu"]["allocatable"] == text

        async def is_rejected(name: str) -> bool:
            status = (await client.get(POD, name, "default"))["status"]
            return (status["phase"], status.get("reason")) == ("Failed", numa.REJECTED)

        async def create(name: str, cpus: str) -> None:
            pod = guaranteed(name, cpus)
            del pod["status"], pod["metadata"]["uid"]
            pod["spec"]["nodeName"] = "node-0"
            await client.create(POD, pod, "default")

        await waiting.until(lambda: allocatable("0-3"), "no Numatopology")
        await create("a", "1")
        await waiting.until(lambda: allocatable("1-3"), "the CPU of the pod is not published")
        spec = await topology()
        assert spec["policies"] == {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"}
        assert spec["cpuDetail"]["3"] == {"numa": 1, "socket": 1, "core": 3}
        (row,) = spec["podAllocations"]
        assert (row["name"], row["containerAllocations"]) == ("a", [{"name": "c0", "allocations": {"cpu": "0"}}])
        await create("b", "2")
        await waiting.until(lambda: allocatable("1"), "the second pod has no CPUs of the other NUMA node")
        await client.delete(POD, "b", "default")
        await waiting.until(lambda: allocatable("1-3"), "the CPUs of the deleted pod are not free")
        await create("c", "1")
        await waiting.until(lambda: allocatable("2-3"), "the third pod is not where it leaves the least")
        await create("d", "2")
        await create("e", "1")
        await waiting.until(lambda: is_rejected("e"), "a pod without CPUs runs")
        await client.delete(NODE, "node-0")

        async def is_gone() -> bool:
            return not await topology()

        await waiting.until(is_gone, "the Numatopology of a deleted node is left")
