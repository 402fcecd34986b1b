"""Volumes and devices of benchmark scenarios: `devices` per node, and `claims` of a workload.

"devices": 8                 a ResourceSlice with this number of devices for each node, and the DeviceClass `gpu`
"claims": "device"|"volume"  each pod has a ResourceClaim for one device, or a claim that waits for its first consumer
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Spec = dict[str, Any]

DRIVER, STORAGE_CLASS = "gpu.example.com", "fast"


def provided(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """(kind, manifest) of the classes, and of the devices of all nodes."""
    nodes = spec["nodes"]
    yield (
        "StorageClass",
        {
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    if nodes.get("devices"):
        cel = {"expression": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "large"'}
        yield "DeviceClass", {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": cel}]}}
    for i in range(nodes["count"] if nodes.get("devices") else 0):
        name = nodes["name"] % i
        devices = [
            {"name": f"d{k}", "attributes": {"model": {"string": "large"}, "index": {"int": k}}}
            for k in range(nodes["devices"])
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        body = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield "ResourceSlice", {"metadata": {"name": name}, "spec": body}


def claimed(work: Spec, pod: Spec) -> Iterator[tuple[str, Spec]]:
    """The claim of a pod, which is changed to name it."""
    name = pod["metadata"]["name"]
    meta = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    if work.get("claims") == "device":
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        yield "ResourceClaim", {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
    elif work.get("claims") == "volume":
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        size = {"requests": {"storage": "10Gi"}}
        body = {"storageClassName": STORAGE_CLASS, "accessModes": ["ReadWriteOnce"], "resources": size}
        yield "PersistentVolumeClaim", {"metadata": meta, "spec": body}
