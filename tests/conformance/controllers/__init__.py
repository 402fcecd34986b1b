"""Controllers: the state machines of Job and Queue, cell by cell, and single rules.

A file of cases without an entry in `RUNNERS` has no runner yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.conformance.controllers import (
    colocation,
    cron,
    flow,
    hypernode,
    job,
    job_cache,
    job_life,
    job_rules,
    podgroup,
    queue,
    sharding,
)
from tests.conformance.controllers.comparing import BECAUSE, COVERED, NEVER_ASKED
from tests.conformance.outcome import DEVIATION, FAIL, NOT_BUILT, OWN_TEST, PASS, UNBUILDABLE, Outcome
from volcano_py.api.batch import JobSpec, JobStatus
from volcano_py.api.bus import RESUME_JOB
from volcano_py.controllers.job.state import transition
from volcano_py.controllers.queue.reconcile import next_state

Data = dict[str, Any]

_AREA = "controllers"
_PARTS = (job, job_rules, job_cache, job_life, podgroup, queue, flow, cron, hypernode, sharding, colocation)
RUNNERS: dict[str, Callable[[Data], str]] = {name: run for part in _PARTS for name, run in part.RUNNERS.items()}
"""File → what says where ours differs ("" if it does not)."""
_VARIANTS = "job_state_variants"
"""Not cases: the specs and counters that the cells of the job's matrix name."""


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All controller cases below a folder."""
    for path in sorted(folder.glob("*.json")):
        cases = json.loads(path.read_text())
        if path.stem == "job_state_matrix":
            variants = {v["id"]: v for v in json.loads((folder / f"{_VARIANTS}.json").read_text())}
            for case in cases:
                yield _outcome(path.stem, case, _job_cell(case, variants[case["variant"]]))
        elif path.stem == "queue_state_matrix":
            for case in cases:
                yield _outcome(path.stem, case, _queue_cell(case))
        elif path.stem in RUNNERS:
            for case in cases:
                yield _outcome(path.stem, case, RUNNERS[path.stem](case))
        elif path.stem != _VARIANTS:
            for case in cases:
                yield Outcome(_AREA, f"{path.stem}: {case.get('id', '')}", NOT_BUILT, f"{path.stem} has no runner")


def _outcome(file: str, case: Data, wrong: str) -> Outcome:
    for beginning, kind in ((NEVER_ASKED, UNBUILDABLE), (BECAUSE, DEVIATION), (COVERED, OWN_TEST)):
        if wrong.startswith(beginning):
            return Outcome(_AREA, f"{file}: {case['id']}", kind, wrong)
    return Outcome(_AREA, f"{file}: {case['id']}", FAIL if wrong else PASS, wrong)


def _job_cell(case: Data, variant: Data) -> str:
    spec = msgspec.convert(variant["spec"], JobSpec)
    status = msgspec.convert(variant["status"], JobStatus)
    status.state.phase = case["phase"]
    step = transition(case["phase"], case["action"])
    made: Data = {"operation": step.operation.value, "hasStatusUpdate": step.rule is not None}
    if "retainPodPhases" in case:
        made["retainPodPhases"] = sorted(step.retain)
    if step.rule is not None:
        made["phaseChanged"] = step.rule(spec, status)
        made["newPhase"] = status.state.phase
        made["newRetryCount"] = status.retry_count
    expected = {k: sorted(v) if isinstance(v, list) else v for k, v in case.items() if k in made}
    if case["action"] == RESUME_JOB and made == expected | {"newRetryCount": case.get("newRetryCount", 0) - 1}:
        return f"{BECAUSE}failures-only"
    return "" if made == expected else f"made {made}, expected {expected}"


_HANDLERS = {"sync": "SyncQueue", "open": "OpenQueue", "close": "CloseQueue"}


def _queue_cell(case: Data) -> str:
    try:
        handler, state = next_state(case["state"], case["action"], len(case["podGroups"]))
    except ValueError as e:
        return "" if not case["handled"] else str(e)
    if not case["handled"]:
        return f"made {handler} {state}, expected a refusal"
    made = {"operation": _HANDLERS[handler], "newState": state}
    expected = {k: case.get(k) for k in made}
    return "" if made == expected else f"made {made}, expected {expected}"
