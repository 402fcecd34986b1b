"""PodGroups for pods without one, as the podgroup controller creates them. Volcano: pg-controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from volcano_py.api import core, names
from volcano_py.api.meta import ApiObject
from volcano_py.api.scheduling import RUNNING
from volcano_py.controllers.podgroup.reconcile import OWNER_KINDS, build_podgroup, needs_podgroup
from volcano_py.simulate.manifests import Manifest, ManifestError, read_as

_Key = tuple[str, str, str]
"""Kind, namespace and name."""


def groups_of_bare_pods(
    pods: Iterable[Manifest], known: Iterable[Manifest], described: Iterable[Manifest], scheduler_names: Sequence[str]
) -> list[Manifest]:
    """The missing groups; the pods are annotated with their names.

    The oldest of several pods that share a group defines it. A group with a pod that has a node is Running. Pods are
    complete; `known` are the existing PodGroups; `described` holds the owners from which groups inherit annotations.
    """
    groups = {_key(o) for o in known}
    owners = _annotations_of_owners(described)
    made: dict[_Key, Manifest] = {}
    for pod in sorted(pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"])):
        metadata = pod["metadata"]
        if (metadata.get("annotations") or {}).get(names.GROUP_NAME):
            continue
        try:
            struct = read_as(core.Pod, pod)
        except ManifestError:
            continue  # created from a job whose template is not a pod: the job is rejected for it
        if struct.status.phase in ("Succeeded", "Failed") or not needs_podgroup(struct, scheduler_names):
            continue
        references = (r for r in struct.metadata.owner_references or () if r.kind in OWNER_KINDS)
        inherited = (owners.get((r.kind, metadata["namespace"], r.name)) for r in references)
        try:
            group = build_podgroup(struct, [annotations for annotations in inherited if annotations])
        except ValueError:
            continue  # a quantity that cannot be parsed: the pod is rejected for it
        metadata["annotations"] = {**(metadata.get("annotations") or {}), names.GROUP_NAME: group["metadata"]["name"]}
        if _key(group) in groups:
            continue
        group = made.setdefault(_key(group), group)
        group["metadata"].setdefault("creationTimestamp", metadata["creationTimestamp"])
        if struct.spec.node_name:
            group["status"]["phase"] = RUNNING
    return list(made.values())


def _key(o: Manifest) -> _Key:
    return o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]


def _annotations_of_owners(described: Iterable[Manifest]) -> dict[_Key, dict[str, str]]:
    """The annotations of owners of any kind; objects that cannot be decoded have none."""
    found = {}
    for o in described:
        if o["kind"] in OWNER_KINDS:
            with suppress(ManifestError):
                metadata = read_as(ApiObject, o).metadata
                found[o["kind"], metadata.namespace or "default", metadata.name] = metadata.annotations or {}
    return found
