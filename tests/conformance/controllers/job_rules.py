"""Small rules of the job controller: names, conditions, dependencies, volumes, pods, PodGroups, plugin hooks."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.conformance.controllers.comparing import BECAUSE, COVERED
from tests.conformance.controllers.writes import differing, job_of, ours, plain, recorded, same
from volcano_py.api.batch import Job, JobCondition, JobStatus, Task
from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.api.core import Pod
from volcano_py.api.meta import parse_time
from volcano_py.api.names import TASK_SPEC
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.dependencies import is_ready
from volcano_py.controllers.job.kill import end_pods
from volcano_py.controllers.job.observed import (
    Observed,
    Unready,
    enter_phase,
    find_task,
    is_out_of_sync,
    pod_name,
)
from volcano_py.controllers.job.podgroup import keep_podgroup
from volcano_py.controllers.job.pods import build_pod, podgroup_name
from volcano_py.controllers.job.volumes import keep_claims
from volcano_py.scheduler.framework.extension_points.orders import Orders
from volcano_py.scheduler.model.jobs.task import _index

Data = dict[str, Any]
NOW = 1_800_000_000.0


def job_conditions(case: Data) -> str:
    given = case["input"]
    status = JobStatus(conditions=msgspec.convert(given["conditions"], list[JobCondition]))
    status.state.phase = given["c"]["status"]
    enter_phase(status, NOW)
    return same([c.status for c in status.conditions or ()], [c["status"] for c in case["output"]["conditions"]])


def job_dependencies(case: Data) -> str:
    job = job_of(case["input"]["job"])
    task = find_task(job, case["input"]["task"])
    assert task is not None
    by_name = {o["metadata"]["name"]: o for o in case["existing"] if o["kind"] == "Pod"}
    # theirs asks for the pods by name; ours has them by what they say they are
    pods = []
    for index in range(task.replicas):
        found = by_name.get(pod_name(job, task.name, index))
        if found is not None:
            metadata = {**found["metadata"], "annotations": {TASK_SPEC: task.name}}
            pods.append(from_manifest(Pod, {**found, "metadata": metadata}))
    return same(is_ready(task, pods), case["output"]["ready"])


def job_helpers(case: Data) -> str:
    given, output = case["input"], case["output"]
    match case["operation"]:
        case "CompareTask":
            first, second = (from_manifest(Pod, given[side]["Pod"]) for side in ("lv", "rv"))
            return same(_before(given["lv"], first, given["rv"], second), output["result"])
        case "GetTaskIndexUnderJob":
            tasks = job_of(given["job"]).spec.tasks or []
            return same([t.name for t in tasks].index(given["taskName"]), output["result"])
        case "GetPodsNameUnderTask":
            job = job_of(given["job"])
            task = find_task(job, given["taskName"])
            made = [pod_name(job, given["taskName"], index) for index in range(task.replicas if task else 0)]
            return same(made, output["result"])
        case "GetTaskReplicasUnderJob":
            task = find_task(job_of(given["job"]), given["taskName"])
            return same(task.replicas if task else 0, output["result"])
        case "GetTaskIndexOfPod":
            # nobody reads the index back from a pod: who makes the pod hands it on
            return f"{COVERED}tests/controllers/test_job_plugins.py"
        case "IsOutOfSyncPod":
            return same(is_out_of_sync(from_manifest(Pod, given["pod"])), output["result"])
        case "OutOfSyncJSONPatch":
            pod = from_manifest(Pod, {"metadata": {"name": "p", "annotations": {"other": "value"}}})
            patch = json.loads(output["result"])
            wanted = recorded([{"verb": "patch", "resource": "pods", "name": "p", "patch": patch}])
            return same([w for w in ours(end_pods([pod])) if w["verb"] == "patch"], wanted)
    return f"operation {case['operation']} is not known"


def _before(left: Data, first: Pod, right: Data, second: Pod) -> bool:
    """By the scheduler's own order of the tasks of a job, without plugins."""

    def task(data: Data, pod: Pod) -> Any:
        created = parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0
        return SimpleNamespace(index=_index(pod.metadata.name), created=created, uid=data["UID"], key="")

    unordered: Any = SimpleNamespace(task_key=lambda _: ())
    return Orders.task_rank(unordered, task(left, first)).before(Orders.task_rank(unordered, task(right, second)))


def job_io(case: Data) -> str:
    given = case["input"]
    job = job_of(given["job"])
    match case["operation"]:
        case "create-io":
            try:
                keep_claims(Observed(job=job, now=NOW), JobStatus())
            except Unready as error:
                return same(str(error), case["output"]["error"])
            return same(None, case["output"].get("error"))
        case "create-pvc":
            job.spec.volumes = msgspec.convert(
                [{"mountPath": "/v", "volumeClaimName": given["vcName"], "volumeClaim": given["volumeClaim"]}], list
            )
            job = job_of(to_manifest(job))
            made = [w for w in ours(keep_claims(Observed(job=job, now=NOW), JobStatus())) if w["verb"] == "create"]
            only_ours, only_theirs = differing(made, recorded(case["writes"]))
            return same(only_ours, only_theirs)
        case "init-status":
            return same(job.status.state.phase, case["output"]["r0"]["status"]["state"]["phase"])
    return f"operation {case['operation']} is not known"


def job_create_pod(case: Data) -> str:
    given = case["input"]
    if case["operation"] == "pod-name":
        job = Job()
        job.metadata.name = given["jobName"]
        return same(pod_name(job, given["taskName"], given["index"]), case["output"]["name"])
    job = job_of(given["job"])
    task = msgspec.convert({**given["ts"], "template": given["template"]}, Task)
    # theirs names the template after the task before it comes here
    task.name = (given["template"].get("metadata") or {}).get("name", "")
    made = build_pod(job, task, given["ix"], forwarding=given["jobForwarding"])
    wanted = case["output"]["pod"]
    return same(made, wanted)


def job_podgroup(case: Data) -> str:
    job = job_of(case["input"]["job"])
    existing = [o for o in case.get("existing") or () if o["kind"] == "PodGroup"]
    found = next((o for o in existing if o["metadata"]["name"] in (podgroup_name(job), job.metadata.name)), None)
    priorities = {o["metadata"]["name"]: o["value"] for o in case.get("existing") or () if o["kind"] == "PriorityClass"}
    podgroup = from_manifest(PodGroup, found) if found else None
    made = ours(keep_podgroup(Observed(job=job, podgroup=podgroup, priorities=priorities, now=NOW)))
    wanted = recorded(case.get("writes") or ())
    if found is None:
        return same([w["object"] for w in made], [w["object"] for w in wanted])
    # theirs replaces the object, ours patches what differs: the outcome is compared
    spec = dict(found.get("spec") or {})
    for write in made:
        spec |= write["object"].get("spec") or {}
    after = wanted[0]["object"]["spec"] if wanted else found.get("spec") or {}
    return same(spec, after)


def job_plugin_hooks(case: Data) -> str:
    job = job_of(case["input"]["job"])
    try:
        match case["operation"]:
            case "pluginOnPodCreate":
                pod = plain(case["input"]["pod"])
                plugins.on_pod_create(pod, job, Task(), 0)
                wanted = (case.get("after") or {}).get("pod")
                if "error" in case["output"]:
                    return "expected an error"
                return same(pod, wanted)
            case "pluginOnJobAdd":
                status = JobStatus()
                made = ours(plugins.on_job_add(job, status))
                if "error" in case["output"]:
                    return "expected an error"
                wanted_status = (case["after"]["job"].get("status") or {}).get("controlledResources")
                if wrong := same(status.controlled_resources, wanted_status):
                    return wrong
                return same(_kinds(made), _kinds(recorded(case["writes"])))
            case "pluginOnJobDelete":
                plugins.on_job_delete(job, JobStatus())
                return f"{BECAUSE}stoppable-without-plugin" if "error" in case["output"] else ""
    except Unready as error:
        return "" if "error" in case["output"] else str(error)
    return f"operation {case['operation']} is not known"


def _kinds(writes: list[Data]) -> list[tuple[str, str, str]]:
    return sorted((w["verb"], w["resource"], w["name"]) for w in writes)


RUNNERS = {
    "job_conditions": job_conditions,
    "job_dependencies": job_dependencies,
    "job_helpers": job_helpers,
    "job_io": job_io,
    "job_create_pod": job_create_pod,
    "job_podgroup": job_podgroup,
    "job_plugin_hooks": job_plugin_hooks,
}
