"""All supported kinds of Kubernetes and Volcano: their API paths, and the structs that decode them.

`resource_types` contains Kubernetes' kinds for modules that must not depend on Volcano's; this module also has them.
"""
# ruff: noqa: F403, F405  (the star import makes this the table of all kinds)

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from volcano_py.api import (
    batch,
    bus,
    config,
    core,
    dra,
    flow,
    gang,
    nodeinfo,
    reservation,
    scheduling,
    shard,
    storage,
    topology,
)
from volcano_py.api.meta import ApiObject
from volcano_py.api.resource_types import *

JOB = namespaced_kind(batch.API_VERSION, "jobs", "Job", "vcjob", "vj")
CRONJOB = namespaced_kind(batch.API_VERSION, "cronjobs", "CronJob", "cronvcjob", "cronvj")
COMMAND = namespaced_kind(bus.API_VERSION, "commands", "Command")
PODGROUP = namespaced_kind(scheduling.API_VERSION, "podgroups", "PodGroup", "pg", "podgroup-v1beta1")
QUEUE = cluster_kind(scheduling.API_VERSION, "queues", "Queue", "q", "queue-v1beta1")
JOBFLOW = namespaced_kind(flow.API_VERSION, "jobflows", "JobFlow", "jf")
JOBTEMPLATE = namespaced_kind(flow.API_VERSION, "jobtemplates", "JobTemplate", "jt")
NUMATOPOLOGY = cluster_kind(nodeinfo.API_VERSION, "numatopologies", "Numatopology", "numatopo")
HYPERNODE = cluster_kind(topology.API_VERSION, "hypernodes", "HyperNode", "hn")
NODESHARD = cluster_kind(shard.API_VERSION, "nodeshards", "NodeShard", "nsh")
COLOCATIONCONFIGURATION = namespaced_kind(config.API_VERSION, "colocationconfigurations", "ColocationConfiguration")
RESERVATION = cluster_kind(reservation.API_VERSION, "reservations", "Reservation", "rsv")

VOLCANO: tuple[ResourceType, ...] = (
    JOB,
    CRONJOB,
    COMMAND,
    PODGROUP,
    QUEUE,
    JOBFLOW,
    JOBTEMPLATE,
    NUMATOPOLOGY,
    HYPERNODE,
    NODESHARD,
    COLOCATIONCONFIGURATION,
)
"""The kinds of Volcano's CRDs."""

OPTIONAL: tuple[ResourceType, ...] = (RESERVATION,)
"""The kinds of CRDs that Volcano lacks. Only a plugin that is configured reads them."""

STATUS_SUBRESOURCE: frozenset[ResourceType] = frozenset((*VOLCANO, *OPTIONAL)) - {COMMAND, NUMATOPOLOGY, PODGROUP}
"""The kinds of these CRDs with a status subresource; a PodGroup's status is written with the object."""

ALL: tuple[ResourceType, ...] = (*VOLCANO, *OPTIONAL, *KUBERNETES)


BY_KIND: dict[tuple[str, str], ResourceType] = {(rt.api_version, rt.kind): rt for rt in ALL}
"""(apiVersion, kind) of a manifest to its resource."""

BY_PLURAL: dict[tuple[str, str], ResourceType] = {(rt.api_version, rt.plural): rt for rt in ALL}
"""(apiVersion, plural) to its resource."""

STRUCTS: dict[ResourceType, type[ApiObject]] = {
    JOB: batch.Job,
    CRONJOB: batch.CronJob,
    COMMAND: bus.Command,
    PODGROUP: scheduling.PodGroup,
    QUEUE: scheduling.Queue,
    JOBFLOW: flow.JobFlow,
    JOBTEMPLATE: flow.JobTemplate,
    NUMATOPOLOGY: nodeinfo.Numatopology,
    HYPERNODE: topology.HyperNode,
    NODESHARD: shard.NodeShard,
    RESERVATION: reservation.Reservation,
    COLOCATIONCONFIGURATION: config.ColocationConfiguration,
    NAMESPACE: core.Namespace,
    NODE: core.Node,
    POD: core.Pod,
    SERVICE: core.Service,
    CONFIGMAP: core.ConfigMap,
    RESOURCEQUOTA: core.ResourceQuota,
    PRIORITYCLASS: core.PriorityClass,
    **dict.fromkeys(NATIVE_PODGROUPS, gang.PodGroup),
    COMPOSITE_PODGROUP: gang.CompositePodGroup,
    PODDISRUPTIONBUDGET: core.PodDisruptionBudget,
    REPLICASET: core.ReplicaSet,
    STATEFULSET: core.StatefulSet,
    REPLICATIONCONTROLLER: core.ReplicationController,
    PERSISTENTVOLUME: storage.PersistentVolume,
    PERSISTENTVOLUMECLAIM: storage.PersistentVolumeClaim,
    STORAGECLASS: storage.StorageClass,
    CSINODE: storage.CSINode,
    CSIDRIVER: storage.CSIDriver,
    CSISTORAGECAPACITY: storage.CSIStorageCapacity,
    VOLUMEATTACHMENT: storage.VolumeAttachment,
    RESOURCECLAIM: dra.ResourceClaim,
    RESOURCECLAIMTEMPLATE: dra.ResourceClaimTemplate,
    RESOURCESLICE: dra.ResourceSlice,
    DEVICECLASS: dra.DeviceClass,
    DEVICETAINTRULE: dra.DeviceTaintRule,
}


def in_version(obj: Any, rt: ResourceType) -> Any:
    """An object with the version in which it was read: the items of a list do not contain it."""
    return replace(obj, api_version=rt.api_version)


def for_manifest(manifest: dict[str, object]) -> ResourceType:
    """The resource of a manifest. Raises ValueError for a kind that is not in the table."""
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    resource_type = BY_KIND.get((str(api_version), str(kind)))
    if resource_type is None:
        raise ValueError(f"unknown kind {kind!r} in apiVersion {api_version!r}: check both fields")
    return resource_type
