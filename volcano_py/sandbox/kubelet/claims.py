"""Whether a pod's volumes and devices are ready: a kubelet starts a pod only then.

Kubernetes: the volume manager and the DRA manager of the kubelet.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.kubelet.ports import ClusterPort
from volcano_py.sandbox.kubelet.processes.problem import NotReady

Object = dict[str, Any]


def problem_of(cluster: ClusterPort, pod: Object) -> NotReady | None:
    """The missing volume or device of a pod; None if the pod may start."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            name = volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral"):
            name = f"{pod['metadata']['name']}-{volume['name']}"
        else:
            continue
        problem = _of_volume(cluster, pod, name)
        if problem:
            return NotReady("ContainerCreating", "FailedMount", f"Unable to attach or mount volumes: {problem}")
    for name in _claims_of(pod):
        problem = _of_devices(cluster, pod, name)
        if problem:
            text = f"Failed to prepare dynamic resources: {problem}"
            return NotReady("ContainerCreating", "FailedPrepareDynamicResources", text)
    return None


def _claims_of(pod: Object) -> list[str]:
    """The names of the pod's ResourceClaims; "" for one that is not created yet."""
    made = {row["name"]: row.get("resourceClaimName") for row in pod["status"].get("resourceClaimStatuses") or ()}
    rows = pod["spec"].get("resourceClaims") or ()
    found = [row.get("resourceClaimName") or made.get(row["name"], "") for row in rows]
    extended = (pod["status"].get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return [name for name in (*found, extended) if name is not None]


def _of_volume(cluster: ClusterPort, pod: Object, name: str) -> str:
    claim = cluster.lookup("persistentvolumeclaims", pod["metadata"]["namespace"], name)
    if claim is None:
        return f"PersistentVolumeClaim {name} does not exist"
    if (claim.get("status") or {}).get("phase") != "Bound":
        return f"PersistentVolumeClaim {name} is not bound"
    volume = cluster.lookup("persistentvolumes", "", claim["spec"].get("volumeName", ""))
    if volume is None:
        return f"PersistentVolume {claim['spec'].get('volumeName')} does not exist"
    terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    if terms is not None and not cluster.node_matches(pod["spec"]["nodeName"], terms):
        return f"PersistentVolume {volume['metadata']['name']} cannot be used on node {pod['spec']['nodeName']}"
    return ""


def _of_devices(cluster: ClusterPort, pod: Object, name: str) -> str:
    if not name:
        return "a ResourceClaim is not created yet"
    claim = cluster.lookup("resourceclaims", pod["metadata"]["namespace"], name)
    if claim is None:
        return f"ResourceClaim {name} does not exist"
    status = claim.get("status") or {}
    if not status.get("allocation"):
        return f"ResourceClaim {name} is not allocated"
    if not any(_is_for(row, pod) for row in status.get("reservedFor") or ()):
        return f"ResourceClaim {name} is not reserved for the pod"
    terms = (status["allocation"].get("nodeSelector") or {}).get("nodeSelectorTerms")
    if terms is not None and not cluster.node_matches(pod["spec"]["nodeName"], terms):
        return f"ResourceClaim {name} is allocated on another node than {pod['spec']['nodeName']}"
    reported = {_id(row): row.get("conditions") or () for row in status.get("devices") or ()}
    for result in status["allocation"].get("devices", {}).get("results") or ():
        true = {row["type"] for row in reported.get(_id(result), ()) if row["status"] == "True"}
        if not true.issuperset(result.get("bindingConditions") or ()):
            return f"device {result['device']} of ResourceClaim {name} is not ready"
    return ""


def _is_for(consumer: Object, pod: Object) -> bool:
    """Whether a claim is reserved for a pod, or for its PodGroup."""
    group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if consumer.get("resource") == "podgroups":
        return bool(group) and consumer.get("name") == group
    return bool(consumer.get("uid") == pod["metadata"]["uid"])


def _id(row: Object) -> tuple[str, str, str]:
    return row["driver"], row["pool"], row["device"]
