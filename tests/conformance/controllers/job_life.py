"""What the job controller does with a whole job: sync, kill, and the steps of its states, with the writes they cause.

Where ours writes something else on purpose, the answer names the deviation.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.controllers.comparing import BECAUSE, existing
from tests.conformance.controllers.writes import differing, job_of, ours, plain, recorded, same, untimed
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.names import TASK_SPEC
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.instructions import UpdateStatus
from volcano_py.controllers.job.kill import Target, end_pods, kill
from volcano_py.controllers.job.observed import Observed
from volcano_py.controllers.job.pods import podgroup_name
from volcano_py.controllers.job.reconcile import reconcile
from volcano_py.controllers.job.request import Decision, Request
from volcano_py.controllers.job.state import Operation, transition
from volcano_py.controllers.job.sync import sync

Data = dict[str, Any]
NOW = 1_800_000_000.0
COUNTERS = ("pending", "running", "succeeded", "failed", "unknown", "taskStatusCount", "minAvailable")
"""What theirs forgets in a kill."""


def job_kill(case: Data) -> str:
    given = case["input"]
    if case["operation"] == "delete-pod":
        return _differing([w for w in ours(end_pods([_pod(given["pod"], "")])) if w["verb"] == "delete"], case)
    info = given["jobInfo"]
    job = job_of(info["Job"])
    target = given.get("target")
    aim = Target(target["TaskName"], target["PodName"], target["PartitionName"]) if target else None
    seen = Observed(job=job, pods=_pods(info), podgroup=_podgroup(case, job), now=NOW)
    return _differing(ours(kill(seen, frozenset(given["podRetainPhase"] or ()), None, aim)), case)


def job_sync(case: Data) -> str:
    info = case["input"]["jobInfo"]
    job = job_of(info["Job"])
    seen = Observed(job=job, pods=_pods(info), podgroup=_podgroup(case, job), queue=Queue(), now=NOW)
    made, wanted = ours(sync(seen, None)), recorded(case.get("writes") or ())
    # what the objects hold is compared in job_create_pod, job_podgroup and job-plugins
    if wrong := same(_targets(made), _targets(wanted)):
        return wrong
    one, other = (_fairly(next(w["object"] for w in writes if w["verb"] == "status")) for writes in (made, wanted))
    if wrong := same(_without_conditions(one), _without_conditions(other)):
        return wrong
    return f"{BECAUSE}transition-time" if same(one, other) else ""


def _fairly(status: Data) -> Data:
    """The recording's API server answered a creation without a phase, and its pods do not say what task they are of."""
    status = untimed(status)
    status.pop("taskStatusCount", None)
    status["pending"] = status.get("pending", 0) + status.pop("unknown", 0)
    return status


def _without_conditions(status: Data) -> Data:
    return {k: v for k, v in status.items() if k != "conditions"}


def _targets(writes: list[Data]) -> list[tuple[str, str, str]]:
    """Which objects are written; theirs replaces a PodGroup, ours patches it."""
    return sorted(("patch" if w["verb"] == "update" else w["verb"], w["resource"], w["name"]) for w in writes)


def job_state_tests(case: Data) -> str:
    """A state's step: which operation it is, and whether the job's version grows with it."""
    info = case["state"]["job"]
    job = job_of(info["Job"])
    action = case["input"]["action"]
    target = action["Target"]
    request = Request(
        action=action["Action"], task=target["TaskName"], pod=target["PodName"], partition=target["PartitionName"]
    )
    seen = Observed(job=job, pods=_pods(info), podgroup=_podgroup(case, job), queue=Queue(), now=NOW)
    made = reconcile(seen, request, Decision(action["Action"]))
    step = transition(job.status.state.phase, action["Action"])
    after = (case.get("after") or {}).get("state", {}).get("job", info)["Job"].get("status") or {}
    grows = after.get("version", 0) > (job.status.version or 0)
    if grows != (step.operation is Operation.KILL):
        return f"the step is {step.operation.value}, the version of theirs {'grows' if grows else 'stays'}"
    statuses = [one.status for one in made if isinstance(one, UpdateStatus)]
    ours_grows = any(status.get("version", 0) > job.status.version for status in statuses)
    if grows and not ours_grows:
        stopped = [w for w in ours(made) if w["resource"] == "pods"]
        moved = any(s["state"].get("phase") != job.status.state.phase for s in statuses)
        return f"{BECAUSE}quiet-versions" if not stopped and not moved else "the version stays although pods are ended"
    return "" if ours_grows == grows else "the version grows"


def _pods(info: Data) -> list[Pod]:
    found = []
    for task, pods in (info.get("Pods") or {}).items():
        found += [_pod(pod, task) for pod in pods.values()]
    return found


def _pod(manifest: Data, task: str) -> Pod:
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), TASK_SPEC: task}
    return from_manifest(Pod, {**manifest, "metadata": {**metadata, "annotations": annotations}})


def _podgroup(case: Data, job: Job) -> PodGroup | None:
    names = (podgroup_name(job), job.metadata.name)
    found = next((o for o in existing(case, "PodGroup") if o["metadata"]["name"] in names), None)
    return from_manifest(PodGroup, found) if found else None


def _differing(made: list[Data], case: Data) -> str:
    """Where the writes differ; counters that survive, and plugin objects kept by a targeted kill, are named."""
    wanted = recorded(case.get("writes") or ())
    for write in (*made, *wanted):
        if write["verb"] == "status":
            write["object"] = untimed(write["object"])
    only_ours, only_theirs = differing(made, wanted)
    if not only_ours and not only_theirs:
        return ""
    reasons = []
    if len(only_ours) == len(only_theirs) == 1 and only_ours[0]["verb"] == only_theirs[0]["verb"] == "status":
        one, other = (_without(w[0]["object"]) for w in (only_ours, only_theirs))
        if plain(one) == plain(other):
            reasons.append("counters-survive")
    if reasons:
        return BECAUSE + " and ".join(reasons)
    return f"only ours {[_short(w) for w in only_ours]}, only theirs {[_short(w) for w in only_theirs]}"


def _short(write: Data) -> str:
    return f"{write['verb']} {write['resource']} {write['name']} {str(plain(write.get('object')))[:300]}"


def _without(status: Data) -> Data:
    return {k: v for k, v in status.items() if k not in COUNTERS}


RUNNERS = {"job_kill": job_kill, "job_sync": job_sync, "job_state_tests": job_state_tests}
