"""What becomes of the claims of bound pods: volumes are bound to them, or made for them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.reference.kube.selectors import namespace_of
from tests.reference.kube.volumes import BOUND, SELECTED, class_name, key_of

Object = dict[str, Any]
Plan = list[tuple[Object, Object | None]]


class VolumeWrites:
    """A write based on an object that another pod of the cycle has changed fails, with all writes of its pod."""

    def __init__(self, manifests: Iterable[Object]) -> None:
        self.provisioners = {m["metadata"]["name"]: m["provisioner"] for m in manifests if m["kind"] == "StorageClass"}
        self.changed: dict[tuple[str, str], Object] = {}
        """New versions of objects, by kind and name."""
        self.results: dict[str, str] = {}
        """By claim: its volume, or `@` and the node for which one is made."""

    def bind(self, plan: Plan, node: str) -> bool:
        """Carry out what a pod needs; whether that succeeds."""
        mine: dict[tuple[str, str], Object] = {}
        results = {}
        for claim, volume in [*((c, v) for c, v in plan if v is not None), *((c, v) for c, v in plan if v is None)]:
            name = ("PersistentVolume", volume["metadata"]["name"]) if volume is not None else ("", "")
            of_claim = ("PersistentVolumeClaim", key_of(claim))
            if volume is not None and name in (self.changed | mine):
                return False
            if volume is None and of_claim in (self.changed | mine):
                return False
            now = (self.changed | mine).get(of_claim, claim)
            chosen = volume if volume is not None else self.made(claim, node)
            mine["PersistentVolume", chosen["metadata"]["name"]] = joined(chosen, claim)
            mine[of_claim] = with_volume(now, chosen["metadata"]["name"], "" if volume is not None else node)
            results[f"pvc:{key_of(claim)}"] = f"@{node}" if volume is None else chosen["metadata"]["name"]
        self.changed |= mine
        self.results |= results
        return True

    def made(self, claim: Object, node: str) -> Object:
        """The volume that a provisioner makes."""
        spec = claim["spec"]
        name = f"made-{namespace_of(claim)}-{claim['metadata']['name']}"
        near = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        provisioner = self.provisioners[class_name(claim)]
        made: Object = {
            "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")},
            "accessModes": spec.get("accessModes"),
            "storageClassName": class_name(claim),
            "volumeMode": spec.get("volumeMode"),
            "csi": {"driver": provisioner, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [near]}]}},
        }
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": name}, "spec": made}

    def apply(self, manifests: list[Object]) -> list[Object]:
        """The manifests after all writes."""
        left = dict(self.changed)
        found = []
        for m in manifests:
            name = key_of(m) if m["kind"] == "PersistentVolumeClaim" else m["metadata"]["name"]
            found.append(left.pop((m["kind"], name), m))
        return found + list(left.values())


def joined(volume: Object, claim: Object) -> Object:
    meta = claim["metadata"]
    ref = {"namespace": namespace_of(claim), "name": meta["name"], "uid": meta.get("uid", "")}
    return {**volume, "spec": {**volume["spec"], "claimRef": ref}, "status": {"phase": "Bound"}}


def with_volume(claim: Object, volume: str, node: str) -> Object:
    """The claim bound to a volume; `node`: for which it was made."""
    meta = claim["metadata"]
    added = {BOUND: "yes", **({SELECTED: node} if node else {})}
    meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **added}}
    return {**claim, "metadata": meta, "spec": {**claim["spec"], "volumeName": volume}, "status": {"phase": "Bound"}}
