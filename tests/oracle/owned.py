"""Gangs whose PodGroups the controller creates: their owners and pods as manifests, and the time in which pods, owners,
the controller and the scheduler take turns in a random order.

Imports the product to run it: the controller's decision for each pod.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from random import Random

import msgspec

from tests.oracle.description import Gang, Manifest, Pod, pod_manifest
from tests.oracle.running import Played, cycle
from volcano_py.api.core import Pod as PodStruct
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.instructions import Create
from volcano_py.controllers.podgroup.owners import family_of, stated
from volcano_py.controllers.podgroup.reconcile import podgroup_name, reconcile
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.simulate.cycles import Simulation

GROUP = "scheduling.k8s.io/group-name"
MINIMUM = "scheduling.volcano.sh/group-min-member"
ANNOTATED = {"Job": "batch/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
"""Owners that state the minimum in an annotation."""
WATCHED = ("ReplicaSet", "StatefulSet")
"""Owners that the scheduler watches."""


def owner(gang: Gang) -> Manifest:
    """The object that owns the pods of a gang, as a user or another project's controller has made it."""
    metadata = {"name": gang.name, "namespace": "default", "uid": f"uid-{gang.name}"}
    count = len(gang.pods)
    if gang.owner in ANNOTATED:
        metadata["annotations"] = {MINIMUM: str(gang.minimum)}  # type: ignore[assignment]
        spec: Manifest = {"parallelism": count} if gang.owner == "Job" else {"replicas": count}
        return {"apiVersion": ANNOTATED[gang.owner], "kind": gang.owner, "metadata": metadata, "spec": spec}
    if gang.owner == "JobSet":
        jobs = [{"name": "a", "replicas": gang.minimum, "template": {"spec": {"parallelism": 1}}}]
        later = {"name": "b", "replicas": count - gang.minimum, "template": {"spec": {}}, "dependsOn": [{"name": "a"}]}
        spec = {"replicatedJobs": [*jobs, *([later] if count > gang.minimum else [])]}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    if gang.owner == "LeaderWorkerSet":
        spec = {"replicas": 1, "leaderWorkerTemplate": {"size": gang.minimum}}
        return {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": metadata,
            "spec": spec,
        }
    groups = [{"groupName": "w", "replicas": count - 1, "minReplicas": gang.minimum - 1}]
    spec = {"enableInTreeAutoscaling": True, "workerGroupSpecs": groups}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


def owned(gang: Gang, pod: Pod) -> Manifest:
    """A pod as its owner creates it, without a PodGroup."""
    made = pod_manifest(gang, pod)
    metadata = made["metadata"]
    metadata["annotations"].pop(GROUP)
    kind, name = gang.owner, gang.name
    if kind == "JobSet":  # its pods belong to its Jobs
        metadata["labels"] |= {
            "jobset.sigs.k8s.io/jobset-uid": f"uid-{name}",
            "jobset.sigs.k8s.io/jobset-name": name,
        }
        kind, name = "Job", pod.name
    if kind == "LeaderWorkerSet":  # the leader belongs to one StatefulSet, the workers to another
        metadata["labels"] |= {
            "leaderworkerset.sigs.k8s.io/group-key": f"uid-{name}",
            "leaderworkerset.sigs.k8s.io/name": name,
        }
        kind, name = "StatefulSet", f"{name}-{'leader' if pod is gang.pods[0] else 'workers'}"
    version = {"RayCluster": "ray.io/v1"}.get(kind) or ANNOTATED[kind]
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    metadata["ownerReferences"] = [reference]
    return made


def create_in_turns(simulation: Simulation, conf: Configuration, played: Played) -> None:
    """Create the owned pods one after the other; the controller groups each of them some time later. A cluster has one
    order of events."""
    simulation.cluster.shadow_schedulers = frozenset(("volcano",))  # as a running scheduler has it
    of = {pod.name: (gang, pod) for gang in played.last.gangs if gang.owner for pod in gang.pods}
    unseen = [gang for gang in played.last.gangs if gang.owner in WATCHED]
    rng = Random(repr(played.last))
    groups: dict[str, Manifest] = {}
    coming, ungrouped = list(of), []
    rng.shuffle(coming)
    while coming or ungrouped or unseen:
        turn = rng.choice(("pod", "pod", "controller", "controller", "owner", "scheduler"))
        if turn == "pod" and coming:
            ungrouped.append(coming.pop())
            gang, pod = of[ungrouped[-1]]
            simulation.put(owned(gang, pod))
            played.owned[pod.name] = owned(gang, replace(pod, lost=1))
        elif turn == "owner" and unseen:
            simulation.put(owner(unseen.pop(rng.randrange(len(unseen)))))
        elif turn == "controller" and ungrouped:
            name = ungrouped.pop(rng.randrange(len(ungrouped)))
            _group(simulation, groups, *of[name])
            played.owned[name]["metadata"]["annotations"] |= {GROUP: f"podgroup-uid-{of[name][0].name}"}
        elif turn == "scheduler":
            cycle(simulation, conf, played)


def _group(simulation: Simulation, groups: dict[str, Manifest], gang: Gang, pod: Pod) -> None:
    """What the controller does for a pod that it sees: the PodGroup if there is none, and the pod's annotation."""
    manifest = deepcopy(simulation.objects["Pod", f"default/{pod.name}"])
    struct = msgspec.convert(manifest, PodStruct)
    of = owner(gang)
    family = family_of(struct)
    known = groups.get(podgroup_name(struct))
    group = msgspec.convert(known, PodGroup) if known is not None else None
    annotations = [of["metadata"].get("annotations") or {}]
    values = stated(family.kind, of) if family is not None and family.kind is not None else None
    for instruction in reconcile(struct, group, annotations, of_owner=values):
        if isinstance(instruction, Create):
            made = deepcopy(dict(instruction.obj))
            made |= {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
            made["spec"].setdefault("queue", "default")
            made["metadata"]["creationTimestamp"] = manifest["metadata"]["creationTimestamp"]
            groups[made["metadata"]["name"]] = made
            simulation.put(made)
    manifest["metadata"]["annotations"][GROUP] = podgroup_name(struct)
    simulation.put(manifest)
