"""What may be evicted of a tree of CompositePodGroups so that it still holds. Not in Volcano."""

from __future__ import annotations

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import group_sub_job
from volcano_py.scheduler.model.jobs.group_tree import GroupTree
from volcano_py.scheduler.model.jobs.task import Task


class TreeSurplus:
    """The pods of a tree that are counted as evicted. Pods of a group that already lacks its minimum, and all pods of a
    tree that does not hold, are protected by no minimum."""

    def __init__(self, job: SessionJob, tree: GroupTree) -> None:
        self._job = job
        self._tree = tree
        self._over = {uid: sub.ready_num - sub.min_available for uid, sub in job.sub_jobs.items()}
        self.broken = not self._holds()

    def take(self, task: Task) -> bool:
        """Whether the task may go; if so, it is counted as evicted."""
        sub = self._job.sub_job_of(task)
        if self.broken:
            return True
        if sub is None or sub.evicted_whole:
            return False
        over = self._over[sub.uid]
        self._over[sub.uid] = over - 1
        if over == 0 and not self._holds():
            self._over[sub.uid] = over
            return False
        return True

    def _holds(self) -> bool:
        return self._tree.holds(lambda name: self._over[group_sub_job(self._job.uid, name)] >= 0)
