"""The job controller's picture of jobs and pods. Volcano: jobcache and the informer handlers that fill it.

Ours is a mirror of jobs, and a mirror of pods with an index by the uid of their controller; theirs one map of both. The
recorded pods lack what makes them a job's (uid and owner reference); they are completed with it. An error of theirs
means that nothing changes.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from tests.conformance.controllers.comparing import COVERED, NEVER_ASKED, in_a_loop, resting
from tests.conformance.controllers.writes import job_of, same
from volcano_py.api import names
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest, to_manifest
from volcano_py.api.core import Pod
from volcano_py.api.kinds import JOB, POD
from volcano_py.controllers.job import events
from volcano_py.controllers.runner import pods_of_task

Data = dict[str, Any]


class Picture:
    """Our mirrors, filled and read in the shape of theirs."""

    def __init__(self, jobs: Data) -> None:
        cluster = resting()
        self.jobs, self.pods = cluster.mirror(JOB), cluster.mirror(POD)
        for key, info in jobs.items():
            if info.get("Job"):
                self.see_job(info["Job"])
            for task, pods in (info.get("Pods") or {}).items():
                for name, pod in pods.items():
                    self.see_pod(_completed(pod, key, task=task, name=name))

    def see_job(self, manifest: Data) -> None:
        obj = job_of(manifest)
        obj.metadata.resource_version = ""  # arbitrary in the recordings
        obj.metadata.uid = f"uid-of-{obj.key}"
        self.jobs.informer._put(obj)

    def see_pod(self, pod: Pod) -> None:
        if events.job_key(pod) is not None:
            self.pods.informer._put(pod)

    def state(self) -> Data:
        """Jobs by key, and their pods by task, and by task and partition."""
        keys = {job.key for job in self.jobs.all()} | {k for pod in self.pods.all() if (k := events.job_key(pod))}
        return {key: self._info(key) for key in keys}

    def _info(self, key: str) -> Data:
        job = self.jobs.get(key)
        pods: Data = {}
        partitions: Data = {}
        for pod in self.pods.by_index(f"uid-of-{key}"):
            request = events.pod_deleted(pod)
            pods.setdefault(request.task, {})[pod.metadata.name] = pod.status.phase
            if request.partition and (job is None or _is_parted(job, request.task)):
                slot = partitions.setdefault(request.task, {}).setdefault("Partition", {})
                slot.setdefault(request.partition, {})[pod.metadata.name] = True
        for task in (job.spec.tasks if job else None) or ():
            if task.partition_policy is not None:
                topology = to_manifest(task.partition_policy).get("networkTopology")
                partitions.setdefault(task.name, {})["NetworkTopology"] = topology
        return {"Job": _brief(job), "Pods": pods, "Partitions": partitions}


def _is_parted(job: Job, task: str) -> bool:
    return any(one.name == task and one.partition_policy is not None for one in job.spec.tasks or ())


def _brief(job: Job | None) -> Data | None:
    return {"name": job.metadata.name, "phase": job.status.state.phase} if job else None


def _theirs(jobs: Data) -> Data:
    """A recorded state in the same form; a map without anything in it may stand there or not."""
    found = {}
    for key, info in jobs.items():
        pods = {
            task: {name: ((pod or {}).get("status") or {}).get("phase", "") for name, pod in by.items()}
            for task, by in (info.get("Pods") or {}).items()
        }
        partitions: Data = {}
        for task, each in (info.get("Partitions") or {}).items():
            inside = {i: dict.fromkeys(by, True) for i, by in (each.get("Partition") or {}).items()}
            partitions[task] = {"NetworkTopology": each.get("NetworkTopology"), "Partition": inside}
        job = _brief(job_of(info["Job"])) if info.get("Job") else None
        found[key] = {"Job": job, "Pods": pods, "Partitions": partitions}
    return found


def _completed(manifest: Data, key: str = "", task: str = "", name: str = "") -> Pod:
    """The pod as the job controller would have made it, where the recording leaves things out."""
    made = copy.deepcopy(manifest)
    metadata = made.setdefault("metadata", {})
    metadata["name"] = metadata.get("name") or name
    annotations = metadata.setdefault("annotations", {})
    if key:
        namespace, _, job_name = key.partition("/")
        metadata["namespace"] = namespace
        annotations.setdefault(names.JOB_NAME, job_name)
    if task:
        annotations.setdefault(names.TASK_SPEC, task)
        annotations.setdefault(names.JOB_VERSION, "0")
    if not annotations.get(names.JOB_VERSION, "0").isdecimal():
        annotations[names.JOB_VERSION] = "0"  # "v1": the map takes any text, the handlers before it only numbers
    owner_key = f"{metadata.get('namespace', '')}/{annotations.get(names.JOB_NAME, '')}"
    owner = {"apiVersion": JOB.api_version, "kind": JOB.kind, "uid": f"uid-of-{owner_key}", "controller": True}
    metadata["ownerReferences"] = [owner]
    metadata.setdefault("uid", f"uid-of-{metadata.get('namespace', '')}/{metadata['name']}")
    return from_manifest(Pod, made)


def job_cache(case: Data) -> str:
    state = case.get("state") or {}
    after = (case.get("after") or {}).get("state", state)
    if "jobs" in state or "cache" in state:
        before, later, key = _jobs(state), _jobs(after), ""
    else:  # the entry of one job alone
        key = f"{state.get('Namespace') or 'test-ns'}/{state.get('Name') or 'test-job'}"
        before, later = {key: state}, {key: after}
    return str(in_a_loop(lambda: _run(case, before, later, key)))


def _jobs(state: Data) -> Data:
    jobs: Data = state.get("cache", state)["jobs"]
    return jobs


def _run(case: Data, before: Data, later: Data, key: str) -> str:
    if case["operation"] == "Clone":
        return f"{COVERED}tests/controllers/test_mirror.py"  # what the mirror holds is replaced, never changed
    if case["operation"] == "Update" and not before:
        return f"{NEVER_ASKED}an informer updates only what it has added"
    picture = Picture(before)
    given, output = case["input"], case["output"]
    if (answer := _asked(case["operation"], picture, given, key, output)) is not None:
        return answer
    _do(case["operation"], picture, given, key)
    return same(_without_empty_jobs(picture.state()), _without_empty_jobs(_theirs(later)))


def _without_empty_jobs(jobs: Data) -> Data:
    """Theirs keeps the entry of a deleted job until its pods are gone."""
    return {key: info for key, info in jobs.items() if info["Job"] or any(info["Pods"].values())}


def _do(operation: str, picture: Picture, given: Data, key: str) -> None:
    job = given.get("job") or given.get("newObj") or given.get("obj")
    pod = given.get("pod") or given.get("newObj") or given.get("obj")
    match operation:
        case "Add" | "Update" | "addJob" | "updateJob" | "SetJob":
            picture.see_job(job)
        case "Delete" | "deleteJob":
            _drop(picture.jobs, job_of(job).key)
        case "AddPod" | "addPod":
            picture.see_pod(_completed(pod, key))
        case "UpdatePod" | "updatePod":
            known = _completed(pod, key)
            if known.key in {one.key for one in picture.pods.all()}:
                picture.see_pod(known)
        case "DeletePod" | "deletePod":
            _drop(picture.pods, _completed(pod, key).key)
        case "addCommand" | "updatePodGroup":
            pass
        case _:
            raise ValueError(f"operation {operation} is not known")


def _drop(mirror: Any, key: str) -> None:
    known = mirror.get(key)
    if known is not None:
        mirror.informer._drop(key, known)


def _asked(operation: str, picture: Picture, given: Data, key: str, output: Data) -> str | None:
    """The answer to a question; None for what changes the picture."""
    match operation:
        case "Get":
            job = picture.jobs.get(given["key"])
            return same(_brief(job), _brief(job_of(output["r0"]["Job"])) if output.get("r0") else None)
        case "GetStatus":
            job = picture.jobs.get(given["key"])
            wanted = output["r0"]["state"]["phase"] if output["r0"] else None
            return same(job.status.state.phase if job else None, wanted)
        case "HasPod":
            pod = _completed(given["pod"], key)
            return same(pod.metadata.name in _names(picture, events.job_key(pod), pod), output["r0"])
        case "TaskCompleted":
            return same(_completes(picture, given["jobKey"], given["taskName"]), output["r0"])
        case "GetPartitionID":
            return same(events.pod_deleted(_completed(given["pod"], "n/j", "t", "p")).partition, output["r0"])
    return None


def _names(picture: Picture, key: str | None, pod: Pod) -> Data:
    info = picture.state().get(key or "", {"Pods": {}})
    found: Data = info["Pods"].get((pod.metadata.annotations or {}).get(names.TASK_SPEC, ""), {})
    return found


def _completes(picture: Picture, key: str, task: str) -> bool:
    """Whether the pod that succeeds last is told as the end of its task."""
    job = picture.jobs.get(key)
    pods = picture.pods.by_index(f"uid-of-{key}")
    for pod in pods:
        if pod.status.phase == "Succeeded" and (pod.metadata.annotations or {})[names.TASK_SPEC] == task:
            before = _completed({**to_manifest(pod), "status": {"phase": "Running"}})
            found = partial(_pods_of, picture, key)
            return events.pod_updated(before, pod, job, found).event == "TaskCompleted"
    return False


def _pods_of(picture: Picture, key: str, task: str, phase: str) -> Any:
    return picture.pods.by_index(pods_of_task(f"uid-of-{key}", task, phase))


RUNNERS = {"job_cache": job_cache, "job_handlers": job_cache}
