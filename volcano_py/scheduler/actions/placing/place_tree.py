"""Placing the pods of a tree of CompositePodGroups. Kubernetes: the composite groups of kube-scheduler 1.37; not in
Volcano.

A tree is tried depth first: a group in each of its domains, the fullest first, and its children one after the other
until enough of them hold. A group that does not hold leaves nothing. If that fails, all children that are enough, and
all their domains, are combined, and nodes are searched for all members together (deviation what-fits-starts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from volcano_py.scheduler.actions.placing.arrangement import Effort, Lacking, Parts, arranged, lacking
from volcano_py.scheduler.actions.placing.place_tasks import place, place_tasks
from volcano_py.scheduler.actions.placing.sub_job_arrangement import MOST_COMBINATIONS, MOST_STEPS, STEPS_OF_DOMAIN
from volcano_py.scheduler.actions.placing.task_queue import refill
from volcano_py.scheduler.actions.placing.worksheet import Worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob, group_sub_job
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.label_domains import domains_of_group, fullness
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_tree import GroupTree
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue

Choice = dict[str, str]
"""The sub-jobs that are placed, each with its domain."""


def allocate_tree(session: Session, queue: Queue, job: SessionJob, tree: GroupTree, sheet: Worksheet) -> bool:
    """Place what the tree needs to hold, or, if it holds, one more of its groups or pods; returns whether it holds and
    the pods are bound. The tasks that are not placed stay in the worksheet, unless there is no place for any."""
    attempt = _Attempt(session, queue, job, sheet)
    roots = [name for group in session.network.job_gradients(job, ROOT, ALLOCATE) for name in group]
    job.forget_fit_errors()
    if session.states.job_ready(job):
        found: list[Statement] | None = attempt.more(tree, attempt.best_first(tree, roots))
    else:
        found = attempt.first(tree, roots)
        if found is None and session.deviations.what_fits_starts:
            found = attempt.arranged(tree, roots)
    if not found:
        sheet.tasks.clear()
        return False
    for uid, tasks in list(sheet.tasks.items()):
        refill(tasks, [t for t in tasks if session.status(t) == st.PENDING])
        if not tasks:
            del sheet.tasks[uid]
    if not session.states.job_ready(job):
        return False  # it keeps the capacity that is being released
    for statement in found:
        statement.commit()
    return True


class _Attempt:
    """One attempt for a tree. What is placed is applied to the session, as statements that are not committed."""

    def __init__(self, session: Session, queue: Queue, job: SessionJob, sheet: Worksheet) -> None:
        self._session = session
        self._queue = queue
        self._job = job
        self._sheet = sheet
        self._paths = {uid: sub.path for uid, sub in job.sub_jobs.items()}
        self._effort = session.shared(Effort, Effort)

    def sub(self, group: GroupTree) -> SubJob:
        return self._job.sub_jobs[group_sub_job(self._job.uid, group.name)]

    def holds(self, group: GroupTree) -> bool:
        """Whether the group has what it needs, now or when capacity is released."""
        return group.holds(self._has_minimum)

    def _has_minimum(self, name: str) -> bool:
        states, sub = self._session.states, self._job.sub_jobs[group_sub_job(self._job.uid, name)]
        return states.sub_job_ready(self._job, sub) or states.sub_job_pipelined(self._job, sub)

    def pending(self, group: GroupTree) -> list[Task]:
        """The tasks at or below a group that can be placed."""
        found = []
        for leaf in group.pod_groups():
            tasks = self._sheet.tasks.get(self.sub(leaf).uid, ())
            found += [t for t in tasks if self._session.status(t) == st.PENDING]
        return found

    def domains(self, group: GroupTree, depth: int, outer: str) -> list[str]:
        """The domains of a group inside that of its parent, the fullest first. `depth`: of the group below the root."""
        leaf = next(iter(group.pod_groups()), None)
        if leaf is None:
            return []
        level = self._paths[self.sub(leaf).uid][depth - 1]
        return self.best_first(group, domains_of_group(self._session, self._job, (level,), outer))

    def best_first(self, group: GroupTree, names: list[str]) -> list[str]:
        if len(names) < 2:
            return names
        scores = fullness(self._session, self.pending(group), names)
        return sorted(names, key=lambda name: (-scores[name], name))

    # ---- one after the other ------------------------------------------------------------------------------

    def first(self, tree: GroupTree, roots: list[str]) -> list[Statement] | None:
        """Place what the tree needs in the first of its domains in which it holds; None, without changes, if there is
        none."""
        for name in self.best_first(tree, roots):
            found = self._inside(tree, 0, name)
            if found is not None:
                return found
        return None

    def more(self, group: GroupTree, domains: Sequence[str], depth: int = 0) -> list[Statement]:
        """Place one more child, or pod, of a group that holds."""
        for outer in domains:
            if not group.composite:
                return self._one_more(group, outer)
            for child in group.below:
                inner = self.domains(child, depth + 1, outer)
                if self.holds(child):
                    found = self.more(child, inner, depth + 1)
                else:
                    found = next((f for name in inner if (f := self._inside(child, depth + 1, name))), [])
                if found:
                    return found
        return []

    def _one_more(self, group: GroupTree, domain: str) -> list[Statement]:
        sub = self.sub(group)
        tasks = self._sheet.tasks.get(sub.uid)
        if not tasks:
            return []
        statement, _ = place_tasks(self._session, self._queue, self._job, tasks.copy(), sub, domain)
        return [statement] if statement.steps else []

    def _inside(self, group: GroupTree, depth: int, domain: str) -> list[Statement] | None:
        """Place what a group needs in one domain; None, without changes, if it does not hold then."""
        if not group.composite:
            return self._pod_group(group, domain)
        missing = group.least - sum(map(self.holds, group.below))
        done: list[Statement] = []
        for child in group.below:
            if missing <= 0:
                break
            if self.holds(child):
                continue
            for name in self.domains(child, depth + 1, domain):
                found = self._inside(child, depth + 1, name)
                if found is not None:
                    done += found
                    missing -= 1
                    break
        if missing <= 0:
            return done
        _undo(done)
        return None

    def _pod_group(self, group: GroupTree, domain: str) -> list[Statement] | None:
        sub = self.sub(group)
        tasks = self._sheet.tasks.get(sub.uid)
        if not tasks:
            return None
        statement, _ = place_tasks(self._session, self._queue, self._job, tasks.copy(), sub, domain)
        if statement.steps and self.holds(group):
            return [statement]
        statement.discard()
        return None

    # ---- all together -------------------------------------------------------------------------------------

    def arranged(self, tree: GroupTree, roots: list[str]) -> list[Statement] | None:
        """Nodes for all members together, with the first choice of groups and domains for which there are some."""
        last = self._effort.left - MOST_STEPS
        choices = (c for name in self.best_first(tree, roots) for c in self._choices(tree, 0, name, max(last, 0)))
        for choice in islice(choices, MOST_COMBINATIONS):
            found = self._placed(choice)
            if found is not None:
                return found
        return None

    def _choices(self, group: GroupTree, depth: int, domain: str, last: int) -> Iterator[Choice]:
        """The sub-jobs that let a group hold in a domain, with their domains; until the steps are used up."""
        if self._effort.left <= last:
            return
        self._effort.left -= STEPS_OF_DOMAIN
        if self.holds(group):
            yield {}
        elif not group.composite:
            if len(self.pending(group)) >= lacking(self._session, self._job, self.sub(group)).members > 0:
                yield {self.sub(group).uid: domain}
        else:
            waiting = [child for child in group.below if not self.holds(child)]
            missing = group.least - (len(group.below) - len(waiting))
            for chosen in combinations(waiting, missing):
                yield from self._together(chosen, depth + 1, domain, last)

    def _together(self, groups: Sequence[GroupTree], depth: int, outer: str, last: int) -> Iterator[Choice]:
        if not groups:
            yield {}
            return
        for domain in self.domains(groups[0], depth, outer):
            for first in self._choices(groups[0], depth, domain, last):
                for others in self._together(groups[1:], depth, outer, last):
                    yield first | others

    def _placed(self, choice: Choice) -> list[Statement] | None:
        """Place the members of a choice; None, without changes, if they do not fit or the tree does not hold then."""
        session, job = self._session, self._job
        parts = {uid: [t for t in self._sheet.tasks[uid] if not t.sched_gated] for uid in choice}
        members = {uid: lacking(session, job, job.sub_jobs[uid]).members for uid in choice}
        of = {task.slot: uid for uid, tasks in parts.items() for task in tasks}
        outside = {uid: None if at == ROOT else ~session.topology.mask(at) for uid, at in choice.items()}
        tasks = [task for uid in choice for task in parts[uid]]
        need = Lacking(sum(members.values()), members)
        placed = arranged(session, self._queue, tasks, need, parts=Parts(of, outside))
        if placed is None:
            return None
        statement = Statement(session)
        limits = session.limits
        if all(limits.allocatable(self._queue, t) and place(session, statement, t, n) is None for t, n in placed) and (
            session.states.job_ready(job) or session.states.job_pipelined(job)
        ):
            job.forget_fit_errors()
            return [statement]
        statement.discard()
        return None


def _undo(statements: list[Statement]) -> None:
    for statement in reversed(statements):
        statement.discard()
