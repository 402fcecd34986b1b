"""HyperNodes, sub-jobs, the plugin network-topology-aware, and bundles of victims.

Volcano's state changes update by update; here it is built again from all objects. So the result of an update is
compared with that of all objects after it: tiers, links, nodes, and whether there was an error. Placeholders for
HyperNodes that do not exist, and the partial effects of a failed update, have no counterpart.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.jobs import session_job, written_task
from tests.conformance.functions.values import resource, resource_out
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.api.scheduling import NetworkTopology, PodGroup, SubGroupPolicy
from volcano_py.api.topology import HyperNode
from volcano_py.scheduler.actions.eviction.gangs import domains
from volcano_py.scheduler.actions.eviction.victims import bundles
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob, constraint, match_index, match_values, sub_job_uid
from volcano_py.scheduler.framework.network.topology import ROOT, HyperNodeTree
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.nodes.hyper_nodes import HyperNodeInfo, HyperNodes, build
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins.network_topology_aware import NetworkTopologyAware, reversed_and_capped

_ROOT_TIER = 4

# ---- HyperNodes -----------------------------------------------------------------------------------------------


def _objects(infos: Data) -> dict[str, HyperNode]:
    """The HyperNode objects of a recorded state; placeholders have no spec."""
    manifests = {name: info.get("hypernode") or {} for name, info in infos.items()}
    return {name: from_manifest(HyperNode, m) for name, m in manifests.items() if m.get("spec")}


def _nodes(names: Any) -> dict[str, dict[str, str]]:
    """Nodes with their labels: names, or maps with a name and labels."""
    found = [n if isinstance(n, dict) else {"name": n} for n in names or ()]
    return {n["name"]: n.get("labels") or {} for n in found}


def _update(receiver: Data, a: list[Any]) -> list[Any]:
    objects = _objects(receiver["hypernodes"])
    objects[a[0]["metadata"]["name"]] = from_manifest(HyperNode, a[0])
    made = build(objects.values(), _nodes(receiver.get("nodes")))
    if made.problems:
        return [False]
    return [True, _problems(made.infos.values())]


def _problems(infos: Any) -> Data:
    return {i.name: [i.tier, i.parent, sorted(i.children), sorted(i.nodes)] for i in infos}


class _NotRecorded:
    """A state that is missing in the data, because the update did not change it."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _state(expected: Data) -> list[Any]:
    """The result of a recorded update, without placeholders."""
    if expected["result"][0] is not None:
        return [False]
    after = expected.get("receiver_after")
    if after is None:
        return [True, _NotRecorded()]
    real = {n for n, i in after["hypernodes"].items() if (i.get("hypernode") or {}).get("spec")}
    infos = [
        HyperNodeInfo(
            name,
            after["hypernodes"][name].get("tier", 0),
            after["hypernodes"][name].get("parent", ""),
            tuple(c for c in after["hypernodes"][name].get("children") or () if c in real),
            frozenset(after["real_nodes"].get(name) or ()),
        )
        for name in real
    ]
    return [True, _problems(infos)]


def _topology(infos: Data) -> HyperNodeTree:
    made = {
        name: HyperNodeInfo(
            name, i.get("tier", 0), i.get("parent", ""), tuple(i.get("children") or _members(i)), frozenset()
        )
        for name, i in infos.items()
    }
    return HyperNodeTree(HyperNodes(made, {}, {}), NodeTable())


def _members(info: Data) -> list[str]:
    members = ((info.get("hypernode") or {}).get("spec") or {}).get("members") or ()
    return [m["selector"]["exactMatch"]["name"] for m in members if m["type"] == "HyperNode"]


def _ancestors(receiver: Data, a: list[Any]) -> list[Any]:
    return [[name for name in _topology(receiver).ancestors(a[0]) if name != ROOT]]


def _lowest_common(receiver: Data, a: list[Any]) -> list[Any]:
    """The root is above all HyperNodes here; Volcano has none."""
    found = _topology(receiver).lowest_common(a[0], a[1])
    return ["" if found == ROOT else found]


def _info(_: Any, a: list[Any]) -> list[Any]:
    info = build([from_manifest(HyperNode, a[0])], {}).infos[a[0]["metadata"]["name"]]
    return [{"hypernode": a[0], "name": info.name, "tier": info.tier}]


def _members_of(_: Any, a: list[Any]) -> list[Any]:
    manifest = {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [{"type": "Node", "selector": a[0]}]}}
    nodes = {m["metadata"]["name"]: m["metadata"].get("labels") or {} for m in a[1] or ()}
    return [sorted(build([from_manifest(HyperNode, manifest)], nodes).infos["h"].nodes)]


def _chosen(receiver: Data, a: list[Any]) -> list[Any]:
    """Whether a leaf has a node by pattern or label; exact names and HyperNodes that are not leaves do not count."""
    node, name = a
    manifest = receiver["hypernodes"][name]["hypernode"]
    members = [m for m in manifest["spec"]["members"] if "exactMatch" not in m["selector"]]
    leaf = all(m["type"] == "Node" for m in members)
    h = from_manifest(HyperNode, {**manifest, "spec": {**manifest["spec"], "members": members}})
    nodes = _nodes(receiver.get("nodes")) | ({} if node in _nodes(receiver.get("nodes")) else {node: {}})
    return [leaf and node in build([h], nodes).infos[name].nodes, None]


def _texts(receiver: Data, _: list[Any]) -> list[Any]:
    made = build(_objects(receiver["hypernodes"]).values(), {})
    return [{n: f"Name: {n}, Tier: {i.tier}, TierName: , Parent: {i.parent}" for n, i in made.infos.items()}]


# ---- in a session ---------------------------------------------------------------------------------------------


def _table(names: Any) -> NodeTable:
    table = NodeTable()
    for name in names:
        table.put(from_manifest(Node, {"metadata": {"name": name}}), Resource())
    return table


def _session_topology(real: Data, tiers: dict[str, int]) -> HyperNodeTree:
    names = {n if isinstance(n, str) else n["name"] for of in real.values() for n in of}
    infos = {
        h: HyperNodeInfo(h, tiers.get(h, 1), "", (), frozenset(n if isinstance(n, str) else n["name"] for n in of))
        for h, of in real.items()
    }
    return HyperNodeTree(HyperNodes(infos, {}, {}), _table(sorted(names)))


def _leaf(_: Any, a: list[Any]) -> list[Any]:
    """HyperNodes of the recorded set of the lowest tier; without tiers there are none."""
    node, real, tiers, by_tier = a
    lowest = set(by_tier.get(str(min(tiers)), ())) if tiers else set()
    known = {h: of for h, of in (real or {}).items() if h in lowest}
    topology = _session_topology(known, {})
    index = topology._table.index
    return [topology.leaf(index[node]) if node in index and known else ""]


def _real_nodes(_: Any, a: list[Any]) -> list[Any]:
    there = _table(sorted(a[1]))
    infos = {h: HyperNodeInfo(h, 1, "", (), frozenset(of)) for h, of in a[0].items()}
    topology = HyperNodeTree(HyperNodes(infos, {}, {}), there)
    names = {h: [there.names[i] for i in topology.columns(h).tolist()] for h in a[0]}
    return [{h: [{"name": n, "ready": False} for n in of] for h, of in names.items()}]


def _soft_to_hard(_: Any, a: list[Any]) -> list[Any]:
    job, root_tier = a
    spec = (job.get("pod_group") or {}).get("spec") or {}
    topology = job.get("network_topology") or spec.get("networkTopology")
    own = constraint(_network(topology), {}, root_tier)
    soft = own.tier if own is not None and own.tier is not None else root_tier
    subs = {uid: constraint(_network(s.get("network_topology")), {}, soft) for uid, s in job["sub_jobs"].items()}
    return [[own and own.tier, {uid: c and c.tier for uid, c in subs.items()}]]


def _hardened(expected: Data) -> list[Any]:
    job = expected["args_after"][0] if "args_after" in expected else None
    if job is None:
        return [None]
    tier = lambda t: t and t.get("highestTierAllowed")  # noqa: E731
    return [
        [tier(job.get("network_topology")), {u: tier(s.get("network_topology")) for u, s in job["sub_jobs"].items()}]
    ]


def _network(data: Data | None) -> NetworkTopology | None:
    return None if data is None else from_manifest(NetworkTopology, data)


# ---- sub-jobs -------------------------------------------------------------------------------------------------


def _hard(topology: Data | None) -> list[Any]:
    """Whether a topology is hard, and its tier; a soft one has no tier before a session makes it hard."""
    found = _network(topology)
    made = constraint(found, {}, _ROOT_TIER) if found is not None and found.mode != "soft" else None
    return [True, made.tier] if made is not None and made.hard else [False]


def _whether(expected: Data) -> list[Any]:
    hard, tier = expected["result"]
    return [True, tier] if hard else [False]


def _job_topology(receiver: Data) -> Data | None:
    return ((receiver.get("pod_group") or {}).get("spec") or {}).get("networkTopology")


def _new_sub_job(_: Any, a: list[Any]) -> list[Any]:
    gid, uid, _job, policy, values = a
    read = from_manifest(SubGroupPolicy, policy or {})
    size = 1 if policy is None or policy.get("subGroupSize") is None else read.sub_group_size
    made = SubJob(uid, gid, size or 0, None, match_index(values) if values else 0)
    facts = {"gid": made.gid, "uid": made.uid, "min_available": made.min_available, "match_index": made.match_index}
    topology = (policy or {}).get("networkTopology")
    return [{**facts, "priority": made.priority, "tasks": list(made.tasks), "network_topology": topology}]


def _values(_: Any, a: list[Any]) -> list[Any]:
    labels = (a[1].get("metadata") or {}).get("labels") or {}
    return [match_values(from_manifest(SubGroupPolicy, a[0]), labels)]


# ---- network-topology-aware -----------------------------------------------------------------------------------


def _weights(arguments: Data | None) -> Data:
    p = NetworkTopologyAware(arguments or {})
    return {
        "GlobalWeight": p.weight,
        "HyperNodeBinPackingCPU": p.weights["cpu"],
        "HyperNodeBinPackingMemory": p.weights["memory"],
        "HyperNodeBinPackingResources": {k: v for k, v in p.weights.items() if k not in ("cpu", "memory")},
    }


def _normal(arguments: Data | None) -> Data:
    p = NetworkTopologyAware(arguments or {})
    told = {"hyperNodeBinPackingEnable": p.normal_pods, "hyperNodeBinPackingFading": p.fading}
    return {key: value for key, value in told.items() if value}


def _new_plugin(_: Any, a: list[Any]) -> list[Any]:
    most = NetworkTopologyAware(a[0] or {}).most_evicted
    return [{"weight": _weights(a[0]), "normalPodConfig": _normal(a[0]), "maxHyperNodesForEviction": most}]


def _plugin_facts(expected: Data) -> list[Any]:
    kept = ("weight", "normalPodConfig", "maxHyperNodesForEviction")
    return [{key: expected["result"][0][key] for key in kept}]


def _reversed_and_capped(receiver: Data, a: list[Any]) -> list[Any]:
    groups = [[h["name"] for h in group] for group in a[0] or ()]
    return [reversed_and_capped(groups, receiver.get("maxHyperNodesForEviction", 0))]


def _names(expected: Data) -> list[Any]:
    return [[[h["name"] for h in group] for group in expected["result"][0] or ()]]


# ---- bundles --------------------------------------------------------------------------------------------------


def _bundle(data: Data) -> bundles.Bundle:
    tasks = [written_task(t["uid"], t) for t in data["Tasks"]]
    job = SessionJob(Job(data["Job"].get("uid") or "ns/job"), PodGroup(), 0)
    whole = data.get("Type", 0) == 1
    return bundles.Bundle(job, tasks, whole, resource(data.get("LocalRes")), resource(data.get("GlobalRes")))


def _bundle_out(b: bundles.Bundle) -> list[Any]:
    return [b.whole, [t.uid for t in b.tasks], resource_out(b.local), resource_out(b.lost)]


def _recorded_bundles(expected: Data) -> list[Any]:
    return [[_bundle_out(_bundle(b)) for b in expected["result"][0] or ()]]


def _create(_: Any, a: list[Any]) -> list[Any]:
    """The recorded fixture counts all of the job's tasks as running, which its summary does not contain."""
    data = {**a[0], "tasks": {uid: {**t, "status": "Running"} for uid, t in a[0]["tasks"].items()}}
    job, session = session_job(data)
    job.min_sub_jobs = dict(data.get("min_sub_jobs") or {})
    subs: dict[str, SubJob] = {}
    sub_of: dict[str, SubJob] = {}
    job.sub_jobs, job._sub_job_of = subs, sub_of
    for uid, sub in (data.get("sub_jobs") or {}).items():
        made = subs[uid] = SubJob(uid, sub["gid"], sub["min_available"], None)
        for task in job.tasks.values():
            if task.uid in sub["tasks"]:
                made.add(task, st.RUNNING)
                sub_of[task.key] = made
    by_uid = {t.uid: t for t in job.tasks.values()}
    found = bundles.bundles_of(job, [by_uid[t["uid"]] for t in a[1]], session.statuses)
    return [[_bundle_out(b) for b in found]]


def _sum(key: str) -> Any:
    return lambda _, a: [bundles.requests([written_task(t["uid"], {**t, "resreq": t[key]}) for t in a[0] or ()])]


ADAPTERS: Adapters = {
    "api.HyperNodesInfo.UpdateHyperNode": Adapter(_update, _state),
    "api.HyperNodesInfo.NodeRegexOrLabelMatchLeafHyperNode": _chosen,
    "api.HyperNodesInfo.HyperNodesInfo": _texts,
    "api.HyperNodeInfoMap.GetAncestors": _ancestors,
    "api.HyperNodeInfoMap.GetLCAHyperNode": _lowest_common,
    "api.NewHyperNodeInfo": _info,
    "api.GetMembers": Adapter(_members_of, lambda expected: [expected["result"][0] or []]),
    "api.JobInfo.IsHardTopologyMode": Adapter(lambda r, a: _hard(_job_topology(r)), _whether),
    "api.SubJobInfo.IsHardTopologyMode": Adapter(lambda r, a: _hard(r.get("network_topology")), _whether),
    "api.SubJobInfo.IsSoftTopologyMode": lambda r, a: [_soft(r.get("network_topology"))],
    "api.SubJobInfo.WithNetworkTopology": lambda r, a: [
        constraint(_network(r.get("network_topology")), {}, 1) is not None
    ],
    "api.NewSubJobInfo": _new_sub_job,
    "api.getSubJobID": lambda r, a: [sub_job_uid(*a)],
    "api.getSubJobMatchValues": _values,
    "framework.convertSoftToHardTopology": Adapter(_soft_to_hard, _hardened),
    "util.FindHyperNodeForNode": _leaf,
    "util.GetRealNodesByHyperNode": Adapter(_real_nodes, lambda expected: expected["result"][:1]),
    "networktopologyaware.New": Adapter(_new_plugin, _plugin_facts),
    "networktopologyaware.getPriorityWeight": lambda r, a: [_weights(a[0])],
    "networktopologyaware.getNormalPodConfig": lambda r, a: [_normal(a[0])],
    "networktopologyaware.networkTopologyAwarePlugin.reverseAndCapEvictionGradients": Adapter(
        _reversed_and_capped, _names
    ),
    "utils.PickDomainsFromGradients": lambda r, a: [domains([[h["name"] for h in g] for g in a[0] or ()], a[1], a[2])],
    "utils.FlattenBundles": Adapter(
        lambda r, a: [[t.uid for t in bundles.flattened([_bundle(b) for b in a[0] or ()])]],
        lambda expected: [[t["uid"] for t in expected["result"][0] or ()]],
    ),
    "utils.SelectBundles": Adapter(
        lambda r, a: [[_bundle_out(b) for b in bundles.enough([_bundle(b) for b in a[0] or ()], resource(a[1]), a[2])]],
        _recorded_bundles,
    ),
    "utils.ApplyAllowedTasks": Adapter(
        lambda r, a: [[_bundle_out(b) for b in bundles.only_allowed([_bundle(b) for b in a[0] or ()], a[1])]],
        _recorded_bundles,
    ),
    "utils.CreateJobBundles": Adapter(_create, _recorded_bundles),
    "utils.SumInitResreq": _sum("init_resreq"),
    "utils.sumTasks": _sum("resreq"),
}


def _soft(data: Data | None) -> bool:
    found = _network(data)
    return found is not None and found.mode == "soft"
