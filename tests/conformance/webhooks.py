"""Admission: a request, what existed, and whether it was let in or what it became."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.outcome import DEVIATION, FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.webhooks.jobs import mutate_job, validate_job_create, validate_job_update
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.podgroups import mutate_podgroup, validate_podgroup
from volcano_py.webhooks.queues import mutate_queue, validate_queue, validate_queue_delete

Data = dict[str, Any]


class NotBuilt(Exception):
    """The webhook or the single rule has no counterpart yet."""


def run_folder(folder: Path) -> Iterator[Outcome]:
    """All admission cases below a folder."""
    for path in sorted(folder.glob("*.json")):
        for case in json.loads(path.read_text()):
            yield run_case(path.stem, case)


def run_case(file: str, case: Data) -> Outcome:
    area, name = "webhooks", f"{file}: {case['id']}"
    if "request" not in case:
        return Outcome(area, name, NOT_BUILT, "single rules")
    try:
        problems, made = _ask(case)
    except NotBuilt as e:
        return Outcome(area, name, NOT_BUILT, str(e))
    except Exception as e:
        return Outcome(area, name, FAIL, f"{type(e).__name__}: {e}")
    response = case["response"]
    allowed = not problems
    if allowed != response["allowed"]:
        if response["allowed"] and any("would be a cycle" in p for p in problems):
            return Outcome(area, name, DEVIATION, "queue-cycles: a queue cannot be moved below itself")
        if response["allowed"] and all("aggregate container" in p for p in problems):
            # Only the PodLevelResources gate switches this rule off, and a case does not carry its gates.
            return Outcome(area, name, NOT_BUILT, "feature gates are not in the data")
        return Outcome(area, name, FAIL, f"allowed {allowed} {problems}, expected {response.get('observed_message')}")
    wanted = response.get("resulting_object")
    if made is not None and wanted is not None and _plain(made) != _plain(wanted):
        return Outcome(area, name, FAIL, f"made {json.dumps(made)[:300]}, expected {json.dumps(wanted)[:300]}")
    return Outcome(area, name, PASS)


def _ask(case: Data) -> tuple[list[str], Data | None]:
    request, config = case["request"], case.get("config") or {}
    queues = QueueIndex(o for o in case.get("existing") or () if o.get("kind") == "Queue")
    obj, old, operation = request.get("object"), request.get("oldObject"), request["operation"]
    match case["webhook"]:
        case "/jobs/mutate":
            scheduler = (config.get("schedulerNames") or ["volcano"])[0]
            if operation == "CREATE":
                return [], mutate_job(obj, scheduler)
        case "/jobs/validate":
            if operation == "CREATE":
                return validate_job_create(obj, queues, pod_level_resources=True), None
            if operation == "UPDATE" and old is not None:
                return validate_job_update(old, obj), None
        case "/queues/mutate" if operation == "CREATE":
            return [], mutate_queue(obj)
        case "/queues/validate":
            protect = bool(config.get("enableRootQueueProtection"))
            if operation == "DELETE":
                pods = bool(config.get("enableQueueAllocatedPodsCheck"))
                return validate_queue_delete(request["name"], queues, check_allocated_pods=pods), None
            if operation in ("CREATE", "UPDATE"):
                depth = config.get("maxQueueDepth") or 5
                return validate_queue(obj, queues, old=old, max_depth=depth, protect_root=protect), None
        case "/podgroups/validate" if operation == "CREATE":
            return validate_podgroup(obj, queues), None
        case "/podgroups/mutate":
            namespace = next((o for o in case.get("existing") or () if o.get("kind") == "Namespace"), None)
            return [], mutate_podgroup(obj, namespace)
    raise NotBuilt(f"{case['webhook']} {operation}")


def _plain(value: Any) -> Any:
    """Without empty maps and lists, which data may or may not write."""
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := _plain(v)) not in ({}, [], None)}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value
