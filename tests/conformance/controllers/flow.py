"""JobFlow and JobTemplate: jobs made, status, phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tests.conformance.controllers.comparing import Data, existing, in_a_loop, resting, same, see, without_times
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.flow import Flow, FlowJobStatus, JobFlow, JobFlowStatus, JobTemplate
from volcano_py.api.meta import parse_time
from volcano_py.controllers import jobtemplate
from volcano_py.controllers.instructions import Create, Instruction, Together, UpdateStatus
from volcano_py.controllers.jobflow.controller import JobFlowController
from volcano_py.controllers.jobflow.members import is_made_by, job_name, make_job, mark
from volcano_py.controllers.jobflow.reconcile import Observed, reconcile
from volcano_py.controllers.jobflow.state import next_phase
from volcano_py.controllers.jobflow.status import histories, status_of
from volcano_py.controllers.jobtemplate import JobTemplateController

NOW = 1_800_000_000.0
"""Times of the recording are not compared."""


def jobflow(case: Data) -> str:
    given, output = case["input"], case["output"]
    match case["operation"]:
        case "getJobName":
            return same(job_name(given["jobFlowName"], given["jobTemplateName"]), output["r0"])
        case "GenerateObjectString":
            return same(mark(given["namespace"], given["name"]), output["r0"])
        case "getJobFlowNameByJob":
            owners = from_manifest(Job, given["job"]).metadata.owner_references or ()
            return same([owner.name for owner in owners if owner.kind == "JobFlow"], [output["r0"]])
        case "getRunningHistories":
            before = msgspec.convert(given["jobStatusList"], list[FlowJobStatus])
            job = from_manifest(Job, given["job"])
            made = histories(job, next((one for one in before if one.name == job.metadata.name), None), NOW)
            return same([msgspec.to_builtins(one) for one in made], output["r0"])
        case "getAllJobsCreatedByJobFlow":
            flow = from_manifest(JobFlow, given["jobFlow"])
            found = {job.metadata.name for job in _jobs(case) if is_made_by(job, flow)}
            return same(found, {job["metadata"]["name"] for job in output["r0"]})
        case "getAllJobStatus":
            flow = from_manifest(JobFlow, given["jobFlow"])
            members = [job for job in _jobs(case) if is_made_by(job, flow)]
            return same(_plain(status_of(members, flow.status, (), NOW)), _unordered(output["r0"]))
        case "loadJobTemplateAndSetJob":
            flow = from_manifest(JobFlow, given["jobFlow"])
            template = from_manifest(JobTemplate, existing(case, "JobTemplate")[0])
            manifest = make_job(flow, Flow(name=given["flowName"]), template)
            return same(manifest["metadata"], case["after"]["job"]["metadata"])
        case "syncJobFlow" | "deployJob" | "deleteAllJobsCreatedByJobFlow":
            return _reconciled(case)
        case "addJobFlow" | "updateJobFlow" | "updateJob":
            return _noticed(case, JobFlowController)
    return f"operation {case['operation']} is not known"


def _reconciled(case: Data) -> str:
    """The jobs that are made, and the status that is written; a missing write means none."""
    flow = from_manifest(JobFlow, case["input"]["jobFlow"])
    templates = [from_manifest(JobTemplate, template) for template in existing(case, "JobTemplate")]
    jobs = {job.metadata.name: job for job in _jobs(case)}
    by_name = {template.metadata.name: template for template in templates}
    if case["operation"] == "deleteAllJobsCreatedByJobFlow":
        flow.status.state.phase, flow.spec.job_retain_policy = "Succeed", "delete"
    made = reconcile(Observed(flow, NOW, by_name, jobs))
    writes = case.get("writes") or []
    wrong = same(
        [one.obj["metadata"] for one in _flat(made) if isinstance(one, Create)],
        [write["object"]["metadata"] for write in writes if write["verb"] == "create"],
    )
    if wrong or case["operation"] != "syncJobFlow":
        return wrong or same([one for one in made if type(one).__name__ == "Delete"], [])
    status = [one.status for one in made if isinstance(one, UpdateStatus)]
    return same(_unordered(status[0]), _unordered(case["after"]["jobFlow"]["status"]))


def _flat(instructions: list[Instruction]) -> list[Any]:
    return [one for each in instructions for one in (each.instructions if isinstance(each, Together) else [each])]


def _plain(status: JobFlowStatus) -> Data:
    return _unordered(msgspec.to_builtins(status))


def _unordered(status: Data) -> Data:
    """Volcano lists jobs in the order of its cache, which is none."""
    plain: Data = without_times({key: value for key, value in status.items() if key != "state"})
    for condition in (plain.get("conditions") or {}).values():
        condition.pop("createTime", None)
    ordered = {key: sorted(value, key=str) if isinstance(value, list) else value for key, value in plain.items()}
    ended = {one["name"]: one.get("endTimestamp") for one in status.get("jobStatusList") or ()}
    times = {name: parse_time(time) if time else None for name, time in ended.items()}
    return {**ordered, "ended": times, "phase": (status.get("state") or {}).get("phase", "")}


def _jobs(case: Data) -> list[Job]:
    return [from_manifest(Job, job) for job in existing(case, "Job")]


def jobflow_state_matrix(case: Data) -> str:
    members = msgspec.convert(case["status"], JobFlowStatus)
    made = next_phase(case["phase"], members, case["totalJobs"])
    return same(made, case["newPhase"] if case["hasStatusUpdate"] else None)


def jobtemplate_(case: Data) -> str:
    match case["operation"]:
        case "GetTemplateString":
            return same(mark(case["input"]["namespace"], case["input"]["name"]), case["output"]["r0"])
        case "syncJobTemplate":
            template = from_manifest(JobTemplate, case["input"]["jobTemplate"])
            made = jobtemplate.reconcile(template, _jobs(case))
            written = [one.status for one in made if isinstance(one, UpdateStatus)]
            return same(written, [write["object"]["status"] for write in case.get("writes") or ()])
        case "addJobTemplate" | "addJob":
            return _noticed(case, JobTemplateController)
    return f"operation {case['operation']} is not known"


def _noticed(case: Data, controller: Callable[..., Any]) -> str:
    """An object that is added, or changed, is looked at."""
    given = case["input"]

    def work() -> int:
        cluster = resting()
        made = controller(cluster)
        see(cluster, [given["obj"]] if "obj" in given else [given["oldObj"], given["newObj"]])
        return len(made.queue)

    return same(in_a_loop(work), 1)


RUNNERS: dict[str, Callable[[Data], str]] = {
    "jobflow": jobflow,
    "jobflow_state_matrix": jobflow_state_matrix,
    "jobtemplate": jobtemplate_,
}
