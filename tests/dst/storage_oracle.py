"""What must hold of volumes: at each bind, and of what still waits at the end. Plain objects, and nothing of the
product."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Object = dict[str, Any]
Objects = dict[str, dict[str, Object]]

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASSES, CSI_NODES = "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io"
KINDS = (CLAIMS, VOLUMES, CLASSES, CSI_NODES)
ONE_POD = "ReadWriteOncePod"


def claims_of(pod: Object) -> list[str]:
    """The keys of the claims of a pod."""
    space = pod["metadata"]["namespace"]
    volumes = pod["spec"].get("volumes") or ()
    return [f"{space}/{v['persistentVolumeClaim']['claimName']}" for v in volumes if v.get("persistentVolumeClaim")]


def node_of(volume: Object) -> str:
    """The only node of a local volume; empty for others."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return str(required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0]) if required else ""


def attached(pods: list[Object], objects: Objects) -> set[str]:
    """The CSI volumes of pods on one node: what counts for the limit of the node."""
    found = set()
    for pod in pods:
        for key in claims_of(pod):
            claim = objects[CLAIMS].get(key)
            volume = objects[VOLUMES].get((claim or {"spec": {}})["spec"].get("volumeName", ""))
            if volume is not None and "csi" in volume["spec"]:
                found.add(str(volume["metadata"]["name"]))
    return found


def limit_of(node: str, objects: Objects) -> int | None:
    """How many CSI volumes a node takes; None: any number."""
    for driver in ((objects[CSI_NODES].get(node) or {}).get("spec") or {}).get("drivers") or ():
        return int(driver["allocatable"]["count"])
    return None


def wrong_bind(pod: Object, node: str, others: list[Object], on_node: list[Object], objects: Objects) -> Iterator[str]:
    """What is wrong with the volumes of a pod that was bound just now. `others`: active pods that the product has
    bound, `on_node`: those of this node."""
    for key in claims_of(pod):
        claim = objects[CLAIMS].get(key)
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            continue  # deleted by a user, a moment ago or while the bind was on its way
        volume = objects[VOLUMES].get(claim["spec"].get("volumeName", ""))
        if volume is None:
            yield f"its claim {key} has no volume"
            continue
        if (volume["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            yield f"the volume {volume['metadata']['name']} of its claim {key} is that of another claim"
        if node_of(volume) not in ("", node):
            yield f"the volume {volume['metadata']['name']} of its claim {key} is on node {node_of(volume)}"
        if ONE_POD in claim["spec"]["accessModes"]:
            for other in others:
                if other["metadata"]["uid"] != pod["metadata"]["uid"] and key in claims_of(other):
                    yield f"its claim {key} for one pod is used by {other['metadata']['name']} as well"
    limit = limit_of(node, objects)
    if claims_of(pod) and limit is not None and len(found := attached(on_node, objects)) > limit:
        yield f"its node takes {limit} volumes, and has {', '.join(sorted(found))}"


class Volumes:
    """Where claims can be used, in a search for pods that fit. Local volumes have one size, so that any of them will
    do."""

    def __init__(self, objects: Objects, bound: list[Object]) -> None:
        self._objects = objects
        self._used = {key for pod in bound for key in claims_of(pod)}
        self._attached: dict[str, set[str]] = defaultdict(set)
        self._free: dict[str, int] = defaultdict(int)
        """Local volumes by node."""
        for pod in bound:
            self._attached[pod["spec"]["nodeName"]] |= attached([pod], objects)
        for volume in objects[VOLUMES].values():
            spec, status = volume["spec"], volume.get("status") or {}
            if node_of(volume) and not spec.get("claimRef") and status.get("phase") == "Available":
                self._free[node_of(volume)] += 1
        self._chosen: dict[str, str] = {}
        """By claim: the node for which it gets a volume in this search."""

    @contextmanager
    def placed(self, pod: Object, node: str) -> Iterator[bool]:
        """Whether the claims of a pod can be used on a node; until the end of the block they are."""
        before = self._attached[node], self._free[node], dict(self._chosen), self._used
        self._attached[node], self._used = set(self._attached[node]), set(self._used)
        try:
            yield all(self._use(key, node) for key in claims_of(pod))
        finally:
            self._attached[node], self._free[node], self._chosen, self._used = before

    def _use(self, key: str, node: str) -> bool:
        claim = self._objects[CLAIMS].get(key)
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return False
        if ONE_POD in claim["spec"]["accessModes"] and key in self._used:
            return False
        self._used.add(key)
        name = claim["spec"].get("volumeName", "")
        if name:
            return self._use_bound(claim, name, node)
        if (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node"):
            return False  # it is being provisioned
        storage = self._objects[CLASSES].get(claim["spec"]["storageClassName"])
        if storage is None or storage["volumeBindingMode"] == "Immediate":
            return False
        local = storage["provisioner"] == "kubernetes.io/no-provisioner"
        if any((v["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]
               for v in self._objects[VOLUMES].values()):  # fmt: skip
            return False  # it is being bound
        if key in self._chosen:
            return self._chosen[key] == node
        self._chosen[key] = node
        if not local:
            return self._attach(f"claim {key}", node)
        self._free[node] -= 1
        return self._free[node] >= 0

    def _use_bound(self, claim: Object, name: str, node: str) -> bool:
        volume = self._objects[VOLUMES].get(name)
        if volume is None or (claim.get("status") or {}).get("phase") != "Bound":
            return False
        if node_of(volume) not in ("", node):
            return False
        return "csi" not in volume["spec"] or self._attach(name, node)

    def _attach(self, name: str, node: str) -> bool:
        self._attached[node].add(name)
        limit = limit_of(node, self._objects)
        return limit is None or len(self._attached[node]) <= limit
