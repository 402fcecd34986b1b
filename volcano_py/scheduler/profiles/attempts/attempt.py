"""One attempt to find a node for a pod. Kubernetes: schedule_one.go, schedulePod and the handling of its failure."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.profiles.attempts.feasible import Feasible
from volcano_py.scheduler.profiles.attempts.messages import no_node_fits
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.faults import Pending, PluginFault, stop
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Status, unresolvable
from volcano_py.scheduler.profiles.profile import Profile


class Found(NamedTuple):
    state: CycleState
    node: str


class NotFound(NamedTuple):
    message: str
    rejected_by: frozenset[str]
    """The plugins that rejected the pod; empty after an error."""
    nominated: str | None = None
    """A node that evictions free, empty to clear the nomination, None to leave it unchanged."""
    victims: tuple[PodInfo, ...] = ()
    error: bool = False
    """Whether a plugin failed, as opposed to: no node fits."""


class AnswerPending(NamedTuple):
    """A plugin waits for the response of another program; the pod is tried again when it has arrived."""


def failure(message: str) -> NotFound:
    """The outcome after an error of a plugin or of the scheduler."""
    return NotFound(message, frozenset(), error=True)


def find(
    profile: Profile, cluster: ProfileCluster, pod: PodInfo, *, alone: bool = True
) -> Found | NotFound | AnswerPending:
    """The best node for a pod, or why there is none and which pods to evict. `alone`: whether it may evict pods; the
    members of a group do that together."""
    if not cluster.nodes:
        return NotFound("no nodes available to schedule pods", frozenset())
    try:
        return _find(profile, cluster, pod, alone)
    except PluginFault as fault:
        return failure(str(fault))
    except Pending:
        return AnswerPending()


def _find(profile: Profile, cluster: ProfileCluster, pod: PodInfo, alone: bool) -> Found | NotFound:
    state = CycleState()
    only, status, by = profile.pre_filter(state, pod)
    stop(status, "PreFilter")
    if not status.ok:
        rejected = dict.fromkeys(cluster.nodes, status)
        by.add(status.plugin)
        by.discard("")
        return _after(profile, cluster, state, pod, rejected, by, status.message, alone)
    nominated = cluster.nodes.get(pod.pod.status.nominated_node_name)
    if nominated is not None:
        status = profile.filter_with_nominated(state, pod, nominated)
        if status.ok:
            status = profile.passes_nodes_filters(state, pod, nominated)
        if status.ok:
            return Found(state, nominated.name)
        by.add(status.plugin)
    found = profile.filter_nodes(state, pod, profile.feasible(state, pod, only))
    if found.count > 1:
        return Found(state, profile.best(state, pod, found).name)
    if found.count:
        return Found(state, cluster.columns.infos[found.nodes[0]].name)
    rejected = _rejected(profile, state, pod, found, only, by)
    return _after(profile, cluster, state, pod, rejected, by, "", alone)


def _rejected(
    profile: Profile, state: CycleState, pod: PodInfo, found: Feasible, only: set[str] | None, by: set[str]
) -> dict[str, Status]:
    """Why each node does not fit; adds the plugins that reject the pod to `by`."""
    rejected = profile.rejections(state, pod, found, only)
    if only is not None:
        elsewhere = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}]")
        rejected = {name: rejected[name] if name in only else elsewhere for name in found.view.columns.index}
    different = {id(status): status for status in rejected.values()}.values()
    for status in different:
        if status.plugin or not status.rejected:
            stop(status, "Filter")
            by.add(status.plugin)
    return rejected


def _after(
    profile: Profile,
    cluster: ProfileCluster,
    state: CycleState,
    pod: PodInfo,
    rejected: dict[str, Status],
    by: set[str],
    pre_filter: str,
    alone: bool,
) -> NotFound:
    """The outcome if no node fits: calls PostFilter, and composes the message."""
    result = profile.post_filter(state, pod, rejected) if alone else None
    reason = result.status.message if result is not None else ""
    message = no_node_fits(rejected, len(cluster.nodes), pre_filter, reason)
    if result is None:
        return NotFound(message, frozenset(by))
    return NotFound(message, frozenset(by), result.nominated, result.victims)
