"""How many members of a group fit at the same time at most: the count that GangPermit makes before members wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from volcano_py.scheduler.model.resource_names import CPU
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

Accepts = Callable[[PodInfo, NodeInfo], bool]
_encoder = msgspec.msgpack.Encoder()


def most_that_fit(members: Sequence[PodInfo], nodes: Iterable[NodeInfo], accepts: Accepts) -> int:
    """An upper limit, exact for equal members without rules between pods: for each node, as many of its smallest
    members as it has capacity for, resource by resource. Pods that the members may preempt count as free.

    `accepts`: whether the rules that depend on the Node object alone accept a member.
    """
    kinds: dict[bytes, list[PodInfo]] = {}
    for member in members:
        spec = member.pod.spec
        key = (spec.node_selector, bytes(spec.affinity), spec.tolerations)
        kinds.setdefault(_encoder.encode(key), []).append(member)
    total = 0
    for node in nodes:
        here = [m for alike in kinds.values() if accepts(alike[0], node) for m in alike]
        if here:
            total += _fit_on(node, here)
            if total >= len(members):
                return len(members)
    return total


def missing_resource(members: Sequence[PodInfo], nodes: Sequence[NodeInfo]) -> str:
    """What the members lack: the resource of which one of them requests more than any node has free, else the one of
    which the smallest part of their requests is free."""
    names = dict.fromkeys(name for m in members for name in m.requests)
    free = {name: [node.allocatable.get(name, 0) - node.requested.get(name, 0) for node in nodes] for name in names}
    for name in names:
        largest, most = max(members, key=lambda m: m.requests.get(name, 0)), max(free[name], default=0)
        if largest.requests.get(name, 0) > most:
            amounts = _amount(name, largest.requests[name]), _amount(name, max(most, 0))
            return f"{largest.name} requests {amounts[0]} {name}, the node with the most has {amounts[1]} free"
    found, least = "", 1.0
    for name in names:
        wanted, have = sum(m.requests.get(name, 0) for m in members), sum(max(f, 0) for f in free[name])
        if wanted and have / wanted < least:
            found, least = f"they request {_amount(name, wanted)} {name}, {_amount(name, have)} is free", have / wanted
    return found or "the free capacity is spread over too many nodes"


def _amount(name: str, amount: int) -> str:
    return f"{amount / 1000 if name == CPU else amount:g}"


def _fit_on(node: NodeInfo, members: Sequence[PodInfo]) -> int:
    lowest = min(m.priority for m in members)
    kept = [p for p in node.pods.values() if p.priority >= lowest]
    count = max(node.allocatable.get("pods", 0) - len(kept), 0)
    for name in dict.fromkeys(name for m in members for name in m.requests):
        free = node.allocatable.get(name, 0) - sum(p.requests.get(name, 0) for p in kept)
        fits = 0
        for request in sorted(m.requests.get(name, 0) for m in members):
            free -= request
            if free < 0:
                break
            fits += 1
        count = min(count, fits)
    return min(count, len(members))
