"""Runs both schedulers on one case, and reduces a case on which they differ.

    python -m tests.reference.comparison CASES [SEED [THEME...]]

looks for differences, prints the smallest one, and writes it to `difference.json` in the batch form. The themes are
those of tests.strategies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec

from tests.reference import cycles as reference
from tests.reference import gpu_share, vgpu
from tests.reference.resource import parse
from tests.reference.task import Task, compare_tasks, task_of
from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.nodes.node_usage import NodeUsage
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation

Case = dict[str, Any]
"""id, conf, cycles, seed, objects: the batch form of `volcano-py simulate run --jsonl --raw --parity`.

come_back: whether owners recreate evicted pods. usage: by node the measured `cpu` and `memory` in percent, and the
`age` of the measurement in the first cycle.
"""


def decide_fast(case: Case) -> list[dict[str, Any]]:
    conf = msgspec.structs.replace(load(case["conf"], REGISTRY.actions), deviations=deviations.PARITY)
    simulation = Simulation(case["objects"], raw=True, seed=case["seed"])
    assert not simulation.rejected, simulation.rejected
    for node, of in case.get("usage", {}).items():
        simulation.cluster.usage[node] = NodeUsage(simulation.now - of["age"], of["cpu"], of["memory"])
    found = []
    for _ in range(case["cycles"]):
        pods = {key: o for (kind, key), o in simulation.objects.items() if kind == "Pod"}
        r = simulation.cycle(conf)
        assert not r.faults, r.faults
        if case.get("come_back"):
            for key in r.evicted:
                simulation.put(reference.recreated(pods[key]))
        annotations = {pod: {k: v for k, v in of.items() if k in ASSIGNED} for pod, of in r.devices.items()}
        decisions = {"bound": r.bound, "pipelined": r.pipelined, "evicted": sorted(r.evicted), "phases": r.phases}
        decisions["claims"] = r.claims
        decisions["annotations"] = {pod: of for pod, of in annotations.items() if of}
        conditions = {uid: [tuple(c.values()) for c in of_job] for uid, of_job in r.conditions.items()}
        found.append({**decisions, "conditions": conditions, "held": r.allocated})
    return found


def decide_plainly(case: Case) -> list[reference.Result]:
    rank = reference.rank_by_hash(case["seed"])
    come_back = case.get("come_back", False)
    return reference.run(case["objects"], case["conf"], case["cycles"], rank, come_back, case.get("usage"))


ASSIGNED = (gpu_share.INDEX, vgpu.IDS)
"""The compared annotations of bindings."""
DOCUMENTED = frozenset(("numa-outdated",))
"""Differences that docs/deviations.md describes and that parity keeps, by the reference's name of the rare event. Each
has an example in found/."""


OPEN = frozenset(("bind-rejected", "dispatch-order"))
"""If both occur in a cycle, Volcano leaves open which tasks of a job are bound before one is rejected."""
OPEN_ALONE = frozenset(("usage-order", "numa-order"))
"""Events after which Volcano leaves the result open."""


def difference(
    case: Case, known: Container[str] = DOCUMENTED, decided: Sequence[reference.Result] | None = None
) -> str:
    """The first difference; empty if there is none, or if one of the `known` rules decides before it.

    `decided`: what `decide_plainly` gave for this case, if the caller has it.
    """
    fast = decide_fast(case)
    for number, (plain, f) in enumerate(zip(decided or decide_plainly(case), fast, strict=True), 1):
        if any(r in known or r in OPEN_ALONE for r in plain.rarities) or plain.rarities >= OPEN:
            return ""
        p = plain.decisions()
        if not any(o["kind"] == "HyperNode" for o in case["objects"]):  # which of them is tried last is open
            p["conditions"] = {uid: of_job for uid, of_job in plain.conditions.items() if of_job}
        for what in p:
            if p[what] != f[what]:
                return f"cycle {number}, {what}:\n  by the rules {p[what]}\n  decided      {f[what]}"
        for name, amount in plain.held.items():
            if not amount.is_about(parse(f["held"].get(name))):
                return f"cycle {number}, queue {name}:\n  by the rules {amount}\n  decided      {f['held'].get(name)}"
    return ""


def is_open(case: Case) -> bool:
    """Whether Volcano itself leaves the result open: the tasks of some job have no order.

    The order of names with and without a number can have a cycle (1 before 2 by number, 2 before x by age, x before
    1 by age); which task comes first then depends on the order in which a map is iterated.
    """
    jobs: dict[str, list[Task]] = {}
    for o in case["objects"]:
        if o["kind"] == "Pod":
            task = task_of(o)
            jobs.setdefault(task.job, []).append(task)
    for tasks in jobs.values():
        for a, b, c in permutations(tasks, 3):
            if compare_tasks(a, b) < 0 and compare_tasks(b, c) < 0 and compare_tasks(c, a) < 0:
                return True
    return False


def smallest(case: Case) -> Case:
    """A case that no longer differs if any part of it is removed."""
    while True:
        for smaller in _smaller(case):
            if _differs(smaller):
                case = smaller
                break
        else:
            return case


def _differs(case: Case) -> bool:
    try:
        return not is_open(case) and bool(difference(case))
    except Exception:  # the rest is invalid for one of them
        return False


def _smaller(case: Case) -> Iterator[Case]:
    if case.get("come_back"):
        yield {**case, "come_back": False}
    if case["cycles"] > 1:
        yield {**case, "cycles": case["cycles"] - 1}
    for node in case.get("usage", {}):
        yield {**case, "usage": {n: of for n, of in case["usage"].items() if n != node}}
    objects = case["objects"]
    for i, o in enumerate(objects):
        if o["kind"] == "PodGroup":  # with its pods
            yield {**case, "objects": [p for p in objects if p is not o and not _belongs(p, o)]}
        else:
            yield {**case, "objects": objects[:i] + objects[i + 1 :]}
    conf = json.loads(case["conf"])
    for i, tier in enumerate(conf["tiers"]):
        for j in range(len(tier["plugins"])):
            fewer = {**tier, "plugins": tier["plugins"][:j] + tier["plugins"][j + 1 :]}
            yield {**case, "conf": json.dumps({**conf, "tiers": [*conf["tiers"][:i], fewer, *conf["tiers"][i + 1 :]]})}
    actions = [a.strip() for a in conf["actions"].split(",")]
    for i in range(len(actions)):
        if len(actions) > 1:
            yield {**case, "conf": json.dumps({**conf, "actions": ", ".join(actions[:i] + actions[i + 1 :])})}
    for i, o in enumerate(objects):
        for part in _parts(o):
            yield {**case, "objects": [*objects[:i], part, *objects[i + 1 :]]}


def _belongs(pod: Case, group: Case) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return pod["kind"] == "Pod" and annotations.get("scheduling.k8s.io/group-name") == group["metadata"]["name"]


_KEPT = frozenset(
    [
        "apiVersion",
        "kind",
        "spec",
        "name",
        "cpu",
        "memory",
        "pods",
        "namespace",
        "uid",
        "creationTimestamp",
        "containers",
        "schedulerName",
        "phase",
        "status",
        "state",
        "weight",
        "minMember",
        "labels",
        "topologyKey",
        "persistentVolumeClaim",
        "claimName",
        "volumeBindingMode",
        "provisioner",
        "driver",
        "volumeHandle",
        "maxSkew",
        "whenUnsatisfiable",
        "labelSelector",
    ]
)
"""Required fields, and fields whose absence has another meaning."""


def _parts(value: Any) -> Iterator[Any]:
    """The value without one of its parts, for each part."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _KEPT:
                yield {k: v for k, v in value.items() if k != key}
            for part in _parts(inner):
                yield {**value, key: part}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            if len(value) > 1:
                yield value[:i] + value[i + 1 :]
            for part in _parts(inner):
                yield [*value[:i], part, *value[i + 1 :]]


def main(count: int, seed: int, themes: list[str]) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from tests.reference.strategies import ALL_THEMES, cases, each_another

    found: list[Case] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(tuple(themes) or ALL_THEMES))
    def search(case: Case) -> None:
        if not is_open(case) and difference(case):
            found.append(case)

    with each_another():
        search()
    print(f"{len(found)} of {count} cases differ")
    if found:
        case = smallest(min(found, key=lambda c: len(json.dumps(c))))
        Path("difference.json").write_text(json.dumps(case, indent=1))
        for o in case["objects"]:
            print(json.dumps(o))
        print(case["conf"], "seed", case["seed"])
        print(difference(case))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:])
