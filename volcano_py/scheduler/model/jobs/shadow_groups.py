"""Shadow PodGroups: the jobs of plain pods that have no PodGroup. Volcano: its pg-controller creates the PodGroups.

A pod is a job of its own, and the pods of one controller are one job, as with PodGroups. What the PodGroup would
contain is derived from the oldest pod of the job, from the annotations of its owner and from its Namespace, so that
the order of events does not matter. The status is that of the last session and is written nowhere. When a PodGroup
with the name appears, it replaces the shadow.
"""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api import plain_pods
from volcano_py.api.core import Pod
from volcano_py.api.meta import ApiObject, ObjectMeta
from volcano_py.api.scheduling import COMPLETED, PENDING, RUNNING, PodGroup, PodGroupSpec, PodGroupStatus
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import group_of
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.model_state import ModelState

KUBERNETES = "default-scheduler"
"""The scheduler of plain pods of Kubernetes: the controller creates no PodGroups for them."""


class ShadowGroups:
    """The shadow PodGroups of a cluster."""

    def __init__(self, cluster: ModelState) -> None:
        self._cluster = cluster
        self._of_namespace: dict[str, set[str]] = {}
        """The UIDs of the jobs that have one."""

    def uid_of(self, task: Task) -> str:
        """The UID of the job of a plain pod."""
        return f"{task.namespace}/{plain_pods.group_name(task.pod)}"

    def added(self, job: Job, task: Task) -> None:
        """Called when a plain pod was added to a job."""
        if job.pod_group is None:
            self._set(job, task, PodGroupStatus(phase=PENDING))
            self._of_namespace.setdefault(task.namespace, set()).add(job.uid)
        elif job.shadow and (
            job.shadow_of not in job.tasks
            or _age(task) <= _age(job.tasks[job.shadow_of])
            or job.pod_group.status.phase != _phase(job)
        ):
            self._set(job, task, job.pod_group.status)

    def removed(self, job: Job, key: str) -> None:
        """Called when a pod was removed from a job with a shadow PodGroup."""
        if job.pod_group is None or (job.shadow_of != key and job.pod_group.status.phase == _phase(job)):
            return
        oldest = _oldest_plain(job)
        if oldest is not None:
            self._set(job, oldest, job.pod_group.status)
            return
        self.replaced(job)
        job.unset_pod_group()

    def replaced(self, job: Job) -> None:
        """Called before a PodGroup is set: the job has no shadow any more."""
        if job.shadow:
            job.shadow = False
            known = self._of_namespace[job.namespace]
            known.discard(job.uid)
            if not known:
                del self._of_namespace[job.namespace]

    def group_removed(self, job: Job) -> None:
        """Called when the PodGroup of a job was deleted: plain pods that are left have a shadow again."""
        oldest = _oldest_plain(job)
        if oldest is not None:
            self.added(job, oldest)

    def namespace_changed(self, namespace: str) -> None:
        """Called when a Namespace changes, which may change the queue of its jobs."""
        for uid in sorted(self._of_namespace.get(namespace, ())):
            self._again(uid)

    def owner_changed(self, owner: ApiObject) -> None:
        """Called when a ReplicaSet or StatefulSet changes, whose annotations its pods inherit."""
        self._again(f"{owner.metadata.namespace}/podgroup-{owner.metadata.uid}")

    def awaits_group(self, job: Job) -> bool:
        """Whether the PodGroup of the job is about to be created, as one of its pods may belong to a gang."""
        return any(
            task.pod.spec.scheduler_name != KUBERNETES and plain_pods.needs_group(task.pod, self._of_owner(task.pod))
            for task in job.tasks.values()
        )

    def _again(self, uid: str) -> None:
        job = self._cluster.jobs.get(uid)
        if job is None or not job.shadow or job.pod_group is None:
            return
        self._set(job, job.tasks[job.shadow_of], job.pod_group.status)
        self._cluster.job_changes.add(uid)

    def _of_owner(self, pod: Pod) -> Mapping[str, str] | None:
        others = self._cluster.others
        return plain_pods.owner_annotations(pod, lambda kind, key: others.get(kind, {}).get(key))

    def _set(self, job: Job, task: Task, status: PodGroupStatus) -> None:
        pod = task.pod
        of_owner = self._of_owner(pod)
        owners = [of_owner] if of_owner else []
        default = self._cluster.default_queue
        stated = plain_pods.queue_of(pod, owners) or default
        namespace = self._cluster.others.get("Namespace", {}).get(task.namespace)
        phase = _phase(job)
        group = PodGroup(
            metadata=ObjectMeta(
                name=job.name,
                namespace=task.namespace,
                creation_timestamp=pod.metadata.creation_timestamp,
                annotations=plain_pods.annotations_of_group(pod, owners),
                labels=plain_pods.labels_of_group(pod),
            ),
            spec=PodGroupSpec(
                min_member=1,
                queue=plain_pods.queue_of_namespace(stated, namespace),
                priority_class_name=pod.spec.priority_class_name,
            ),
            status=status if status.phase == phase else PodGroupStatus(phase=phase),
        )
        job.set_pod_group(group, default)
        group.spec.min_resources = dict(task.request.quantities())
        job.min_resources = task.request.clone()
        job.shadow, job.shadow_of = True, task.key


def _phase(job: Job) -> str:
    """The phase that follows from the pods."""
    counts, pods = job.counts, len(job.tasks)
    if counts[st.SUCCEEDED] + counts[st.FAILED] == pods:
        return COMPLETED
    return RUNNING if counts[st.PENDING] < pods else PENDING


def is_same_plain_pod(old: Task, new: Task) -> bool:
    """Whether a task replaces another one in a job with a shadow PodGroup, so that its status is kept."""
    return (old.job, old.uid) == (new.job, new.uid) and not group_of(new.pod)


def _oldest_plain(job: Job) -> Task | None:
    return min((task for task in job.tasks.values() if not group_of(task.pod)), key=_age, default=None)


def _age(task: Task) -> tuple[float, str]:
    return task.created, task.key
