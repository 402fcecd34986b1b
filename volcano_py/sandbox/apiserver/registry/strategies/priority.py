"""The priority of pods and PodGroups from their class. Kubernetes: the admission plugin Priority."""

from __future__ import annotations

from typing import Any, NamedTuple

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.registry.api import Api

Object = dict[str, Any]

COMPUTED = "priority admission controller computed {} from the given PriorityClass name"


class Resolved(NamedTuple):
    """The effect of a class; `name` is that of the class, empty if there is none."""

    value: int
    policy: str
    name: str


def resolved(api: Api, resource: tuple[str, str], obj: Object, spec: Object) -> Resolved:
    """The class of a spec, else the global default. Raises StatusError for an unknown class, and for a priority
    that differs from that of the class. `resource`: group and plural, for the message."""
    found = _class(api, resource, obj, spec.get("priorityClassName", ""))
    given = spec.get("priority")
    if given is not None and given != found.value:
        what = f"the integer value of priority ({given}) must not be provided in pod spec"
        text = f"{what}; {COMPUTED.format(found.value)}"
        if resource[1] != "pods":
            kind = "composite pod group" if resource[1].startswith("composite") else "pod group"
            text = f"priority set in the {kind} ({given}) must match the priority computed ({found.value}) based on "
            text += "the priority class set in the spec"
        raise errors.forbidden(*resource, obj["metadata"].get("name", ""), text)
    return found


def _class(api: Api, resource: tuple[str, str], obj: Object, name: str) -> Resolved:
    policy = "PreemptLowerPriority"
    if name:
        entry = api.resource("scheduling.k8s.io", "priorityclasses").collection.get("", name)
        if entry is None:
            text = f"no PriorityClass with name {name} was found"
            raise errors.forbidden(*resource, obj["metadata"].get("name", ""), text)
        found = entry.load()
        return Resolved(found.get("value", 0), found.get("preemptionPolicy", policy), name)
    best: Object | None = None
    for entry in default_classes(api):
        candidate = entry.load()
        if best is None or candidate.get("value", 0) < best.get("value", 0):
            best = candidate
    if best is None:
        return Resolved(0, policy, "")
    return Resolved(best.get("value", 0), best.get("preemptionPolicy", policy), best["metadata"]["name"])


def default_classes(api: Api) -> list[Any]:
    """The priority classes marked as global default, cached until one changes."""
    collection = api.resource("scheduling.k8s.io", "priorityclasses").collection
    newest = collection.history[-1].rv if collection.history else 0
    cached = api.extensions.get("default_classes")
    if cached is None or cached[0] != newest:
        rows = [entry for entry in collection.select() if b'"globalDefault":true' in entry.tail]
        cached = api.extensions["default_classes"] = (newest, rows)
    found: list[Any] = cached[1]
    return found
