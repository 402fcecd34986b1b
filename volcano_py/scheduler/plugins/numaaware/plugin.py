"""numa-aware: nodes whose CPUs satisfy a pod's NUMA policy. Volcano: plugin numa-aware."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from volcano_py.api import names, quantity
from volcano_py.api.core import Pod
from volcano_py.api.nodeinfo import Numatopology
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, Codes, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.pod_qos import GUARANTEED, qos_of
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes
from volcano_py.scheduler.plugins.numaaware.cpu_topology import Cpus, NumaNode, parse_cpus, read_numa
from volcano_py.scheduler.plugins.numaaware.hints import NONE, Hint, choose, cpu_hints, nodes_in
from volcano_py.scheduler.rules.normalizing import share_of_highest

_STATIC = "static"
_EMPTY: Cpus = frozenset()


class NumaDemand(NamedTuple):
    """The requests of a guaranteed pod. `policy`: in its annotation; `cpus`: of each container, None for a container
    without a cpu request, 0 for one that is no whole number."""

    policy: str
    cpus: tuple[int | None, ...]

    @property
    def has_policy(self) -> bool:
        return self.policy not in ("", NONE)


@dataclass
class HandedOut:
    """CPUs that were assigned to pods and that the Numatopology does not contain yet, kept between sessions: by node,
    then by the pod's key and UID."""

    on: dict[str, dict[tuple[str, str], Cpus]] = field(default_factory=dict)


@dataclass
class Topologies:
    """The Numatopologies as last read, kept between sessions."""

    exact: bool = True
    read: dict[str, tuple[Numatopology, NumaNode]] = field(default_factory=dict)


class NumaAware(Plugin):
    """See `Arguments`."""

    name = "numa-aware"

    class Arguments(PluginArguments):
        weight: int = 1
        """The weight of the score: fewer NUMA nodes score higher."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        self._session = session
        self._nodes = _numa_nodes(session)
        self._available = _available(session, self._nodes)
        self._demands: dict[int, NumaDemand | None] = {}
        self._answers: dict[tuple[object, ...], tuple[int, Cpus]] = {}
        self._given: dict[int, tuple[Task, int, Cpus]] = {}
        """The assignments of this session: (task, node, CPUs), by slot."""
        self._reports: dict[str, dict[str, Cpus]] = {}
        session.add_filters(_NumaFilter(self, session))
        session.add_scores(_NumaScore(self, session))
        concerns = lambda task: self.demand(task) is not None  # noqa: E731
        session.add_event_handler(self._allocate, self._deallocate, concerns=concerns)

    def on_session_close(self, session: Session) -> None:
        """Keep the CPUs of placed pods assigned until the Numatopology contains them."""
        handed_out = session.cluster.keep(HandedOut).on
        for task, node, cpus in self._given.values():
            # Volcano also keeps the CPUs of pods that are only pipelined.
            if session.status(task) == st.BINDING or not session.deviations.exact_cpus:
                handed_out.setdefault(session.table.names[node], {})[task.key, task.uid] = cpus

    def demand(self, task: Task) -> NumaDemand | None:
        """The demand of a class of pods; None: the pods are not guaranteed."""
        key = task.spec_class.id
        if key not in self._demands:
            self._demands[key] = _demand(task.pod) if qos_of(task.pod) == GUARANTEED else None
        return self._demands[key]

    def answer(self, demand: NumaDemand, node: int) -> tuple[int, Cpus]:
        """(0 or the number of a reason, the CPUs that the pod would get)."""
        numa = self._nodes.get(node)
        code = _rejected(demand, numa, self._available.get(node))
        if code is not None or numa is None:
            return code or 0, _EMPTY
        available = self._available[node]
        key = (demand.cpus, numa.topology_policy, numa.topology.key, available)
        if key not in self._answers:
            self._answers[key] = _assign(demand, numa, available)
        return self._answers[key]

    def spans(self, demand: NumaDemand, node: int) -> int:
        """The number of NUMA nodes that the pod's CPUs would be on."""
        numa = self._nodes.get(node)
        return 0 if numa is None else len({numa.topology.places[c].numa for c in self.answer(demand, node)[1]})

    def _allocate(self, task: Task, node: int) -> None:
        demand = self.demand(task)
        if demand is None:
            return
        if task.takes_capacity:
            if self._session.deviations.exact_cpus and node in self._available:
                self._available[node] = self._available[node] - self._held(task, node)
            return
        cpus = self.answer(demand, node)[1]
        if cpus:
            self._available[node] = self._available[node] - cpus
        self._given[task.slot] = (task, node, cpus)

    def _deallocate(self, task: Task, node: int) -> None:
        given = self._given.pop(task.slot, None)
        if given is not None:
            if given[2]:
                self._available[node] = self._available[node] | given[2]
        elif self._session.deviations.exact_cpus and node in self._available and self.demand(task) is not None:
            # Volcano does not free the CPUs of a pod that is evicted.
            self._available[node] = self._available[node] | self._held(task, node)

    def _held(self, task: Task, node: int) -> Cpus:
        """The CPUs of a pod on a node: in the Numatopology, or as they were assigned."""
        name = self._session.table.names[node]
        if name not in self._reports:
            obj = self._session.cluster.others.get("Numatopology", {}).get(name)
            self._reports[name] = {} if obj is None else _allocations(obj)
        handed_out = self._session.cluster.keep(HandedOut).on.get(name, {})
        reported = self._reports[name]
        return reported.get(task.uid) or reported.get(task.key) or handed_out.get((task.key, task.uid), _EMPTY)


def _allocations(obj: Numatopology) -> dict[str, Cpus]:
    """The CPUs of each pod, by the pod's UID or, if the report has none, by its key. Volcano's exporter reads the state
    of the kubelet's CPU manager, which has only UIDs."""
    found: dict[str, Cpus] = {}
    for pod in obj.spec.pod_allocations or ():
        key = pod.uid or f"{pod.namespace}/{pod.name}"
        for container in pod.container_allocations or ():
            cpus = parse_cpus((container.allocations or {}).get("cpu", "")) or _EMPTY
            found[key] = found.get(key, _EMPTY) | cpus
    return found


def _numa_nodes(session: Session) -> dict[int, NumaNode]:
    """The nodes that have a Numatopology, by column; each Numatopology is read once."""
    exact = session.deviations.exact_cpus
    known = session.cluster.keep(Topologies)
    if known.exact != exact:
        known.exact, known.read = exact, {}
    objects: dict[str, Numatopology] = session.cluster.others.get("Numatopology", {})
    found = {}
    for name in [name for name in known.read if name not in objects]:
        del known.read[name]
    for name, obj in objects.items():
        node = session.table.index.get(name)
        if node is None:
            continue
        if name not in known.read or known.read[name][0] is not obj:
            known.read[name] = (obj, read_numa(obj, exact))
        found[node] = known.read[name][1]
    return found


def _available(session: Session, nodes: dict[int, NumaNode]) -> dict[int, Cpus]:
    """The CPUs that are available on each node, without those that were assigned and are not reported yet."""
    available = {node: numa.available for node, numa in nodes.items() if numa.available is not None}
    handed_out = session.cluster.keep(HandedOut).on
    for name in [*handed_out]:
        node = session.table.index.get(name)
        obj = session.cluster.others.get("Numatopology", {}).get(name)
        if node is None or obj is None:
            if session.deviations.exact_cpus:
                del handed_out[name]
            continue
        reported = reported_pods(obj)
        for (key, uid), cpus in [*handed_out[name].items()]:
            if key in reported or uid in reported or not _is_there(session, key, uid, name):
                del handed_out[name][key, uid]
            elif node in available:
                available[node] = available[node] - cpus
    return available


def reported_pods(obj: Numatopology) -> set[str]:
    """The keys and UIDs of the pods whose CPUs a Numatopology contains."""
    pods = obj.spec.pod_allocations or ()
    return {f"{p.namespace}/{p.name}" for p in pods} | {p.uid for p in pods if p.uid}


def _is_there(session: Session, key: str, uid: str, node: str) -> bool:
    """Whether a pod still holds the CPUs that it was assigned on a node."""
    if not session.deviations.exact_cpus:
        return True
    task = session.cluster.tasks.get(key)
    return task is not None and task.uid == uid and task.node == node and task.takes_capacity


def _demand(pod: Pod) -> NumaDemand:
    cpus: list[int | None] = []
    for c in pod.spec.containers or ():
        requests = c.resources.requests or {}
        milli = quantity.milli_value(requests["cpu"]) if "cpu" in requests else None
        cpus.append(None if milli is None else milli // 1000 if milli % 1000 == 0 else 0)
    return NumaDemand((pod.metadata.annotations or {}).get(names.NUMA_TOPOLOGY_POLICY, ""), tuple(cpus))


REASONS = [
    Reason("numa info is empty", FitCode.ERROR),
    Reason("cpu manager policy isn't static", FitCode.ERROR),
    Reason("task topology policy is different with node", FitCode.ERROR),
    Reason("no topo information", FitCode.ERROR),
    Reason("cpu allocatable map is empty", FitCode.ERROR),
    Reason("a container cannot be assigned by numa", FitCode.UNRESOLVABLE),
]


def _rejected(demand: NumaDemand, numa: NumaNode | None, available: Cpus | None) -> int | None:
    """The check before the hints: the number of a reason, 0 if the node accepts the pod whatever its CPUs, None if the
    CPUs decide."""
    if not demand.has_policy:
        if numa is None or numa.cpu_policy != _STATIC or numa.topology_policy in ("", NONE) or available is None:
            return 0
        return None
    if numa is None:
        return 1
    if numa.cpu_policy != _STATIC:
        return 2
    if numa.topology_policy != demand.policy:
        return 3
    if available is None:
        return 4
    return None if available else 5


def _assign(demand: NumaDemand, numa: NumaNode, available: Cpus) -> tuple[int, Cpus]:
    """The CPUs of all containers; reason 6 if the policy rejects one of the containers."""
    topology, given = numa.topology, _EMPTY
    for request in demand.cpus:
        hints: dict[str, list[Hint] | None] = {}
        if request:
            hints = {"cpu": cpu_hints(topology, available - given, request)}
        choice = choose(numa.topology_policy, topology.numa_nodes, [hints])
        if not choice.admitted:
            return 6, _EMPTY
        given |= cpus_of(numa, available - given, request or 0, choice.hint)
    return 0, given


def cpus_of(numa: NumaNode, available: Cpus, request: int, hint: Hint) -> Cpus:
    """The CPUs of one container: first those on the hint's NUMA nodes; empty if there are too few."""
    topology = numa.topology
    usable = available - topology.reserved
    taken = _EMPTY
    if hint.mask is not None:
        near = topology.on(nodes_in(hint.mask, topology.numa_nodes), usable)
        taken = topology.take(near, min(len(near), request)) or _EMPTY
    rest = topology.take(usable - taken, request - len(taken))
    return _EMPTY if rest is None else taken | rest


class _NumaFilter:
    """Reject nodes whose CPUs do not satisfy the policies of pod and node."""

    name = "numa-aware"
    scope: Literal[Scope.LOCAL] = LOCAL
    limits_pods = True

    def __init__(self, plugin: NumaAware, session: Session) -> None:
        # Evictions free CPUs; Volcano does not count these.
        helps = session.deviations.exact_cpus
        last = [Reason(r.text, FitCode.UNSCHEDULABLE if helps else r.code) for r in REASONS[-2:]]
        self.reasons = [*REASONS[:-2], *last]
        self._plugin = plugin
        self._count = len(session.table)

    def applies(self, task: Task) -> bool:
        return self._plugin.demand(task) is not None

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        nodes = numbers.nodes.tolist() if isinstance(numbers, SomeNodes) else range(self._count)
        return np.array([self.filter_node(task, node) for node in nodes], dtype=np.int8)

    def filter_node(self, task: Task, node: int) -> int:
        demand = self._plugin.demand(task)
        return 0 if demand is None else self._plugin.answer(demand, node)[0]


class _NumaScore:
    """Prefer nodes on which a pod's CPUs are on few NUMA nodes."""

    name = "numa-aware"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, plugin: NumaAware, session: Session) -> None:
        self._plugin = plugin

    def applies(self, task: Task) -> bool:
        demand = self._plugin.demand(task)
        return demand is not None and demand.has_policy

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        demand = self._plugin.demand(task)
        assert demand is not None, "applies has seen it"
        spans = np.array([self._plugin.spans(demand, node) for node in candidates.tolist()], dtype=np.float64)
        return share_of_highest(spans, reverse=True) * float(self._plugin.arguments.weight)
