"""The plugins that a configuration can name, in the default order. Kubernetes: plugins/registry.go and
apis/config/v1/default_plugins.go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from volcano_py.scheduler.profiles.plugin_api.extension_points import NoArguments, ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugins import (
    balanced,
    default_preemption,
    fit,
    machine_groups,
    node_affinity,
    sticky,
)
from volcano_py.scheduler.profiles.plugins.default_binder import DefaultBinder
from volcano_py.scheduler.profiles.plugins.devices import card_types, dynamic_resources
from volcano_py.scheduler.profiles.plugins.gangs import gang_permit
from volcano_py.scheduler.profiles.plugins.gangs.gang import GangScheduling
from volcano_py.scheduler.profiles.plugins.gates import SchedulingGates
from volcano_py.scheduler.profiles.plugins.image_locality import ImageLocality
from volcano_py.scheduler.profiles.plugins.node_features import NodeDeclaredFeatures
from volcano_py.scheduler.profiles.plugins.node_name import NodeName
from volcano_py.scheduler.profiles.plugins.outside import remote
from volcano_py.scheduler.profiles.plugins.pods import pod_affinity, pod_preference, spread
from volcano_py.scheduler.profiles.plugins.ports import NodePorts
from volcano_py.scheduler.profiles.plugins.priority_sort import PrioritySort
from volcano_py.scheduler.profiles.plugins.taints import NodeUnschedulable, TaintToleration
from volcano_py.scheduler.profiles.plugins.volumes import volume_binding
from volcano_py.scheduler.profiles.plugins.volumes.volume_limits import NodeVolumeLimits
from volcano_py.scheduler.profiles.plugins.volumes.volume_restrictions import VolumeRestrictions
from volcano_py.scheduler.profiles.plugins.volumes.volume_zone import VolumeZone
from volcano_py.scheduler.profiles.release import Release


class AnyArguments(msgspec.Struct):
    """For plugins whose rules are not implemented: all arguments are accepted."""


class Registration(NamedTuple):
    kind: type[ProfilePlugin]
    make: Callable[[Any, Handle], ProfilePlugin]
    """Constructs the plugin from arguments and handle."""
    arguments: type[Any] = NoArguments
    weight: int = 0
    """The weight in the default profile."""
    gate: str = ""
    """The feature gate without which the plugin is not enabled by default."""
    default: bool = True
    """Whether profiles have it by default."""
    many: bool = False
    """Whether a profile may have several of it, named `Name/something`."""


Registry = Mapping[str, Registration]


def arranged(registry: Registry, release: Release) -> Registry:
    """The registry with the default order and gates of a version of Kubernetes. Plugins that are no part of Kubernetes
    keep their place."""
    names = list(registry)
    if release.node_name_first and {"NodeName", "NodeUnschedulable"} <= registry.keys():
        names.remove("NodeName")
        names.insert(names.index("NodeUnschedulable"), "NodeName")
    found = {name: registry[name] for name in names}
    if "GangScheduling" in found:
        found["GangScheduling"] = found["GangScheduling"]._replace(gate=release.gang_gate)
    return found


def _plain(kind: type[ProfilePlugin], weight: int = 0) -> Registration:
    return Registration(kind, lambda args, handle: kind(), weight=weight)


def of(kind: type[ProfilePlugin], arguments: type[Any] | None = None) -> Registration:
    """For a plugin that is constructed with arguments and handle; no profile has it by default."""
    return Registration(kind, kind, arguments or kind.Arguments, default=False)


REGISTRY: Registry = {
    "SchedulingGates": _plain(SchedulingGates),
    "PrioritySort": _plain(PrioritySort),
    "NodeUnschedulable": _plain(NodeUnschedulable),
    "NodeName": _plain(NodeName),
    "TaintToleration": _plain(TaintToleration, 3),
    "NodeAffinity": Registration(
        node_affinity.NodeAffinity, lambda a, h: node_affinity.NodeAffinity(a), node_affinity.NodeAffinityArguments, 2
    ),
    "NodePorts": _plain(NodePorts),
    "NodeResourcesFit": Registration(
        fit.NodeResourcesFit, lambda a, h: fit.NodeResourcesFit(a, h.cluster), fit.FitArguments, 1
    ),
    "VolumeRestrictions": Registration(VolumeRestrictions, lambda a, h: VolumeRestrictions(h)),
    "NodeVolumeLimits": Registration(NodeVolumeLimits, lambda a, h: NodeVolumeLimits(h)),
    "VolumeBinding": Registration(
        volume_binding.VolumeBinding, volume_binding.VolumeBinding, volume_binding.VolumeBindingArguments
    ),
    "VolumeZone": Registration(VolumeZone, lambda a, h: VolumeZone(h)),
    "PodTopologySpread": Registration(
        spread.PodTopologySpread, lambda a, h: spread.PodTopologySpread(a, h.cluster), spread.SpreadArguments, 2
    ),
    "InterPodAffinity": Registration(
        pod_affinity.InterPodAffinity,
        lambda a, h: pod_affinity.InterPodAffinity(a, h.cluster),
        pod_preference.PodPreferenceArguments,
        2,
    ),
    "NodeDeclaredFeatures": _plain(NodeDeclaredFeatures)._replace(arguments=AnyArguments),
    "DynamicResources": Registration(
        dynamic_resources.DynamicResources,
        dynamic_resources.DynamicResources,
        dynamic_resources.DynamicResourcesArguments,
        2,
    ),
    "DefaultPreemption": Registration(
        default_preemption.DefaultPreemption,
        lambda a, h: default_preemption.DefaultPreemption(a, h),
        default_preemption.PreemptionArguments,
    ),
    "NodeResourcesBalancedAllocation": Registration(
        balanced.NodeResourcesBalancedAllocation,
        lambda a, h: balanced.NodeResourcesBalancedAllocation(a, h.cluster),
        balanced.BalancedAllocationArguments,
        1,
    ),
    "ImageLocality": Registration(ImageLocality, lambda a, h: ImageLocality(h.cluster), weight=1),
    "GangScheduling": Registration(GangScheduling, lambda a, h: GangScheduling(h), gate="GangScheduling"),
    "DefaultBinder": _plain(DefaultBinder),
    "CardTypes": of(card_types.ProfileCardTypes, card_types.CardTypesArguments),
    "GangPermit": of(gang_permit.GangPermit, gang_permit.GangPermitArguments),
    "MachineGroups": of(machine_groups.ProfileMachineGroups, machine_groups.MachineGroupsArguments),
    "Remote": of(remote.Remote, remote.RemoteArguments)._replace(many=True),
    "Sticky": of(sticky.ProfileSticky, sticky.StickyArguments),
}
