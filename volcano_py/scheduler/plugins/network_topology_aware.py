"""network-topology-aware: keep the pods of a job within one domain of the network. Volcano: plugin
network-topology-aware.

The plugin selects the HyperNodes to try for a job (gradients), scores HyperNodes for a sub-job (the fullest is best),
and scores nodes for a pod (the nearest to the pods placed before; for pods without a topology, those in the fullest
HyperNodes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.scheduler.framework.arguments import get_int, not_negative
from volcano_py.scheduler.framework.extension_points.hyper_nodes import EVICT
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob, TierConstraint
from volcano_py.scheduler.framework.network.topology import HyperNodeTree
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import ZERO, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_PREFIX = "hypernode.binpack.resources."


class NetworkTopologyAware(Plugin):
    """See `Arguments`."""

    name = "network-topology-aware"
    prefixes = (_PREFIX,)

    class Arguments(PluginArguments):
        weight: int = 1
        """The weight of all scores of this plugin."""
        cpu: int = field(default=1, name="hypernode.binpack.cpu")
        memory: int = field(default=1, name="hypernode.binpack.memory")
        resources: str = field(default="", name="hypernode.binpack.resources")
        """Further resources that count, separated by commas; `hypernode.binpack.resources.<name>` sets the weight of
        each."""
        normal_pods: bool = field(default=True, name="hypernode.binpack.normal-pod.enable")
        """Place pods without a topology in the fullest HyperNodes."""
        fading: float = field(default=0.8, name="hypernode.binpack.normal-pod.fading")
        """The factor by which each higher tier counts less for pods without a topology."""
        most_evicted: int = field(default=8, name="hypernode.gradient.evict.max-hypernodes")
        """The largest number of HyperNodes that gang evictions try."""
        extra: dict[str, Any] = field(default_factory=dict)

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.weight = not_negative(read.weight, 1)
        self.weights: dict[str, int] = {}
        for name in (part.strip() for part in read.resources.split(",")):
            if name:
                weight = get_int(read.extra.get(_PREFIX + name, 1))
                self.weights[name] = 1 if weight is None else not_negative(weight, 1)
        self.weights |= {CPU: not_negative(read.cpu, 1), MEMORY: not_negative(read.memory, 1)}
        self.normal_pods = read.normal_pods
        self.fading = not_negative(read.fading, 0.8)
        self.most_evicted = read.most_evicted if read.most_evicted > 0 else 8

    def on_session_open(self, session: Session) -> None:
        domains = HyperNodeAmounts(session, self.weights)
        narrow_first = session.deviations.narrow_domains_first
        gradients = Gradients(session.topology, domains, self.most_evicted, narrow_first)

        def job_gradient(job: SessionJob, hyper_node: str, purpose: str) -> list[list[str]]:
            return gradients.of(
                job.constraint, job.allocated_hyper_node, lambda: job.min_resources or Resource(), hyper_node, purpose
            )

        def sub_job_gradient(_: SessionJob, sub: SubJob, hyper_node: str, purpose: str) -> list[list[str]]:
            request = lambda: sub.pending_request(session.statuses)  # noqa: E731
            return gradients.of(sub.constraint, sub.allocated_hyper_node, request, hyper_node, purpose)

        def rate(sub: SubJob, hyper_nodes: list[str]) -> dict[str, float]:
            rates = domains.fullness(domains.request_of(sub))
            found = {name: float(rates[domains.index[name]]) for name in hyper_nodes}
            _favour(found, lambda name: domains.share(sub, name))
            return {name: value * (100 * self.weight) for name, value in found.items()}

        session.add_job_gradient(job_gradient)
        session.add_sub_job_gradient(sub_job_gradient)
        session.add_hyper_node_order(rate)
        session.add_scores(_Nearness(session, domains, self.weight, self.normal_pods, self.fading))
        session.add_event_handler(domains.allocated, domains.deallocated)


def _favour(rates: dict[str, float], share: Callable[[str], float]) -> None:
    """Of the HyperNodes with the highest score, prefer the one that already has more of the tasks."""
    best = max(rates.values(), default=0.0)
    first = [name for name, value in rates.items() if value == best]
    if len(first) > 1:
        for name in first:
            rates[name] += share(name)


class HyperNodeAmounts:
    """The capacity and the used amounts of HyperNodes, as columns [resources x HyperNodes]; only `used` changes."""

    def __init__(self, session: Session, weights: Mapping[str, int]) -> None:
        self._session = session
        self._topology = topology = session.topology
        self._memberships: dict[int, NDArray[np.intp]] = {}
        self._table = session.table
        self.index = {name: i for i, name in enumerate(topology.infos)}
        self.weights = dict(weights)
        n, count = session.numbers, len(topology.infos)
        rows = len(session.table.rows)
        self.allocatable, self.used = np.zeros((rows, count)), np.zeros((rows, count))
        self.idle, self.future = np.zeros((rows, count)), np.zeros((rows, count))
        member = np.zeros((count, len(session.table.names)))
        for name, i in self.index.items():
            member[i, topology.columns(name)] = 1.0
        self._member = member.astype(bool)
        for target, of in (
            (self.allocatable, n.allocatable),
            (self.used, n.used),
            (self.idle, n.idle),
            (self.future, n.idle + n.releasing - n.pipelined),
        ):
            target[:] = of[:rows] @ member.T
        self.by_tier = {tier: self._at(tier) for tier in topology.tiers}
        """For each tier the HyperNode of every node; −1 for a node in none."""

        self._requests: dict[str, Resource] = {}
        self._located: dict[str, NDArray[np.intp]] = {}
        """How many tasks of a sub-job each HyperNode has; computed at first use, then kept."""

    def _at(self, tier: int) -> NDArray[np.intp]:
        at = np.full(len(self._table.names), -1, dtype=np.intp)
        for name in reversed(self._topology.of_tier(tier)):
            at[self._topology.columns(name)] = self.index[name]
        return at

    def allocated(self, task: Task, node: int) -> None:
        self._moved(task, node, 1)

    def deallocated(self, task: Task, node: int) -> None:
        self._moved(task, node, -1)

    def _moved(self, task: Task, node: int, sign: int) -> None:
        around = self._around(node)
        self.used[:, around] += sign * task.spec_class.vector(self._table)[:, None]
        job = self._session.jobs.get(task.job) if self._located else None
        sub = job.sub_job_of(task) if job is not None else None
        if sub is not None and sub.uid in self._located:
            self._located[sub.uid][around] += sign

    def _around(self, node: int) -> NDArray[np.intp]:
        """The HyperNodes that contain a node."""
        found = self._memberships.get(node)
        if found is None:
            found = self._memberships[node] = np.flatnonzero(self._member[:, node])
        return found

    def request_of(self, sub: SubJob) -> Resource:
        """The sum of the requests of all tasks of a sub-job, placed or not."""
        found = self._requests.get(sub.uid)
        if found is None:
            found = self._requests[sub.uid] = Resource()
            for task in sub.tasks.values():
                found.add(task.request)
        return found

    def located(self, sub: SubJob) -> NDArray[np.intp]:
        """How many tasks of a sub-job are in each HyperNode."""
        found = self._located.get(sub.uid)
        if found is None:
            found = self._located[sub.uid] = np.zeros(len(self.index), dtype=np.intp)
            for task in sub.tasks.values():
                node = self._session.node_of(task)
                if node is not None:
                    found[self._around(node)] += 1
        return found

    def share(self, sub: SubJob, hyper_node: str) -> float:
        """The part of a sub-job's tasks that is in a HyperNode."""
        return float(self.located(sub)[self.index[hyper_node]]) / len(sub.tasks) if sub.tasks else 0.0

    def fullness(self, request: Resource) -> Floats:
        """The used part of each HyperNode with the request, weighted over the resources, 0 to 1; 0 where it does not
        fit."""
        rates = np.zeros(len(self.index))
        over = np.zeros(len(self.index), dtype=bool)
        weights = 0
        for name in request.names():
            weight = self.weights.get(name)
            if weight is None:
                continue
            row = self._table.rows[name]
            have, full = self.allocatable[row], self.used[row] + request[name]
            over |= full > have
            rates += weight * np.divide(full, have, out=np.zeros_like(full), where=have > 0)
            weights += weight
        if not weights:
            return np.zeros(len(self.index))
        rates /= weights
        rates[over] = 0.0
        return rates

    def fits(self, request: Resource, columns: NDArray[np.float64], hyper_node: str) -> bool:
        free = Resource(scalars={})
        column = columns[:, self.index[hyper_node]]
        for name, row in self._table.rows.items():
            free[name] = column.item(row)
        return request.less_equal(free, ZERO)


class Gradients:
    """The HyperNodes to try: those that are allowed and large enough, the lowest tier first.

    An eviction tries at most `most_evicted` HyperNodes, those of the highest tiers. Volcano tries the highest first.
    """

    def __init__(
        self, topology: HyperNodeTree, domains: HyperNodeAmounts, most_evicted: int, narrow_first: bool
    ) -> None:
        self._topology = topology
        self._domains = domains
        self._most_evicted = most_evicted
        self._narrow_first = narrow_first

    def of(
        self,
        constraint: TierConstraint | None,
        allocated: str,
        request: Callable[[], Resource],
        hyper_node: str,
        purpose: str,
    ) -> list[list[str]]:
        """The HyperNodes below a HyperNode, in groups by tier; empty if the placed tasks rule all of them out."""
        if constraint is None or constraint.tier is None:
            return [[hyper_node]]
        topology, domains = self._topology, self._domains
        start = hyper_node if not allocated else self._start(hyper_node, allocated, constraint.tier)
        requested = request()
        groups: dict[int, list[str]] = {}
        for name in topology.below(start) if start else ():
            tier = topology.tier(name)
            if tier > constraint.tier:
                continue
            if allocated:
                good = True
            elif purpose == EVICT:
                good = domains.fits(requested, domains.allocatable, name)
            else:
                good = domains.fits(requested, domains.idle, name) or domains.fits(requested, domains.future, name)
            if good:
                groups.setdefault(tier, []).append(name)
        ordered = [sorted(groups[tier]) for tier in sorted(groups)]
        if purpose != EVICT:
            return ordered
        kept = reversed_and_capped(ordered, self._most_evicted)
        return sorted(kept, key=lambda group: topology.tier(group[0])) if self._narrow_first else kept

    def _start(self, hyper_node: str, allocated: str, highest: int) -> str:
        """The smaller of two HyperNodes: the given one, and the largest one that contains the placed tasks; "" if
        neither contains the other."""
        topology = self._topology
        top = ""
        for name in topology.ancestors(allocated):
            if topology.tier(name) > highest:
                break
            top = name
        if not top:
            return ""
        common = topology.lowest_common(hyper_node, top)
        if common == top:
            return hyper_node
        return top if common == hyper_node else ""


def reversed_and_capped(groups: list[list[str]], most: int) -> list[list[str]]:
    """The last `most` members, from the last group to the first; with `most` of 0 or less all of them."""
    if most <= 0:
        return groups
    kept: list[list[str]] = []
    for group in reversed(groups):
        if most <= 0:
            break
        kept.append(group[-most:])
        most -= len(group)
    return kept


def power(base: float, exponent: int) -> float:
    """The power by repeated multiplication, as in Go; C's `pow` may differ in the last bit."""
    result, square, left = 1.0, base, abs(exponent)
    while left:
        if left & 1:
            result *= square
        square *= square
        left >>= 1
    if exponent >= 0:
        return result
    return 1.0 / result if result else math.inf


_MOST_TIERS = 1000
"""The largest range of tiers that is expanded; in a larger range only the tiers that exist count."""


class _Nearness:
    """A node's score for a pod: near the rest of its sub-job, or in full HyperNodes for pods without a topology."""

    name = "network-topology-aware"
    prefixes = (_PREFIX,)
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(
        self, session: Session, domains: HyperNodeAmounts, weight: int, normal_pods: bool, fading: float
    ) -> None:
        self._session = session
        self._domains = domains
        self._weight = weight
        self._normal_pods = normal_pods
        self._fading = fading
        tiers = session.topology.tiers
        self._leaves = domains.by_tier[tiers[0]]
        self._tiers = range(tiers[0], tiers[-1] + 1) if tiers[-1] - tiers[0] <= _MOST_TIERS else tiers
        """All tiers from the lowest to the highest: Volcano also counts tiers without a HyperNode."""
        self._known: dict[str, Floats] = {}

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        """The score of all nodes if there are no HyperNodes."""
        return 0.0 if self._session.topology.flat else None

    def score(self, task: Task, candidates: Indices) -> Floats:
        job = self._session.jobs.get(task.job)
        if job is None:
            return self._fullness(task, candidates)
        sub = job.sub_job_of(task)
        if sub is not None and sub.constraint is not None:
            rates = self._near(sub, candidates)
        else:
            rates = self._fullness(task, candidates)
        return rates * (100 * self._weight)

    def _near(self, sub: SubJob, candidates: Indices) -> Floats:
        """1 in the HyperNode of the tasks placed before, less with each tier upwards to a common HyperNode; 0 if no
        task is placed."""
        if not sub.current_hyper_node:
            return np.zeros(len(candidates))
        leaves = self._leaves[candidates]
        rates = self._by_leaf(sub.current_hyper_node)[leaves]
        best = rates == rates.max(initial=0.0)
        if best.sum() > 1 and sub.tasks:
            counts = np.append(self._domains.located(sub), 0)  # −1 is the node in no HyperNode
            rates[best] += counts[leaves[best]] / len(sub.tasks)
        return rates

    def _by_leaf(self, here: str) -> Floats:
        """The score of every HyperNode of the lowest tier, by index; the last one is the score of nodes in none."""
        found = self._known.get(here)
        if found is None:
            topology, index = self._session.topology, self._domains.index
            low, high = topology.tiers[0], topology.tiers[-1]
            found = self._known[here] = np.zeros(len(index) + 1)
            for leaf in topology.of_tier(low):
                if leaf == here or low == high:
                    found[index[leaf]] = 1.0
                else:
                    common = topology.lowest_common(leaf, here)
                    found[index[leaf]] = (high - topology.tier(common)) / (high - low) if common else 0.0
        return found

    def _fullness(self, task: Task, candidates: Indices) -> Floats:
        if not self._normal_pods:
            return np.zeros(len(candidates))
        full = self._domains.fullness(task.request)
        rates = np.zeros(len(candidates))
        total = 0.0
        for tier in self._tiers:
            weight = power(self._fading, tier - 1)
            total += weight
            if tier in self._domains.by_tier:
                there = self._domains.by_tier[tier][candidates]
                rates += weight * np.where(there < 0, 1.0, full[there])
            else:
                rates += weight
        return rates / total if total else rates
