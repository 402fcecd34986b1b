"""PodGroupPostFilter: what plugins do for a root group that was rejected. Kubernetes: RunPodGroupPostFilterPlugins of
framework/runtime, with the feature gate GenericWorkload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from volcano_py.api.gang import AnyGroup
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.faults import PluginFault, contained, expect
from volcano_py.scheduler.profiles.groups.attempt import GroupResult
from volcano_py.scheduler.profiles.groups.preemption import preempt
from volcano_py.scheduler.profiles.groups.tree import priority_of
from volcano_py.scheduler.profiles.groups.trial import Trial
from volcano_py.scheduler.profiles.groups.units import Units
from volcano_py.scheduler.profiles.observations import Observations
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.rejected_group import PodGroupPostFilterResult
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status, unschedulable
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

POINT = "PodGroupPostFilter"


class TriedGroup:
    """A rejected root group; see `RejectedGroup`. `attempt`: tries it in the trial."""

    def __init__(
        self,
        cluster: ProfileCluster,
        units: Units,
        trial: Trial,
        root: AnyGroup,
        members: Sequence[QueuedPod],
        result: GroupResult,
        *,
        never: bool,
        profile_of: Callable[[PodInfo], Profile],
        attempt: Callable[[], GroupResult],
        observations: Observations,
    ) -> None:
        self._cluster = cluster
        self._units = units
        self._trial = trial
        self._members = members
        self._never = never
        self._profile_of = profile_of
        self._attempt = attempt
        self._observations = observations
        self.root = root
        self.reasons: Sequence[str] = result.reasons
        self.tried = any(leaf.found or leaf.not_found for leaf, _ in result.leaves())

    @property
    def waiting(self) -> Sequence[PodInfo]:
        return [q.pod for q in self._members]

    def nodes_without(self, victims: Iterable[PodInfo]) -> Mapping[str, str] | None:
        with self._trial.undone():
            for pod in victims:
                if self._cluster.is_placed(pod.key):
                    self._trial.evict(pod)
            result = self._attempt()
            return {q.pod.key: found.node for q, found in result.placed()} if result.ok else None

    def evict_weaker(self) -> PodGroupPostFilterResult:
        with self._observations.preemption(by_group=True) as seen:
            found = preempt(
                self._cluster,
                self._units,
                self._trial,
                priority_of(self.root),
                self._never,
                self._members,
                self._profile_of,
                self._attempt,
            )
            seen.result, seen.victims = found.status.code.value, len(found.victims)
            seen.units, seen.violations = found.units, found.violations
        return PodGroupPostFilterResult(found.status, found.nodes, found.victims)


def run(profile: Profile, group: TriedGroup, nodes: Mapping[str, object]) -> PodGroupPostFilterResult:
    """The first result that is not Unschedulable, or all of them as one. `nodes`: those that exist. Raises
    PluginFault."""
    reasons: list[str] = []
    nominated: Mapping[str, str] | None = None
    for plugin in profile.pod_group_post_filter:
        with contained(plugin.name, POINT):
            result = plugin.pod_group_post_filter(group)
            expect(result, PodGroupPostFilterResult, plugin.name, POINT)
            expect(result.status, Status, plugin.name, POINT)
            for pod, node in (result.nominated or {}).items():
                if node and node not in nodes:
                    raise PluginFault(plugin.name, POINT, f"the node {node!r} nominated to {pod} does not exist")
        if not result.status.ok and not result.status.rejected:
            text = result.status.message or f"returned the status {result.status.code.value}"
            raise PluginFault(plugin.name, POINT, text)
        if result.status.code is not Code.UNSCHEDULABLE:
            return result
        reasons += result.status.reasons
        nominated = result.nominated if result.nominated is not None else nominated
    return PodGroupPostFilterResult(unschedulable(*reasons), nominated)
