"""Kubernetes' own Jobs (not Volcano's). Kubernetes: the job controller.

job_plan decides the next step, job_status computes the status.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.schema.codec import parse_time
from volcano_py.sandbox.apiserver.storage.store import DELETED, Collection, Entry, Event
from volcano_py.sandbox.controllers.batch import job_groups, job_plan
from volcano_py.sandbox.controllers.batch.job_plan import FINALIZER, INDEX
from volcano_py.sandbox.controllers.batch.job_status import status_of
from volcano_py.sandbox.controllers.runtime import pod_control
from volcano_py.sandbox.controllers.runtime.adoption import Adoption
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pod, Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]
Orphan = tuple[str, str]  # "pods", the key of a pod

COLLECTION = "jobs.batch"
OURS = "kubernetes.io/job-controller"
_FINALIZER_BYTES = FINALIZER.encode()


def controller(api: Api, owners: Owners, pods: Pods, backoff: float) -> Controller:
    """backoff: seconds before the first failed pod is replaced; doubles with each failure."""
    jobs = Jobs(api, owners, pods, backoff)
    return Controller(
        "job-controller",
        jobs.sync,
        wakes={COLLECTION: jobs.adoption.owner_changed, "pods": jobs.adoption.dependent_changed},
        everything=jobs.orphans,
        owns=COLLECTION,
        workers=4,
    )


class Jobs:
    """Executes the decisions."""

    def __init__(self, api: Api, owners: Owners, pods: Pods, backoff: float) -> None:
        self.client = Client(api, "job-controller")
        self.owners = owners
        self.pods = pods
        self.backoff = backoff
        self.adoption = Adoption(pods.collection, owners, self.client)

    def orphans(self, collection: Collection, event: Event, before: list[Object]) -> Iterable[Orphan]:
        """Pods with the controller's finalizer whose Job no longer exists."""
        if collection is self.pods.collection:
            if event.type != DELETED and _FINALIZER_BYTES in event.entry.tail and self._is_orphan(event.entry):
                yield "pods", event.entry.key
        elif event.type == DELETED and collection.name == COLLECTION:
            for name, key in self.owners.dependents.get(event.entry.uid, ()):
                if name == "pods":
                    yield "pods", key

    def _is_orphan(self, entry: Entry) -> bool:
        row = self.owners.controller(("pods", entry.key))
        return row is None or row["uid"] not in self.owners.alive

    async def sync(self, key: Any) -> float | None:
        if isinstance(key, tuple):
            entry = self.pods.collection.entries.get(key[1])
            if entry is not None and self._is_orphan(entry):
                await self._release(self.pods.of([entry]))
            return None
        job = self.client.get(COLLECTION, key)
        if job is None or job["spec"].get("managedBy", OURS) != OURS:
            return None
        pods = self.pods.of(await self.adoption.claim(job))
        if job["metadata"].get("deletionTimestamp") or job_plan.is_finished(job):
            await self._release(pods)
            return None
        return await self._work(job, pods)

    async def _work(self, job: Object, pods: list[Pod]) -> float | None:
        now = time.time()
        seen = job_plan.tally(job, pods)
        started = _started(job)
        end = job_plan.end_of(job, seen, started, now)
        if end is not None or job["spec"].get("suspend"):
            step = job_plan.Step([], seen.active)
        else:
            step = job_plan.step_of(job, seen, pods, self.backoff, now)
        group = ""
        if job_groups.is_on(self.client.api) and not job["spec"].get("suspend") and end is None:
            had_pods = bool(pods) or bool((job.get("status") or {}).get("startTime"))
            group = await job_groups.group_of(self.client, job, had_pods)
        new = (new_pod(job, index, seen, group) for index in step.create)
        failure = await pod_control.create(self.client, job, new)
        await pod_control.delete(self.client, job, [pod.entry for pod in step.delete])
        if step.create or step.delete:
            again = job_plan.tally(job, self.pods.of(await self.adoption.claim(job)))
            seen.active, seen.terminating = again.active, again.terminating
        status = status_of(job, seen, end, now)
        before = {row["type"] for row in (job.get("status") or {}).get("conditions") or () if row["status"] == "True"}
        await self.client.set_status(COLLECTION, job, status)
        await self._report(job, status, before)
        await self._release(seen.release)
        if failure is not None:
            raise failure
        deadline = job["spec"].get("activeDeadlineSeconds")
        waits = [] if step.wait is None else [step.wait]
        if deadline is not None and end is None and status.get("startTime"):
            waits.append(max(parse_time(status["startTime"]).timestamp() + deadline - now, 0.01))
        return min(waits, default=None)

    async def _release(self, pods: Iterable[Pod]) -> None:
        """Remove the controller's finalizer."""

        def change(obj: Object) -> None:
            kept = [row for row in obj["metadata"].get("finalizers") or () if row != FINALIZER]
            obj["metadata"]["finalizers"] = kept

        for pod in pods:
            if FINALIZER in pod.finalizers:
                try:
                    await self.client.update("pods", pod.entry.key, change, uid=pod.entry.uid)
                except StatusError as error:
                    if error.code not in (404, 409):
                        raise

    async def _report(self, job: Object, status: Object, before: set[str]) -> None:
        for row in status.get("conditions") or ():
            if row["status"] != "True" or row["type"] in before:
                continue
            if row["type"] == "Complete":
                await self.client.event(job, "Normal", "Completed", "Job completed")
            elif row["type"] == "Failed":
                await self.client.event(job, "Warning", row["reason"], row["message"])
            elif row["type"] == "Suspended":
                await self.client.event(job, "Normal", "Suspended", "Job suspended")


def _started(job: Object) -> float:
    stamp = (job.get("status") or {}).get("startTime")
    seconds: float = parse_time(stamp).timestamp() if stamp else 0.0
    return seconds


def new_pod(job: Object, index: int | None, seen: job_plan.Tally, group: str = "") -> Object:
    """A pod of the Job, with the finalizer that keeps it until it is counted. `group`: the PodGroup of the Job."""
    pod = pod_control.from_template(job["spec"]["template"], job)
    meta, spec = pod["metadata"], pod["spec"]
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
    if index is None:
        return pod
    name = f"{job['metadata']['name']}-{index}"
    meta["generateName"] = name + "-"
    meta["labels"][INDEX] = meta["annotations"][INDEX] = str(index)
    if job["spec"].get("backoffLimitPerIndex") is not None:
        meta["annotations"]["batch.kubernetes.io/job-index-failure-count"] = str(seen.failures[index])
    spec["hostname"] = name
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [{**row, "env": [*(row.get("env") or ()), variable]} for row in spec[field]]
    return pod
