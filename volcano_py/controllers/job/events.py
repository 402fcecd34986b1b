"""Maps informer events to requests of a Job. Volcano: job controller, handlers.

An object that the informer adds may be older than the process: its changes happened while no controller ran. Unlike
in Volcano, an added pod that is Failed counts as failing now, a task whose pods are all Succeeded counts as completed
now, and so on: otherwise the policies would miss events during a restart of the controller. Only a pod that is still
pending is reported as pending.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volcano_py.api import batch, bus, names
from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.kinds import JOB
from volcano_py.api.scheduling import PENDING, UNKNOWN, PodGroup
from volcano_py.controllers.job.observed import find_task, is_out_of_sync, is_terminating, task_of
from volcano_py.controllers.job.request import Request

_TAKEN = frozenset(("Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "UnexpectedAdmissionError"))
"""`status.reason` of pods that the kubelet or a controller has evicted."""


def job_key(pod: Pod) -> str | None:
    """`namespace/name` of the Job that a pod belongs to; None if it has no Job."""
    owner = pod.metadata.controller
    annotations = pod.metadata.annotations or {}
    if owner is None or owner.kind != JOB.kind or owner.api_version != JOB.api_version:
        return None
    if names.TASK_SPEC not in annotations or not annotations.get(names.JOB_VERSION, "").isdecimal():
        return None
    name = annotations.get(names.JOB_NAME)
    return f"{pod.metadata.namespace}/{name}" if name else None


PodsOf = Callable[[str, str], Sequence[Pod]]
"""The current pods of the Job, by task and phase. Called rarely: a Job may have thousands of pods."""


def job_added(job: Job, pods_of: PodsOf) -> list[Request]:
    """A sync request; and requests for tasks whose pods had all succeeded before the Job was added."""
    requests = [Request(bus.OUT_OF_SYNC)]
    for task in job.spec.tasks or ():
        ended = [pod for pod in pods_of(task.name, "Succeeded") if job_key(pod) and not is_out_of_sync(pod)]
        if 0 < task.replicas <= len(ended):
            requests.append(_request(ended[0], bus.TASK_COMPLETED))
    return requests


def pod_added(pod: Pod, job: Job | None, pods_of: PodsOf) -> Request:
    if is_out_of_sync(pod):
        return _request(pod, bus.OUT_OF_SYNC)
    match pod.status.phase:
        case "Failed":
            return _request(pod, bus.POD_FAILED, _exit_code(pod), was_evicted(pod))
        case "Succeeded" if _is_complete(job, pod, pods_of):
            return _request(pod, bus.TASK_COMPLETED)
        case "Running":
            return _request(pod, bus.POD_RUNNING)
        case "" | "Pending":
            return _request(pod, bus.POD_PENDING)
    return _request(pod, bus.OUT_OF_SYNC)


def is_pending(pod: Pod) -> bool:
    """Whether the pod still waits for its start, and is not being deleted."""
    return pod.status.phase in ("", "Pending") and not is_terminating(pod) and not is_out_of_sync(pod)


def pod_updated(old: Pod, new: Pod, job: Job | None, pods_of: PodsOf) -> Request:
    if is_out_of_sync(new):
        return _request(new, bus.OUT_OF_SYNC)
    before, phase = old.status.phase, new.status.phase
    if phase == "Failed" and before != phase:
        return _request(new, bus.POD_FAILED, _exit_code(new), was_evicted(new))
    if phase == "Succeeded" and before != phase and _is_complete(job, new, pods_of):
        return _request(new, bus.TASK_COMPLETED)
    if phase == "Running" and before != phase:
        return _request(new, bus.POD_RUNNING)
    if phase == "Pending" and before != phase:
        return _request(new, bus.POD_PENDING)
    if phase in ("Running", "Pending") and _restarts_too_often(job, new, pods_of):
        return _request(new, bus.TASK_FAILED)
    return _request(new, bus.OUT_OF_SYNC)


def pod_deleted(pod: Pod) -> Request:
    if is_out_of_sync(pod):
        return _request(pod, bus.OUT_OF_SYNC)
    return _request(pod, bus.POD_EVICTED, evicted=True)


def was_evicted(pod: Pod) -> bool:
    """Whether a failed pod was evicted (by the kubelet, taints, the eviction API, or preemption)."""
    if pod.status.reason in _TAKEN:
        return True
    return any(c.type == "DisruptionTarget" and c.status == "True" for c in pod.status.conditions or ())


_UNKNOWN = Request(bus.JOB_UNKNOWN, evicted=True)
"""Members of a running gang are pending again: they were evicted, or their node was lost."""


def podgroup_added(podgroup: PodGroup) -> Request | None:
    """A request for a PodGroup that is already Unknown or admitted when it is added, as after a broken watch."""
    if podgroup.status.phase == UNKNOWN:
        return _UNKNOWN
    return None if podgroup.status.phase in ("", PENDING) else Request(bus.OUT_OF_SYNC)


def podgroup_updated(old: PodGroup, new: PodGroup) -> Request | None:
    """None if the phase is unchanged."""
    if old.status.phase == new.status.phase:
        return None
    return _UNKNOWN if new.status.phase == UNKNOWN else Request("")


def podgroup_job(podgroup: PodGroup) -> str:
    """`namespace/name` of the job of a PodGroup."""
    owners = podgroup.metadata.owner_references or ()
    ours = (owner.name for owner in owners if (owner.api_version, owner.kind) == (JOB.api_version, JOB.kind))
    name = next(ours, podgroup.metadata.name)
    return f"{podgroup.metadata.namespace}/{name}"


def job_updated(old: Job, new: Job) -> Request | None:
    """None if neither spec nor phase has changed."""
    same_phase = old.status.state.phase == new.status.state.phase
    if same_phase and old.spec == new.spec:
        return None
    return Request(bus.OUT_OF_SYNC)


def _request(pod: Pod, event: str, exit_code: int | None = None, evicted: bool = False) -> Request:
    metadata = pod.metadata
    owner = metadata.controller
    return Request(
        event=event,
        job_uid=owner.uid if owner else "",
        job_version=int((metadata.annotations or {})[names.JOB_VERSION]),
        task=task_of(pod),
        pod=metadata.name,
        pod_uid=metadata.uid,
        partition=(metadata.labels or {}).get(names.PARTITION_ID, ""),
        exit_code=exit_code,
        evicted=evicted,
    )


def _exit_code(pod: Pod) -> int:
    """The exit code of the first container, if it has terminated."""
    statuses = pod.status.container_statuses or []
    terminated = statuses[0].state.terminated if statuses and statuses[0].state else None
    return terminated.exit_code if terminated else 0


def _is_complete(job: Job | None, pod: Pod, pods_of: PodsOf) -> bool:
    task = find_task(job, task_of(pod)) if job else None
    return task is not None and 0 < task.replicas <= len(pods_of(task.name, "Succeeded"))


def _restarts_too_often(job: Job | None, pod: Pod, pods_of: PodsOf) -> bool:
    """Whether the containers of a task have reached the restart limit; called when one of them has restarted."""
    task = find_task(job, task_of(pod)) if job and _restarts(pod) else None
    if task is None or task.replicas <= 0 or task.max_retry == -1:
        return False
    living = (sibling for phase in ("Running", "Pending") for sibling in pods_of(task.name, phase))
    restarts = sum(_restarts(sibling) for sibling in living)
    limit: int = task.max_retry or batch.DEFAULT_MAX_RETRY
    return restarts >= limit


def _restarts(pod: Pod) -> int:
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    return sum(container.restart_count for container in statuses)
