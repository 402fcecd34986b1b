"""Stories: small inputs with the right outcome for the default configuration, from what users have met."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.outcome import FAIL, PASS, Outcome
from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import Defaults, run_lines

AREA = "stories"


def run_folder(folder: Path) -> Iterator[Outcome]:
    """Run each line of `decisions.jsonl`, and compare the decisions with what it expects."""
    path = folder / "decisions.jsonl"
    if not path.is_file():
        return
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    for line, found in zip(lines, run_lines(lines, Defaults(conf=DEFAULT_TEXT)), strict=True):
        story, result = json.loads(line), json.loads(found)
        why = result.get("error") or "; ".join(_wrong(story["expect"], result["cycles"]))
        yield Outcome(AREA, story["id"], FAIL if why else PASS, why)


def _wrong(expect: dict[str, Any], cycles: list[dict[str, Any]]) -> Iterator[str]:
    bound = sorted(key for cycle in cycles for key in cycle["bound"])
    evicted = sorted(key for cycle in cycles for key in cycle["evicted"])
    last = cycles[-1]
    for field, value in expect.items():
        match field:
            case "bound":
                wrong = not set(value) <= set(bound) or (not value and bool(bound))
            case "evicted":
                wrong = evicted != sorted(value)
            case "evicted_count":
                wrong = len(evicted) != value
            case "phases":
                wrong = any(last["phases"].get(group) != phase for group, phase in value.items())
            case "waiting_reason":
                wrong = not all(_reasons(last, group) for group in value)
            case "no_text":
                wrong = any(text in json.dumps(cycles) for text in value)
            case _:
                yield f"the field {field} of `expect` is unknown"
                continue
        if wrong:
            yield f"{field} {value}, found: bound {bound}, evicted {evicted}, waiting {last['waiting']}"


def _reasons(cycle: dict[str, Any], group: str) -> list[str]:
    return [c["message"] for c in cycle["conditions"].get(group, ()) if c["message"] and c["type"] == "Waiting"]
