"""Why a tree of CompositePodGroups waits: the first of its groups that lacks pods, or for which no domain is large
enough. Not in Volcano."""

from __future__ import annotations

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.explain.topology import copies
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import Level, SubJob, group_sub_job
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.label_domains import domains_of, domains_of_group
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE
from volcano_py.scheduler.model.jobs.group_tree import GroupTree


def missing_groups(job: SessionJob, tree: GroupTree) -> Cause | None:
    """The composite group, as low as possible, that has too few children with enough pods; None: the tree has all."""
    able = {leaf.name: _sub(job, leaf).valid_num >= leaf.least for leaf in tree.pod_groups()}
    if tree.holds(lambda name: able[name]):
        return None
    at = tree
    while True:
        short = [child for child in at.below if not child.holds(lambda name: able[name])]
        below = next((child for child in short if child.composite), None)
        leaf = next((child for child in short if not child.composite), None)
        if leaf is None and below is not None:
            at = below
            continue
        first = "" if leaf is None else f": {leaf.name} has {_sub(job, leaf).valid_num} of {leaf.least}"
        return table.GROUPS_INCOMPLETE.because(
            group=f"{COMPOSITE}/{at.name}", have=len(at.below) - len(short), need=at.least, first=first
        )


def domain_cause(session: Session, job: SessionJob, tree: GroupTree) -> Cause | None:
    """The first group with a topology key that no domain of it holds, if its pods are equal; None: there is none."""
    for at in tree.all_groups():
        subs = [_sub(job, leaf) for leaf in at.pod_groups()]
        if (
            not at.topology_key
            or not subs
            or at.holds(lambda name: job.sub_jobs[group_sub_job(job.uid, name)].is_ready())
        ):
            continue
        pending = [t for sub in subs for t in sub.tasks.values() if session.status(t) == st.PENDING]
        if not pending or any(t.spec_class is not pending[0].spec_class for t in pending):
            continue
        label = at.topology_key
        if not any(label in (node.metadata.labels or {}) for node in session.table.objects):
            return table.LABEL_MISSING.because(label=label)
        need = max(at.least_pods() - sum(sub.ready_num for sub in subs), 1)
        fits = copies(session, pending[0])
        inner = _path(at, subs[0]) if at is not tree else ()
        outer = domains_of(session, job) if tree.topology_key else [ROOT]
        names = [name for around in outer for name in domains_of_group(session, job, inner, around)]
        found = [(int(fits[session.topology.columns(name)].sum()), name) for name in names]
        most, best = min(found, key=lambda d: (-d[0], d[1]), default=(0, "none"))
        if most < need:
            return table.GROUP_DOMAIN_SHORT.because(group=at.name, label=label, domain=best, placeable=most, need=need)
    return None


def _sub(job: SessionJob, leaf: GroupTree) -> SubJob:
    return job.sub_jobs[group_sub_job(job.uid, leaf.name)]


def _path(at: GroupTree, sub: SubJob) -> tuple[Level, ...]:
    """The groups above a group, without the root, and itself. `sub`: of a PodGroup at or below it."""
    below = {leaf.name for leaf in at.pod_groups()}
    size = next(
        i
        for i, level in enumerate(sub.path, 1)
        if level.topology_key == at.topology_key and {uid.rpartition("/")[2] for uid in level.subs} == below
    )
    return sub.path[:size]
