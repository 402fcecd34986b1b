"""What the client returns: jobs, pods and queues as immutable values, with the object as the server has it.

In a notebook each shows itself as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from volcano_py.api import batch, names
from volcano_py.cli.job_waits import FINAL, why_not_admitted, why_pending
from volcano_py.client import html

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The state of a job when it was read. `reason`: why it waits, if that was read; `deleted`: it no longer exists."""

    name: str
    namespace: str
    uid: str
    queue: str
    phase: str
    message: str
    total: int
    min_available: int
    pending: int
    running: int
    succeeded: int
    failed: int
    created: str
    reason: str = ""
    deleted: bool = False
    manifest: Manifest = field(default_factory=dict, repr=False, compare=False)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether the job has ended: its phase is Completed, Failed or Terminated, or it is deleted."""
        return self.deleted or self.phase in FINAL

    @property
    def ok(self) -> bool:
        """Whether the job is Completed."""
        return self.phase == batch.COMPLETED

    def __str__(self) -> str:
        text = f"job {self.key}: {'deleted' if self.deleted else self.phase}"
        counts = [f"{getattr(self, key)} of {self.total} {key}" for key in ("running", "succeeded", "failed")]
        text = ", ".join([text, *(part for part in counts if not part.startswith("0 "))])
        return f"{text}: {self.reason or self.message}" if self.reason or self.message else text

    def _repr_html_(self) -> str:
        return jobs_html([self])


def jobs_html(jobs: list[Job]) -> str:
    """Several jobs as a table."""
    rows = [
        (
            html.code(job.key),
            escape(job.queue),
            html.phase("deleted" if job.deleted else job.phase),
            html.bar(job.running + job.succeeded, job.total),
            escape(job.reason or job.message),
        )
        for job in jobs
    ]
    return html.table(("job", "queue", "phase", "pods", ""), rows)


class Jobs(list[Job]):
    """A list of jobs that a notebook shows as one table."""

    def _repr_html_(self) -> str:
        return jobs_html(self)


@dataclass(frozen=True)
class Pod:
    """A pod of a job. `message`: why it is not running, if the cluster reports it."""

    name: str
    task: str
    index: int
    phase: str
    node: str
    restarts: int
    message: str = ""
    manifest: Manifest = field(default_factory=dict, repr=False, compare=False)

    def _repr_html_(self) -> str:
        return Pods([self])._repr_html_()


class Pods(list[Pod]):
    """A list of pods that a notebook shows as one table."""

    def _repr_html_(self) -> str:
        rows = [
            (html.code(p.name), escape(p.task), html.phase(p.phase), escape(p.node), escape(p.message)) for p in self
        ]
        return html.table(("pod", "task", "phase", "node", ""), rows)


@dataclass(frozen=True)
class Queue:
    """A queue with its shares; amounts are quantities of Kubernetes by resource."""

    name: str
    state: str
    weight: int
    parent: str
    deserved: Mapping[str, str]
    guarantee: Mapping[str, str]
    capability: Mapping[str, str]
    allocated: Mapping[str, str]
    manifest: Manifest = field(default_factory=dict, repr=False, compare=False)

    def _repr_html_(self) -> str:
        return Queues([self])._repr_html_()


class Queues(list[Queue]):
    """A list of queues that a notebook shows as one table."""

    def _repr_html_(self) -> str:
        rows = [
            (html.code(q.name), escape(q.state), str(q.weight), _amounts(q.allocated), _amounts(q.deserved))
            for q in self
        ]
        return html.table(("queue", "state", "weight", "allocated", "deserved"), rows)


def _amounts(amounts: Mapping[str, str]) -> str:
    return escape(", ".join(f"{name}={amount}" for name, amount in amounts.items()) or "-")


def job_of(
    manifest: Manifest,
    groups: list[Manifest] | None = None,
    events: list[Manifest] | None = None,
    deleted: bool = False,
) -> Job:
    """The view of a Job object. `groups`, `events`: its PodGroup and the Events of that, which contain the reason."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    status = manifest.get("status") or {}
    state = status.get("state") or {}
    phase = state.get("phase") or batch.PENDING
    reason = ""
    if phase in (batch.PENDING, batch.RESTARTING):
        reason = why_pending(groups or []) or why_not_admitted(events or [])
    return Job(
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        queue=spec.get("queue") or "default",
        phase=phase,
        message=state.get("message") or "",
        total=sum(task.get("replicas") or 0 for task in spec.get("tasks") or ()),
        min_available=spec.get("minAvailable") or 0,
        pending=status.get("pending") or 0,
        running=status.get("running") or 0,
        succeeded=status.get("succeeded") or 0,
        failed=status.get("failed") or 0,
        created=metadata.get("creationTimestamp") or "",
        reason=reason,
        deleted=deleted,
        manifest=manifest,
    )


def pod_of(manifest: Manifest) -> Pod:
    """The view of a Pod object."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    index = str(labels.get(names.TASK_INDEX, ""))
    containers = status.get("containerStatuses") or ()
    states = [one.get("state") or {} for one in containers]
    texts = [
        " ".join(filter(None, (part.get("reason"), part.get("message"))))
        for state in states
        for part in (state.get("waiting"), state.get("terminated"))
        if part and part.get("reason") != "Completed"
    ]
    texts += [
        str(c.get("message") or "")
        for c in status.get("conditions") or ()
        if c.get("type") == "PodScheduled" and c.get("status") == "False"
    ]
    return Pod(
        name=metadata["name"],
        task=str(labels.get(names.TASK_SPEC, "")),
        index=int(index) if index.isdigit() else 0,
        phase=status.get("phase") or "Pending",
        node=(manifest.get("spec") or {}).get("nodeName") or "",
        restarts=sum(one.get("restartCount") or 0 for one in containers),
        message="; ".join(filter(None, texts)),
        manifest=manifest,
    )


def queue_of(manifest: Manifest) -> Queue:
    """The view of a Queue object."""
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    return Queue(
        name=manifest["metadata"]["name"],
        state=status.get("state") or "",
        weight=spec.get("weight") or 1,
        parent=spec.get("parent") or "",
        deserved=spec.get("deserved") or {},
        guarantee=(spec.get("guarantee") or {}).get("resource") or {},
        capability=spec.get("capability") or {},
        allocated=status.get("allocated") or {},
        manifest=manifest,
    )
