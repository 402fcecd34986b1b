"""Both schedulers on one case, and the smallest case on which they differ.

    python -m tests.reference.comparison CASES [SEED]

looks for differences without a limit of time, prints the smallest one, and writes it to `difference.json` in the
batch form.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.reference import cycles as reference
from volcano_py.scheduler.framework import deviations
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation

Case = dict[str, Any]
"""id, conf, cycles, seed, objects: the batch form of `volcano-py simulate run --jsonl --raw --parity`."""


def decide_fast(case: Case) -> list[dict[str, Any]]:
    conf = msgspec.structs.replace(load(case["conf"], REGISTRY.actions), deviations=deviations.PARITY)
    simulation = Simulation(case["objects"], raw=True, seed=case["seed"])
    assert not simulation.refused, simulation.refused
    found = []
    for _ in range(case["cycles"]):
        r = simulation.cycle(conf)
        assert not r.faults, r.faults
        decisions = {"bound": r.bound, "pipelined": r.pipelined, "evicted": sorted(r.evicted), "phases": r.phases}
        found.append(decisions)
    return found


def decide_plainly(case: Case) -> list[reference.Result]:
    rank = reference.rank_by_hash(case["seed"])
    return reference.run(case["objects"], case["conf"], case["cycles"], rank)


def difference(case: Case) -> str:
    """Where the two differ first; empty if they do not."""
    plain = [r.decisions() for r in decide_plainly(case)]
    fast = decide_fast(case)
    for number, (p, f) in enumerate(zip(plain, fast, strict=True), 1):
        for what in p:
            if p[what] != f[what]:
                return f"cycle {number}, {what}:\n  by the rules {p[what]}\n  decided      {f[what]}"
    return ""


def smallest(case: Case) -> Case:
    """A case from which nothing can be taken away without the two agreeing."""
    while True:
        for smaller in _smaller(case):
            if _differs(smaller):
                case = smaller
                break
        else:
            return case


def _differs(case: Case) -> bool:
    try:
        return bool(difference(case))
    except Exception:  # what is left no longer makes sense to one of them
        return False


def _smaller(case: Case) -> Iterator[Case]:
    if case["cycles"] > 1:
        yield {**case, "cycles": case["cycles"] - 1}
    objects = case["objects"]
    for i, o in enumerate(objects):
        if o["kind"] == "PodGroup":  # with its pods
            yield {**case, "objects": [p for p in objects if p is not o and not _belongs(p, o)]}
        if o["kind"] not in ("PodGroup", "Queue"):
            yield {**case, "objects": objects[:i] + objects[i + 1 :]}
        elif o["kind"] == "Queue":
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


_KEPT = ("apiVersion", "kind", "name", "namespace", "uid", "containers", "schedulerName", "phase", "state", "weight")


def _parts(value: Any) -> Iterator[Any]:
    """The value with one thing less in it."""
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


def main(count: int, seed: int) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from tests.strategies import cases

    found: list[Case] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def search(case: Case) -> None:
        if difference(case):
            found.append(case)

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
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
