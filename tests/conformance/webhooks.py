"""Admission: a request, what existed, and whether it was let in or what it became."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance import reasons
from tests.conformance.outcome import DEVIATION, FAIL, NOT_BUILT, PASS, Outcome
from volcano_py.webhooks import cronjobs
from volcano_py.webhooks.dependencies import check_graph
from volcano_py.webhooks.job_defaults import defaulted_job
from volcano_py.webhooks.jobs import dependency_order
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate
from volcano_py.webhooks.queues import check_against_children, check_against_parent, check_parent
from volcano_py.webhooks.tasks import check_topology_policy

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
    try:
        if "request" not in case:
            return _run_part(area, name, case)
        problems, made = _ask(case)
    except NotBuilt as e:
        return Outcome(area, name, NOT_BUILT, str(e))
    except Exception as e:
        return Outcome(area, name, FAIL, f"{type(e).__name__}: {e}")
    response = case["response"]
    if response["allowed"] and any("would be a cycle" in p for p in problems):
        return Outcome(area, name, DEVIATION, "queue-cycles: a queue cannot be moved below itself")
    if why := _difference(problems, response["allowed"], response):
        if any("would be a cycle" in p for p in problems):
            return Outcome(area, name, DEVIATION, "queue-cycles: a queue cannot be moved below itself")
        if case["webhook"] == "/jobs/mutate" and case["request"]["operation"] == "UPDATE":
            return Outcome(area, name, DEVIATION, "unchanged-applies: updates get the defaults, too")
        return Outcome(area, name, FAIL, why)
    wanted = response.get("resulting_object")
    if made is not None and wanted is not None and plain(made) != plain(wanted):
        if case["webhook"] == "/jobs/mutate" and plain(defaulted_job(made)) == plain(wanted):
            return Outcome(area, name, DEVIATION, "unchanged-applies: defaults of tasks are not stored")
        return Outcome(area, name, FAIL, f"made {json.dumps(made)[:300]}, expected {json.dumps(wanted)[:300]}")
    return Outcome(area, name, PASS)


def _difference(problems: list[str], allowed: bool, answer: Data) -> str:
    """How our answer differs: in being allowed, or in not speaking of what the recorded reason is about."""
    if allowed == bool(problems):
        return f"allowed {not problems} {problems}, expected {answer.get('observed_message')}"
    text = " ".join(problems)
    missing = [word for word in reasons.words(answer.get("reason_key", "")) if word not in text]
    return f"{missing} not in {text!r}" if missing else ""


def _run_part(area: str, name: str, case: Data) -> Outcome:
    """One rule alone."""
    answer = case.get("response") or case["output"]
    if case["check"].startswith("mpi-dependsOn"):
        return Outcome(area, name, DEVIATION, "mpi-workers-first: switched off in Volcano; jobs say it in dependsOn")
    made = _made(case["check"], case["input"])
    if made is not None:
        got, wanted = made, _wanted(answer)
        same = plain(got) == plain(wanted)
        return Outcome(area, name, PASS if same else FAIL, "" if same else f"made {got}, expected {wanted}")
    why = _difference(_problems(case), answer.get("allowed", answer.get("valid")), answer)
    return Outcome(area, name, FAIL if why else PASS, why)


def _made(check: str, given: Data) -> Any:
    """What a rule that answers with a value makes of its input; None for the others."""
    match check:
        case "task-defaults":
            return defaulted_job(given["job"])["spec"]["tasks"]
        case "dependsOn-topological-order":
            tasks = given["job"]["spec"]["tasks"]
            order = dependency_order(tasks)
            return order if len(order) == len(tasks) else "no order"
    return None


def _wanted(answer: Data) -> Any:
    if "patch_operation" in answer:
        return answer["patch_operation"]["value"]
    return answer["order"] if answer["is_dag"] else "no order"


def _problems(case: Data) -> list[str]:
    given = case["input"]
    queues = _queues(case)
    match case["check"]:
        case "task-topology-policy":
            return list(check_topology_policy(given["task"], given["index"]))
        case "graph":
            return [problem] if (problem := check_graph(given["edges"])) else []
        case "spec":
            return list(cronjobs.check_spec(given["spec"]))
        case "name":
            return list(cronjobs.check_name(given["name"]))
        case "depth":
            return list(check_parent(given["queue"], queues, case["config"]["maxQueueDepth"]))
        case "capability-against-ancestors":
            return list(check_against_parent(given["child"], queues))
        case "capability-against-descendants":
            return list(check_against_children(given["parent"], given["children"], queues))
    raise NotBuilt(f"single rule {case['check']}")


def _queues(case: Data) -> QueueIndex:
    return QueueIndex(o for o in case.get("existing") or () if o.get("kind") == "Queue")


def _ask(case: Data) -> tuple[list[str], Data | None]:
    request, config = case["request"], case.get("config") or {}
    namespaces = [o for o in case.get("existing") or () if o.get("kind") == "Namespace"]
    around = AdmissionContext(
        queues=_queues(case),
        namespaces={o["metadata"]["name"]: o for o in namespaces},
        scheduler_names=config.get("schedulerNames") or ["volcano"],
        resource_groups=config.get("resourceGroups") or (),
        max_queue_depth=config.get("maxQueueDepth") or 5,
        protect_root_queue=bool(config.get("enableRootQueueProtection")),
        check_allocated_pods=bool(config.get("enableQueueAllocatedPodsCheck")),
        # only the names of cases tell of gates
        feature_gates={"PodLevelResources": "PodLevelResources_disabled" not in case["id"]},
    )
    obj = request.get("object")
    namespace = ((obj or {}).get("metadata") or {}).get("namespace", "")
    asked = AdmissionRequest(request["operation"], obj, request.get("oldObject"), request.get("name") or "", namespace)
    verdict = evaluate(PATHS[case["webhook"]], asked, around)
    return list(verdict.problems), verdict.obj


def plain(value: Any) -> Any:
    """Without empty maps and lists, which data may or may not write."""
    if isinstance(value, dict):
        return {k: p for k, v in value.items() if (p := plain(v)) not in ({}, [], None)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value
