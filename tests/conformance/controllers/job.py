"""Rules of the job controller and of the garbage collector, one by one."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.conformance.controllers.comparing import NEVER_ASKED
from volcano_py.api.batch import Job, Task
from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.controllers import garbage, quota
from volcano_py.controllers.instructions import Again, Delete
from volcano_py.controllers.job.podgroup import by_priority, min_resources, sub_groups
from volcano_py.controllers.job.request import Request, decide
from volcano_py.controllers.job.state import FINISHED, total_minimum

Data = dict[str, Any]
_CLASS = "priority-"
BELOW_MINIMUM = f"{NEVER_ASKED}a job below its tasks' minimums does not take this step"


def job_min_resources(case: Data) -> str:
    match case["operation"]:
        case "job-min-resources":
            job = from_manifest(Job, case["input"]["job"])
            priorities = {c["metadata"]["name"]: c["value"] for c in _existing(case, "PriorityClass")}
            return _amounts(min_resources(job, priorities), case["output"].get("minResources"))
        case "tasks-min-resources":
            job = Job()
            job.spec.min_available = case["input"]["jobMinAvailable"]
            job.spec.tasks, priorities = _tasks(case["state"])
            if job.spec.min_available < total_minimum(job.spec):
                return BELOW_MINIMUM
            return _amounts(min_resources(job, priorities), case["output"].get("minResources"))
        case "tasks-priority-less":
            tasks, priorities = _tasks(case["state"])
            first, second = tasks[case["input"]["i"]], tasks[case["input"]["j"]]
            less = by_priority([second, first], priorities)[0] is first
            return _same(less, case["output"]["less"])
        case "subgroup-policy":
            job = Job()
            job.spec.tasks = [msgspec.convert(case["input"]["taskSpec"], Task)]
            made = sub_groups(job)
            return _same(
                {"minSubGroups": 0, **to_manifest(made[0])} if made else None, case["output"]["subGroupPolicy"]
            )
    return f"operation {case['operation']} is not known"


def _tasks(state: list[Data]) -> tuple[list[Task], dict[str, int]]:
    """Tasks whose recorded priorities stand in PriorityClasses."""
    tasks = []
    for entry in state:
        task = msgspec.convert(entry["TaskSpec"], Task)
        spec = {**((task.template or {}).get("spec") or {}), "priorityClassName": f"{_CLASS}{entry['priority']}"}
        task.template = {**(task.template or {}), "spec": spec}
        tasks.append(task)
    return tasks, {f"{_CLASS}{entry['priority']}": entry["priority"] for entry in state}


def _existing(case: Data, kind: str) -> list[Data]:
    return [o for o in case.get("existing") or () if o.get("kind") == kind]


def _amounts(made: Data, wanted: Data | None) -> str:
    """As quantities; an amount of nothing may be left out."""
    return "" if quota.same(made, wanted) else f"made {made}, expected {wanted}"


def _same(made: Any, wanted: Any) -> str:
    return "" if made == wanted else f"made {made!r}, expected {wanted!r}"


def job_policies(case: Data) -> str:
    asked = case["input"]["req"]
    request = Request(
        event=asked["Event"],
        action=asked["Action"],
        job_uid=asked["JobUid"],
        job_version=asked["JobVersion"] if asked["JobVersion"] or case["input"]["job"].get("status") else None,
        task=asked["TaskName"],
        pod=asked["PodName"],
        pod_uid=asked["PodUID"],
        partition=asked["PartitionID"],
        exit_code=asked["ExitCode"],
    )
    decision = decide(from_manifest(Job, case["input"]["job"]), request)
    wanted = case["output"]["result"]
    return _same((decision.action, decision.delay), (wanted["action"], parse_duration(wanted["delay"])))


def garbagecollector(case: Data) -> str:
    """Theirs are small steps of one rule: what to do with a job, and when."""
    given, output = case["input"], case["output"]
    job = from_manifest(Job, next(given[k] for k in ("job", "j", "finishedJob") if k in given))
    match case["operation"]:
        case "isJobFinished":
            return _same(job.status.state.phase in FINISHED, output["r0"])
        case "needsCleanup":
            job.status.state.last_transition_time = "2026-01-01T00:00:00Z"
            return _same(bool(garbage.reconcile(job, 0.0)), output["r0"])
        case "jobFinishTime" | "getFinishAndExpireTime" | "timeLeft" | "processTTL":
            return _when(case["operation"], job, given, output)
    return f"operation {case['operation']} is not known"


def _when(operation: str, job: Job, given: Data, output: Data) -> str:
    if operation == "jobFinishTime":  # asked of any job; ours asks only those that are to go
        job.status.state.phase, job.spec.ttl_seconds_after_finished = "Completed", 0
    stamp = given.get("now") or given.get("since") or job.status.state.last_transition_time
    now = parse_time(stamp) if stamp else 0.0
    try:
        found = garbage.reconcile(job, now)
    except ValueError as e:
        return "" if "error" in output else str(e)
    if "error" in output:
        return _same(found, [])
    left = found[0].seconds if found and isinstance(found[0], Again) else 0.0
    if operation == "processTTL":
        return _same(bool(found) and isinstance(found[0], Delete), output["expired"])
    if operation == "timeLeft":
        return _same(left, parse_duration(output["r0"]))
    ends = output["r1"] if operation == "getFinishAndExpireTime" else output["r0"]
    return _same(now + left, parse_time(ends))


def pod_quota_usage(case: Data) -> str:
    return _amounts(quota.total([(quota.usage(case["input"]["pod"]["spec"]), 1)]), case["output"]["r0"])


RUNNERS = {
    "job_min_resources": job_min_resources,
    "job_policies": job_policies,
    "garbagecollector": garbagecollector,
    "pod_quota_usage": pod_quota_usage,
}
"""File → what says where ours differs ("" if it does not)."""
