"""hypothesis strategies: clusters with a network topology, and jobs and sub-jobs with topology constraints.

With the themes gangpreempt and gangreclaim the clusters are full.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as s

from tests.reference import full_clusters
from tests.reference.full_clusters import (
    GROUP,
    budget,
    full_cluster_queues,
    milli,
    plain_node,
    quota,
    running_job,
    sides,
)
from tests.strategies import Manifest, one_in

NETWORK_THEMES = ("topology", "gangpreempt", "gangreclaim")
RANK = "rank"
"""The label that distinguishes sub-groups."""


@s.composite
def network_clusters(draw: s.DrawFn, theme: str) -> list[Manifest]:
    names = [f"n{i}" for i in range(draw(s.integers(2, 6 if theme == "topology" else 4)))]
    nodes = [draw(plain_node(n)) for n in names]
    in_tree = theme == "gangreclaim" and one_in(draw, 3)
    queues = draw(full_clusters.tree() if in_tree else full_cluster_queues("preempt" if theme == "topology" else theme))
    found = [*nodes, *draw(tree(nodes)), *queues, draw(quota()), draw(budget("b0"))]
    for name, value in (("high", 100), ("low", -5), ("higher", 1000)):
        found.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    parents = {q["spec"].get("parent", "") for q in queues}
    queue_names = [n for q in queues if (n := q["metadata"]["name"]) not in parents and n != "root"]
    room = {n["metadata"]["name"]: milli(n["status"]["allocatable"]["cpu"]) for n in nodes}
    holders, seekers = draw(sides(queue_names)) if theme == "gangreclaim" else (queue_names, queue_names)
    for j in range(draw(s.integers(0, 1) if theme == "topology" else s.integers(3, 5))):
        found += draw(running_job(f"h{j}", j, holders, room))
    for j in range(draw(s.integers(1, 3))):
        found += draw(network_job(f"t{j}", j + 10, seekers, names, room))
    return found


@s.composite
def tree(draw: s.DrawFn, nodes: list[Manifest]) -> list[Manifest]:
    """Up to three tiers; some nodes may be in no HyperNode, some HyperNode without a parent, some link invalid. No node
    is in two HyperNodes of a tier, because its place would then be undefined."""
    found: list[Manifest] = []
    leaves = [f"s{i}" for i in range(draw(s.integers(1, 3)))]
    members: dict[str, list[str]] = {name: [] for name in leaves}
    for node in nodes:
        if not one_in(draw, 12):
            leaf = draw(s.sampled_from(leaves))
            node["metadata"]["labels"]["rack"] = leaf
            members[leaf].append(node["metadata"]["name"])
    for name in leaves:
        if members[name] and one_in(draw, 8):
            pattern = "|".join(f"^{n}$" for n in members[name])
            selectors: list[Manifest] = [{"regexMatch": {"pattern": pattern}}]
        elif one_in(draw, 12):
            selectors = [{"labelMatch": {"matchLabels": {"rack": name}}}]
        else:
            selectors = [{"exactMatch": {"name": n}} for n in members[name]]
        found.append(hyper_node(name, 1, [{"type": "Node", "selector": sel} for sel in selectors]))
    below = leaves
    for tier in draw(s.sampled_from(((), (2,), (2,), (2, 3), (2, 3), (3,)))):
        above = [f"s{tier}{i}" for i in range(draw(s.integers(1, 2)))]
        children: dict[str, list[str]] = {name: [] for name in above}
        for name in below:
            if not one_in(draw, 12):
                children[draw(s.sampled_from(above))].append(name)
        if one_in(draw, 40):
            children[above[-1]].append(below[0])
        for name in above:
            links = [{"type": "HyperNode", "selector": {"exactMatch": {"name": c}}} for c in children[name]]
            found.append(hyper_node(name, tier, links))
        below = above
    return found


def hyper_node(name: str, tier: int, members: list[Manifest]) -> Manifest:
    spec = {"tier": tier, "tierName": f"tier-{tier}", "members": members}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "uid": name},
        "spec": spec,
    }


@s.composite
def topology(draw: s.DrawFn) -> Manifest:
    if one_in(draw, 5):
        return {"mode": "soft", **({"highestTierAllowed": 1} if one_in(draw, 3) else {})}
    if one_in(draw, 8):
        return {"mode": "hard", "highestTierName": draw(s.sampled_from(("tier-1", "tier-2", "tier-9")))}
    return {"mode": "hard", "highestTierAllowed": draw(s.sampled_from((1, 1, 2, 2, 3)))}


@s.composite
def network_job(
    draw: s.DrawFn, name: str, age: int, queues: list[str], nodes: list[str], room: dict[str, int]
) -> list[Manifest]:
    """A job with topology constraints; part of it may run."""
    count = draw(s.integers(1, 6))
    spec: Manifest = {"queue": draw(s.sampled_from(queues)), "minMember": draw(s.integers(1, count))}
    if not one_in(draw, 3):
        spec["minMember"] = count
    if not one_in(draw, 4):
        spec["networkTopology"] = draw(topology())
    if one_in(draw, 3):
        spec["minResources"] = {"cpu": str(draw(s.integers(1, 3)))}
    if not one_in(draw, 4):
        spec["priorityClassName"] = draw(s.sampled_from(("high", "high", "higher", "low")))
    grouped = draw(s.booleans())
    if grouped:
        spec["subGroupPolicy"] = [draw(policy("r"))]
        if one_in(draw, 6):
            spec["subGroupPolicy"].insert(0, {**draw(policy("chief")), "labelSelector": {"matchLabels": {"app": "db"}}})
    roles = draw(s.sampled_from(((), (), ("ps", "worker"))))
    if roles and one_in(draw, 3):
        spec["minTaskMember"] = draw(s.sampled_from(({"ps": 1}, {"worker": 1}, {"ps": 1, "worker": 1})))
    created = f"2026-01-01T00:00:{draw(s.sampled_from((age, age, 10))):02d}Z"
    meta: Manifest = {"name": name, "namespace": "default", "uid": f"pg-{name}", "creationTimestamp": created}
    if one_in(draw, 10):
        meta["annotations"] = {"volcano.sh/preemptable": draw(s.sampled_from(("true", "false")))}
    runs = one_in(draw, 4)
    status = {"phase": "Running" if runs else draw(s.sampled_from(("Inqueue", "Inqueue", "Pending")))}
    found: list[Manifest] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": meta,
            "spec": spec,
            "status": status,
        }
    ]
    each = draw(s.sampled_from((500, 500, 1000, 1000, 1500)))
    for i in range(count):
        role = draw(s.sampled_from(roles)) if roles else ""
        found.append(draw(pod(name, i, created, 0 if one_in(draw, 15) else each, role, grouped)))
        free = [n for n, left in room.items() if left >= each]
        if runs and free and not one_in(draw, 3):
            on = draw(s.sampled_from(free))
            room[on] -= each
            found[-1]["spec"]["nodeName"] = on
            found[-1]["status"]["phase"] = draw(s.sampled_from(("Running", "Running", "Running", "Pending")))
        elif one_in(draw, 15):
            found[-1]["status"]["nominatedNodeName"] = draw(s.sampled_from((*nodes, "gone")))
    return found


@s.composite
def policy(draw: s.DrawFn, name: str) -> Manifest:
    found: Manifest = {"name": name, "matchLabelKeys": [RANK]}
    if not one_in(draw, 4):
        found["subGroupSize"] = draw(s.integers(1, 3))
    if one_in(draw, 2):
        found["minSubGroups"] = draw(s.integers(1, 2))
    if not one_in(draw, 3):
        found["networkTopology"] = draw(topology())
    return found


@s.composite
def pod(draw: s.DrawFn, job: str, i: int, created: str, each: int, role: str, grouped: bool) -> Manifest:
    meta: Manifest = {
        "name": f"{job}-task-{i}",
        "namespace": "default",
        "uid": f"{job}-{i}",
        "creationTimestamp": created,
        "labels": {"app": draw(s.sampled_from(("web", "web", "db")))},
        "annotations": {GROUP: job},
    }
    if grouped and not one_in(draw, 10):
        meta["labels"][RANK] = draw(s.sampled_from(("0", "1", "1", "x")))
    if role:
        meta["annotations"]["volcano.sh/task-spec"] = role
    requests: dict[str, Any] = {"cpu": f"{each}m"} if each else {}
    spec: Manifest = {
        "schedulerName": "volcano",
        "containers": [{"name": "main", "image": "busybox", "resources": {"requests": requests}}],
    }
    if one_in(draw, 8):
        spec["priority"] = draw(s.integers(-2, 3))
    if one_in(draw, 10):
        spec["nodeSelector"] = {"zone": draw(s.sampled_from("ab"))}
    if one_in(draw, 30):
        spec["schedulingGates"] = [{"name": "mine"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
