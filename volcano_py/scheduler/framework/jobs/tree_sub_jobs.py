"""The sub-jobs of a tree of CompositePodGroups: one for each PodGroup. Volcano's sub-jobs have one level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from volcano_py.scheduler.framework.jobs.sub_job import Level, SubJob, TierConstraint, group_sub_job
from volcano_py.scheduler.model.jobs.group_names import composite_uid
from volcano_py.scheduler.model.jobs.group_tree import GroupTree
from volcano_py.scheduler.model.jobs.task import Task


class Divided(NamedTuple):
    minimums: dict[str, int]
    """How many children of each CompositePodGroup must hold, by its UID."""
    sub_jobs: dict[str, SubJob]
    of_task: dict[str, SubJob]


def divided_tree(uid: str, tree: GroupTree, tasks: Mapping[str, Task], statuses: bytearray) -> Divided:
    """Form the sub-jobs of a job. `uid`: of the job."""
    minimums = {composite_uid(g.group.metadata.key): g.least for g in tree.all_groups() if g.composite}
    sub_jobs: dict[str, SubJob] = {}
    for i, path in enumerate(_paths(tree)):
        leaf, parent = path[-1], path[-2]
        keys = [level.topology_key for level in path[1:] if level.topology_key]
        close = TierConstraint(None, keys[-1]) if keys else None
        sub = SubJob(group_sub_job(uid, leaf.name), composite_uid(parent.group.metadata.key), leaf.least, close, i)
        sub.path = tuple(
            Level(at.topology_key, tuple(group_sub_job(uid, below.name) for below in at.pod_groups()))
            for at in path[1:]
        )
        sub.evicted_whole = any(at.group.spec.evicted_whole for at in path)
        sub_jobs[sub.uid] = sub
    of_task = {}
    for task in tasks.values():
        group = task.pod.spec.scheduling_group
        found = sub_jobs.get(group_sub_job(uid, group.pod_group_name)) if group is not None else None
        if found is not None:
            of_task[task.key] = found
            found.add(task, statuses[task.slot])
    return Divided(minimums, sub_jobs, of_task)


def _paths(tree: GroupTree, above: tuple[GroupTree, ...] = ()) -> Iterable[tuple[GroupTree, ...]]:
    """The PodGroups of a tree, each with the groups above it, from the root on."""
    if not tree.composite:
        yield (*above, tree)
    for child in tree.below:
        yield from _paths(child, (*above, tree))
