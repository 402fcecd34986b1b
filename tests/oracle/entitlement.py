"""What a queue deserves, which pending gangs it is entitled to, and which evictions serve them: by definition, and by
trying all sets of units. A unit is a whole job, or one pod above a job's minimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tests.oracle.arrangements import missing, starts_with
from tests.oracle.description import Amounts, Cluster, Gang, Pod, Queue, added, take

Share = dict[str, Fraction]
ROOT = "root"


@dataclass(frozen=True)
class Plan:
    """Pods whose eviction makes a gang fit, and what it costs: how much less than deserved lenders then hold (summed
    as parts of the cluster), and the number of pods."""

    pods: tuple[str, ...]
    below: Fraction

    @property
    def cost(self) -> tuple[Fraction, int]:
        return self.below, len(self.pods)


class Shares:
    """The queues of a cluster as a tree below root, with what each of them holds and deserves."""

    def __init__(self, cluster: Cluster, deserved: dict[str, Share] | None = None) -> None:
        self.cluster = cluster
        self.total = cluster.total()
        self.parent = {q.name: (q.parent or ROOT) if cluster.tree else ROOT for q in cluster.queues if q.name != ROOT}
        self.held: dict[str, Amounts] = {name: self._subtree(name) for name in self.parent}
        if deserved is None:
            of_specs = {name: self._deserved(name) for name in self.parent}
            deserved = _by_weight(cluster) if cluster.proportional else of_specs
        self.deserved = deserved

    def children(self, name: str) -> list[str]:
        return [child for child, parent in self.parent.items() if parent == name]

    def path(self, name: str) -> list[str]:
        """The queue and its ancestors, without root."""
        found = [name]
        while self.parent[found[-1]] != ROOT:
            found.append(self.parent[found[-1]])
        return found

    def leaves(self, name: str) -> list[str]:
        below = self.children(name)
        return [name] if not below else [leaf for child in below for leaf in self.leaves(child)]

    def _subtree(self, name: str) -> Amounts:
        return added([self.cluster.held(leaf) for leaf in self.leaves(name)])

    def _deserved(self, name: str) -> Share:
        queue = self.cluster.queue(name)
        found: Share = {r: Fraction(a) for r, a in queue.deserved.items()}
        if not queue.deserved:
            for child in self.children(name):
                for r, a in self._deserved(child).items():
                    found[r] = found.get(r, Fraction(0)) + a
        for r, a in queue.guarantee.items():
            found[r] = max(found.get(r, Fraction(0)), Fraction(a))
        return found

    def common(self, left: str, right: str) -> tuple[str, str]:
        """The ancestors of two queues below their last common one."""
        a, b = self.path(left)[::-1], self.path(right)[::-1]
        while len(a) > 1 and len(b) > 1 and a[0] == b[0]:
            a, b = a[1:], b[1:]
        return a[0], b[0]

    def named(self, name: str) -> set[str]:
        """The resources of which a queue of the same level deserves some."""
        siblings = self.children(self.parent[name])
        return {r for s in siblings for r, a in self.deserved[s].items() if a > 0}


def _by_weight(cluster: Cluster) -> dict[str, Share]:
    """For each resource: divided by weight, up to what each queue requests and its capability."""
    active = [q for q in cluster.queues if q.name != ROOT and any(g.queue == q.name and g.pods for g in cluster.gangs)]
    total, found = cluster.total(), {q.name: {} for q in cluster.queues if q.name != ROOT}  # type: ignore[var-annotated]
    for r, amount in total.items():
        most: dict[str, Fraction] = {}
        for q in active:
            requested = sum(p.request.get(r, 0) for g in cluster.gangs if g.queue == q.name for p in g.pods)
            most[q.name] = Fraction(min(requested, q.capability.get(r, requested)))
        left, open_ = Fraction(amount), {q.name: q.weight for q in active}
        given = {name: Fraction(0) for name in open_}
        while open_ and left > 0:
            weights = sum(open_.values())
            full = [n for n, w in open_.items() if most[n] <= given[n] + left * w / weights]
            if not full:
                for n, w in open_.items():
                    given[n] += left * w / weights
                break
            for n in full:
                left -= most[n] - given[n]
                given[n] = most[n]
                del open_[n]
        for n, value in given.items():
            found[n][r] = value
    return found


def within_capability(cluster: Cluster, shares: Shares, gang: Gang, amount: Amounts) -> bool:
    for name in shares.path(gang.queue):
        queue: Queue = cluster.queue(name)
        for r, most in queue.capability.items():
            if amount.get(r, 0) and shares.held[name].get(r, 0) + amount[r] > most:
                return False
    # What other queues are guaranteed stays free for them.
    others = added(q.guarantee for q in cluster.queues if q.name not in shares.path(gang.queue))
    held = shares.held[shares.path(gang.queue)[-1]]
    return all(a == 0 or held.get(r, 0) + a <= shares.total[r] - others.get(r, 0) for r, a in amount.items())


def is_entitled(shares: Shares, gang: Gang, amount: Amounts, lender: str, taken: Amounts) -> bool:
    """Whether the queue of a gang, compared with a lender, stays within what it deserves. `taken`: from the lender."""
    mine, other = shares.common(gang.queue, lender)
    if is_within(shares, mine, amount):
        return True
    if not shares.cluster.proportional:
        return False
    held, deserved = shares.held[mine], shares.deserved[mine]
    after = dict(shares.held[other])
    take(after, taken)
    return share(added([held, amount]), deserved) <= share(after, shares.deserved[other])


def is_within(shares: Shares, queue: str, amount: Amounts) -> bool:
    """Whether a queue with an amount holds no more than it deserves, where its level deserves anything."""
    named, held, deserved = shares.named(queue), shares.held[queue], shares.deserved[queue]
    return all(held.get(r, 0) + a <= deserved.get(r, 0) for r, a in amount.items() if a and r in named)


def share(held: Amounts, deserved: Share) -> Fraction:
    """The largest part that a queue holds of any resource that it deserves."""
    return max((Fraction(held.get(r, 0)) / d for r, d in deserved.items() if d > 0), default=Fraction(0))


def serve(cluster: Cluster, gang: Gang) -> Plan | None:
    """The cheapest evictions that make an entitled gang fit; None: it is not entitled, or nothing makes it fit. A plan
    without pods: it fits already."""
    plans = [plan for chosen in missing(gang) for plan in _plans(cluster, gang, chosen)]
    return min(plans, key=lambda p: p.cost, default=None)


def _plans(cluster: Cluster, gang: Gang, chosen: list[Pod]) -> Iterator[Plan]:
    amount = added(p.request for p in chosen)
    shares = Shares(cluster)
    free = cluster.free()
    if starts_with(cluster, gang, chosen, free):
        if not within_capability(cluster, shares, gang, amount):
            return
        if not cluster.proportional or is_within(shares, gang.queue, amount):
            yield Plan((), Fraction(0))
        return
    requested = {r for r, a in amount.items() if a}
    short = {r for r in requested if not starts_with(cluster, gang, chosen, free, r)} or requested
    known: dict[frozenset[str], Fraction] = {}
    stack: list[tuple[frozenset[str], Fraction]] = [(frozenset(), Fraction(0))]
    while stack:
        gone, below = stack.pop()
        rest = without(cluster, gone)
        held = Shares(rest, shares.deserved)
        for lender, pods in units(rest, gang.queue):
            if not _lends(held, gang, amount, lender, pods, short):
                continue
            names = gone | {p.name for p in pods}
            cost = below + _below(held, gang, lender, pods)
            if names in known and known[names] <= cost:
                continue
            known[names] = cost
            after = without(cluster, names)
            limits = within_capability(after, Shares(after, shares.deserved), gang, amount)
            if limits and starts_with(cluster, gang, chosen, after.free()):
                yield Plan(tuple(sorted(names)), cost)
            else:
                stack.append((names, cost))


def without(cluster: Cluster, names: frozenset[str]) -> Cluster:
    """The cluster after the eviction of pods, which are pending then."""
    gangs = [replace(g, pods=[replace(p, node="") if p.name in names else p for p in g.pods]) for g in cluster.gangs]
    return replace(cluster, gangs=gangs)


def units(cluster: Cluster, but_queue: str) -> Iterator[tuple[Gang, list[Pod]]]:
    """What can be evicted at once from other queues: all of a job, or one pod above its minimum."""
    for gang in cluster.gangs:
        running = gang.running()
        if gang.queue == but_queue or not running or not cluster.queue(gang.queue).reclaimable:
            continue
        if all(p.preemptable for p in running):
            yield gang, running
        for pod in running:
            if len(running) > 1 and pod.preemptable and gang.holds_minimum([p for p in running if p is not pod]):
                yield gang, [pod]


def _lends(shares: Shares, gang: Gang, amount: Amounts, lender: Gang, pods: list[Pod], short: set[str]) -> bool:
    """Whether a unit may be evicted for a gang that asks for `amount` and lacks the `short` resources."""
    lost = added(p.request for p in pods)
    _, other = shares.common(gang.queue, lender.queue)
    if not is_entitled(shares, gang, amount, lender.queue, lost):
        return False
    # A resource of which no queue deserves any belongs to no queue: two queues would take it from each other in turn.
    short = short & shares.named(other)
    if not any(lost.get(r, 0) and _is_above(shares, other, {r}) for r in short):
        return False
    path = shares.path(lender.queue)
    for name in path[: path.index(other) + 1]:
        for r, least in shares.cluster.queue(name).guarantee.items():
            if lost.get(r, 0) and shares.held[name].get(r, 0) - lost[r] < least:
                return False
    # within the subtree of the lender: queues above their own share first
    for name in path[: path.index(other)]:
        if _is_above(shares, name, short):
            continue
        if any(_is_above(shares, sibling, short) for sibling in shares.children(shares.parent[name])):
            return False
    return True


def _is_above(shares: Shares, name: str, short: set[str]) -> bool:
    return any(shares.held[name].get(r, 0) > shares.deserved[name].get(r, 0) for r in short)


def _below(shares: Shares, gang: Gang, lender: Gang, pods: list[Pod]) -> Fraction:
    """How much further below what it deserves the loss of a unit brings the lender, as parts of the cluster."""
    _, other = shares.common(gang.queue, lender.queue)
    lost, total = added(p.request for p in pods), Fraction(0)
    for r, a in lost.items():
        deserved, held = shares.deserved[other].get(r, Fraction(0)), shares.held[other].get(r, 0)
        before, after = max(deserved - held, Fraction(0)), max(deserved - held + a, Fraction(0))
        total += (after - before) / shares.total[r]
    return total


def price(cluster: Cluster, gang: Gang, names: set[str]) -> tuple[Fraction, int]:
    """What the eviction of pods costs, in any order of their units."""
    shares, total = Shares(cluster), Fraction(0)
    lost: dict[str, Amounts] = {}
    for lender in cluster.gangs:
        gone = added(p.request for p in lender.running() if p.name in names)
        if gone:
            _, other = shares.common(gang.queue, lender.queue)
            lost[other] = added([lost.get(other, {}), gone])
    for name, amount in lost.items():
        for r, a in amount.items():
            deserved, held = shares.deserved[name].get(r, Fraction(0)), shares.held[name].get(r, 0)
            total += (max(deserved - held + a, Fraction(0)) - max(deserved - held, Fraction(0))) / shares.total[r]
    return total, len(names)
