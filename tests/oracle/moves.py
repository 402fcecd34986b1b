"""What consolidation may and could do on a small cluster, by exhaustive search. It reads no product code.

A cluster has nodes, running pods, of which some are movable, and gangs that wait. `wrong` judges what happened in a
run; `possible` tries all sets of movable pods and all arrangements.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

Amounts = dict[str, int]


@dataclass
class RunningPod:
    name: str
    node: str
    request: Amounts
    movable: bool


@dataclass
class WaitingGang:
    name: str
    request: Amounts
    count: int
    one_rack: bool = False
    """Whether its pods must be in one rack."""


@dataclass
class Setting:
    nodes: dict[str, Amounts]
    pods: list[RunningPod]
    gangs: list[WaitingGang]
    budget: int | None = None
    """How many movable pods a disruption budget permits to be evicted at once; None: there is none."""
    racks: dict[str, list[str]] = field(default_factory=dict)

    def barred(self, gang: WaitingGang) -> list[frozenset[str]]:
        """For each place of a gang: the nodes on which its pods must not be."""
        if not gang.one_rack:
            return [frozenset()]
        return [frozenset(self.nodes) - frozenset(rack) for rack in self.racks.values()]

    def share(self, request: Amounts) -> float:
        """The largest part of the cluster that a request needs of a resource."""
        whole = {name: sum(node[name] for node in self.nodes.values()) for name in request}
        return max(amount / whole[name] for name, amount in request.items())


@dataclass
class Cycle:
    """What one cycle did."""

    evicted: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)


def draw(seed: int) -> Setting:
    """A random cluster, nearly full, with one or two gangs."""
    rng = random.Random(seed)
    size = rng.choice((4, 6))
    nodes = {f"n{i}": {"cpu": size, "memory": size} for i in range(rng.choice((2, 3, 3, 4)))}
    pods: list[RunningPod] = []
    for node, amounts in nodes.items():
        left = dict(amounts)
        for _ in range(rng.choice((0, 1, 2, 2, 3))):
            request = {"cpu": rng.choice((1, 1, 2, 3)), "memory": rng.choice((1, 1, 2))}
            if all(left[name] >= amount for name, amount in request.items()):
                left = {name: left[name] - amount for name, amount in request.items()}
                pods.append(RunningPod(f"p{len(pods)}", node, request, rng.random() < 0.7))
    gangs = []
    for i in range(rng.choice((1, 1, 2))):
        request = {"cpu": rng.choice((2, 3, size - 1, size)), "memory": rng.choice((1, 2, size))}
        gangs.append(WaitingGang(f"g{i}", request, rng.choice((1, 1, 2))))
    return Setting(nodes, pods, gangs, rng.choice((None, None, None, 0, 1, 2)))


def draw_racks(seed: int) -> Setting:
    """The same with two racks; most gangs must be in one of them."""
    setting, rng = draw(seed), random.Random(-seed - 1)
    names = list(setting.nodes)
    half = rng.randint(1, len(names) - 1)
    setting.racks = {"r0": names[:half], "r1": names[half:]}
    for gang in setting.gangs:
        gang.one_rack = rng.random() < 0.8
    return setting


def free(setting: Setting, without: Sequence[RunningPod] = ()) -> dict[str, Amounts]:
    left = {node: dict(amounts) for node, amounts in setting.nodes.items()}
    for pod in setting.pods:
        if pod not in without:
            for name, amount in pod.request.items():
                left[pod.node][name] -= amount
    return left


def arranged(requests: Sequence[tuple[Amounts, frozenset[str]]], left: dict[str, Amounts]) -> bool:
    """Whether all requests fit together; each with the nodes on which it must not be."""
    if not requests:
        return True
    (request, barred), *rest = requests
    tried: list[Amounts] = []
    for node, amounts in left.items():
        same_place = amounts in tried and not any(other for _, other in requests)
        if node in barred or same_place or any(amounts[name] < amount for name, amount in request.items()):
            continue
        tried.append(dict(amounts))
        taken = {**left, node: {name: amounts[name] - request.get(name, 0) for name in amounts}}
        if arranged(rest, taken):
            return True
    return False


def starts_unmoved(setting: Setting, gang: WaitingGang, running: dict[str, str] | None = None) -> bool:
    """`running`: the pods that run, with their nodes; None: as in the setting."""
    left = free(setting) if running is None else _left(setting, running)
    return any(arranged([(gang.request, barred)] * gang.count, left) for barred in setting.barred(gang))


def _left(setting: Setting, running: dict[str, str]) -> dict[str, Amounts]:
    requests = {pod.name: pod.request for pod in setting.pods}
    requests |= {f"{gang.name}-{i}": gang.request for gang in setting.gangs for i in range(gang.count)}
    left = {node: dict(amounts) for node, amounts in setting.nodes.items()}
    for pod, node in running.items():
        for name, amount in requests[pod].items():
            left[node][name] -= amount
    return left


def possible(setting: Setting, gang: WaitingGang) -> bool:
    """Whether some moves start the gang: no more than it gains, within the budget, and what is moved fits elsewhere
    beside what is idle before the moves."""
    gained = setting.share(gang.request) * gang.count
    movable = [pod for pod in setting.pods if pod.movable]
    most = len(movable) if setting.budget is None else min(setting.budget, len(movable))
    for count in range(1, most + 1):
        for moved in combinations(movable, count):
            if sum(setting.share(pod.request) for pod in moved) > gained + 1e-9:
                continue
            left = free(setting, moved)
            targets = [(pod.request, frozenset([pod.node])) for pod in moved]
            if any(arranged([(gang.request, barred)] * gang.count + targets, left) for barred in setting.barred(gang)):
                return True
    return False


def wrong(setting: Setting, cycles: Sequence[Cycle]) -> list[str]:
    """What a run did that it must not do."""
    found: list[str] = []
    running = {pod.name: pod.node for pod in setting.pods}
    where = {pod: node for cycle in cycles for pod, node in cycle.bound.items()}
    for gang in setting.gangs:
        nodes = {where[f"{gang.name}-{i}"] for i in range(gang.count) if f"{gang.name}-{i}" in where}
        if gang.one_rack and not any(nodes <= set(rack) for rack in setting.racks.values()):
            found.append(f"{gang.name} is in more than one rack: {sorted(nodes)}")
    for number, cycle in enumerate(cycles):
        running |= cycle.bound
        if not cycle.evicted:
            continue
        later = {pod for after in cycles[number + 1 :] for pod in after.bound}
        before = {pod for earlier in cycles[: number + 1] for pod in earlier.bound}
        moved = [pod for pod in setting.pods if pod.name in cycle.evicted]
        if len(moved) != len(cycle.evicted) or not all(pod.movable for pod in moved):
            found.append(f"cycle {number} evicts {cycle.evicted}, which are not all movable")
        if setting.budget is not None and len(moved) > setting.budget:
            found.append(f"cycle {number} evicts {len(moved)} pods, and the budget permits {setting.budget}")
        started = [
            gang
            for gang in setting.gangs
            if all(f"{gang.name}-{i}" in later and f"{gang.name}-{i}" not in before for i in range(gang.count))
        ]
        if not started:
            found.append(f"cycle {number} evicts {cycle.evicted}, and no gang starts")
        gained = max((setting.share(gang.request) * gang.count for gang in started), default=0.0)
        if sum(setting.share(pod.request) for pod in moved) > gained + 1e-9:
            found.append(f"cycle {number} moves more than any gang gains")
        if started and any(starts_unmoved(setting, gang, running) for gang in started):
            found.append(f"cycle {number} evicts {cycle.evicted}, and the gang starts without it")
        lost = [pod.name for pod in moved if pod.name not in later]
        if lost:
            found.append(f"cycle {number} evicts {lost}, which never run again")
        running = {pod: node for pod, node in running.items() if pod not in cycle.evicted}
    return found
