"""NUMA nodes without hardware: the CPUs of a node, and which pods they are assigned to. Kubernetes: the kubelet's CPU
manager with the policy static, and its topology manager.

`numa=2:8:single-numa-node` in a shape is a node with two NUMA nodes of 8 CPUs and this topology policy (best-effort by
default). Guaranteed pods get whole CPUs; the kubelet keeps them in an annotation of the node, and
`controllers.resource.numa_exporter` publishes them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from volcano_py.sandbox.apiserver.apimachinery import quantity

Object = dict[str, Any]
Cpus = frozenset[int]

LAYOUT, STATE = "sandbox/numa", "sandbox/assigned-cpus"
"""Annotations of a node: its NUMA nodes, and the CPUs of its pods."""
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_MOST, _MOST_NODES = 1024, 8
"""The largest numbers of CPUs and of NUMA nodes of a node."""
REJECTED = "TopologyAffinityError"
"""The reason of a pod whose CPUs the policy does not allow."""


class Layout(NamedTuple):
    """NUMA nodes, the CPUs of each, and the policy of the topology manager."""

    nodes: int
    cpus: int
    policy: str

    def on(self, node: int) -> Cpus:
        """The CPUs of a NUMA node."""
        return frozenset(range(node * self.cpus, (node + 1) * self.cpus))


def parse(text: str) -> Layout:
    """`nodes:cpus` or `nodes:cpus:policy`. Raises ValueError."""
    parts = text.split(":")
    policy = parts[2] if len(parts) == 3 else "best-effort"
    if not 2 <= len(parts) <= 3 or policy not in POLICIES or not all(p.isdecimal() for p in parts[:2]):
        raise ValueError(f"write numa=<NUMA nodes>:<CPUs of each>[:{'|'.join(POLICIES)}], e.g. numa=2:8")
    layout = Layout(int(parts[0]), int(parts[1]), policy)
    if not 0 < layout.nodes * layout.cpus <= _MOST or layout.nodes > _MOST_NODES:
        raise ValueError(f"a node has from 1 to {_MOST} CPUs, and at most {_MOST_NODES} NUMA nodes")
    return layout


def layout_of(node: Object) -> Layout | None:
    """The layout of a node; None: it announces none, or an invalid one."""
    try:
        return parse((node["metadata"].get("annotations") or {}).get(LAYOUT) or "")
    except ValueError:
        return None


def whole_cpus(pod: Object) -> dict[str, int]:
    """The whole CPUs that each container of a guaranteed pod requests; empty for other pods."""
    if (pod.get("status") or {}).get("qosClass") != "Guaranteed":
        return {}
    found = {}
    for container in pod["spec"].get("containers") or ():
        amount = quantity.parse(((container.get("resources") or {}).get("limits") or {}).get("cpu", "0"))
        if amount == int(amount) and amount > 0:
            found[container["name"]] = int(amount)
    return found


def assigned(node: Object) -> dict[str, dict[str, str]]:
    """By pod UID and container, the CPUs that the kubelet has assigned; empty if the annotation is invalid."""
    text = (node["metadata"].get("annotations") or {}).get(STATE)
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, dict[str, str]])
    except (msgspec.DecodeError, RecursionError):
        return {}


def assign(pod: Object, node: Object, others: Iterable[Object]) -> str:
    """Assign a pod its CPUs in the node's annotation. Returns why the policy rejects it; "": it has them."""
    layout, wanted = layout_of(node), whole_cpus(pod)
    if layout is None or not wanted:
        return ""
    alive = {other["metadata"]["uid"] for other in others}
    held = {uid: cpus for uid, cpus in assigned(node).items() if uid in alive}
    free = all_cpus(layout) - used(held)
    mine: dict[str, str] = {}
    for container, number in wanted.items():
        cpus = _choose(layout, free, number)
        if cpus is None:
            return f"Resources cannot be allocated with Topology locality: container {container}, {number} CPUs"
        free -= cpus
        mine[container] = cpuset(cpus)
    held[pod["metadata"]["uid"]] = mine
    node["metadata"]["annotations"][STATE] = json.dumps(held)
    return ""


def _choose(layout: Layout, free: Cpus, number: int) -> Cpus | None:
    """CPUs of the fewest NUMA nodes that have enough, the first of these; None: the policy rejects them. The kubelet
    chooses like this, and so does the scheduler's plugin numa-aware."""
    most = 1 if layout.policy == "single-numa-node" else layout.nodes
    if layout.policy == "restricted":
        most = math.ceil(number / layout.cpus)
    for count in range(1, most + 1):
        for nodes in combinations(range(layout.nodes), count):
            near = [free & layout.on(n) for n in nodes]
            if sum(map(len, near)) >= number:
                whole_first = sorted(near, key=lambda cpus: len(cpus) < layout.cpus)
                return frozenset([cpu for cpus in whole_first for cpu in sorted(cpus)][:number])
    return None


def all_cpus(layout: Layout) -> Cpus:
    """The CPUs of a node."""
    return frozenset(range(layout.nodes * layout.cpus))


def used(held: dict[str, dict[str, str]]) -> Cpus:
    """The CPUs of all pods."""
    return frozenset(cpu for of_pod in held.values() for text in of_pod.values() for cpu in members(text))


def cpuset(cpus: Iterable[int]) -> str:
    """The text of a set of CPUs, such as `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def members(text: str) -> Iterable[int]:
    """The CPUs in such a text; parts that are none are left out."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal() and int(last or first) < _MOST:
            yield from range(int(first), int(last or first) + 1)
