"""Pod-at-a-time scheduling: what kube-scheduler itself decided on random clusters, fact by fact."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.conformance.outcome import FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.simulate.profiles import run_lines

AREA = "framework"
_WHOLE = "all facts"


class _Part(NamedTuple):
    """A file of recorded decisions."""

    area: str
    file: str
    least: float
    """The share of the facts that must agree; what differs is open, not a deviation."""
    least_whole: int = 0
    """The scenarios of which all facts must agree."""


_PARTS = (
    _Part(AREA, "framework/framework.json.gz", 0.9995),
    _Part("framework 1.37", "framework-1.37/compat.json.gz", 0.995),
    _Part("groups 1.37", "framework-1.37/gangs137-shared.json.gz", 0.99, 140),
)


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


def run_folder(data: Path) -> Iterator[Outcome]:
    """For each version, one outcome per kind of facts, and one for the whole. Facts that differ are open, not
    failures."""
    for part in _PARTS:
        if (data / part.file).is_file():
            yield from _part(data / part.file, part)


def _part(data: Path, part: _Part) -> Iterator[Outcome]:
    report = compare(data)
    for kind in sorted({name.split()[1] for name in report.all}):
        right, total = report.of_kind(kind)
        yield Outcome(
            part.area, kind, PASS if right == total else NOT_BUILT, f"{total - right} of {total} facts are open"
        )
    right, total = report.right.total(), report.all.total()
    whole = report.scenarios - len(report.wrong)
    why = f"{right} of {total} facts agree; {len(report.wrong)} of {report.scenarios} scenarios differ somewhere"
    enough = right >= part.least * total and whole >= part.least_whole
    yield Outcome(part.area, _WHOLE, PASS if enough else FAIL, why)


def summaries(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Lines for people: what agrees, and what is open by kind."""
    areas = {part.area for part in _PARTS}
    for o in outcomes:
        if o.area in areas and (o.name == _WHOLE or o.kind != PASS):
            yield f"{o.area}, {o.name}: {o.why}"


if __name__ == "__main__":
    for file in sys.argv[1:]:
        found = compare(Path(file))
        for name in sorted(found.all):
            print(f"{name:30} {found.right[name]:5} of {found.all[name]}")
        for scenario, facts in found.wrong.items():
            print(f"{scenario}: {len(facts)}", *facts[:40], sep="\n    ")
        print(f"{found.right.total()} of {found.all.total()} facts, {len(found.wrong)} of {found.scenarios} differ")
