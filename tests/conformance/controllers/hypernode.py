"""HyperNodes: counts of nodes, the discovery's configuration, and what is discovered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from unittest import mock

import msgspec
from aiohttp import web

from tests.conformance.controllers.comparing import Data, existing, in_a_loop, resting, same
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import ConfigMap
from volcano_py.api.duration import parse_duration
from volcano_py.api.topology import HyperNode
from volcano_py.controllers.hypernode import count, labels, ufm
from volcano_py.controllers.hypernode.config import Source, parse, where
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.instructions import UpdateStatus

PLACE = ("test-namespace", "test-configmap")


def hypernode(case: Data) -> str:
    match case["operation"]:
        case "syncHyperNodeStatus":
            return _counted(case)
        case "setConfigMapNamespaceAndName" | "setupConfigMapInformer":
            environment = {"KUBE_POD_NAMESPACE": "a", "HELM_RELEASE_NAME": "b"}
            with mock.patch.dict(os.environ, environment):
                return same(where(), ("a", "b-controller-configmap"))
        case "addConfigMap" | "addHyperNode" | "enqueueConfigMap" | "enqueueHyperNode":
            return _noticed(*case["input"].values())
        case "updateConfigMap" | "updateHyperNode":
            return _noticed(case["input"]["oldObj"], case["input"]["newObj"])
        case "deleteConfigMap":
            return _noticed(case["input"].get("obj"), gone=True)
    return f"operation {case['operation']} is not known"


def _counted(case: Data) -> str:
    nodes = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in existing(case, "Node")}
    written = [
        one.status
        for manifest in existing(case, "HyperNode")
        for one in count.reconcile(from_manifest(HyperNode, manifest), nodes)
        if isinstance(one, UpdateStatus)
    ]
    return same(written, [write["object"]["status"] for write in case.get("writes") or ()])


def _noticed(*objects: Data | None, gone: bool = False) -> str:
    """A ConfigMap or HyperNode asks to be looked at, anything else does not."""

    def work() -> str:
        cluster = resting()
        controller = HyperNodeController(cluster, place=PLACE)
        ours = 0
        for obj in filter(None, objects):
            rt = kinds.for_manifest(obj)
            mirror = cluster.mirror_one(rt, *PLACE) if rt == kinds.CONFIGMAP else cluster.mirror(rt)
            thing = from_manifest(kinds.STRUCTS[rt], obj)
            mirror.informer._put(thing)
            if gone:
                mirror.informer._drop(thing.key, thing)
            ours += rt in (kinds.CONFIGMAP, kinds.HYPERNODE)
        return same(len(controller.queue), min(ours, 1))

    return str(in_a_loop(work))


def hypernode_config(case: Data) -> str:
    state, expected = case["state"], case["output"]
    place = (state["configMapNamespace"], state["configMapName"])
    for manifest in existing(case, "ConfigMap"):
        metadata = manifest.get("metadata") or {}
        if (metadata.get("namespace"), metadata.get("name")) == place:
            try:
                made = parse(from_manifest(ConfigMap, manifest).data)
            except ValueError as error:
                return "" if expected.get("error") else str(error)
            return same([_source(one) for one in made], _expected(expected))
    return same([], _expected(expected))  # no ConfigMap is an empty configuration


def _source(source: Source) -> Data:
    return {"source": source.name, "enabled": source.enabled, "interval": source.interval, "config": source.config}


def _expected(output: Data) -> list[Data]:
    entries = (output["r0"] or {}).get("networkTopologyDiscovery") or []
    return [{**entry, "interval": parse_duration(entry["interval"])} for entry in entries]


def hypernode_discovery_label(case: Data) -> str:
    given, output = case["input"], case["output"]
    match case["operation"]:
        case "label-discovery":
            types, _ = labels.parse_types(given["config"]["config"])
            nodes = {name: node["metadata"].get("labels") or {} for name, node in given["nodes"].items()}
            there = given["existingHyperNodes"] or {}
            made = labels.discover(types, nodes, [from_manifest(HyperNode, one) for one in there.values()])
            return same(_anonymous(made), _anonymous(output["observed_hypernodes"])) or same(
                len(made), output["expected_count"]
            )
        case "parse-config":
            return same(labels.parse_types(given["cfg"]["config"])[0], output["topologies"])
        case "cleanString":
            return same(labels.clean(given["s"]), output["result"])
        case "getMemberType":
            return same(labels.member_type(given["tier"]), output["result"])
        case "removeDuplicates":
            return _without_duplicates(given["memberList"], output["result"])
    return f"operation {case['operation']} is not known"


def _anonymous(hypernodes: list[Data]) -> list[str]:
    """HyperNodes without the random ends of their names."""
    names = {one["metadata"]["name"] for one in hypernodes}

    def short(name: str) -> str:
        if name not in names:
            return name
        own = next(one for one in hypernodes if one["metadata"]["name"] == name)
        return f"{name[:-5]}{sorted(own['metadata']['labels'].items())}"

    found = []
    for one in hypernodes:
        members = sorted((m["type"], short(m["selector"]["exactMatch"]["name"])) for m in one["spec"]["members"])
        found.append(f"{short(one['metadata']['name'])} {one['spec']['tier']} {one['spec']['tierName']} {members}")
    return sorted(found)


def _without_duplicates(members: list[str], expected: list[str]) -> str:
    """Nodes below HyperNodes of these names: how many members does the one above have?"""
    nodes = {f"n{number}": {"below": member, "above": "one"} for number, member in enumerate(members)}
    made = labels.discover({"t": ["below", "above"]}, nodes, [])
    return same(len(made[-1]["spec"]["members"]), len(expected))


def hypernode_discovery_ufm(case: Data) -> str:
    given, output = case["input"], case["output"]
    match case["operation"]:
        case "ufm-start":
            return asyncio.run(_asked(given, output))
        case "ufm:getLeafSwitches":
            return same(ufm.leaf_switches(given["ufmData"]), _leafs(output["result"]))
        case "ufm:buildLeafToNodesMap":
            return same(_leafs(given["leafSwitches"]), _sets(output["result"]))
        case "ufm:buildNodeToLeafsMap":
            return same(ufm.leafs_of_nodes(_sets(given["leafToNodes"])), _sets(output["result"]))
        case "ufm:classifyLeafs":
            made = ufm.groups(_leafs(given["leafSwitches"]))
            return same(made, [(set(group["Leafs"]), set(group["NodeNames"])) for group in output["result"]])
        case "ufm:buildHyperNodes":
            return same(_plain(ufm.discover(given["ufmData"])), _plain(output["result"]))
    return f"operation {case['operation']} is not known"


def _leafs(switches: list[Data]) -> dict[str, set[str]]:
    return {switch["Name"]: set(switch["NodeNames"]) for switch in switches}


def _sets(lists: dict[str, list[str]]) -> dict[str, set[str]]:
    return {key: set(values) for key, values in lists.items()}


def _plain(hypernodes: list[Data]) -> list[Data]:
    return [msgspec.to_builtins(from_manifest(HyperNode, one)) for one in hypernodes]


def _leaf_members(output: Data) -> list[tuple[int, Data]]:
    leafs = [one for one in output["hyperNodes"] if one["spec"]["tier"] == 1]
    return [(number, member) for number, one in enumerate(leafs) for member in one["spec"]["members"]]


def _port(node: str, leaf: str) -> Data:
    return {"description": "Computer IB Port", "system_name": node, "peer_node_name": leaf}


async def _asked(given: Data, output: Data) -> str:
    """A UFM that answers with ports of which the recorded HyperNodes follow (they were not recorded)."""
    config = given["config"]
    reference = (config.get("credentials") or {}).get("secretRef") or {}
    source = Source("ufm", config=dict(config["config"]), secret_name=reference.get("name") or "")
    try:
        ufm.endpoint(source)
        user, password = ufm.login(given["secret"] if given["secretExists"] and source.secret_name else None)
    except ValueError as error:
        return same(str(error).partition(":")[0], output["error"])
    ports = [_port(member["selector"]["exactMatch"]["name"], f"leaf{n}") for n, member in _leaf_members(output)]

    async def answer(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization", "").startswith("Basic ") and request.path == ufm.PATH
        return web.json_response(ports, status=given["httpStatus"] if known else 401)

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    source.config["endpoint"] = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        made = ufm.discover(await ufm.fetch(source, user, password))
    except ufm.UfmError:
        made = []
    finally:
        await runner.cleanup()
    return same(output["error"], None) or same(_plain(made), _plain(output["hyperNodes"]))


RUNNERS: dict[str, Callable[[Data], str]] = {
    "hypernode": hypernode,
    "hypernode_config": hypernode_config,
    "hypernode_discovery_label": hypernode_discovery_label,
    "hypernode_discovery_ufm": hypernode_discovery_ufm,
}
