"""PersistentVolumeClaims of pods. kube-scheduler: VolumeBinding, VolumeZone, NodeVolumeLimits; Volcano: the volumes
among the requests of NewTaskInfo."""

from __future__ import annotations

from typing import Any

from tests.reference.kube.node_affinity import selects
from tests.reference.kube.selectors import Pod, labels_of, matches, namespace_of
from tests.reference.node import Node
from volcano_py.api.quantity import value

Object = dict[str, Any]
IGNORED = ("rancher.io/local-path", "hostpath.csi.k8s.io")
RESOURCE = "attachable-volumes-csi-"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
REPLACED = {OLD_ZONE: "topology.kubernetes.io/zone", OLD_REGION: "topology.kubernetes.io/region"}
ZONES = (*REPLACED, *REPLACED.values())

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class ClaimProblem(Exception):
    """No node accepts the pod."""


class Objects:
    """The storage objects of a cluster, by kind."""

    def __init__(self, by_kind: dict[str, list[Object]]) -> None:
        def named(kind: str) -> dict[str, Object]:
            return {m["metadata"]["name"]: m for m in by_kind.get(kind, [])}

        claims = by_kind.get("PersistentVolumeClaim", [])
        self.claims = {f"{namespace_of(m)}/{m['metadata']['name']}": m for m in claims}
        self.volumes, self.classes = named("PersistentVolume"), named("StorageClass")
        self.csi_nodes, self.drivers = named("CSINode"), named("CSIDriver")
        self.capacities = by_kind.get("CSIStorageCapacity", [])

    def drivers_of(self, node: str) -> dict[str, int | None]:
        """The drivers of a node, with the largest number of volumes."""
        spec = (self.csi_nodes.get(node) or {}).get("spec") or {}
        return {d["name"]: (d.get("allocatable") or {}).get("count") for d in spec.get("drivers") or []}

    def class_of(self, claim: Object) -> Object | None:
        return self.classes.get(class_name(claim))

    def volume_of(self, claim: Object) -> Object | None:
        return self.volumes.get(claim["spec"].get("volumeName", ""))

    # --- the resources of a pod

    def counted(self, pod: Pod) -> list[str]:
        """A resource for each volume that counts against a limit."""
        found = []
        for name, _ in claims_of(pod):
            claim = self.claims.get(f"{namespace_of(pod)}/{name}")
            if claim is None:
                return []
            volume, storage_class = self.volume_of(claim), self.class_of(claim)
            driver = ""
            if volume is not None:
                driver = (volume["spec"].get("csi") or {}).get("driver", "")
            elif storage_class is not None:
                parameters = storage_class.get("parameters") or {}
                driver = parameters.get("csi.storage.k8s.io/csi-driver-name") or storage_class["provisioner"]
            if driver and driver not in IGNORED:
                found.append(RESOURCE + driver.replace("/", "-"))
        return found

    # --- NodeVolumeLimits

    def handles(self, pod: Pod) -> set[tuple[str, str]]:
        """(driver, handle) of the pod's volumes."""
        found = set()
        for name, _ in claims_of(pod):
            claim = self.claims.get(f"{namespace_of(pod)}/{name}")
            volume = self.volume_of(claim) if claim is not None else None
            storage_class = self.class_of(claim) if claim is not None else None
            if volume is not None:
                csi = volume["spec"].get("csi")
                if csi:
                    found.add((csi["driver"], csi["volumeHandle"]))
            elif storage_class is not None:
                found.add((storage_class["provisioner"], f"{namespace_of(pod)}/{name}"))
        return found

    def within_limits(self, pod: Pod, node: Node, there: list[Pod]) -> bool:
        attached = {handle for other in there for handle in self.handles(other)}
        new = self.handles(pod) - attached
        for driver, most in self.drivers_of(node.name).items():
            more = sum(d == driver for d, _ in new)
            if most is not None and more and more + sum(d == driver for d, _ in attached) > most:
                return False
        return True

    # --- VolumeZone

    def zones(self, pod: Pod) -> list[tuple[str, list[str]]]:
        """(label, permitted values) of the pod's volumes. Raises ClaimProblem."""
        found = []
        for name, ephemeral in claims_of(pod):
            if ephemeral:
                continue
            claim = self.claims.get(f"{namespace_of(pod)}/{name}")
            if claim is None:
                raise ClaimProblem(f'persistentvolumeclaim "{name}" not found')
            bound = claim["spec"].get("volumeName")
            if not bound:
                if not class_name(claim):
                    raise ClaimProblem("PersistentVolumeClaim had no pv name and storageClass name")
                storage_class = self.class_of(claim)
                if storage_class is None:
                    raise ClaimProblem(f'storageclass.storage.k8s.io "{class_name(claim)}" not found')
                if storage_class["volumeBindingMode"] != "WaitForFirstConsumer":
                    raise ClaimProblem("PersistentVolume had no name")
                continue
            if bound not in self.volumes:
                raise ClaimProblem(f'persistentvolume "{bound}" not found')
            labels = labels_of(self.volumes[bound])
            found += [(key, labels[key].split("__")) for key in ZONES if key in labels]
        return found

    # --- VolumeBinding

    def split(self, pod: Pod) -> tuple[list[Object], list[Object]]:
        """The bound claims, and those that wait for their first consumer. Raises ClaimProblem."""
        claims: list[Object] = []
        for name, ephemeral in claims_of(pod):
            claim = self.claims.get(f"{namespace_of(pod)}/{name}")
            if claim is None and ephemeral:
                waits = "waiting for ephemeral volume controller to create the "
                raise ClaimProblem(f'{waits}persistentvolumeclaim "{name}"')
            if claim is None:
                raise ClaimProblem(f'persistentvolumeclaim "{name}" not found')
            if (claim.get("status") or {}).get("phase") == "Lost":
                of = claim["spec"].get("volumeName", "")
                raise ClaimProblem(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{of}"')
            if claim["metadata"].get("deletionTimestamp"):
                raise ClaimProblem(f'persistentvolumeclaim "{name}" is being deleted')
            claims.append(claim)
        bound = [c for c in claims if c["spec"].get("volumeName") and BOUND in annotations(c)]
        waiting = []
        for claim in claims:
            if claim in bound:
                continue
            storage_class = self.class_of(claim) or {}
            waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
            if not waits or claim["spec"].get("volumeName"):
                raise ClaimProblem("pod has unbound immediate PersistentVolumeClaims")
            waiting.append(claim)
        return bound, waiting


class Volumes:
    """The volumes and nodes that the session has assumed for claims."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.taken: dict[str, Object] = {}
        """By volume: the claim."""
        self.selected: dict[str, str] = {}
        """By claim: the node."""
        self.plans: dict[str, list[tuple[Object, Object | None]]] = {}
        """By the uid of a pod: its waiting claims, each with a volume or None if one is to be made."""

    def find(self, pod: Pod, node: Node) -> tuple[list[str], list[tuple[Object, Object | None]]]:
        """Why the node cannot serve the pod's claims, and what the waiting claims get.

        kube-scheduler: FindPodVolumes.
        """
        bound, waiting = self.objects.split(pod)
        why, plan = self.serve(waiting, node)
        reasons = [why] if why else []
        for claim in bound:
            volume = self.objects.volume_of(claim)
            if volume is None:
                return [*reasons, MISSING], []
            if not reaches(volume, node):
                return [OUT_OF_REACH, *reasons], []
        return reasons, plan

    def serve(self, waiting: list[Object], node: Node) -> tuple[str, list[tuple[Object, Object | None]]]:
        """The same for waiting claims, with one reason."""
        plan: list[tuple[Object, Object | None]] = []
        to_make: list[Object] = []
        to_match: list[Object] = []
        for claim in waiting:
            node_of = self.selected.get(key_of(claim)) or annotations(claim).get(SELECTED)
            if node_of and node_of != node.name:
                return NO_VOLUME, []
            (to_make if node_of else to_match).append(claim)
        chosen: list[Object] = []
        for claim in sorted(to_match, key=size_of_claim):
            volume = self.match(claim, node, chosen)
            if volume is None:
                to_make.append(claim)
            else:
                chosen.append(volume)
                plan.append((claim, volume))
        for claim in to_make:
            why = self.cannot_make(claim, node)
            if why:
                return why, []
            plan.append((claim, None))
        return "", plan

    def match(self, claim: Object, node: Node, chosen: list[Object]) -> Object | None:
        """kube-scheduler: FindMatchingVolume."""
        spec = claim["spec"]
        best: Object | None = None
        for _, volume in sorted(self.objects.volumes.items()):
            of = volume["spec"]
            owner = self.owner(volume)
            if of.get("storageClassName", "") != class_name(claim) or volume in chosen:
                continue
            if owner is not None and not is_owner(owner, claim):
                continue
            if size_of_volume(volume) < size_of_claim(claim) or volume["metadata"].get("deletionTimestamp"):
                continue
            if (of.get("volumeMode") or "Filesystem") != (spec.get("volumeMode") or "Filesystem"):
                continue
            if owner is not None:
                return volume if reaches(volume, node) else None
            if (volume.get("status") or {}).get("phase") != "Available" or not reaches(volume, node):
                continue
            if spec.get("selector") is not None and not matches(spec["selector"], labels_of(volume)):
                continue
            if not set(spec.get("accessModes") or []) <= set(of.get("accessModes") or []):
                continue
            if best is None or size_of_volume(volume) < size_of_volume(best):
                best = volume
        return best

    def owner(self, volume: Object) -> Object | None:
        """The claimRef."""
        name = volume["metadata"]["name"]
        if name in self.taken:
            meta = self.taken[name]["metadata"]
            return {"namespace": namespace_of(self.taken[name]), "name": meta["name"], "uid": meta.get("uid", "")}
        found: Object | None = volume["spec"].get("claimRef")
        return found

    def cannot_make(self, claim: Object, node: Node) -> str:
        """Why no volume can be made for a claim near a node. kube-scheduler: checkVolumeProvisions."""
        storage_class = self.objects.class_of(claim)
        assert storage_class is not None
        provisioner = storage_class["provisioner"]
        if provisioner in ("", NO_PROVISIONER):
            return NO_VOLUME
        terms = storage_class.get("allowedTopologies") or []
        if terms and not any(in_topology(term, node) for term in terms):
            return NO_VOLUME
        driver = self.objects.drivers.get(provisioner)
        wanted = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
        if wanted is None or driver is None or not driver["spec"].get("storageCapacity"):
            return ""
        for capacity in self.objects.capacities:
            limit = capacity.get("maximumVolumeSize", capacity.get("capacity"))
            near = capacity.get("nodeTopology")
            if capacity["storageClassName"] != class_name(claim) or limit is None or near is None:
                continue
            if value(limit) >= value(wanted) and matches(near, node.labels):
                return ""
        return NO_SPACE

    # --- Reserve and Unreserve

    def reserve(self, pod: Pod, node: Node) -> None:
        try:
            reasons, plan = self.find(pod, node)
        except ClaimProblem:  # the filters are disabled
            return
        if reasons:
            return
        self.plans[pod["metadata"]["uid"]] = plan
        for claim, volume in plan:
            if volume is None:
                self.selected[key_of(claim)] = node.name
            else:
                self.taken[volume["metadata"]["name"]] = claim

    def unreserve(self, pod: Pod) -> None:
        for claim, volume in self.plans.pop(pod["metadata"]["uid"], []):
            if volume is None:
                self.selected.pop(key_of(claim), None)
            else:
                self.taken.pop(volume["metadata"]["name"], None)


def claims_of(pod: Pod) -> list[tuple[str, bool]]:
    """The names of the pod's claims, and whether each is ephemeral."""
    found = []
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            found.append((volume["persistentVolumeClaim"]["claimName"], False))
        elif volume.get("ephemeral") is not None:
            found.append((f"{pod['metadata']['name']}-{volume['name']}", True))
    return found


def annotations(of: Object) -> dict[str, str]:
    return of["metadata"].get("annotations") or {}


def class_name(claim: Object) -> str:
    old = annotations(claim).get("volume.beta.kubernetes.io/storage-class")
    return str(old or claim["spec"].get("storageClassName") or "")


def key_of(claim: Object) -> str:
    return f"{namespace_of(claim)}/{claim['metadata']['name']}"


def is_owner(ref: Object, claim: Object) -> bool:
    if (ref.get("namespace"), ref.get("name")) != (namespace_of(claim), claim["metadata"]["name"]):
        return False
    return not ref.get("uid") or ref["uid"] == claim["metadata"].get("uid", "")


def size_of_claim(claim: Object) -> int:
    return value(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0))


def size_of_volume(volume: Object) -> int:
    return value((volume["spec"].get("capacity") or {}).get("storage", 0))


def reaches(volume: Object, node: Node) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects(required, node)


def in_topology(term: Object, node: Node) -> bool:
    expressions = term.get("matchLabelExpressions") or []
    return bool(expressions) and all(node.labels.get(e["key"]) in e["values"] for e in expressions)


def in_zones(zones: list[tuple[str, list[str]]], node: Node) -> bool:
    if not any(key in node.labels for key in ZONES):
        return True
    for key, permitted in zones:
        there = node.labels.get(key, node.labels.get(REPLACED.get(key, "")))
        if there not in permitted:
            return False
    return True
