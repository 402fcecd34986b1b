"""RootCycles: carries out what an attempt of a root group has found. Kubernetes: schedule_one_podgroup.go, the end of a
pod group cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from volcano_py.api.gang import PodGroup
from volcano_py.api.kinds import RESOURCECLAIM
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim
from volcano_py.scheduler.profiles.attempts.attempt import Found, NotFound, failure
from volcano_py.scheduler.profiles.attempts.binding import BindingCycles
from volcano_py.scheduler.profiles.decisions import SCHEDULED, SCHEDULER_ERROR, UNSCHEDULABLE, GroupCondition, Patch
from volcano_py.scheduler.profiles.faults import PluginFault
from volcano_py.scheduler.profiles.groups import attempt, post_filter
from volcano_py.scheduler.profiles.groups.attempt import GroupAttempt, GroupResult
from volcano_py.scheduler.profiles.groups.checks import problem_of
from volcano_py.scheduler.profiles.groups.claims import to_allocate
from volcano_py.scheduler.profiles.groups.queue import GroupedQueue, QueuedGroup
from volcano_py.scheduler.profiles.groups.tree import Tree
from volcano_py.scheduler.profiles.groups.trial import Trial
from volcano_py.scheduler.profiles.groups.units import Units
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.handle import World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

_CLAIM = ObjectKind(RESOURCECLAIM.api_version, RESOURCECLAIM.kind)
_TOPOLOGY = "TopologyAwareWorkloadScheduling"
_POLICY = "PodGroupPreemptionPolicy"
_ALLOCATED_ELSEWHERE = 'running PreBind plugin "DynamicResources": claim {} got allocated elsewhere in the meantime'


class GroupReporter(Protocol):
    """Writes why a pod was rejected, its nomination and its evictions."""

    def __call__(self, pod: PodInfo, why: NotFound) -> None: ...


class Evictor(Protocol):
    """Evicts a pod for a preemptor."""

    def __call__(self, victim: PodInfo, preemptor: PodInfo, for_group: bool = False) -> None: ...


class RootCycles:
    def __init__(
        self,
        world: World,
        tree: Tree,
        profiles: Mapping[str, Profile],
        queue: GroupedQueue,
        cycles: BindingCycles,
        report: GroupReporter,
        evict: Evictor,
    ) -> None:
        self._world = world
        self._cluster = world.cluster
        self._tree = tree
        self._units = Units(world.cluster, tree)
        self._profiles = profiles
        self._queue = queue
        self._cycles = cycles
        self._report = report
        self._evict_pod = evict

    def run(self, group: QueuedGroup) -> None:
        """Try a root group that was taken from the queue, and return its waiting pods to the queue."""
        try:
            self._run(group)
        finally:
            self._world.tried_together = frozenset()

    def _run(self, group: QueuedGroup) -> None:
        members = [q for q in group.pods() if not q.pod.terminating]
        group.waiting = {}
        root = self._tree.group(group.root)
        if root is None or not members:
            return
        pods = [*(q.pod for q in members), *(p for p, _ in self._tree.on_nodes(group.root))]
        why = problem_of(root, pods, own_policy=_POLICY in self._world.features)
        if why:
            self._failed(group, members, why)
            return
        waiting = _in_order(members)
        trial = Trial(self._cluster)
        made = GroupAttempt(
            self._cluster,
            self._tree,
            self._profiles,
            trial,
            waiting,
            _TOPOLOGY in self._world.features,
            self._world.observations,
        )
        self._world.tried_together = frozenset(q.pod.pod.metadata.uid for q in members)
        with trial.undone():
            result = made.run(group.root)
        for q in members:
            q.attempts += 1
        if result.error:
            self._failed_result(group, members, result)
        elif result.ok:
            self._succeeded(group, result)
        else:
            self._rejected(group, members, result, made, trial)

    # ---- outcomes ---------------------------------------------------------------------------------------

    def _succeeded(self, group: QueuedGroup, result: GroupResult) -> None:
        placed = result.placed()
        left: list[QueuedPod] = []
        tried = False
        for leaf, reasons in result.leaves():
            if leaf.ok and not reasons:
                self._condition(leaf, "")
                for queued, why in leaf.not_found:
                    left.append(queued)
                    tried = True
                    self._report(queued.pod, why._replace(nominated=""))
            else:
                tried = True
                left += self._report_leaf(leaf, reasons, "", None)
        for queued, _ in placed:
            self._cluster.nominate(queued.pod, "")
        written: set[str] = set()
        for queued, found in placed:
            claims = to_allocate(self._world, queued.pod)
            other = next((c for c in claims if c in written), "")
            if other:
                # One member writes the allocation of a shared claim; the others use it in the next attempt.
                self._allocate_own(queued.pod, found, other)
                self._report(queued.pod, failure(_ALLOCATED_ELSEWHERE.format(other)))
                left.append(queued)
                continue
            written.update(claims)
            profile = self._profiles[queued.pod.pod.spec.scheduler_name]
            self._cycles.start(queued, profile, found)
        self._queue.left_over(group, left, self._world.now, tried=tried)

    def _allocate_own(self, pod: PodInfo, found: Found, shared: str) -> None:
        """Write the allocations of the claims that a pod names before a shared one that another member allocates: they
        stay allocated."""
        profile = self._profiles[pod.pod.spec.scheduler_name]
        trial = Trial(self._cluster)
        with trial.undone():
            trial.place(profile, pod, found)
            for step in self._world.claims.reserved(pod):
                if isinstance(step, AllocateClaim) and step.extended is None:
                    key = f"{step.namespace}/{step.claim}"
                    if key == shared:
                        return
                    if step.allocation is not None and not step.group_uid:
                        status = {"allocation": step.allocation}
                        self._world.emit(Patch(_CLAIM, key, {"status": status}, pod, status=True))

    def _rejected(
        self, group: QueuedGroup, members: Sequence[QueuedPod], result: GroupResult, made: GroupAttempt, trial: Trial
    ) -> None:
        root = self._tree.group(group.root)
        assert root is not None
        policies = [q.pod.pod.spec.preemption_policy for q in members]
        never = "Never" in ([root.spec.preemption_policy] if _POLICY in self._world.features else policies)
        profile = self._profiles[members[0].pod.pod.spec.scheduler_name]
        tried = post_filter.TriedGroup(
            self._cluster,
            self._units,
            trial,
            root,
            members,
            result,
            never=never,
            profile_of=lambda pod: self._profiles[pod.pod.spec.scheduler_name],
            attempt=lambda: made.run(group.root),
            observations=self._world.observations,
        )
        try:
            found = post_filter.run(profile, tried, self._cluster.nodes)
        except PluginFault as fault:
            self._failed(group, members, f'error in "{fault.plugin}" {post_filter.POINT} plugins: {fault.text}')
            return
        for leaf, reasons in result.leaves():
            self._report_leaf(leaf, reasons, found.status.message, found.nominated)
        if found.victims:
            self._evict(members[0].pod, found)
        self._queue.rejected(group, members, self._world.now, error=False)

    def _evict(self, pod: PodInfo, found: PodGroupPostFilterResult) -> None:
        """Evict the victims of a group, in the name of its first pod, whose node weaker nominated pods lose."""
        node = (found.nominated or {}).get(pod.key)
        for other in list(self._cluster.nominated(node)) if node else ():
            if other.priority < pod.priority:
                self._cluster.nominate(other, "")
        for victim in found.victims:
            if not victim.terminating:
                self._evict_pod(victim, pod, for_group=True)

    def _report_leaf(
        self, leaf: GroupResult, reasons: Sequence[str], after: str, nodes: Mapping[str, str] | None
    ) -> list[QueuedPod]:
        """Report the pods of a PodGroup that is rejected; returns them."""
        stated = ", ".join(reasons)
        self._condition(leaf, ", ".join(filter(None, (stated, after))))

        def nomination(queued: QueuedPod) -> str | None:
            return None if nodes is None else nodes.get(queued.pod.key, "")

        members = [*(q for q, _ in leaf.not_found), *(q for q, _ in leaf.found), *leaf.untried]
        if leaf.ok:  # a group above it fails: what its own pods found no longer counts
            for queued in members:
                self._report(queued.pod, NotFound(stated, frozenset(), nominated=nomination(queued)))
            return members
        for queued, why in leaf.not_found:
            self._report(queued.pod, why._replace(nominated=nomination(queued)))
        with_node = ", ".join(filter(None, (attempt.UNSCHEDULABLE, stated, after)))
        for queued, _ in leaf.found:
            self._report(queued.pod, NotFound(with_node, frozenset(), nominated=nomination(queued)))
        for queued in leaf.untried:
            self._report(queued.pod, NotFound(stated, frozenset(), nominated=nomination(queued)))
        return members

    def _failed(self, group: QueuedGroup, members: Sequence[QueuedPod], why: str) -> None:
        """An error for all pods of a group."""
        for queued in members:
            self._report(queued.pod, failure(why))
        for key in dict.fromkeys(q.pod.group for q in members):
            self._state(key, False, SCHEDULER_ERROR, why)
        self._queue.rejected(group, members, self._world.now, error=True)

    def _failed_result(self, group: QueuedGroup, members: Sequence[QueuedPod], result: GroupResult) -> None:
        own = {q.pod.key: why for leaf, _ in result.leaves() for q, why in leaf.not_found if why.error}
        stated = ", ".join(result.reasons)
        for queued in members:
            self._report(queued.pod, own.get(queued.pod.key) or failure(stated))
        for key in dict.fromkeys(q.pod.group for q in members):
            self._state(key, False, SCHEDULER_ERROR, stated)
        self._queue.rejected(group, members, self._world.now, error=True)

    # ---- conditions -------------------------------------------------------------------------------------

    def _condition(self, leaf: GroupResult, message: str) -> None:
        if message:
            self._state(leaf.at.key, False, UNSCHEDULABLE, message)
        else:
            self._state(leaf.at.key, True, SCHEDULED, "")

    def _state(self, key: str, ok: bool, reason: str, message: str) -> None:
        group = self._cluster.groups.get(key)
        if isinstance(group, PodGroup):
            self._world.emit(GroupCondition(group, ok, reason, message))


def _in_order(members: Iterable[QueuedPod]) -> dict[str, list[QueuedPod]]:
    """The members of each PodGroup in the order in which they are tried."""
    found: dict[str, list[QueuedPod]] = {}
    for q in sorted(members, key=lambda q: (-q.pod.priority, -q.attempts, q.since, q.pod.name)):
        found.setdefault(q.pod.group, []).append(q)
    return found
