"""Compares the default configuration with parity: the placed gangs, the evictions, and the reasons for differences.

    python -m tests.reference.defaults CASES [SEED]

prints the table, and the cases without a reason.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import msgspec

from tests.reference.comparison import Case
from tests.reference.cycles import recreated
from volcano_py.api import names
from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.deviations import FIELDS, Deviations
from volcano_py.scheduler.model.reported import NOMINATION_SECONDS
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation

CYCLES = 12
"""The least number of cycles of a run."""
MOST_CYCLES = 30
"""Cycles in which a cluster comes to rest with the deviation eviction-back-off, or never."""
AT_REST = 3
"""Cycles at the end without an eviction: the cluster is at rest."""

REASONS: dict[str, str] = {
    "protections-hold": "protected victim",
    "rank-holds": "victim more important, or its queue within its share",
    "whole-gangs": "victim's gang would break",
    "sure-evictions": "node rejects the pod that is evicted for",
    "fewest-victims": "other victims, fewer of them",
    "live-affinity-lists": "affinity that parity violates",
    "whole-best-effort": "over-full node",
    "own-verdict": "role evaluated by another pod",
    "kept-nominations": "capacity freed for another pod",
    "stale-nominations": "capacity freed for another pod",
    "fair-admission": "other queues first by weight",
    "reclaim-admits": "an entitled job is admitted first",
    "idle-not-overused": "other queues first",
    "usable-capacity": "queue's part of what is usable",
    "capability-first": "queue over its limit",
    "whole-gang-reclaim": "gang of an entitled queue instead",
    "heal-gangs": "a broken gang releases its capacity",
    "live-branch-shares": "shares of parent queues",
    "partial-hierarchy": "invalid queue hierarchy",
    "partial-topology": "invalid HyperNode",
    "topology-from-pods": "place in the network",
    "narrow-domains-first": "narrow domain for a gang",
    "image-spread-now": "nodes by image",
    "group-claims": "reservation of a shared claim",
    "native-places": "order of native gangs",
    "bare-pods": "a bare pod is a job at once",
    "reserved-once": "queue admission",
}
"""Deviation → why a gang that parity places is not placed; each is the purpose of the deviation."""


@dataclass
class Outcome:
    """A cluster after its cycles."""

    placed: dict[str, int] = field(default_factory=dict)
    """Pods on nodes, by PodGroup."""
    minimum: dict[str, int] = field(default_factory=dict)
    evictions: int = 0
    at_rest: bool = True

    def ready(self, group: str) -> bool:
        """Whether a PodGroup has its minimum."""
        return self.placed.get(group, 0) >= max(self.minimum.get(group, 0), 1)


def run(case: Case, on: Deviations) -> Outcome:
    """Run a case; evicted pods are recreated."""
    conf = msgspec.structs.replace(load(case["conf"], REGISTRY.actions), deviations=on)
    simulation = Simulation(case["objects"], raw=True, seed=case["seed"])
    found = Outcome()
    last = ended = 0
    for number in range(MOST_CYCLES if on.eviction_back_off else CYCLES):
        if number >= max(CYCLES, last + 1 + AT_REST):
            break
        ended = number
        if number == CYCLES // 2:
            simulation.now += NOMINATION_SECONDS + 1  # capacity that was freed for a pod is not kept longer
        pods = {key: o for (kind, key), o in simulation.objects.items() if kind == "Pod"}
        evicted = simulation.cycle(conf).evicted
        found.evictions += len(evicted)
        if evicted:
            last = number
        for key in evicted:
            simulation.put(recreated(pods[key]))
    found.at_rest = ended - last >= AT_REST or not found.evictions
    for (kind, key), o in simulation.objects.items():
        if kind == "PodGroup":
            found.minimum[key] = int(o["spec"].get("minMember") or 0)
        elif kind == "Pod" and o["spec"].get("nodeName") and not o["metadata"].get("deletionTimestamp"):
            group = (o["metadata"].get("annotations") or {}).get(names.GROUP_NAME)
            if group:
                uid = f"{o['metadata']['namespace']}/{group}"
                found.placed[uid] = found.placed.get(uid, 0) + 1
    return found


def waiting_groups(case: Case) -> set[str]:
    """The PodGroups with a pod that has no node at the start."""
    found = set()
    for o in case["objects"]:
        if o["kind"] == "Pod" and not o["spec"].get("nodeName"):
            group = (o["metadata"].get("annotations") or {}).get(names.GROUP_NAME)
            if group:
                found.add(f"{o['metadata'].get('namespace', 'default')}/{group}")
    return found


INDIRECT = "other evictions of parity make the space"
"""No single deviation: parity evicts pods for other jobs, after which the gang fits. It is not entitled."""
_ABOUT_VICTIMS = ("protections-hold", "rank-holds", "whole-gangs", "sure-evictions", "fewest-victims")


def reason(case: Case, group: str) -> str:
    """Why the defaults do not place a PodGroup that parity places: the deviation, or the pair of them, without which
    they do. Empty: none was found."""
    for switched in (*((name,) for name in REASONS), *combinations(_ABOUT_VICTIMS, 2)):
        off = {FIELDS[name]: False for name in switched}
        if run(case, Deviations(**off)).ready(group):
            return REASONS[switched[0]]
    return ""


@dataclass
class Table:
    """Sums over clusters."""

    clusters: int = 0
    gangs: Counter[str] = field(default_factory=Counter)
    pods: Counter[str] = field(default_factory=Counter)
    evictions: Counter[str] = field(default_factory=Counter)
    restless: Counter[str] = field(default_factory=Counter)
    only_parity: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[Case, str]] = field(default_factory=list)
    endless: list[Case] = field(default_factory=list)
    """Clusters in which evictions do not end with the defaults."""

    def add(self, case: Case) -> None:
        """Run one cluster with both configurations."""
        self.clusters += 1
        waiting = waiting_groups(case)
        runs = {"parity": run(case, deviations.PARITY), "defaults": run(case, deviations.DEFAULT)}
        for name, outcome in runs.items():
            self.gangs[name] += sum(outcome.ready(group) for group in outcome.minimum)
            self.pods[name] += sum(outcome.placed.values())
            self.evictions[name] += outcome.evictions
            self.restless[name] += not outcome.at_rest
        if not runs["defaults"].at_rest:
            self.endless.append(case)
        for group in sorted(waiting):
            # Where parity never comes to rest, the gangs that are placed at the end are random.
            if runs["parity"].at_rest and runs["parity"].ready(group) and not runs["defaults"].ready(group):
                why = reason(case, group) or INDIRECT
                self.only_parity[why or "other"] += 1
                if not why:
                    self.unexplained.append((case, group))

    def lines(self) -> Iterable[str]:
        """The table as text."""
        yield f"{self.clusters} clusters            parity  defaults"
        rows: tuple[tuple[str, Mapping[str, int]], ...] = (
            ("gangs placed", self.gangs),
            ("pods placed", self.pods),
            ("evictions", self.evictions),
            ("never at rest", self.restless),
        )
        for name, counts in rows:
            yield f"{name:22} {counts['parity']:10} {counts['defaults']:9}"
        yield f"gangs that only parity places: {sum(self.only_parity.values())}"
        for why, count in self.only_parity.most_common():
            yield f"  {count:5}  {why}"


def main() -> None:
    from tests.reference.drawing import drawn

    table = Table()
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for case in drawn(count, seed):
        table.add(case)
    print("\n".join(table.lines()))
    for i, (case, group) in enumerate(table.unexplained):
        print(f"unexplained {i}: {group}")
        _save(f"unexplained-{i}", case)
    for i, case in enumerate(table.endless):
        _save(f"endless-{i}", case)
    print(f"{len(table.endless)} clusters in which evictions never end with the defaults")


def _save(name: str, case: Case) -> None:
    with open(f"{name}.json", "w") as file:
        json.dump(case, file)


if __name__ == "__main__":
    main()
