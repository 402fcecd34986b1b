"""Nodes as their kubelets report them: capacity, conditions, addresses, system facts."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.storage.store import Entry
from volcano_py.sandbox.kubelet.resume import address_number

Object = dict[str, Any]

HOLLOW = "sandbox.volcano.sh/hollow"  # annotation; "false" on a node: no kubelet for it
DEFAULT_CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}

FAILED = "sandbox.volcano.sh/failed"  # annotation; "true": its kubelet reports nothing, as if the machine had failed
LOST_REASON = "NodeStatusUnknown"  # of the conditions of a node that the node controller has set to Unknown
_LOST_BYTES = b'"reason":"%s"' % LOST_REASON.encode()
_FAILED_BYTES = b'"%s":"true"' % FAILED.encode()

_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def is_hollow(node: Object) -> bool:
    """Whether the sandbox runs the kubelet of a node."""
    return (node["metadata"].get("annotations") or {}).get(HOLLOW) != "false"


def has_failed(entry: Entry) -> bool:
    """Whether a node counts as failed."""
    if _FAILED_BYTES not in entry.tail:
        return False
    return (entry.load()["metadata"].get("annotations") or {}).get(FAILED) == "true"


def is_lost(entry: Entry) -> bool:
    """Whether the node controller has set a node to Unknown."""
    return _LOST_BYTES in entry.tail


def number_of(address: str) -> int:
    """The number from which a node's address was derived; 0 for others."""
    return max(address_number(address) - 200 * 65536, 0)


def register(node: Object, number: int) -> bool:
    """Set the fields that a kubelet reports when it starts, in place; False when nothing was missing.

    Existing values (capacity, a Ready condition) are kept, so that a test can define its nodes.
    """
    status = node.get("status") or {}
    before = repr(node)
    capacity = status.setdefault("capacity", dict(DEFAULT_CAPACITY))
    capacity.setdefault("pods", "110")
    allocatable = status.setdefault("allocatable", dict(capacity))
    allocatable.setdefault("pods", capacity["pods"])
    # the kubelet of a recovered node reports Ready itself
    rows = [row for row in status.get("conditions") or [] if row.get("reason") != LOST_REASON]
    present = {row["type"] for row in rows}
    stamp = metadata.now()
    for type_, reason, message in _HEALTHY:
        if type_ not in present:
            rows.append(_condition(type_, "False", reason, message, stamp))
    if "Ready" not in present:
        rows.append(_condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", stamp))
    status["conditions"] = rows
    name = node["metadata"]["name"]
    status.setdefault(
        "addresses",
        [
            {"type": "InternalIP", "address": f"10.{200 + number // 65536 % 55}.{number // 256 % 256}.{number % 256}"},
            {"type": "Hostname", "address": name},
        ],
    )
    info = status.get("nodeInfo") or {}
    if not info.get("kubeletVersion"):
        status["nodeInfo"] = {
            "machineID": f"{number:032x}",
            "systemUUID": f"{number:032x}",
            "bootID": f"{number:032x}",
            "kernelVersion": "6.1.0",
            "osImage": "Volcano sandbox",
            "containerRuntimeVersion": "hollow://1.0",
            "kubeletVersion": "v1.36.1",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    node["status"] = status
    labels = node["metadata"].setdefault("labels", {})
    for key, value in (
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ):
        labels.setdefault(key, value)
    return repr(node) != before


def _condition(type_: str, value: str, reason: str, message: str, stamp: str) -> Object:
    return {
        "type": type_,
        "status": value,
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }
