"""Deviations: where the scheduler decides differently from Volcano by default. Not in Volcano.

Each can be disabled in the configuration, under a key that Volcano ignores:

    deviations: parity            # all off: decide exactly as Volcano
    deviations: {live-affinity-lists: false}

docs/deviations.md contains the rule and the reason of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any


def _on(description: str) -> bool:
    """A deviation that is enabled by default. `description`: what the scheduler decides while it is enabled."""
    made: bool = field(default=True, metadata={"description": description})
    return made


@dataclass(frozen=True, kw_only=True)
class Deviations:
    """Which deviations are enabled. The key in the configuration is the field's name with hyphens."""

    live_affinity_lists: bool = _on(
        "a node's first pod with inter-pod affinity counts at once, not from the next cycle on"
    )
    quiet_events: bool = _on("an Event about a pending job is repeated only when its reason changes")
    stated_reasons: bool = _on(
        "a waiting PodGroup has a condition with its first blocker as one sentence with numbers; conditions and Events "
        "are written again only when the meaning of that reason changes"
    )
    explain_pods: bool = _on(
        "a pod whose PodGroup or queue does not exist, and a pod without requests where no action places such pods, "
        "state this in a condition and an Event; in Volcano they wait without a reason"
    )
    explain_queue_limits: bool = _on(
        "a job whose queue is at its limit states the reason in its message; Volcano writes none"
    )
    fair_admission: bool = _on(
        "queues are admitted by weight, and an admitted job counts as demand before its pods exist"
    )
    protections_hold: bool = _on(
        "a pod that conformance, pdb, cdp or gang protects is not a victim, whichever tier decides"
    )
    sure_evictions: bool = _on("no pod is evicted for a pod that the node would still reject")
    fewest_victims: bool = _on("pods are evicted on the node with the fewest victims; none is evicted without need")
    whole_gangs: bool = _on(
        "a gang that would fall below its minimum is evicted as a whole, on all nodes, or not at all"
    )
    gang_pre_bind: bool = _on("no pod of a gang is bound before the volumes and claims of all its pods are ready")
    known_drivers: bool = _on(
        "a volume counts against a node's limit only if some node has its driver, so that local volumes can be used"
    )
    volumes_count_once: bool = _on("a volume that several pods of a node use counts once against the limit of the node")
    shared_claims: bool = _on("pods that share an unbound claim can be bound in one cycle")
    pipelined_claims: bool = _on("a pod that waits for capacity on a node keeps the volumes and devices it needs there")
    scored_claims: bool = _on("a pod with allocated and new ResourceClaims is placed even if several nodes accept it")
    extended_resource_claims: bool = _on(
        "an extended resource that a DeviceClass provides is served by its devices, with a claim for the pod"
    )
    device_binding_conditions: bool = _on(
        "devices that become ready only after their allocation can be allocated; the bind waits for them"
    )
    read_write_once_pod: bool = _on(
        "a ReadWriteOncePod claim is used by one pod at a time, a disk by one pod of a node"
    )
    rank_holds: bool = _on("no job evicts pods of higher priority, of a queue within its share, or without any reason")
    kept_nominations: bool = _on("capacity freed for a pod is kept for it, so that its victims cannot use it again")
    stale_nominations: bool = _on("a nomination that was not used does not stop the pod from preempting elsewhere")
    heal_gangs: bool = _on(
        "a gang that has lost members and finds no capacity for them releases its capacity after a while"
    )
    reclaim_admits: bool = _on(
        "a job that its queue is entitled to is admitted although the cluster is full: reclaim evicts pods for it"
    )
    idle_not_overused: bool = _on("a queue that holds nothing is never overused")
    capability_first: bool = _on("a queue gets nothing above its capability, even if its guarantee is larger")
    live_branch_shares: bool = _on(
        "the share of a queue with children follows the pods placed in this cycle, not the last one"
    )
    partial_hierarchy: bool = _on("a queue with an invalid parent is placed below root and blocks no other queue")
    whole_best_effort: bool = _on("a gang is bound only if the best-effort members that it needs fit as well")
    partial_topology: bool = _on("only an invalid HyperNode is left out; Volcano schedules no job with a topology")
    topology_from_pods: bool = _on(
        "the place of a job in the network is derived from its pods, not remembered from its allocation"
    )
    unknown_tiers_wait: bool = _on(
        "a job whose hard topology names a tier that no HyperNode has waits; Volcano ignores the topology"
    )
    explain_topology: bool = _on("a job for which no HyperNode is large enough states that; Volcano writes nothing")
    exact_devices: bool = _on(
        "the cards of a placement that is undone are free at once, each pod counts once, and no MIG instance is "
        "assigned to two pods"
    )
    healthy_devices: bool = _on("a vGPU that its node reports as unhealthy is assigned to no pod")
    exact_cpus: bool = _on(
        "CPUs are chosen as kubelet chooses them, and are in use by pods that hold them, not by deleted pods"
    )
    extender_fails_closed: bool = _on("a job is not ready while an extender that may not be ignored fails")
    careful_rescheduling: bool = _on(
        "rescheduling evicts only pods that less busy nodes have capacity for, and only by measurements that are fresh"
    )
    own_verdict: bool = _on("each pod is evaluated separately, whatever pods of its role were rejected for")
    image_spread_now: bool = _on(
        "an image counts by the nodes that have it now, not by those that existed when a node was added"
    )
    usable_capacity: bool = _on(
        "queues and jobs divide what pods of this scheduler can use, without what pods of other schedulers hold and "
        "nodes that no pod tolerates; Volcano divides the whole cluster"
    )
    whole_gang_reclaim: bool = _on(
        "reclaim evicts whole gangs of queues above their share for an entitled gang, where single pods do not suffice"
    )
    useful_victims: bool = _on(
        "where the permitted victims on a node do not suffice, only pods that request what is lacking are candidates"
    )
    eviction_back_off: bool = _on(
        "a job whose evictions had no lasting effect twice waits before it evicts again; Volcano's job evicts "
        "in each cycle"
    )
    narrow_domains_first: bool = _on(
        "gangpreempt and gangreclaim try the narrowest domains of the network first; Volcano tries the widest first"
    )
    every_node: bool = _on("every node is considered for a pod; Volcano uses only some in clusters above 100 nodes")
    reserved_once: bool = _on(
        "a pod that queue admission has admitted counts once in its queue when it is placed, not twice until the "
        "session ends"
    )
    whole_pod_shares: bool = _on(
        "a queue of proportion may exceed its share by a part of a pod, because pods cannot be divided; Volcano leaves "
        "that capacity unused"
    )
    unset_parents: bool = _on(
        "a parent queue without `deserved` deserves the sum of its children; Volcano treats it as deserving nothing"
    )
    what_fits_starts: bool = _on(
        "a gang starts if its members fit in any arrangement that a bounded search finds; Volcano tries one order"
    )
    finished_groups: bool = _on("a finished group stays finished when its pods are deleted; Volcano admits it again")
    claims_need_pods: bool = _on(
        "an admitted group whose pods do not exist for five minutes claims no capacity until they exist"
    )
    profile_rules: bool = _on(
        "a pod that the session places and whose schedulerName is a profile's is subject to that profile's filters and "
        "scores; Volcano has no profiles"
    )
    group_claims: bool = _on(
        "a ResourceClaim of a native PodGroup is reserved for the group once, not for each of its pods; Volcano has no "
        "such PodGroups"
    )
    native_places: bool = _on(
        "a native gang has the place in its queue of its oldest pod, if that is older than its PodGroup; Volcano has "
        "no such PodGroups"
    )
    bare_pods: bool = _on("a pod without a PodGroup is a job at once and needs none, unless it may belong to a gang")
    held_nodes: bool = _on(
        "a node takes no new pods while the cache audit doubts the Node or a pod on it; Volcano does not compare its "
        "cache with the API server"
    )


FIELDS: dict[str, str] = {f.name.replace("_", "-"): f.name for f in fields(Deviations)}
"""Key in the configuration → field."""
DEVIATIONS: dict[str, str] = {f.name.replace("_", "-"): f.metadata["description"] for f in fields(Deviations)}
"""Key in the configuration → what the scheduler decides while the deviation is enabled."""

DEFAULT = Deviations()
PARITY = Deviations(**dict.fromkeys(FIELDS.values(), False))


def read(setting: Any) -> tuple[Deviations, list[str]]:
    """The enabled deviations, and a message for each part of the setting that is ignored."""
    if setting is None:
        return DEFAULT, []
    if setting == "parity":
        return PARITY, []
    if not isinstance(setting, Mapping):
        return DEFAULT, [f"deviations: {setting!r} is neither `parity` nor a map from name to true or false"]
    chosen: dict[str, bool] = {}
    wrong = []
    for name, value in setting.items():
        if name not in FIELDS:
            near = get_close_matches(str(name), FIELDS, 1)
            wrong.append(f"deviations: {name} is unknown" + (f"; did you mean {near[0]}?" if near else ""))
        elif not isinstance(value, bool):
            wrong.append(f"deviations: {name} is {value!r}, it must be true or false")
        else:
            chosen[FIELDS[name]] = value
    return Deviations(**chosen), wrong
