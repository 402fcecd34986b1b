"""Random clusters that Volcano's scheduler has decided: the facts of each, compared with what parity decides.

A fact is one observation of the end of a scenario, or of its first cycle: pods placed of a PodGroup, its phase, the
node of a pod, what a queue's pods request. Facts that Volcano leaves to chance are not recorded.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.outcome import DEVIATION, FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.api import names
from volcano_py.api.quantity import milli_value
from volcano_py.simulate.batch import Defaults, run_lines

AREA = "random clusters"
MIN_FACTS, MIN_WHOLE = 0.998, 0.99
"""Parts of the facts, and of the clusters in full, that parity must reach."""
NOT_BUILT_FAMILIES = frozenset[str]()

RECORDED_AT = 1_790_000_000.0
"""Seconds since the epoch. Volcano ran with the real clock, long after the objects' creation times."""

Json = dict[str, Any]


class Difference(NamedTuple):
    """One fact that came out differently."""

    scenario: str
    kind: str
    subject: str
    expected: Any
    found: Any


def run_folder(data: Path) -> list[Outcome]:
    """One outcome a scenario, one a fact, and a failure if too few of them are reached."""
    file = data / "scheduler-random" / "random.json.gz"
    if not file.exists():
        return []
    with gzip.open(file) as stream:
        scenarios = json.load(stream)["scenarios"]
    found: list[Outcome] = []
    facts = right = whole = compared = 0
    for scenario in scenarios:
        name = scenario["id"]
        if scenario["family"] in NOT_BUILT_FAMILIES:
            found.append(Outcome(AREA, name, NOT_BUILT, f"family {scenario['family']}"))
            continue
        total = sum(len(subjects) for subjects in scenario["facts"].values())
        wrong = list(differences(scenario))
        why = "; ".join(f"{d.kind} of {d.subject}: expected {d.expected}, found {d.found}" for d in wrong)
        found.append(Outcome(AREA, name, DEVIATION if wrong else PASS, why))
        facts, right = facts + total, right + total - len(wrong)
        compared, whole = compared + 1, whole + (not wrong)
    reached = f"{right} of {facts} facts ({right / facts:.2%}), {whole} of {compared} clusters in full"
    enough = right >= MIN_FACTS * facts and whole >= MIN_WHOLE * compared
    found.append(Outcome(f"{AREA}: {reached}", "in all", PASS if enough else FAIL, reached))
    return found


def differences(scenario: Json) -> Iterator[Difference]:
    """The facts of a scenario that parity does not reach."""
    line = json.dumps({"now": RECORDED_AT} | {k: v for k, v in scenario.items() if k != "facts"})
    (answer,) = run_lines([line], Defaults(parity=True))
    result = json.loads(answer)
    if "error" in result:
        yield Difference(scenario["id"], "error", "all", "none", result["error"])
        return
    reached = _facts(scenario, result["cycles"])
    for kind, facts in scenario["facts"].items():
        for subject, expected in facts.items():
            found = reached[kind].get(subject)
            if kind == "queue" and found is not None:
                found, expected = _not_zero(found), _not_zero(expected)
            if found != expected:
                yield Difference(scenario["id"], kind, subject, expected, found)


def _facts(scenario: Json, cycles: list[Json]) -> Json:
    pods = {_key(o): o for o in scenario["objects"] if o["kind"] == "Pod"}
    groups = {_key(o): o for o in scenario["objects"] if o["kind"] == "PodGroup"}
    group_of = {key: _group(pod) for key, pod in pods.items()}
    nodes = {key: pod["spec"]["nodeName"] for key, pod in pods.items() if _runs(pod)}
    phases = {key: (group.get("status") or {}).get("phase") for key, group in groups.items()}
    bound: dict[str, str] = {}
    evicted: list[str] = []
    node_names = [o["metadata"]["name"] for o in scenario["objects"] if o["kind"] == "Node"]
    reached: Json = {}
    for number, cycle in enumerate(cycles):
        nodes |= cycle["bound"]
        bound |= cycle["bound"]
        evicted += cycle["evicted"]
        phases |= cycle["phases"]
        for key in cycle["evicted"]:
            nodes.pop(key, None)
        placed = Counter(group_of[key] for key in nodes)
        if number == 0:
            reached["placed1"] = {key: placed[key] for key in groups}
            reached["phase1"] = dict(phases)
    queue_of = {key: group["spec"].get("queue") or "default" for key, group in groups.items()}
    held: dict[str, Counter[str]] = {
        name: Counter() for name in (*queue_of.values(), *scenario["facts"].get("queue", ()))
    }
    for key in nodes:
        if group_of[key] in groups:
            held[queue_of[group_of[key]]].update(_request(pods[key]))
    lost = Counter(group_of[key] for key in evicted)
    reached |= {
        "placed": {key: placed[key] for key in groups},
        "ready": {key: placed[key] >= group["spec"].get("minMember", 0) for key, group in groups.items()},
        "phase": phases,
        "queue": {name: dict(request) for name, request in held.items()},
        "evicted": {key: lost[key] for key in groups},
        "victims": {"all": sorted(evicted)},
        "node": bound,
        "spread": {"all": sorted(Counter(nodes.values())[name] for name in node_names)},
        "devices": {key: _assigned(cycles, key) for key in bound},
        "claims": {key: value for cycle in cycles for key, value in cycle["claims"].items()},
    }
    return reached


_TIMES = frozenset((names.PREDICATE_TIME, names.VGPU_TIME, names.VGPU_BIND_TIME))


def _assigned(cycles: list[Json], pod: str) -> Json:
    """The annotations of a pod's last binding that are no times."""
    found = next((c["devices"].get(pod, {}) for c in reversed(cycles) if pod in c["bound"]), {})
    return {key: value for key, value in found.items() if key not in _TIMES}


def _not_zero(amounts: Json) -> Json:
    return {name: amount for name, amount in amounts.items() if amount}


def _key(manifest: Json) -> str:
    return f"{manifest['metadata'].get('namespace', '')}/{manifest['metadata']['name']}"


def _group(pod: Json) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    return f"{pod['metadata']['namespace']}/{annotations.get(names.GROUP_NAME, '')}"


def _runs(pod: Json) -> bool:
    return bool(
        pod["spec"].get("nodeName")
        and (pod.get("status") or {}).get("phase") == "Running"
        and not pod["metadata"].get("deletionTimestamp")
    )


def _request(pod: Json) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in pod["spec"].get("containers") or ():
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] += milli_value(text)
    return total
