"""Jobs and tasks: their fields and sums, readiness, and the resources that jobs still claim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.values import pod, resource
from volcano_py.api.codec import from_manifest
from volcano_py.api.duration import parse_duration
from volcano_py.api.scheduling import PodGroup, PodGroupCondition
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import group_of
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.spec_class import SpecClasses
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.plugins.gang import healing
from volcano_py.scheduler.plugins.queue_shares.inqueue import inqueue_resource
from volcano_py.scheduler.session_close.pod_groups import pod_group_phase

_TASK_FACTS = (
    *("init_resreq", "resreq", "name", "job", "role", "node", "status", "uid"),
    *("priority", "preemptable", "best_effort", "sch_gated"),
)
_JOB_FACTS = (
    *("uid", "min_available", "allocated", "total_request"),
    *("task_min_available", "task_min_available_total", "tasks"),
)
"""The fields of the model's task and job. Left out: a job's priority, which belongs to the session; its queue, which
the API server defaults; sub-jobs and topology."""


def task_of(data: Data) -> Task:
    """The task of a pod's manifest."""
    found = pod(data)
    return Task(found, SpecClasses(NodeTable()).of(found), group_of(found))


def written_task(uid: str, data: Data) -> Any:
    """A task from its summary, for those that have no pod in the data."""
    namespace, _, name = data.get("name", uid).rpartition("/")
    return SimpleNamespace(
        uid=uid,
        key=data.get("name", uid),
        name=name,
        namespace=namespace,
        job=data.get("job", ""),
        role=data.get("role") or data.get("task_role") or "",
        request=resource(data.get("resreq")),
        best_effort=bool(data.get("best_effort")),
        status=getattr(st.TaskStatus, data["status"]).value,
        node=data.get("node", ""),
        priority=data.get("priority", 0),
        preemptable=bool(data.get("preemptable")),
        slot=-1,
        sched_gated=bool(data.get("sch_gated")),
        only_queue_gate=False,
        needs_queue_admission=False,
    )


def session_job(data: Data) -> tuple[SessionJob, Any]:
    """A session's job from a summary, and the parts of a session that the job's rules read."""
    model = Job(data.get("uid") or "ns/job")
    group = from_manifest(PodGroup, data.get("pod_group") or {"metadata": {"name": "pg"}})
    model.set_pod_group(group, "default")
    if data.get("waiting_time"):
        model.waiting_time = parse_duration(data["waiting_time"])
    statuses = bytearray()
    last: dict[str, tuple[int, str]] = {}
    for uid, summary in (data.get("tasks") or {}).items():
        task = written_task(uid, summary)
        task.slot = len(statuses)
        statuses.append(task.status)
        model.add(task)
        if summary.get("last_transaction"):
            context = summary["last_transaction"]
            last[task.key] = (getattr(st.TaskStatus, context["status"]).value, context.get("node", ""))
    job = SessionJob(model, group, int(data.get("priority", 0)))
    job.min_available = int(data.get("min_available", 0))
    job.task_min_available = dict(data.get("task_min_available") or {})
    job.task_min_total = int(data.get("task_min_available_total", 0))
    if data.get("allocated"):
        job.allocated = resource(data["allocated"])
    job.last_transaction = last or None
    session = SimpleNamespace(
        uid="session",
        statuses=statuses,
        status=lambda t: statuses[t.slot],
        pending=lambda j: [t for t in j.tasks.values() if statuses[t.slot] == st.PENDING],
    )
    return job, session


def _model_job(data: Data) -> Job:
    """The model's job from a summary."""
    job = Job(data["uid"])
    job.min_available = data.get("min_available", 0)
    job.task_min_available = dict(data.get("task_min_available") or {})
    job.task_min_total = data.get("task_min_available_total", 0)
    for uid, task in (data.get("tasks") or {}).items():
        job.add(written_task(uid, task))
    return job


# ---- results --------------------------------------------------------------------------------------------------


def _task_out(task: Any) -> Data:
    out: Data = {
        "init_resreq": task.request,
        "resreq": task.request,
        "name": task.key if task.key != "/" else "",
        "status": st.STATUS_NAMES[task.status],
        "uid": task.uid if task.uid != "/" else "",
        "priority": task.priority,
        "job": task.job,
        "role": task.role,
        "node": task.node,
        "preemptable": task.preemptable,
        "best_effort": task.best_effort,
        "sch_gated": task.sched_gated,
    }
    return {k: v for k, v in out.items() if v or k == "status"}


def _job_out(job: Job) -> Data:
    return {
        "uid": job.uid,
        "min_available": job.min_available,
        "allocated": job.allocated,
        "total_request": job.total_request,
        "task_min_available": job.task_min_available,
        "task_min_available_total": job.task_min_total,
        "tasks": {t.uid: _task_out(t) for t in job.tasks.values()},
    }


def _task_facts(task: Data) -> Data:
    return {k: v for k, v in task.items() if k in _TASK_FACTS and v}


def _job_facts(job: Data) -> Data:
    facts = {k: v for k, v in job.items() if k in _JOB_FACTS}
    tasks = {uid: _completed(uid, task) for uid, task in (job.get("tasks") or {}).items()}
    return {**facts, "tasks": {uid: _task_facts(task) for uid, task in tasks.items()}}


def _completed(uid: str, task: Data) -> Data:
    """Tasks in the data may have only one of the two requests, and no name."""
    return {"init_resreq": task.get("resreq"), "name": uid, **task}


def _made(expected: Data) -> list[Any]:
    return [_job_facts(job) for job in expected["result"]]


def _changed(expected: Data) -> list[Any]:
    return [_job_facts(expected["receiver_after"])]


# ---- calls ----------------------------------------------------------------------------------------------------


def _new_job(_: Any, a: list[Any]) -> list[Any]:
    job = Job(a[0])
    for task in a[1] or ():
        job.add(written_task(task["uid"], task))
    return [_job_out(job)]


def _add_task(r: Data, a: list[Any]) -> list[Any]:
    job = _model_job(r)
    task = task_of(a[0]["pod"])
    task.status = getattr(st.TaskStatus, a[0]["status"]).value
    job.add(task)
    return [_job_out(job)]


def _delete_task(r: Data, a: list[Any]) -> list[Any]:
    job = _model_job(r)
    job.remove(job.tasks[a[0]["name"]])
    return [_job_out(job)]


def _set_pod_group(r: Data, a: list[Any]) -> list[Any]:
    """The argument is a struct with one field, which an empty PodGroup turns into a list of names."""
    job = _model_job(r)
    manifest = a[0]["PodGroup"] if isinstance(a[0], dict) else {}
    job.set_pod_group(from_manifest(PodGroup, manifest), "default")
    return [_job_out(job)]


def _phase(_: Any, a: list[Any]) -> list[Any]:
    job, session = session_job(a[0])
    if a[1]:
        job.conditions = [PodGroupCondition(type="Unschedulable", status="True", transition_id="session")]
    job.min_available = job.pod_group.spec.min_member
    return [pod_group_phase(session, job)]


def _inqueue(_: Any, a: list[Any]) -> list[Any]:
    job, _session = session_job(a[0])
    job.allocated = resource(a[1])
    return [inqueue_resource(job)]


def _leaving(r: Data, _: list[Any]) -> list[Any]:
    job, session = session_job(r)
    return [job.releasing_scheduled_num(session.statuses)]


ADAPTERS: Adapters = {
    "api.NewTaskInfo": Adapter(
        lambda r, a: [_task_out(task_of(a[0]))], lambda expected: [_task_facts(t) for t in expected["result"]]
    ),
    "api.NewJobInfo": Adapter(_new_job, _made),
    "api.JobInfo.AddTaskInfo": Adapter(_add_task, _changed),
    "api.JobInfo.DeleteTaskInfo": Adapter(_delete_task, _changed),
    "api.JobInfo.SetPodGroup": Adapter(_set_pod_group, _changed),
    "api.JobInfo.ParseMinMemberInfo": Adapter(_set_pod_group, _changed),
    "api.JobInfo.IsReady": lambda r, a: [session_job(r)[0].is_ready()],
    "api.JobInfo.IsPipelined": lambda r, a: [session_job(r)[0].is_pipelined()],
    "api.JobInfo.IsStarving": lambda r, a: [session_job(r)[0].is_starving()],
    "api.JobInfo.PendingBestEffortTaskNum": lambda r, a: [session_job(r)[0].pending_best_effort],
    "api.JobInfo.ScheduledTaskNum": lambda r, a: [session_job(r)[0].scheduled_num],
    "api.JobInfo.ReleasingScheduledTaskNum": _leaving,
    "api.JobInfo.GetElasticResources": lambda r, a: [session_job(r)[0].elastic_resources()],
    "framework.getPodGroupPhase": _phase,
    "gang.shouldSkipUnschedulableForReleasing": lambda r, a: [healing(*reversed(session_job(a[0])))],
    "util.GetInqueueResource": _inqueue,
}
