"""predicates: kube-scheduler's filters. Volcano: plugin predicates.

Filters are registered in Volcano's order; each can be switched off. The plugin also updates the filters' state of the
nodes during the session, so that ports, pod counts, affinity and spreading include the pods placed in this session.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from msgspec import field

from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.node_rules import Filter
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.demand import NONE
from volcano_py.scheduler.model.jobs.pre_bind import PreBindSteps
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.devices.dynamic_resources import (
    DynamicResourcesRule,
    DynamicResourcesScore,
    claim_problem,
    claim_steps,
    follow_claims,
)
from volcano_py.scheduler.noderules.inter_pod_affinity import InterPodAffinityRule
from volcano_py.scheduler.noderules.node_affinity import NodeAffinityRule, conflict
from volcano_py.scheduler.noderules.pod_number import PodNumber
from volcano_py.scheduler.noderules.ports import NodePortsRule
from volcano_py.scheduler.noderules.taints import NodeUnschedulableRule, TaintTolerationRule
from volcano_py.scheduler.noderules.topology_spread import TopologySpread
from volcano_py.scheduler.noderules.volumes.storage_capacity import StorageCapacityScore
from volcano_py.scheduler.noderules.volumes.volume_binding import (
    VolumeBindingRule,
    VolumeMatching,
    follow_volumes,
    volume_steps,
)
from volcano_py.scheduler.noderules.volumes.volume_limits import NodeVolumeLimitsRule
from volcano_py.scheduler.noderules.volumes.volume_restrictions import VolumeRestrictionsRule
from volcano_py.scheduler.noderules.volumes.volume_zone import VolumeZoneRule
from volcano_py.scheduler.rules.score_line import LinePoint
from volcano_py.scheduler.rules.volumes.storage_capacity import EMPTIEST_FIRST, GATE

_GPU = "the plugin deviceshare shares GPUs; add it with the argument {}"
_PROPORTIONAL = (
    "the plugin resource-strategy-fit keeps cpu and memory of a node in proportion to its scarce resources; "
    "add it with the argument proportional: {enable: true, resources: ..., resourceProportion: ...}"
)


class Predicates(Plugin):
    """See `Arguments`."""

    name = "predicates"
    moved = MappingProxyType(
        {
            "predicate.GPUSharingEnable": _GPU.format("deviceshare.GPUSharingEnable: true"),
            "predicate.GPUNumberEnable": _GPU.format("deviceshare.GPUNumberEnable: true"),
            "predicate.ProportionalEnable": _PROPORTIONAL,
            "predicate.resources": _PROPORTIONAL,
            "predicate.resources.": _PROPORTIONAL,
        }
    )

    class Arguments(PluginArguments):
        node_affinity: bool = field(default=True, name="predicate.NodeAffinityEnable")
        node_ports: bool = field(default=True, name="predicate.NodePortsEnable")
        taint_toleration: bool = field(default=True, name="predicate.TaintTolerationEnable")
        pod_affinity: bool = field(default=True, name="predicate.PodAffinityEnable")
        topology_spread: bool = field(default=True, name="predicate.PodTopologySpreadEnable")
        node_volume_limits: bool = field(default=True, name="predicate.NodeVolumeLimitsEnable")
        volume_zone: bool = field(default=True, name="predicate.VolumeZoneEnable")
        volume_binding: bool = field(default=True, name="predicate.VolumeBindingEnable")
        devices: bool = field(default=True, name="predicate.DynamicResourceAllocationEnable")
        """Volcano ignores this argument and follows the feature gate DynamicResourceAllocation; here both must be
        on."""
        bind_timeout: int = field(default=600, name="volumebinding.bindTimeoutSeconds")
        """Seconds for which a bind waits for its volumes to be provisioned and bound."""
        volume_weight: int = field(default=1, name="volumebinding.weight")
        """The weight of the score by storage capacity, with the feature gate StorageCapacityScoring."""
        volume_shape: list[LinePoint] = field(default_factory=lambda: [*EMPTIEST_FIRST], name="volumebinding.shape")
        """The score (0 to 10) at a `utilization` (0 to 100) of the storage capacity; linear between the points."""
        device_timeout: int = field(default=600, name="dynamicresources.bindingTimeoutSeconds")
        """Seconds for which a bind waits for the binding conditions of its devices. Not in Volcano."""
        filter_timeout: int = field(default=10, name="dynamicresources.filterTimeoutSeconds")
        """Accepted for compatibility: the search for devices is limited by steps, not by time."""
        cache: bool = field(default=False, name="predicate.CacheEnable")
        """Accepted for compatibility: the results of every filter are cached by class of pods."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        a = self.arguments
        devices = a.devices and "DynamicResourceAllocation" in session.cluster.features
        rules: list[tuple[bool, type[Any]]] = [
            (True, PodNumber),
            (True, NodeUnschedulableRule),
            (a.node_affinity, NodeAffinityRule),
            (a.taint_toleration, TaintTolerationRule),
            (a.node_ports, NodePortsRule),
            (a.pod_affinity, InterPodAffinityRule),
            (a.node_volume_limits, NodeVolumeLimitsRule),
            (a.volume_zone, VolumeZoneRule),
            (a.topology_spread, TopologySpread),
            (a.volume_binding, VolumeBindingRule),
            (a.volume_binding, VolumeMatching),
            (devices, DynamicResourcesRule),
            (session.deviations.read_write_once_pod, VolumeRestrictionsRule),
        ]
        filters: list[Filter] = [rule(session) for on, rule in rules if on]
        session.add_filters(*filters, after_pre_predicate=True)

        def pre_predicate(task: Task) -> str | None:
            problem = conflict(task) if a.node_affinity and task.spec_class.affinity is not None else None
            if problem:
                return f"plugin NodeAffinity pre-predicates failed {problem}"
            if task.claims.volumes is not None and (problem := self._volume_problem(task)):
                return problem
            if devices and task.claims.devices is not None and (problem := claim_problem(session, task)):
                return f"plugin DynamicResources pre-predicates failed {problem}"
            return None

        session.add_pre_predicate(
            pre_predicate, concerns=lambda task: task.spec_class.affinity is not None or task.claims is not NONE
        )
        _follow(session, self.name)
        followed = session.shared(_Followed, _Followed)
        if a.volume_binding and not followed.volumes:
            followed.volumes = True
            follow_volumes(session)
        if devices and not followed.claims:
            followed.claims = True
            follow_claims(session)
        if devices:
            session.add_scores(DynamicResourcesScore(session))
        if a.volume_binding and GATE in session.cluster.features:
            session.add_scores(StorageCapacityScore(session, a.volume_shape, a.volume_weight))
        if a.volume_binding or devices:
            session.add_pre_bind(
                lambda task, _: self._pre_bind(session, task, devices), concerns=lambda task: task.claims is not NONE
            )

    def _pre_bind(self, session: Session, task: Task, devices: bool) -> PreBindSteps | None:
        """The pre-bind steps for the volumes and the devices of a task."""
        if task.claims is NONE:
            return None
        volumes = volume_steps(session, task, float(self.arguments.bind_timeout))
        claims = claim_steps(session, task, float(self.arguments.device_timeout)) if devices else None
        steps = [step for part in (volumes, claims) if part is not None for step in part.steps]
        return PreBindSteps(steps, {}) if steps else None

    def _volume_problem(self, task: Task) -> str | None:
        """Why all nodes reject a pod with volumes."""
        demand = task.claims.volumes
        assert demand is not None
        if self.arguments.volume_zone and demand.zone_problem:
            return f"plugin VolumeZone pre-predicates failed {demand.zone_problem}"
        if self.arguments.volume_binding and demand.problem:
            return f"plugin VolumeBinding pre-predicates failed {demand.problem}"
        return None


class _Followed:
    """The event handlers that a session has already: a plugin that is in two tiers counts the claims of a pod once."""

    volumes = claims = False


def _follow(session: Session, name: str) -> None:
    """Update the filters' state of the pods on each node during the session.

    A plugin that is in two tiers updates it twice. As in Volcano, a pod that gets a node is then added twice, but a pod
    that was there before is removed only once.
    """
    move = session.kube.move
    if all(h.plugin != name for h in session.events.handlers):
        session.kube.moves_with_session = True
        session.add_event_handler(
            lambda task, node: move(task, node, +1),
            lambda task, node: move(task, node, -1),
            allocate_run=session.kube.move_run,
        )
        return
    added: set[int] = set()

    def place(task: Task, node: int) -> None:
        added.add(task.slot)
        move(task, node, +1)

    def displace(task: Task, node: int) -> None:
        if task.slot in added:
            added.remove(task.slot)
            move(task, node, -1)

    session.add_event_handler(place, displace)
