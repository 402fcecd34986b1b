"""Preemption by a root group, over the whole cluster. Kubernetes: framework/preemption/podgrouppreemption.go.

All weaker units are removed and the group is tried once. Then the units are put back one by one, the most important
first, as long as every pod that was placed still fits on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.groups.affected import AffectedPods
from volcano_py.scheduler.profiles.groups.attempt import GroupResult
from volcano_py.scheduler.profiles.groups.trial import Trial
from volcano_py.scheduler.profiles.groups.units import Units
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.default_preemption import covering, evicted_by_scheduler, split_by_budgets
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

PREFIX = "pod group preemption: "


class GroupPreempted(NamedTuple):
    """What preemption by a group has found."""

    status: Status
    nodes: dict[str, str] | None = {}
    """The nodes to which pods are nominated; pods without a node lose their nomination. None: nominations stay."""
    victims: tuple[PodInfo, ...] = ()
    units: int = 0
    """How many units the victims are."""
    violations: int = 0
    """The victims whose eviction breaks a PodDisruptionBudget."""


def preempt(
    cluster: ProfileCluster,
    units: Units,
    trial: Trial,
    priority: float,
    never: bool,
    waiting: Sequence[QueuedPod],
    profile_of: Callable[[PodInfo], Profile],
    attempt: Callable[[], GroupResult],
) -> GroupPreempted:
    """`never`: the group must not evict. `attempt`: tries the group in the trial."""
    if never:
        return GroupPreempted(unschedulable(f"{PREFIX}not eligible due to preemptionPolicy=Never."), None)
    for queued in waiting:
        node = cluster.nodes.get(queued.pod.pod.status.nominated_node_name)
        if node is not None and any(
            evicted_by_scheduler(p) and units.priority(p) < priority for p in node.pods.values()
        ):
            return GroupPreempted(unresolvable(f"{PREFIX}ongoing preemption on nominated nodes"), None)
    weaker = units.below(priority)
    if not weaker:
        return GroupPreempted(unresolvable(f"{PREFIX}No preemption victims found for incoming preemptor"))
    weaker.sort(key=units.importance)
    with trial.undone():
        put_back = {p.key: trial.evict(p) for unit in weaker for p in unit}
        # The nodes of kube-scheduler's simulation are copies without images: none of them is preferred.
        cluster.without_images = True
        try:
            result = attempt()
        finally:
            cluster.without_images = False
        placed = result.placed()
        if not result.ok:
            return GroupPreempted(unschedulable(f"{PREFIX}{', '.join(result.reasons)}"))
        budgets = list(cluster.budgets.values())
        violating, others = split_by_budgets(
            weaker, budgets, lambda unit: [i for p in unit for i in covering(p, budgets)]
        )
        affected = AffectedPods(cluster, placed, profile_of)
        victims: list[PodInfo] = []
        units_evicted = violations = 0
        for i, unit in enumerate((*violating, *others)):
            for p in unit:
                put_back[p.key]()
            if not all(_still_fits(cluster, profile_of(pod), pod, node) for pod, node in affected.by(unit)):
                for p in unit:
                    trial.evict(p)
                victims += unit
                units_evicted += 1
                violations += len(unit) if i < len(violating) else 0
        nodes = {q.pod.key: found.node for q, found in placed}
    text = f"{PREFIX}found a placement for podgroup, preempting {len(victims)} victims"
    return GroupPreempted(Status(Code.SUCCESS, (text,)), nodes, tuple(victims), units_evicted, violations)


def _still_fits(cluster: ProfileCluster, profile: Profile, pod: PodInfo, node: str) -> bool:
    """Whether a pod that is placed in the trial passes the filters there, without itself."""
    cluster.count(pod, node, -1)
    try:
        state = CycleState()
        only, status, _ = profile.pre_filter(state, pod)
        if not status.ok or (only is not None and node not in only):
            return False
        return profile.filter_with_nominated(state, pod, cluster.nodes[node]).ok
    finally:
        cluster.count(pod, node, 1)
