"""Evictions of trees of native groups on random small clusters, and what docs/native-gangs.md promises of them.

A tree of low priority runs, and one of high priority arrives. Only `outcome` uses the product, to run it; no rule is
taken from its code.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracle.trees import Case, Group, Places, could_hold, drawn, free, holds, manifests, violated
from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import load
from volcano_py.simulate.cycles import Simulation

CONF = """actions: "enqueue, allocate, {action}"
tiers: [{{plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}, {{name: nodeorder}}]}}]
"""
ACTIONS_THAT_EVICT = ("preempt", "gangpreempt")
CYCLES = 8


@dataclass
class Clash:
    """A cluster in which the first root runs and the second one, of higher priority, arrives."""

    case: Case
    whole: set[str] = field(default_factory=set)
    """The groups with the disruption mode all."""
    never: bool = False
    """Whether the preemption policy of the second root is Never."""

    @property
    def old(self) -> Group:
        return self.case.roots[0]

    @property
    def new(self) -> Group:
        return self.case.roots[1]


class Outcome(NamedTuple):
    evicted: dict[str, int]
    """Pods by PodGroup."""
    places: Places
    """When nothing happens any more."""
    faults: list[str]


def clash(seed: int, number: int) -> Clash | None:
    """None if the cluster that is drawn has no two trees, or the first one cannot run."""
    case = drawn(seed, number)
    if len(case.roots) < 2:
        return None
    r = random.Random(f"evictions {seed} {number}")
    old = case.roots[0]
    for _ in range(40):
        left = free(case, {})
        places: Places = {}
        for leaf in old.leaves():
            for _ in range(r.randint(leaf.need, max(leaf.pods, leaf.need)) if r.random() < 0.8 else 0):
                fits = [node for node, cpu in left.items() if cpu >= leaf.cpu]
                if fits and len(places.get(leaf.name, ())) < leaf.pods:
                    node = r.choice(fits)
                    left[node] -= leaf.cpu
                    places.setdefault(leaf.name, []).append(node)
            if len(places.get(leaf.name, ())) < leaf.need:
                for node in places.pop(leaf.name, ()):
                    left[node] += leaf.cpu
        if holds(old, places) and not violated(case, old, places):
            for leaf in old.leaves():
                leaf.running = places.get(leaf.name, [])
                leaf.pods = len(leaf.running)  # none waits: what is bound belongs to the new tree
            for node, (cpu, labels) in case.nodes.items():  # little is free, so that evictions are needed
                used = cpu - left[node]
                case.nodes[node] = (max(used + r.choice((0, 0, 1)), 1), labels)
            whole = {group.name for group in old.every() if r.random() < 0.2}
            return Clash(case, whole, never=r.random() < 0.15)
    return None


def outcome(given: Clash, action: str, deviations: dict[str, bool] | None = None) -> Outcome:
    """Run cycles: evicted pods are gone in the next one, and are not created again."""
    objects = manifests(given.case)
    old = {group.name for group in given.old.every()}
    for o in objects:
        if o["kind"] == "Node":
            continue
        spec = o["spec"]
        name = spec["schedulingGroup"]["podGroupName"] if o["kind"] == "Pod" else o["metadata"]["name"]
        spec["priority"] = 1 if name in old else 100
        if o["kind"] != "Pod" and name in given.whole:
            spec["disruptionMode"] = {"all": {}}
        if o["kind"] != "Pod" and name == given.new.name and given.never:
            spec["preemptionPolicy"] = "Never"
    simulation = Simulation(objects)
    conf = load(f"{CONF.format(action=action)}deviations: {json.dumps(deviations or {})}\n", ACTIONS)
    places: Places = {leaf.name: list(leaf.running) for root in given.case.roots for leaf in root.leaves()}
    at = {f"{leaf.name}-{i}": node for leaf in given.old.leaves() for i, node in enumerate(leaf.running)}
    evicted: dict[str, int] = {}
    faults: list[str] = []
    for _ in range(CYCLES):
        result = simulation.cycle(conf)
        faults += result.faults
        for key in result.evicted:
            pod = key.partition("/")[2]
            leaf = pod.rpartition("-")[0]
            evicted[leaf] = evicted.get(leaf, 0) + 1
            places[leaf].remove(at.pop(pod))
        for key, node in result.bound.items():
            places[key.partition("/")[2].rpartition("-")[0]].append(node)
    return Outcome(evicted, places, faults)


def judge(given: Clash, action: str, deviations: dict[str, bool] | None = None) -> tuple[list[str], bool]:
    """What is wrong, and whether pods were evicted."""
    old, new = given.old, given.new
    before: Places = {leaf.name: list(leaf.running) for leaf in old.leaves()}
    fitted = could_hold(given.case, new, before)
    found = outcome(given, action, deviations)
    wrong = list(found.faults)
    evicted = sum(found.evicted.values())
    all_pods = sum(map(len, before.values()))
    counts = f"{found.evicted} of {before} evicted"
    if set(found.evicted) - set(before):
        wrong.append(f"a pod of the more important tree was evicted: {counts}")
    if evicted and given.never:
        wrong.append(f"evicted in spite of preemptionPolicy Never: {counts}")
    if evicted and fitted:
        wrong.append(f"evicted although the new tree fits without: {counts}")
    if evicted and not holds(new, found.places):
        wrong.append(f"evicted, and the new tree does not start: {counts}, {new.name} has no nodes: {found.places}")
    if 0 < evicted < all_pods:
        if not holds(old, {leaf: found.places[leaf] for leaf in before}):
            wrong.append(f"the tree is broken: {counts}")
        for group in old.every():
            if group.name in given.whole and any(found.evicted.get(leaf.name) for leaf in group.leaves()):
                wrong.append(f"a part of {group.name}, whose mode is all, was evicted: {counts}")
    if violated(given.case, new, found.places) or any(amount < 0 for amount in free(given.case, found.places).values()):
        wrong.append(f"pods of the new tree are where they must not be: {found.places}")
    return wrong, evicted > 0
