"""Reading manifests: from files and standard input to plain objects, and from these to the model's structs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from volcano_py.api import core, dra, gang, kinds, nodeinfo, reservation, scheduling, storage, topology, yaml_documents
from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE

Manifest = dict[str, Any]

STRUCTS: dict[str, type[Any]] = {
    "Pod": core.Pod,
    "Node": core.Node,
    "PodGroup": scheduling.PodGroup,
    NATIVE: gang.PodGroup,
    COMPOSITE: gang.CompositePodGroup,
    "Queue": scheduling.Queue,
    "PriorityClass": core.PriorityClass,
    "ResourceQuota": core.ResourceQuota,
    "Namespace": core.Namespace,
    "ConfigMap": core.ConfigMap,
    "Numatopology": nodeinfo.Numatopology,
    "Service": core.Service,
    "ReplicationController": core.ReplicationController,
    "ReplicaSet": core.ReplicaSet,
    "StatefulSet": core.StatefulSet,
    "PodDisruptionBudget": core.PodDisruptionBudget,
    "HyperNode": topology.HyperNode,
    "Reservation": reservation.Reservation,
    "PersistentVolume": storage.PersistentVolume,
    "PersistentVolumeClaim": storage.PersistentVolumeClaim,
    "StorageClass": storage.StorageClass,
    "CSINode": storage.CSINode,
    "CSIDriver": storage.CSIDriver,
    "CSIStorageCapacity": storage.CSIStorageCapacity,
    "VolumeAttachment": storage.VolumeAttachment,
    "DeviceClass": dra.DeviceClass,
    "ResourceSlice": dra.ResourceSlice,
    "ResourceClaim": dra.ResourceClaim,
    "DeviceTaintRule": dra.DeviceTaintRule,
}
"""The kinds that the scheduler reads, with their names in the model."""
_KIND_OF = {struct: kind for kind, struct in STRUCTS.items()}
_GROUPS = {_KIND_OF[struct]: t.group for t, struct in kinds.STRUCTS.items() if struct in _KIND_OF}
_TEXTS = frozenset(("labels", "annotations", "matchLabels", "nodeSelector"))
"""Fields that map any key to a text."""
NAMESPACED = frozenset(t.kind for t in kinds.ALL if t.namespaced) | {"CompositePodGroup", "Workload"}
"""Namespaced kinds."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML as the API server does: times are text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in _Loader.yaml_implicit_resolvers.items()
}


class ManifestError(ValueError):
    """A document is invalid; the message contains file, object and field."""


def read(paths: Iterable[str]) -> list[Manifest]:
    """All objects of YAML or JSON files (`-`: standard input), with the items of lists, in order."""
    found: list[Manifest] = []
    for path in paths:
        try:
            text = sys.stdin.read() if path == "-" else Path(path).read_text()
        except OSError as e:
            raise ManifestError(f"{path}: {e.strerror}; give files that exist, or - for standard input") from None
        except UnicodeDecodeError:
            hint = "convert it (`simulate run` reads a snapshot with --from)"
            raise ManifestError(f"{path}: not text in UTF-8; {hint}") from None
        found += parse(text, path)
    return found


def parse(text: str, where: str) -> list[Manifest]:
    """The objects of one text. Raises ManifestError."""
    try:
        documents = yaml_documents.load_all(text, _Loader)
    except yaml.MarkedYAMLError as e:
        line = f":{e.problem_mark.line + 1}" if e.problem_mark else ""
        raise ManifestError(f"{where}{line}: not valid YAML: {e.problem}") from None
    except yaml.YAMLError as e:
        raise ManifestError(f"{where}: not valid YAML: {' '.join(str(e).split())}") from None
    return [o for d in documents if d is not None for o in unfolded(d, where)]


def unfolded(document: Any, where: str) -> Iterator[Manifest]:
    """The objects of a document: itself, or those of a list. Raises ManifestError."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise ManifestError(f"{where}: a document is not a Kubernetes object: kind is missing")
    if document["kind"].endswith("List") and isinstance(document.get("items", ""), list | None):
        # The API server writes kind and version only once, on the list.
        of_all = {"apiVersion": document.get("apiVersion"), "kind": document["kind"].removesuffix("List")}
        for item in document["items"] or ():
            bare = isinstance(item, dict) and item.get("kind") is None and of_all["kind"]
            yield from unfolded({**item, **of_all} if bare else item, where)
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ManifestError(f"{where}: {document['kind']}: metadata.name is missing")
    yield without_nulls(document)


def without_nulls(value: Any, of: str = "") -> Any:
    """A copy without fields that are null: for an API server null and missing are the same. `of`: the name of the
    field with the value; a label that is null is empty."""
    if isinstance(value, dict):
        if of in _TEXTS:
            return {k: "" if v is None else v for k, v in value.items()}
        return {k: without_nulls(v, k) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def in_namespace(manifest: Manifest) -> Manifest:
    """The manifest, in namespace `default` if its kind is namespaced and it has no namespace."""
    metadata = manifest.get("metadata")
    if manifest["kind"] in NAMESPACED and isinstance(metadata, dict) and not metadata.get("namespace"):
        metadata["namespace"] = "default"
    return manifest


def model_kind(manifest: Manifest) -> str:
    """The kind of a manifest in the model: PodGroups of two API groups are different kinds."""
    if manifest["kind"] == "CompositePodGroup":
        return COMPOSITE
    native = manifest["kind"] == "PodGroup" and manifest.get("apiVersion") in gang.VERSIONS
    return NATIVE if native else str(manifest["kind"])


def is_read(manifest: Manifest) -> bool:
    """Whether the scheduler reads this kind, as opposed to a kind with the same name in another API group (kueue's
    Queue, the metrics of a Node). A manifest without `apiVersion` is identified by its kind."""
    kind, version = model_kind(manifest), manifest.get("apiVersion")
    if kind not in STRUCTS or not version or not isinstance(version, str):
        return kind in STRUCTS
    return version.rpartition("/")[0] == _GROUPS[kind]


def copied(value: Any) -> Any:
    """A copy of a JSON value: several times as fast as deepcopy, which matters for 10,000 pods."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if isinstance(value, list) else value


def as_struct(manifest: Manifest, *, named: bool = False) -> Any:
    """The struct of a manifest, None for kinds that the scheduler does not read. `named`: an object without a name is
    also an error. Raises ManifestError."""
    return read_as(STRUCTS[model_kind(manifest)], manifest, named=named) if is_read(manifest) else None


def read_as(type_: type[Any], manifest: Manifest, *, named: bool = False) -> Any:
    """As `as_struct`, for a given struct."""
    try:
        struct = from_manifest(type_, manifest)
        if named and not struct.metadata.name:
            raise TypeError("metadata.name is missing")
        if isinstance(struct, core.Pod):
            _check_times(struct)
        return struct
    except (TypeError, ValueError) as e:
        metadata = manifest.get("metadata")
        name = metadata.get("name", "?") if isinstance(metadata, dict) else "?"
        raise ManifestError(f"{manifest['kind']} {name}: {e}") from None


def _check_times(pod: core.Pod) -> None:
    """Raises ValueError with the field whose value is not a time; an API server would not store it."""
    times = {"status.startTime": pod.status.start_time}
    for i, condition in enumerate(pod.status.conditions or ()):
        times[f"status.conditions[{i}].lastTransitionTime"] = condition.last_transition_time
    for field, text in times.items():
        if text:
            try:
                parse_time(text)
            except ValueError as e:
                raise ValueError(f"{field}: {e}") from None
