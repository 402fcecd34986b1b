"""numa-aware: the CPUs of a node satisfy the NUMA policies of the pod and the node."""

from __future__ import annotations

from math import ceil
from typing import Any

from tests.reference.conf import get_int
from tests.reference.cpus import Cpus, Place, Topology, best_hint, parse_cpus
from tests.reference.node import Node
from tests.reference.resource import parse
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError
from volcano_py.api.quantity import milli_value, value

POLICY = "volcano.sh/numa-topology-policy"
NONE = ("", "none")


class Numa:
    """A node's Numatopology, and its available CPUs in this session."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        spec = manifest["spec"]
        policies = spec.get("policies") or {}
        self.is_static = policies.get("CPUManagerPolicy") == "static"
        self.policy: str = policies.get("TopologyManagerPolicy", "")
        details = (spec.get("cpuDetail") or {}).items()
        self.topology = Topology({int(c): Place(d["numa"], d["socket"], d["core"]) for c, d in details})
        self.available = parse_cpus(spec["numares"]["cpu"]["allocatable"])
        count = ceil(parse(spec.get("resReserved")).cpu / 1000)
        self.reserved = self.topology.take(self.topology.cpus, count) or frozenset()
        pods = spec.get("podAllocations") or []
        self.reported = {p["uid"] for p in pods} | {f"{p['namespace']}/{p['name']}" for p in pods}


def numa_aware(session: Session, arguments: dict[str, Any]) -> None:
    weight = get_int(arguments, "weight", 1)
    nodes = {m["metadata"]["name"]: Numa(m) for m in session.cluster.of("Numatopology")}
    unreported: dict[str, dict[str, tuple[str, Cpus]]] = session.memory.setdefault("numa", {})
    """By node and uid: pods that got CPUs in earlier sessions, with their key. Volcano: UnassignedNumaPods."""
    for name, pods in unreported.items():
        if name in nodes:
            if all(uid in nodes[name].reported or key in nodes[name].reported for uid, (key, _) in pods.items()):
                pods.clear()
            for _, cpus in pods.values():
                nodes[name].available -= cpus
    assigned: dict[str, dict[str, Cpus]] = {}
    """By uid and node: the CPUs when the node was last tried for the task."""
    placed: dict[str, Task] = {}

    def is_skipped(task: Task, numa: Numa | None) -> bool:
        policy = policy_of(task)
        if policy in NONE:
            return numa is None or not numa.is_static or numa.policy in NONE
        if numa is None:
            raise PredicateError("numa info is empty", unresolvable=True)
        if not numa.is_static:
            raise PredicateError("cpu manager policy isn't static", unresolvable=True)
        if policy != numa.policy:  # Volcano's text contains both
            raise PredicateError("task topology policy is different with node", unresolvable=True)
        if not numa.available:
            raise PredicateError("cpu allocatable map is empty", unresolvable=True)
        return False

    def cpus_of(task: Task, node: Node) -> Cpus | None:
        """The CPUs that the task would get on the node; None if it needs none. Raises PredicateError."""
        numa = nodes.get(node.name)
        if not is_guaranteed(task.pod) or is_skipped(task, numa) or numa is None:
            return None
        topology = numa.topology
        available = numa.available - numa.reserved
        total: Cpus = frozenset()
        for container in task.pod["spec"]["containers"]:
            count = whole_cpus(container)
            hints = topology.hints(available, count) if count else None
            hint, admitted = best_hint(numa.policy, topology.nodes, hints)
            if not admitted:  # Volcano's text contains the name of the container
                raise PredicateError("a container cannot be assigned by numa", unresolvable=True)
            cpus = topology.assign(available, count, hint)
            available -= cpus
            total |= cpus
        if topology.uncertain:
            session.rarities.add("numa-order")
        return total

    def predicate(task: Task, node: Node) -> None:
        cpus = cpus_of(task, node)
        if cpus is not None:
            assigned.setdefault(task.uid, {})[node.name] = cpus

    def batch_node_order(task: Task, candidates: list[Node]) -> list[float]:
        if policy_of(task) in NONE or task.uid not in assigned:
            return [0.0] * len(candidates)
        counts = []
        for node in candidates:
            cpus = assigned[task.uid].get(node.name, frozenset())
            counts.append(len({nodes[node.name].topology.places[c].numa for c in cpus}))
        most = max(counts)
        return [float(100 - (100 * n // most if most else 0)) * weight for n in counts]

    def allocate(task: Task) -> None:
        if session.simulating:
            return
        record_outdated(task)
        if task.node in assigned.get(task.uid, {}):
            nodes[task.node].available -= assigned[task.uid][task.node]
            placed[task.uid] = task

    def record_outdated(task: Task) -> None:
        """Record that the CPUs are not those that the task would get now: another plugin rejected the node before this
        one was called, or CPUs were taken since then."""
        if task.status not in ("Allocated", "Pipelined"):
            return
        try:
            now = cpus_of(task, session.nodes[task.node])
        except PredicateError:
            now = None
        if assigned.get(task.uid, {}).get(task.node, frozenset()) != (now or frozenset()):
            session.rarities.add("numa-outdated")

    def deallocate(task: Task) -> None:
        if not session.simulating and task.node in assigned.get(task.uid, {}):
            nodes[task.node].available |= assigned[task.uid][task.node]
            placed.pop(task.uid, None)

    def close() -> None:
        for uid, task in placed.items():
            unreported.setdefault(task.node, {})[uid] = (task.key, assigned[uid][task.node])

    session.votes.register("Predicate", "numa-aware", predicate)
    session.votes.register("BatchNodeOrder", "numa-aware", batch_node_order)
    session.handlers.append(Handler(allocate, deallocate))
    session.closers.append(close)


def policy_of(task: Task) -> str:
    return str((task.pod["metadata"].get("annotations") or {}).get(POLICY, ""))


def whole_cpus(container: dict[str, Any]) -> int:
    """0 without a request, and for a request of a fraction."""
    requests = (container.get("resources") or {}).get("requests") or {}
    milli = milli_value(requests.get("cpu", 0))
    return milli // 1000 if milli % 1000 == 0 else 0


def is_guaranteed(pod: dict[str, Any]) -> bool:
    """Kubernetes' QoS class Guaranteed: cpu and memory of every container have limits, and equal requests."""
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, read in (("cpu", milli_value), ("memory", value)):
            if read(limits.get(name, 0)) <= 0 or read(requests.get(name, 0)) != read(limits[name]):
                return False
    return bool(spec.get("containers"))
