"""Native gangs as jobs of the dashboard: PodGroups and CompositePodGroups of scheduling.k8s.io, and the tree of each.

A root becomes an object of the shape of Volcano's PodGroups, from which all pages make their rows. Its name is that of
the job in messages: `podgroup.scheduling.k8s.io/train`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from volcano_py.api import gang, names, scheduling
from volcano_py.api.gang import AnyGroup
from volcano_py.scheduler.explain.groups.group_rows import GroupMembers, GroupRow, group_rows
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE
from volcano_py.scheduler.model.jobs.group_tree import MOST_ABOVE, GroupTree, parent_of, tree_of
from volcano_py.scheduler.model.jobs.native_gangs import scheduled_condition

Manifest = dict[str, Any]
_ENDED = ("Succeeded", "Failed")


class NativeJob(NamedTuple):
    """A root with all below it. `tree`: None if the groups are no tree, for the reason in `problem`."""

    manifest: Manifest
    """As a PodGroup of Volcano."""
    tree: GroupTree | None
    problem: str
    members: frozenset[str]
    """The groups of its pods, as kept pods name them."""


def native_jobs(
    groups: Mapping[str, gang.PodGroup], composites: Mapping[str, gang.CompositePodGroup], pods: Iterable[Manifest]
) -> dict[str, NativeJob]:
    """The native gangs by `namespace/kind/name`. `pods`: of all jobs."""
    every: list[AnyGroup] = [*composites.values(), *groups.values()]
    below: dict[str, list[AnyGroup]] = {}
    for group in every:
        if parent := parent_of(group):
            below.setdefault(parent, []).append(group)
    count = counted(pods)
    found = {}
    for group in every:
        parent = parent_of(group)
        if parent in composites and not _in_circle(composites[parent], composites):
            continue  # a part of the tree of its root
        problem = f"waiting for {COMPOSITE}/{parent.partition('/')[2]}, which does not exist" if parent else ""
        if parent in composites:
            problem = "the parents form a circle"
        tree = None
        if not problem:
            try:
                tree = tree_of(group, lambda key: below.get(key, ()))
            except ValueError as error:
                problem = str(error)
        name = f"{COMPOSITE if isinstance(group, gang.CompositePodGroup) else NATIVE}/{group.metadata.name}"
        leaves = [leaf.group for leaf in tree.pod_groups()] if tree is not None else [group]
        namespace = group.metadata.namespace
        members = frozenset(f"{NATIVE}/{leaf.metadata.name}" for leaf in leaves)
        mine = [count.get((namespace, member), GroupMembers()) for member in sorted(members)]
        manifest = _manifest(name, group, tree, problem, mine)
        found[f"{namespace}/{name}"] = NativeJob(manifest, tree, problem, members)
    return found


def counted(pods: Iterable[Manifest]) -> dict[tuple[str, str], GroupMembers]:
    """The pods of each native PodGroup that have not ended, by namespace and name."""
    found: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        if pod["group"].startswith(f"{NATIVE}/") and pod["phase"] not in _ENDED:
            found.setdefault((pod["metadata"]["namespace"], pod["group"]), []).append(pod["nodeName"])
    return {key: GroupMembers(len(nodes), tuple(filter(None, nodes))) for key, nodes in found.items()}


def tree_rows(job: NativeJob, pods: Iterable[Manifest], nodes: Mapping[str, Manifest]) -> tuple[GroupRow, ...]:
    """The rows of the tree of a job; none if it is no tree."""
    if job.tree is None:
        return ()
    namespace, count = job.tree.group.metadata.namespace, counted(pods)

    def label(node: str, key: str) -> str:
        return str(nodes[node]["metadata"]["labels"].get(key, "")) if node in nodes else ""

    return tuple(group_rows(job.tree, lambda name: count.get((namespace, f"{NATIVE}/{name}"), GroupMembers()), label))


def _in_circle(group: gang.CompositePodGroup, composites: Mapping[str, gang.CompositePodGroup]) -> bool:
    """Whether the groups above one have no end."""
    at: gang.CompositePodGroup | None = group
    for _ in range(MOST_ABOVE):
        if at is None:
            return False
        at = composites.get(parent_of(at))
    return True


def _manifest(
    name: str, group: AnyGroup, tree: GroupTree | None, problem: str, members: list[GroupMembers]
) -> Manifest:
    meta, spec = group.metadata, group.spec
    texts = {**(meta.annotations or {}), **(meta.labels or {})}
    placed, exist = sum(len(m.nodes) for m in members), sum(m.pods for m in members)
    scheduled = scheduled_condition(group)
    started = scheduled is not None and scheduled.status == "True"
    conditions = []
    if started and scheduled is not None:
        conditions.append(_condition("Scheduled", "", "", scheduled.last_transition_time))
    elif problem:
        conditions.append(_condition("Waiting", "NativeGroupUnusable", problem, meta.creation_timestamp))
    elif scheduled is not None:
        conditions.append(_condition("Waiting", scheduled.reason, scheduled.message, scheduled.last_transition_time))
    versions = [g.group.metadata.resource_version for g in tree.all_groups()] if tree is not None else []
    return {
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            # A row is made again when a group of the tree or the number of its pods has changed.
            "resourceVersion": ",".join([meta.resource_version, *versions, str(placed), str(exist)]),
            "creationTimestamp": meta.creation_timestamp,
        },
        "spec": {
            "queue": texts.get(names.QUEUE_NAME, ""),
            "minMember": tree.least_pods() if tree is not None else exist,
            "priorityClassName": spec.priority_class_name,
            "minResources": {},
        },
        "status": {
            "phase": scheduling.RUNNING if started else scheduling.PENDING,
            "running": placed,
            "conditions": conditions,
        },
    }


def _condition(type_: str, reason: str, message: str, time: str | None) -> Manifest:
    return {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time}
