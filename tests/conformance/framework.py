"""Pod-at-a-time scheduling: what kube-scheduler itself decided on random clusters, fact by fact."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.conformance.outcome import FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.simulate.profiles import run_lines

AREA = "framework"
_WHOLE = "all facts"
LEAST = 0.9995
"""The share of the facts that must agree; what differs is open, not a deviation."""


class Report(NamedTuple):
    right: Counter[str]
    """By `family kind`."""
    all: Counter[str]
    wrong: dict[str, list[str]]
    """Scenario to its facts that differ."""
    scenarios: int

    def of_kind(self, kind: str) -> tuple[int, int]:
        """(facts that agree, all facts) of a kind."""
        names = [n for n in self.all if n.split()[1] == kind]
        return sum(self.right[n] for n in names), sum(self.all[n] for n in names)


def compare(data: Path) -> Report:
    """Run all scenarios of a file and compare their facts."""
    scenarios = json.loads(gzip.decompress(data.read_bytes()))["scenarios"]
    lines = [orjson.dumps({k: v for k, v in s.items() if k != "facts"}) for s in scenarios]
    answers = {a["id"]: a for a in map(orjson.loads, run_lines(lines))}
    report = Report(Counter(), Counter(), {}, len(scenarios))
    for s in scenarios:
        answer = answers[s["id"]]
        for kind, facts in s["facts"].items():
            for subject, value in facts.items():
                name = f"{s['family']} {kind}"
                report.all[name] += 1
                got = _got(kind, subject, answer, s) if "error" not in answer else answer["error"]
                if got == value:
                    report.right[name] += 1
                else:
                    report.wrong.setdefault(s["id"], []).append(f"{kind} {subject}: {value!r}, got {got!r}")
    return report


def _got(kind: str, subject: str, answer: dict[str, Any], scenario: dict[str, Any]) -> Any:
    steps = answer["steps"]
    number, _, pod = subject.partition("|")
    step = steps[int(number)] if number.isdigit() else steps[-1]
    match kind:
        case "node":
            return steps[-1]["bound"].get(subject)
        case "placed":
            return pod in step["bound"]
        case "evicted":
            return subject in steps[-1]["deleted"]
        case "victims":
            return sorted(step["deleted"])
        case "nominated":
            return step["nominated"].get(pod) if pod else step["nominated"]
        case "unschedulable":
            return pod in step["unschedulable"]
        case "reason":
            return step["reason"].get(pod)
        case "order":
            before = len(steps[int(number) - 1]["order"]) if int(number) else 0
            return _groups_sorted(step["order"][before:], scenario)
    return None


def _groups_sorted(order: list[str], scenario: dict[str, Any]) -> list[str]:
    """Members of one PodGroup that are bound side by side, by name."""
    groups: dict[str, str] = {}
    for o in [*scenario["objects"], *(o for s in scenario["steps"] for o in s.get("apply") or ())]:
        if o["kind"] == "Pod":
            group = ((o.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
            if group:
                groups[f"{o['metadata']['namespace']}/{o['metadata']['name']}"] = group
    found: list[str] = []
    start = 0
    for i in range(1, len(order) + 1):
        group = groups.get(order[start])
        if i == len(order) or group is None or groups.get(order[i]) != group:
            found += sorted(order[start:i])
            start = i
    return found


def run_folder(folder: Path) -> Iterator[Outcome]:
    """One outcome per kind of facts, and one for the whole. Facts that differ are open, not failures."""
    data = folder / "framework.json.gz"
    if not data.is_file():
        return
    report = compare(data)
    for kind in sorted({name.split()[1] for name in report.all}):
        right, total = report.of_kind(kind)
        yield Outcome(AREA, kind, PASS if right == total else NOT_BUILT, f"{total - right} of {total} facts are open")
    right, total = report.right.total(), report.all.total()
    why = f"{right} of {total} facts agree; {len(report.wrong)} of {report.scenarios} scenarios differ somewhere"
    yield Outcome(AREA, _WHOLE, PASS if right >= LEAST * total else FAIL, why)


def summaries(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Lines for people: what agrees, and what is open by kind."""
    for o in outcomes:
        if o.area == AREA and (o.name == _WHOLE or o.kind != PASS):
            yield f"{AREA}, {o.name}: {o.why}"
