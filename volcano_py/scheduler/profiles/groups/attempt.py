"""One attempt to place all waiting pods of a root group on one snapshot. Kubernetes: schedule_one_podgroup.go.

A PodGroup's pods are tried in order, each on the nodes that the ones before it have left. With topology-aware
scheduling this is done in every placement of the group, and in every placement of the groups above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volcano_py.scheduler.profiles.attempts.attempt import AnswerPending, Found, NotFound, failure, find
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.groups.placements import Nodes, NoDomain, fullness, placements
from volcano_py.scheduler.profiles.groups.room import missing, rooms
from volcano_py.scheduler.profiles.groups.tree import GroupId, Tree, parent_of
from volcano_py.scheduler.profiles.groups.trial import Trial
from volcano_py.scheduler.profiles.observations import Observations
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

UNSCHEDULABLE = "pod group is unschedulable"
_OTHER_FAILED = "failed to schedule other pod from a pod group: "


class GroupResult:
    """What an attempt has found for a group. Without `reasons` it succeeds."""

    def __init__(self, at: GroupId) -> None:
        self.at = at
        self.reasons: tuple[str, ...] = ()
        self.error = False
        self.found: list[tuple[QueuedPod, Found]] = []
        self.not_found: list[tuple[QueuedPod, NotFound]] = []
        self.untried: list[QueuedPod] = []
        self.children: list[GroupResult] = []
        self.started = True
        """False: a group above it had failed before."""
        self.satisfied = False
        """Whether the group has its minimum, with running pods."""

    @property
    def ok(self) -> bool:
        return self.started and not self.reasons

    def leaves(self, above: tuple[str, ...] = ()) -> list[tuple[GroupResult, tuple[str, ...]]]:
        """The results of PodGroups, each with the reasons for its pods: its own, or those of a group above it."""
        reasons = self.reasons or above
        if not self.at.composite:
            return [(self, reasons)]
        return [leaf for child in self.children for leaf in child.leaves(reasons)]

    def placed(self) -> list[tuple[QueuedPod, Found]]:
        """The pods with a node, of the groups that succeed."""
        if not self.ok:
            return []
        return [p for child in self.children for p in child.placed()] if self.at.composite else self.found

    def fail(self, *reasons: str, error: bool = False) -> GroupResult:
        self.reasons, self.error = reasons, error
        return self


class GroupAttempt:
    """`waiting`: the pods to place, by PodGroup, in order. `by_topology`: whether placements are tried."""

    def __init__(
        self,
        cluster: ProfileCluster,
        tree: Tree,
        profiles: Mapping[str, Profile],
        trial: Trial,
        waiting: Mapping[str, Sequence[QueuedPod]],
        by_topology: bool,
        observations: Observations,
    ) -> None:
        self._cluster = cluster
        self._tree = tree
        self._profiles = profiles
        self._trial = trial
        self._waiting = waiting
        self._by_topology = by_topology
        self._observations = observations

    def run(self, at: GroupId) -> GroupResult:
        """Try a group on the nodes that count now. Its pods stay placed in the trial if it succeeds."""
        if not self._by_topology:
            return self._inside(at)
        return self._in_best_placement(at)

    def _inside(self, at: GroupId) -> GroupResult:
        return self._children(at) if at.composite else self._pods(at)

    def _in_best_placement(self, at: GroupId) -> GroupResult:
        group = self._tree.group(at)
        key = group.spec.topology_key if group is not None else ""
        try:
            found = placements(self._cluster, self._tree, at, key)
        except NoDomain as e:
            return self._untried(at, str(e), error=True)
        if not found:
            return self._untried(at, "no feasible placements found")
        self._observations.placements(self._profile, len(found))
        if len(found) == 1:
            return self._in_single_placement(at, found[0])
        results: dict[int, GroupResult] = {}
        feasible: dict[int, tuple[int, int]] = {}  # the number of pods, and the fullness
        pods = [queued.pod for waiting in self._pods_of(at) for queued in waiting]
        bounds = self._most_full(found, pods)
        has_room = self._with_room(at, found, pods)
        running = sum(1 for _ in self._tree.on_nodes(at))
        every = running + len(pods)
        start, last = self._trial.mark(), -1
        # The first placement states why none is feasible, so it is tried, last, even without room.
        for i in sorted(range(len(found)), key=lambda i: (not has_room[i], -bounds[i], i)):
            if not has_room[i] and (i or feasible):
                continue
            whole = {_total(every, every, f): -k for k, (count, f) in feasible.items() if count == every}
            if whole and (_total(every, every, bounds[i]), -i) < max(whole.items()):
                continue  # it cannot be the best one
            self._trial.back_to(start)
            with self._cluster.within(found[i]):
                result = results[i] = self._in_placement(at)
                if result.error:
                    self._trial.back_to(start)
                    return result
                if result.satisfied:
                    feasible[i] = (running + len(result.placed()), self._fullness())
            last = i
        if not feasible:
            return self._infeasible(results[0], len(found), start)
        most = max(count for count, _ in feasible.values()) or 1
        best = max(feasible, key=lambda i: (_total(most, *feasible[i]), -i))
        if best != last:
            self._trial.back_to(start)
            with self._cluster.within(found[best]):
                results[best] = self._inside(at)
        return self._chosen(results[best])

    @property
    def _profile(self) -> str:
        """The profile of the pods, which have the same scheduler name."""
        return next((q.pod.pod.spec.scheduler_name for pods in self._waiting.values() for q in pods), "")

    def _in_placement(self, at: GroupId) -> GroupResult:
        with self._observations.placement(self._profile) as seen:
            result = self._inside(at)
            seen.feasible = result.satisfied
        return result

    def _in_single_placement(self, at: GroupId, nodes: Nodes) -> GroupResult:
        start = self._trial.mark()
        with self._cluster.within(nodes):
            result = self._in_placement(at)
        if result.error:
            self._trial.back_to(start)
            return result
        return self._chosen(result) if result.satisfied else self._infeasible(result, 1, start)

    def _infeasible(self, first: GroupResult, count: int, start: int) -> GroupResult:
        """The result if none of the placements is feasible. `first`: that of the first one."""
        self._trial.back_to(start)
        text = f"0/{count} placements are available, first placement status: {', '.join(first.reasons)}"
        return first.fail(UNSCHEDULABLE, text)

    def _pods_of(self, at: GroupId) -> list[Sequence[QueuedPod]]:
        """The pods of a tree that wait, by PodGroup."""
        return [self._waiting.get(key, ()) for key in self._tree.pod_groups(at)]

    def _with_room(self, at: GroupId, found: Sequence[Nodes], pods: Sequence[PodInfo]) -> list[bool]:
        """Whether each placement may have room for the minimum of a group."""
        least = missing(self._tree, at, self._waits)
        return [room >= least for room in rooms(self._cluster.columns, found, pods, self._profiles)]

    def _most_full(self, found: Sequence[Nodes], pods: Sequence[PodInfo]) -> list[int]:
        """For each placement, at least how full it would be with all waiting pods of a group."""
        nodes = self._cluster.nodes
        return [fullness([nodes[name] for name in p], self._strategy(), pods) for p in found]

    def _chosen(self, result: GroupResult) -> GroupResult:
        if result.ok or result.at.composite or not self._below_composite(result.at):
            return result
        untried = self._untried(result.at, UNSCHEDULABLE)
        untried.satisfied = True
        return untried

    def _pods(self, at: GroupId) -> GroupResult:
        """Try the pods of a PodGroup."""
        result = GroupResult(at)
        waiting = list(self._waiting.get(at.key, ()))
        least = self._tree.least(at)
        scheduled = sum(1 for _ in self._tree.on_nodes(at))
        mark = self._trial.mark()
        why = _short(least, scheduled, len(waiting))
        if why:
            result.untried = waiting
            return result.fail(UNSCHEDULABLE, why)
        for i, queued in enumerate(waiting):
            profile = self._profiles[queued.pod.pod.spec.scheduler_name]
            found = self._find(profile, queued)
            if isinstance(found, NotFound):
                result.not_found.append((queued, found))
                if found.error:
                    self._trial.back_to(mark)
                    result.untried = waiting[i + 1 :]
                    return result.fail(f"{_OTHER_FAILED}{found.message}", error=True)
            else:
                result.found.append((queued, found))
                scheduled += 1
            why = _short(least, scheduled, len(waiting) - i - 1)
            if why:
                self._trial.back_to(mark)
                result.untried = waiting[i + 1 :]
                return result.fail(why)
        result.satisfied = True
        if not result.found:
            return result.fail(UNSCHEDULABLE)
        return result

    def _find(self, profile: Profile, queued: QueuedPod) -> Found | NotFound:
        found = find(profile, self._cluster, queued.pod, alone=False)
        if isinstance(found, AnswerPending):
            return failure("a plugin waits for the response of another program")
        if isinstance(found, NotFound):
            return found
        return self._trial.place(profile, queued.pod, found) or found

    def _children(self, at: GroupId) -> GroupResult:
        """Try the groups below a CompositePodGroup."""
        result = GroupResult(at)
        least = self._tree.least(at)
        children = self._tree.children(at)
        mark = self._trial.mark()
        tried = [c for c in children if self._waits(c)]
        scheduled = sum(self._has_minimum(c) for c in children if c not in tried)
        why = ""
        for i, child in enumerate([*tried, None]):
            why = _short(least, scheduled, len(tried) - i)
            if why:
                break
            if child is not None:
                before = self._has_minimum(child)
                found = self.run(child)
                result.children.append(found)
                if found.error:
                    self._trial.back_to(mark)
                    return result.fail(*found.reasons, error=True)
                scheduled += found.ok or before
        result.children += [self._untried(c) for c in tried[len(result.children) :]]
        if why:
            self._trial.back_to(mark)
            return result.fail(why)
        result.satisfied = True
        if not any(child.ok for child in result.children):
            return result.fail(UNSCHEDULABLE)
        return result

    def _untried(self, at: GroupId, *reasons: str, error: bool = False) -> GroupResult:
        result = GroupResult(at)
        if at.composite:
            result.children = [self._untried(c, *reasons) for c in self._tree.children(at) if self._waits(c)]
        else:
            result.untried = list(self._waiting.get(at.key, ()))
        result.started = bool(reasons)
        return result.fail(*reasons, error=error)

    def _below_composite(self, at: GroupId) -> bool:
        group = self._tree.group(at)
        return group is not None and parent_of(group) is not None

    def _waits(self, at: GroupId) -> bool:
        return any(self._waiting.get(key) for key in self._tree.pod_groups(at))

    def _has_minimum(self, at: GroupId) -> bool:
        """Whether enough pods of a tree run already."""
        least = self._tree.least(at)
        if not at.composite:
            return sum(1 for _ in self._tree.on_nodes(at)) >= least
        return sum(map(self._has_minimum, self._tree.children(at))) >= least

    def _fullness(self) -> int:
        """The score of NodeResourcesFit for the nodes that count now, with the pods of the attempt."""
        return fullness(list(self._cluster.nodes.values()), self._strategy())

    def _strategy(self) -> Sequence[tuple[str, int]]:
        return next((p.placement_strategy for p in self._profiles.values()), [])


def _short(least: int, scheduled: int, remaining: int) -> str:
    """Why a group cannot reach its minimum; empty if it can."""
    if scheduled + remaining >= least:
        return ""
    return f"minCount ({least}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"


def _total(most: int, count: int, full: int) -> int:
    """The score of a placement with `count` pods of a group, of at most `most` in any."""
    return full + count * 100 // (most or 1)
