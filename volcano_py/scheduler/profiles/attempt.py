"""One pod's search for a node. Kubernetes: schedule_one.go, schedulePod and what follows when it finds none."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.faults import Pending, PluginFault, stop
from volcano_py.scheduler.profiles.feasible import Feasible
from volcano_py.scheduler.profiles.messages import no_node_fits
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.status import Status, unresolvable


class Found(NamedTuple):
    state: CycleState
    node: str


class NotFound(NamedTuple):
    message: str
    refused_by: frozenset[str]
    """The plugins that refused; none after an error."""
    nominated: str | None = None
    """A node that evictions free, empty to clear the nomination, None to leave it."""
    victims: tuple[PodInfo, ...] = ()
    error: bool = False
    """A plugin failed, as opposed to: no node fits."""


class AnswerPending(NamedTuple):
    """A plugin waits for an answer from another program; the pod is tried again when it has come."""


def failure(message: str) -> NotFound:
    """An error of a plugin, or of the scheduler."""
    return NotFound(message, frozenset(), error=True)


def find(profile: Profile, cluster: Cluster, pod: PodInfo) -> Found | NotFound | AnswerPending:
    """The best node for a pod, or why there is none and which pods to evict."""
    if not cluster.nodes:
        return NotFound("no nodes available to schedule pods", frozenset())
    try:
        return _find(profile, cluster, pod)
    except PluginFault as fault:
        return failure(str(fault))
    except Pending:
        return AnswerPending()


def _find(profile: Profile, cluster: Cluster, pod: PodInfo) -> Found | NotFound:
    state = CycleState()
    only, status, by = profile.pre_filter(state, pod)
    stop(status, "PreFilter")
    if not status.ok:
        refused = dict.fromkeys(cluster.nodes, status)
        by.add(status.plugin)
        by.discard("")
        return _after(profile, cluster, state, pod, refused, by, status.message)
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
    refused = _refused(profile, state, pod, found, only, by)
    return _after(profile, cluster, state, pod, refused, by, "")


def _refused(
    profile: Profile, state: CycleState, pod: PodInfo, found: Feasible, only: set[str] | None, by: set[str]
) -> dict[str, Status]:
    """Why each node does not fit; `by` gets the plugins that refuse."""
    refused = profile.refusals(state, pod, found, only)
    if only is not None:
        elsewhere = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}]")
        refused = {name: refused[name] if name in only else elsewhere for name in found.view.columns.index}
    different = {id(status): status for status in refused.values()}.values()
    for status in different:
        if status.plugin or not status.rejected:
            stop(status, "Filter")
            by.add(status.plugin)
    return refused


def _after(
    profile: Profile,
    cluster: Cluster,
    state: CycleState,
    pod: PodInfo,
    refused: dict[str, Status],
    by: set[str],
    pre_filter: str,
) -> NotFound:
    """No node fits: call PostFilter, and put the message together."""
    result = profile.post_filter(state, pod, refused)
    reason = result.status.message if result is not None else ""
    message = no_node_fits(refused, len(cluster.nodes), pre_filter, reason)
    if result is None:
        return NotFound(message, frozenset(by))
    return NotFound(message, frozenset(by), result.nominated, result.victims)
