"""Native gangs: PodGroups of scheduling.k8s.io as jobs. Kubernetes: GenericWorkload and GangScheduling.

The job of a native PodGroup is like any other: a PodGroup of Volcano is derived from the native one and exists only in
the model. The conditions that a session reports are written to the native PodGroup. A tree of CompositePodGroups is one
job (`model.jobs.group_tree`).
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from volcano_py.api import gang, names
from volcano_py.api.core import Namespace
from volcano_py.api.meta import Condition
from volcano_py.api.scheduling import PENDING, PodGroup, PodGroupSpec, PodGroupStatus
from volcano_py.scheduler.model.jobs.group_names import (
    COMPOSITE,
    NATIVE,
    group_of,
    native_uid,
    reference,
    uid_of,
)
from volcano_py.scheduler.model.jobs.group_tree import (
    MOST_ABOVE,
    MOST_LEVELS,
    GroupTree,
    least_of,
    parent_of,
)
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.kept_trees import GroupKey, KeptTrees
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.model_state import ModelState
from volcano_py.scheduler.model.plan import NativeGroupStatus


class NativeGroups:
    """The PodGroups and CompositePodGroups of scheduling.k8s.io of a cluster, and the jobs that they make.

    The pods of a PodGroup are in the job of its root: itself, or the highest CompositePodGroup above it. If a group
    above it does not exist, or the parents form a circle, that job has no PodGroup and its pods wait.
    """

    def __init__(self, cluster: ModelState) -> None:
        self._cluster = cluster
        self._groups: dict[GroupKey, gang.AnyGroup] = {}
        self._below: dict[str, dict[GroupKey, None]] = {}
        """The groups that name a CompositePodGroup as their parent, by its key; it may not exist."""
        self._home: dict[str, str] = {}
        """The job of the pods of a PodGroup with a parent, by the UID that the PodGroup has without one."""
        self._trees = KeptTrees(self._groups, self._below)
        self._tasks: dict[str, dict[str, Task]] = {}
        """The pods that name a PodGroup, by the same UID."""

    def get(self, kind: str, key: str) -> gang.AnyGroup | None:
        """A group by its kind in the model and its key."""
        return self._groups.get((kind, key))

    def pod_group(self, key: str) -> gang.PodGroup | None:
        found = self._groups.get((NATIVE, key))
        return found if isinstance(found, gang.PodGroup) else None

    def keys(self, kind: str) -> list[str]:
        return [key for known, key in self._groups if known == kind]

    def job_of(self, uid: str) -> str:
        """The job of the pods of a group, by the UID that the group has as a job of its own."""
        return self._home.get(uid, uid)

    def root_of(self, kind: str, key: str) -> str:
        """The UID of the job of the pods at or below a group, which need not exist."""
        return self._job((kind, key))

    def tasks(self, key: str) -> list[Task]:
        """The pods that name a PodGroup."""
        return [*self._tasks.get(native_uid(key), {}).values()]

    def task_added(self, task: Task) -> None:
        """A pod was added, or replaces one with the same name."""
        if task.pod.spec.scheduling_group is not None:
            self._tasks.setdefault(group_of(task.pod), {})[task.key] = task

    def task_removed(self, task: Task) -> None:
        if task.pod.spec.scheduling_group is not None:
            uid = group_of(task.pod)
            tasks = self._tasks.get(uid, {})
            tasks.pop(task.key, None)
            if not tasks:
                self._tasks.pop(uid, None)

    # ---- changes ------------------------------------------------------------------------------------------

    def upsert(self, kind: str, group: gang.AnyGroup) -> None:
        """Add or replace a group. Raises ValueError if a field of a PodGroup without a parent is invalid."""
        at = kind, group.metadata.key
        old, before = self._groups.get(at), self._job(at)
        self._unlink(at)
        self._groups[at] = group
        parent = parent_of(group)
        if parent:
            self._below.setdefault(parent, {})[at] = None
        self._trees.changed(old, group)
        self._settle(at, before)

    def remove(self, kind: str, key: str) -> None:
        at = kind, key
        if at in self._groups:
            before = self._job(at)
            self._unlink(at)
            self._trees.changed(self._groups.pop(at), None)
            self._settle(at, before)

    def namespace_changed(self, namespace: str) -> None:
        """Called when a Namespace changes, which may change the queue of its jobs."""
        prefix = f"{namespace}/"
        for uid in sorted({self._job(at) for at in self._groups if at[1].startswith(prefix)}):
            self._derive(uid)

    def assume(self, operation: NativeGroupStatus) -> None:
        """Count conditions that were sent as written."""
        at = operation.kind, f"{operation.namespace}/{operation.name}"
        group = self._groups.get(at)
        if group is None or group.metadata.uid != operation.uid:
            return
        new = msgspec.convert(operation.conditions, list[Condition])
        types = {condition.type for condition in new}
        kept = [c for c in group.status.conditions or () if c.type not in types]
        before = group
        group = self._groups[at] = replace(group, status=replace(group.status, conditions=[*kept, *new]))
        self._trees.changed(before, group)
        job = self._cluster.jobs.get(self._job(at))
        if job is not None and job.native is not None:
            job.native = group if job.native.metadata.uid == operation.uid else job.native
            job.tree = job.tree and self._trees.of(job.native.metadata.key)

    def _unlink(self, at: GroupKey) -> None:
        old = self._groups.get(at)
        siblings = self._below.get(parent_of(old), {}) if old is not None else {}
        siblings.pop(at, None)
        if old is not None and not siblings:
            self._below.pop(parent_of(old), None)

    def _settle(self, at: GroupKey, before: str) -> None:
        """After a change of a group: put the pods below it into their jobs, and set these jobs from their groups.
        `before`: the job of the group before the change."""
        changed = {before, self._job(at)}
        for key in self._pod_groups(at):
            uid = native_uid(key)
            old, new = self.job_of(uid), self._job((NATIVE, key))
            changed |= {old, new}
            if new == uid:
                self._home.pop(uid, None)
            else:
                self._home[uid] = new
            if old != new:
                self._cluster.move_tasks(self.tasks(key), new)
        for uid in sorted(changed):
            self._derive(uid)

    def _pod_groups(self, at: GroupKey) -> list[str]:
        """The keys of the PodGroups at or below a group."""
        found, seen, todo = [], set(), [at]
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            if here[0] == NATIVE:
                found.append(here[1])
            else:
                todo += self._below.get(here[1], ())
        return found

    def _job(self, at: GroupKey) -> str:
        """The UID of the job of a group: that of its root, or of the first group above it that does not exist or is too
        far above."""
        seen = [at]
        while len(seen) <= MOST_ABOVE and (group := self._groups.get(at)) is not None and (parent := parent_of(group)):
            at = COMPOSITE, parent
            if at in seen:
                at = min(seen[seen.index(at) :])
                break
            seen.append(at)
        return uid_of(*at)

    def _derive(self, uid: str) -> None:
        """Set a job from its groups. Raises ValueError if it is a PodGroup with an invalid field."""
        kind, key = reference(uid)
        group = self._groups.get((kind, key))
        if isinstance(group, gang.PodGroup) and not parent_of(group):
            pod_group = group
            self._cluster.set_group(uid, lambda job: set_native_group(job, pod_group, self._queue(pod_group)))
            return
        tree = self._whole_tree(group)[0] if isinstance(group, gang.CompositePodGroup) else None
        if tree is not None:
            root = tree
            self._cluster.set_group(uid, lambda job: set_tree(job, root, self._queue(root.group)))
        else:
            self._cluster.unset_group(uid)

    def obstacle(self, uid: str) -> str:
        """Why the pods of a job without a PodGroup wait."""
        kind, key = reference(uid)
        group = self._groups.get((kind, key))
        if isinstance(group, gang.CompositePodGroup):
            return self._whole_tree(group)[1]
        return f"waiting for {kind}/{key.partition('/')[2]}, which does not exist"

    def _queue(self, group: gang.AnyGroup) -> str:
        found: Namespace | None = self._cluster.others.get("Namespace", {}).get(group.metadata.namespace)
        return queue_of(group, found) or self._cluster.default_queue

    def _whole_tree(self, root: gang.CompositePodGroup) -> tuple[GroupTree | None, str]:
        """The tree of a root, or why it is none."""
        if parent_of(root):
            above = [root.metadata.name]
            at: gang.AnyGroup | None = self._groups.get((COMPOSITE, parent_of(root)))
            while at is not None and at is not root and len(above) <= MOST_ABOVE:
                above.append(at.metadata.name)
                at = self._groups.get((COMPOSITE, parent_of(at)))
            if at is root:
                names_ = ", ".join(above)
                return None, f"{COMPOSITE}: the parents of {names_} form a circle; correct parentCompositePodGroupName"
            where = f"{COMPOSITE}/{root.metadata.name}"
            return None, f"the groups above and below {where} have more than {MOST_LEVELS} levels"
        try:
            tree = self._trees.of(root.metadata.key)
        except ValueError as error:
            return None, str(error)
        if tree.levels > MOST_LEVELS:
            where = f"{COMPOSITE}/{root.metadata.name}"
            return None, f"the groups below {where} have {tree.levels} levels; use at most {MOST_LEVELS}"
        return tree, ""


def queue_of(group: gang.AnyGroup, namespace: Namespace | None) -> str:
    """The queue that the PodGroup sets by label or annotation, else that of its namespace, else ""."""
    for meta in (group.metadata, namespace.metadata if namespace is not None else None):
        if meta is not None:
            found = (meta.labels or {}).get(names.QUEUE_NAME) or (meta.annotations or {}).get(names.QUEUE_NAME)
            if found:
                return found
    return ""


def set_native_group(job: Job, group: gang.PodGroup, queue: str) -> None:
    """Derive a job's PodGroup from a native one. Raises ValueError if one of its fields is invalid."""
    _set(job, group, queue, least_of(group))


def set_tree(job: Job, tree: GroupTree, queue: str) -> None:
    """Derive a job's PodGroup from a CompositePodGroup with the groups below it."""
    _set(job, tree.group, queue, tree.least_pods())
    job.tree = tree


def _set(job: Job, group: gang.AnyGroup, queue: str, least: int) -> None:
    spec, before = group.spec, job.native
    same = before is not None and before.metadata.uid == group.metadata.uid
    derived = PodGroup(
        metadata=group.metadata,
        spec=PodGroupSpec(min_member=least, queue=queue, priority_class_name=spec.priority_class_name),
        status=job.pod_group.status if same and job.pod_group is not None else PodGroupStatus(phase=PENDING),
    )
    job.set_pod_group(derived, queue)
    job.native = group
    job.topology_key = spec.topology_key
    job.evicted_whole = spec.evicted_whole
    job.priority = spec.priority


def scheduled_condition(group: gang.AnyGroup) -> Condition | None:
    """The condition of a group, in any version, that states whether it has its minimum."""
    return next((c for type_ in gang.SCHEDULED_TYPES if (c := condition_of(group, type_)) is not None), None)


def condition_of(group: gang.AnyGroup, type_: str) -> Condition | None:
    """The condition of a type."""
    return next((c for c in group.status.conditions or () if c.type == type_), None)
