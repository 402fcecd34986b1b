"""Sharding: who gets which nodes, by what configuration, and how the NodeShards follow."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.api.shard import NodeShard
from volcano_py.controllers.instructions import Create, Delete, Patch, Together
from volcano_py.controllers.options import parse_flags
from volcano_py.controllers.sharding.assign import assign
from volcano_py.controllers.sharding.config import KEY, PolicyRef, SchedulerSpec, parse, parse_flag, with_defaults
from volcano_py.controllers.sharding.policies import NodeView, allocation_rate, round_2
from volcano_py.controllers.sharding.reconcile import differs, reconcile
from volcano_py.controllers.sharding.usage import MIRROR, Usage

Manifest = dict[str, Any]
NOW = 1_800_000_000.0


def spec(name: str, *policies: tuple[str, dict[str, Any]]) -> SchedulerSpec:
    return SchedulerSpec(name, policies=[PolicyRef(policy, 1, arguments) for policy, arguments in policies])


def rate(low: float, high: float) -> tuple[str, dict[str, Any]]:
    return "allocation-rate", {"minCPUUtil": low, "maxCPUUtil": high}


# ---- who gets which


def test_the_limit_counts_all_nodes_however_many_there_are() -> None:
    """Volcano takes them by fifties, and the limit for each."""
    nodes = [NodeView(f"n{number:03}", cpu=0.1) for number in range(130)]
    limited = spec("a", rate(0, 1), ("node-limit", {"maxNodes": 60}))
    found = assign([limited, spec("b", rate(0, 1))], nodes)
    assert (len(found["a"]), len(found["b"])) == (60, 70)
    assert not set(found["a"]) & set(found["b"])


def test_a_node_between_two_ranges_is_nobodys() -> None:
    found = assign([spec("a", rate(0, 0.3)), spec("b", rate(0.5, 1))], [NodeView("n", cpu=0.4)])
    assert found == {"a": [], "b": []}


def test_ranges_are_compared_in_hundredths() -> None:
    accepts = allocation_rate({"minCPUUtil": 0.3, "maxCPUUtil": 0.6}).accepts
    assert accepts is not None
    assert accepts(NodeView("n", cpu=0.604)) and not accepts(NodeView("n", cpu=0.606))
    assert accepts(NodeView("n", cpu=0.1 + 0.2)) and round_2(0.125) == 0.13


# ---- usage


def pod(name: str, cpu: str, node: str = "n", phase: str = "Running", **annotations: str) -> Pod:
    container = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return from_manifest(
        Pod,
        {
            "metadata": {"name": name, "uid": name, "annotations": annotations},
            "spec": {
                "nodeName": node,
                "containers": [container],
                "initContainers": [container],
                "overhead": {"cpu": "7"},
            },
            "status": {"phase": phase},
        },
    )


def test_usage_counts_living_pods_of_containers_only() -> None:
    usage = Usage()
    node = from_manifest(Node, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}})
    for one in (pod("a", "1"), pod("b", "500m"), pod("c", "2", phase="Failed"), pod("d", "2", node="")):
        usage.seen(one)
    usage.seen(pod("m", "2", **{MIRROR: "x"}))
    assert usage.rates(node) == (0.375, 0.25)
    assert usage.seen(pod("a", "1", phase="Succeeded")) == "n"
    assert usage.gone(pod("b", "500m")) == "n" and usage.gone(pod("b", "500m")) == ""
    assert usage.rates(node) == (0.0, 0.0)
    usage.seen(pod("big", "400"))
    assert usage.rates(node).cpu == 1.0


# ---- configuration


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"policies": [{"name": "warmth"}]}, "policy 'warmth' is unknown"),
        ({"policies": [{"name": "warmup", "weight": -1}]}, "weight must not be negative"),
        ({"policies": [{"name": "warmup", "arguments": {"maxNodes": 1}}]}, "only node-limit may have maxNodes"),
        ({"policies": [{"name": "node-limit", "arguments": {"maxNodes": "x"}}]}, "maxNodes must be a number"),
        ({"maxNodes": "many"}, "Expected `int`"),
    ],
)
def test_mistakes_are_named(entry: Manifest, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        parse(yaml.safe_dump({"schedulerConfigs": [{"name": "a", **entry}]}))
    assert problem in str(error.value)
    with pytest.raises(ValueError, match="used twice"):
        parse(yaml.safe_dump({"schedulerConfigs": [{"name": "a"}, {"name": "a"}]}))


def test_flags_mean_what_they_say() -> None:
    made = with_defaults(parse_flag("agent:agent:0.7:1.0:true:2:100"))
    assert [policy.name for policy in made.policies or ()] == ["allocation-rate", "warmup", "node-limit"]
    options = parse_flags(["--scheduler-configs=a:a:0:1:false:0:0,b:b:0:1:false:0:0", "--shard-sync-period=5s"])
    assert [text[0] for text in options.scheduler_configs] == ["a", "b"] and options.shard_sync_period == 5.0


# ---- NodeShards


def shard(name: str, nodes: list[str], **status: Any) -> NodeShard:
    manifest = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"nodesDesired": nodes}, "status": status}
    return from_manifest(NodeShard, manifest)


def test_small_changes_are_not_worth_a_write() -> None:
    old = [f"n{number}" for number in range(40)]
    assert not differs(old, [*old[3:], "x", "y", "z"])
    assert differs(old, [*old[4:], "w", "x", "y", "z"])
    assert differs(old, old[1:]) and not differs(old, old[::-1]) and differs(["a"], ["b"])


def test_shards_are_made_changed_and_deleted_and_tell_what_moves() -> None:
    there = [shard("b", ["n1"], nodesInUse=["n1", "n9"]), shard("old", [])]
    (together,) = reconcile({"a": ["n2"], "b": ["n1", "n3"]}, there, NOW)
    assert isinstance(together, Together)
    made = together.instructions
    assert [type(one) for one in made] == [Create, Patch, Patch, Delete]
    status = made[2]
    assert isinstance(status, Patch) and status.subresource == "status"
    assert status.body["status"] | {"lastUpdateTime": ""} == {
        "lastUpdateTime": "",
        "nodesToAdd": ["n3"],
        "nodesToRemove": ["n9"],
    }
    settled = [shard("b", ["n1", "n3"], nodesInUse=["n3", "n1"])]
    assert reconcile({"b": ["n1", "n3"]}, settled, NOW) == []


# ---- with a server


def conf(*schedulers: Manifest, **more: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-sharding-configmap", "namespace": "volcano-system"},
        "data": {KEY: yaml.safe_dump({"schedulerConfigs": list(schedulers), **more}) if schedulers else ""},
    }


def entry(name: str, low: float, high: float) -> Manifest:
    arguments = {"minCPUUtil": low, "maxCPUUtil": high}
    return {"name": name, "policies": [{"name": "allocation-rate", "arguments": arguments}]}


def node(name: str) -> Manifest:
    capacity = {"cpu": "4", "memory": "8Gi"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}}


@pytest.fixture
async def dividing():
    """A world with the sharding controller and nothing else, not started yet."""
    api = await SmallApi().start()
    made = World(api)
    made.options.controllers = ["sharding-controller"]
    made.options.shard_sync_period = 0.3
    yield made
    await made.kill()
    await api.stop()


def shards(world: World) -> dict[str, list[str]]:
    return {one["metadata"]["name"]: one["spec"]["nodesDesired"] for one in world.api.all(kinds.NODESHARD)}


def waited_for(world: World, name: str) -> list[str]:
    """The nodes that a scheduler is to take over."""
    found = (world.api.get(kinds.NODESHARD, name) or {}).get("status") or {}
    return list(found.get("nodesToAdd") or ())


async def test_nodes_are_divided_and_move(dividing: World) -> None:
    world = dividing
    world.api.put(conf(entry("idle", 0, 0.5), entry("busy", 0.51, 1)))
    for name in ("n1", "n2"):
        world.api.put(node(name))
    await world.start()
    await world.until(lambda: shards(world) == {"idle": ["n1", "n2"], "busy": []})
    requests = {"resources": {"requests": {"cpu": "3"}}}
    load = {"nodeName": "n2", "containers": [{"name": "c", **requests}]}
    world.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": load})
    await world.until(lambda: shards(world) == {"idle": ["n1"], "busy": ["n2"]})
    await world.until(lambda: waited_for(world, "busy") == ["n2"])
    world.api.delete(kinds.NODESHARD, "busy")
    await world.until(lambda: shards(world).get("busy") == ["n2"])
    world.api.delete(kinds.NODE, "n1")
    await world.until(lambda: shards(world) == {"idle": [], "busy": ["n2"]})


async def test_a_configuration_is_read_again_and_a_mistake_changes_nothing(dividing: World) -> None:
    world = dividing
    world.api.put(node("n1"))
    world.api.put(conf())  # nothing in it: the flags hold
    await world.start()
    await world.until(lambda: shards(world) == {"volcano": ["n1"], "agent-scheduler": []})
    world.api.change(kinds.CONFIGMAP, "volcano-sharding-configmap", conf(entry("mine", 0, 1)), "volcano-system")
    await world.until(lambda: shards(world) == {"mine": ["n1"]})
    wrong = {"data": {KEY: "schedulerConfigs: 7"}}
    world.api.change(kinds.CONFIGMAP, "volcano-sharding-configmap", wrong, "volcano-system")
    await world.until(lambda: world.events("InvalidShardingConfig"))
    world.api.delete(kinds.CONFIGMAP, "volcano-sharding-configmap", "volcano-system")
    await world.quiet(0.5)
    assert shards(world) == {"mine": ["n1"]}
