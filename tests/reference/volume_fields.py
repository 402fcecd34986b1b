"""hypothesis strategies: the volumes of a cluster: classes, volumes, claims, and drivers with limits and capacities."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as s

from tests.reference.kube.volumes import BOUND, SELECTED
from tests.strategies import Manifest, one_in

DRIVER = "csi.example.com"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SIZES = ("1Gi", "5Gi", "10Gi", "20Gi")
KINDS = ("local", "local", "local", "wait", "wait", "path", "bound", "bound")
BAD_KINDS = ("now", "missing", "lost")
"""Claims that no node can serve: they need a controller, or an object that is gone."""


@s.composite
def with_volumes(draw: s.DrawFn, case: Manifest) -> Manifest:
    """The case with storage objects, and claims of most pods."""
    objects = case["objects"]
    nodes = [o for o in objects if o["kind"] == "Node"]
    names = [n["metadata"]["name"] for n in nodes]
    for node in nodes:
        draw(add_labels(node))
    added = draw(classes())
    for name in names:
        added += draw(node_objects(name))
    if one_in(draw, 3):
        added += draw(capacities())
    kinds = draw(s.lists(s.sampled_from(KINDS), min_size=1, max_size=3))
    if one_in(draw, 4):
        kinds.append(draw(s.sampled_from(BAD_KINDS)))
    for group in [o for o in objects if o["kind"] == "PodGroup"]:
        pods = [p for p in objects if p["kind"] == "Pod" and _group_of(p) == group["metadata"]["name"]]
        if not one_in(draw, 6):
            added += draw(claims_of_group(group["metadata"]["name"], pods, kinds, names, not case["come_back"]))
    conf = json.loads(case["conf"])
    for plugin in (p for tier in conf["tiers"] for p in tier["plugins"]):
        plugin.pop("enablePredicate", None)  # Volcano reserves volumes only for pods that it has filtered
        if plugin["name"] == "predicates" and one_in(draw, 8):
            rule = draw(s.sampled_from(("NodeVolumeLimits", "VolumeZone", "VolumeBinding")))
            plugin["arguments"] = {**(plugin.get("arguments") or {}), f"predicate.{rule}Enable": False}
    return {**case, "objects": [*added, *objects], "conf": json.dumps(conf)}


def _group_of(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", ""))


def _object(kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    version = "v1" if kind.startswith("Persistent") else "storage.k8s.io/v1"
    meta = {"name": name, "uid": f"{kind}-{namespace}{name}", "resourceVersion": "1"}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


@s.composite
def add_labels(draw: s.DrawFn, node: Manifest) -> None:
    meta = node["metadata"]
    labels = dict(meta.get("labels") or {})
    if not one_in(draw, 10):
        labels[HOST] = meta["name"]
    if not one_in(draw, 6):
        labels[draw(s.sampled_from((ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone")))] = draw(
            s.sampled_from(("a", "b"))
        )
    meta["labels"] = labels


@s.composite
def classes(draw: s.DrawFn) -> list[Manifest]:
    later, now = {"volumeBindingMode": "WaitForFirstConsumer"}, {"volumeBindingMode": "Immediate"}
    local = _object("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", **later)
    if not one_in(draw, 8):  # otherwise its volumes count, and no node offers them
        local["parameters"] = {"csi.storage.k8s.io/csi-driver-name": "hostpath.csi.k8s.io"}
    wait = _object("StorageClass", "wait", provisioner=DRIVER, **later)
    if one_in(draw, 3):
        where = {"key": ZONE, "values": draw(s.sampled_from((["a"], ["b"], ["a", "b"])))}
        wait["allowedTopologies"] = [{"matchLabelExpressions": [where]}]
    path = _object("StorageClass", "path", provisioner="rancher.io/local-path", **later)
    return [local, wait, path, _object("StorageClass", "now", provisioner=DRIVER, **now)]


def _affinity(key: str, *values: str) -> Manifest:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


@s.composite
def node_objects(draw: s.DrawFn, node: str) -> list[Manifest]:
    """The drivers of a node, and its local volumes."""
    found = []
    if not one_in(draw, 8):
        driver: Manifest = {"name": DRIVER, "nodeID": node}
        if not one_in(draw, 4):
            driver["allocatable"] = {"count": draw(s.sampled_from((0, 1, 2, 3, 5)))}
        found.append(_object("CSINode", node, spec={"drivers": [driver]}))
    for i in range(draw(s.integers(0, 3))):
        spec: Manifest = {
            "capacity": {"storage": draw(s.sampled_from(SIZES))},
            "accessModes": draw(s.sampled_from((["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]))),
            "storageClassName": "local",
            "local": {"path": "/mnt"},
        }
        if not one_in(draw, 8):
            spec["nodeAffinity"] = _affinity(HOST, node)
        if one_in(draw, 12):
            spec["volumeMode"] = "Block"
        disk = _object("PersistentVolume", f"{node}-disk-{i}", spec=spec, status={"phase": "Available"})
        if one_in(draw, 3):
            disk["metadata"]["labels"] = {"speed": "fast"}
        if one_in(draw, 12):
            disk["status"]["phase"] = "Released"
        found.append(disk)
    return found


@s.composite
def capacities(draw: s.DrawFn) -> list[Manifest]:
    found = [_object("CSIDriver", DRIVER, spec={"storageCapacity": not one_in(draw, 4)})]
    for i in range(draw(s.integers(0, 3))):
        capacity: Manifest = {"storageClassName": draw(s.sampled_from(("wait", "wait", "now")))}
        capacity["capacity"] = draw(s.sampled_from(("0", "5Gi", "10Gi", "50Gi")))
        if one_in(draw, 4):
            capacity["maximumVolumeSize"] = draw(s.sampled_from(("5Gi", "100Gi")))
        if not one_in(draw, 8):
            zone = {ZONE: draw(s.sampled_from(("a", "b")))}
            capacity["nodeTopology"] = draw(s.sampled_from(({}, {"matchLabels": zone})))
        found.append(_object("CSIStorageCapacity", f"capacity-{i}", "default", **capacity))
    return found


@s.composite
def claims_of_group(
    draw: s.DrawFn, group: str, pods: list[Manifest], kinds: list[str], nodes: list[str], ephemeral: bool
) -> list[Manifest]:
    """The claims of a group's pods, each pod's own or shared by all, with their volumes."""
    found: list[Manifest] = []
    shared = one_in(draw, 5)
    known: set[tuple[str, str]] = set()
    count = draw(s.sampled_from((1, 1, 2)))
    wanted = [(draw(s.sampled_from(kinds)), draw(s.sampled_from(SIZES))) for _ in range(count)]
    for pod in pods:
        namespace = pod["metadata"].get("namespace", "default")
        volumes = []
        for i, (kind, size) in enumerate(wanted):
            is_placed = bool(pod["spec"].get("nodeName"))
            made_for_pod = ephemeral and not shared and one_in(draw, 10)
            if made_for_pod:
                name, volume = f"{pod['metadata']['name']}-v{i}", {"name": f"v{i}", "ephemeral": {}}
                volume["ephemeral"] = {"volumeClaimTemplate": {"spec": {}}}
            else:
                name = f"{group}-{i}" if shared else f"{pod['metadata']['name']}-claim-{i}"
                volume = {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
            volumes.append(volume)
            if (namespace, name) in known:
                continue
            known.add((namespace, name))
            node = pod["spec"].get("nodeName") or draw(s.sampled_from(nodes))
            of = draw(claim(namespace, name, "bound" if is_placed and not one_in(draw, 6) else kind, size, node))
            if made_for_pod and of and of[0]["kind"] == "PersistentVolumeClaim":
                owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
                meta = pod["metadata"]
                of[0]["metadata"]["ownerReferences"] = [{**owner, "name": meta["name"], "uid": meta["uid"]}]
            found += of
        pod["spec"] = {**pod["spec"], "volumes": volumes}
    return found


@s.composite
def claim(draw: s.DrawFn, namespace: str, name: str, kind: str, size: str, node: str) -> list[Manifest]:
    """A claim and its volume."""
    if kind == "missing":
        return []
    storage_class = kind if kind in ("local", "wait", "path", "now") else "now"
    modes = draw(s.sampled_from((["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"])))
    spec: Manifest = {"storageClassName": storage_class, "accessModes": modes}
    spec["resources"] = {"requests": {"storage": size}}
    status = {"phase": "Pending"}
    made = _object("PersistentVolumeClaim", name, namespace, spec=spec, status=status)
    if one_in(draw, 30):
        made["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "wait"}
    if kind == "local":
        if modes != ["ReadWriteMany"] or one_in(draw, 2):
            spec["accessModes"] = ["ReadWriteOnce"]
        if one_in(draw, 6):
            spec["selector"] = {"matchLabels": {"speed": "fast"}}
        if one_in(draw, 12):
            spec["volumeMode"] = "Block"
        if one_in(draw, 10):  # a volume is reserved for it
            ref = {"namespace": namespace, "name": name}
            if one_in(draw, 2):
                ref["uid"] = made["metadata"]["uid"]
            own: Manifest = {"capacity": {"storage": draw(s.sampled_from(SIZES))}, "accessModes": ["ReadWriteOnce"]}
            own |= {"storageClassName": "local", "claimRef": ref, "nodeAffinity": _affinity(HOST, node)}
            reserved = f"for-{namespace}-{name}"
            return [made, _object("PersistentVolume", reserved, spec=own, status={"phase": "Available"})]
    if kind in ("wait", "path") and one_in(draw, 8):
        made["metadata"]["annotations"] = {SELECTED: node}
    if one_in(draw, 40):
        del spec["storageClassName"]
    if kind == "lost":
        spec["volumeName"] = f"gone-{name}"
        status["phase"] = draw(s.sampled_from(("Lost", "Bound")))
        made["metadata"]["annotations"] = {BOUND: "yes"}
    if kind != "bound":
        return [made]
    status["phase"] = "Bound"
    spec["volumeName"] = f"pv-{namespace}-{name}"
    made["metadata"]["annotations"] = {BOUND: "yes"}
    ref = {"namespace": namespace, "name": name, "uid": made["metadata"]["uid"]}
    of: Manifest = {"capacity": {"storage": size}, "accessModes": modes, "storageClassName": "now", "claimRef": ref}
    if not one_in(draw, 4):
        handle = "shared" if one_in(draw, 10) else f"{namespace}/{name}"
        of["csi"] = {"driver": DRIVER, "volumeHandle": handle}
    where = draw(s.sampled_from(("", "", "node", "zone", "labels", "labels")))
    if where == "node":
        of["nodeAffinity"] = _affinity(HOST, node)
    elif where == "zone":
        of["nodeAffinity"] = _affinity(ZONE, draw(s.sampled_from(("a", "b"))))
    volume = _object("PersistentVolume", f"pv-{namespace}-{name}", spec=of, status={"phase": "Bound"})
    if where == "labels":
        key = draw(s.sampled_from((ZONE, "failure-domain.beta.kubernetes.io/zone")))
        volume["metadata"]["labels"] = {key: draw(s.sampled_from(("a", "b", "a__b")))}
    return [made, volume]
