"""The two implementations of admission, the policies in CEL and the Python functions, and objects for them."""

from __future__ import annotations

import copy
from typing import Any

from volcano_py.sandbox.apiserver.cel.expressions import evaluate_with
from volcano_py.webhooks import cel_queue_rules, cel_reservation_rules, cel_rules
from volcano_py.webhooks.cel_rules import Rule
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate

AROUND = AdmissionContext(
    queues=QueueIndex([{"metadata": {"name": "default"}, "spec": {}, "status": {"state": "Open"}}])
)
RULES = {
    "/jobs/validate": cel_rules.JOBS,
    "/queues/validate": cel_queue_rules.QUEUES,
    "/podgroups/validate": cel_rules.PODGROUPS,
    "/pods/validate": cel_rules.pods("volcano"),
    "/hypernodes/validate": cel_rules.HYPERNODES,
    "/cronjobs/validate": cel_rules.CRONJOBS,
    "/jobflows/validate": cel_rules.JOBFLOWS,
}
BESIDE = {
    "/jobs/validate": cel_queue_rules.JOBS_BESIDE,
    "/queues/validate": cel_queue_rules.QUEUES_BESIDE,
    "/podgroups/validate": cel_queue_rules.PODGROUPS_BESIDE,
    "/reservations/validate": cel_reservation_rules.RESERVATIONS_BESIDE,
}
"""Rules that are evaluated once for each queue, or each Reservation."""


def holds(rule: Rule, data: dict[str, Any]) -> bool:
    """Whether a rule is true; an error rejects the object, as with failurePolicy Fail."""
    try:
        return evaluate_with(rule.expression, data) is True
    except ValueError:
        return False


def denied(path: str, obj: Any, old: Any = None, operation: str = "") -> list[str]:
    operation = operation or ("UPDATE" if old is not None else "CREATE")
    data = {"object": obj, "oldObject": old, "request": {"operation": operation}}
    return [rule.message for rule in RULES[path] if not holds(rule, data)]


def denied_beside(path: str, others: list[Any], obj: Any, old: Any = None, operation: str = "") -> list[str]:
    operation = operation or ("UPDATE" if old is not None else "CREATE")
    data = {"object": obj, "oldObject": old, "request": {"operation": operation}}
    return [rule.message for one in others for rule in BESIDE[path] if not holds(rule, {**data, "params": one})]


def problems(path: str, obj: Any, old: Any = None, operation: str = "") -> list[str]:
    operation = operation or ("UPDATE" if old is not None else "CREATE")
    return list(evaluate(PATHS[path], AdmissionRequest(operation, obj, old), AROUND).problems)


def task(**fields: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    return {"name": "work", "replicas": 2, "template": template} | fields


def job(*tasks: Any, name: str = "train", **spec: Any) -> dict[str, Any]:
    tasks_ = list(tasks) or [task()]
    return {"metadata": {"name": name}, "spec": {"queue": "default", "tasks": tasks_, "minAvailable": 1} | spec}


def queue(annotations: Any = None, state: str = "", name: str = "q", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": spec} | ({"status": {"state": state}} if state else {})


def cronjob(name: str = "nightly", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedule": "@hourly", **spec}}


def changed(*path_and_value: Any) -> dict[str, Any]:
    """The job with one field of its pod spec, or of each of its containers, set."""
    *path, value = path_and_value
    made = job(task(template=copy.deepcopy(task()["template"])))
    place = made["spec"]["tasks"][0]["template"]["spec"]
    if path[0] == "containers":
        (place,), path = place["containers"], path[1:]
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return made
