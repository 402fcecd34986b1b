"""Native groups for `vcctl explain`: the rows of their tree, their pods, and what their conditions state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from volcano_py.api import core, names
from volcano_py.api.gang import SCHEDULED_TYPES, AnyGroup
from volcano_py.api.meta import Condition
from volcano_py.cli.explain_facts import Facts
from volcano_py.scheduler.explain.groups.group_rows import GroupMembers, GroupRow, group_rows
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE, NATIVE_KINDS
from volcano_py.scheduler.model.jobs.group_tree import MOST_ABOVE, GroupTree, least_of
from volcano_py.scheduler.model.jobs.job import Job


def rows_of(cluster: Cluster, job: Job) -> list[GroupRow]:
    """The rows of the groups of a job; none if it is a PodGroup of Volcano."""
    if job.native is None:
        return []
    tree = job.tree or GroupTree(job.native, (), least_of(job.native))
    members: dict[str, GroupMembers] = {}
    for task in job.tasks.values():
        group = task.pod.spec.scheduling_group
        if group is None or task.pod.status.phase in ("Succeeded", "Failed"):
            continue
        known = members.get(group.pod_group_name, GroupMembers())
        nodes = (*known.nodes, task.node) if task.node else known.nodes
        members[group.pod_group_name] = GroupMembers(known.pods + 1, nodes)

    def label(node: str, key: str) -> str:
        at = cluster.nodes.index.get(node)
        return (cluster.nodes.objects[at].metadata.labels or {}).get(key, "") if at is not None else ""

    return group_rows(tree, lambda name: members.get(name, GroupMembers()), label)


def members_of(facts: Facts) -> Callable[[core.Pod], bool]:
    """Whether a pod belongs to the group that is explained, or to a group below it."""
    namespace, _, name = facts.group.partition("/")
    if facts.group_kind not in NATIVE_KINDS:
        return lambda pod: (
            f"{pod.metadata.namespace}/{(pod.metadata.annotations or {}).get(names.GROUP_NAME)}" == (facts.group)
        )
    below = {name}
    if facts.group_kind == COMPOSITE:
        composites, above = facts.snapshot.of(COMPOSITE), {name}
        for _ in range(MOST_ABOVE):
            found = {g.metadata.name for g in composites if _parent(g, namespace) in above}
            if found <= above:
                break
            above |= found
        below = {g.metadata.name for g in facts.snapshot.of(NATIVE) if _parent(g, namespace) in above}

    def is_member(pod: core.Pod) -> bool:
        group = pod.spec.scheduling_group
        return group is not None and pod.metadata.namespace == namespace and group.pod_group_name in below

    return is_member


def _parent(group: AnyGroup, namespace: str) -> str:
    same = group.metadata.namespace == namespace
    return (group.spec.parent_composite_pod_group_name or "") if same else ""


def native_report(facts: Facts) -> str | None:
    """What the scheduler states about a native group that has too few placed pods."""
    for c in _conditions(facts):
        if c.type in SCHEDULED_TYPES and c.status == "False" and c.message:
            return c.message
    return None


def stated(facts: Facts) -> Iterator[tuple[str, str]]:
    """Time and text of the conditions of a native group."""
    for c in _conditions(facts):
        kind = "PodGroup" if facts.group_kind == NATIVE else "CompositePodGroup"
        yield c.last_transition_time or "", f"{kind} {c.type} is {c.status}: {c.message or c.reason}"


def _conditions(facts: Facts) -> list[Condition]:
    if facts.group_kind not in NATIVE_KINDS:
        return []
    group = next((g for g in facts.snapshot.of(facts.group_kind) if g.metadata.key == facts.group), None)
    return list(group.status.conditions or ()) if group is not None else []
