"""Events, stored once and served as v1 and as events.k8s.io/v1. Kubernetes: pkg/registry/core/event."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, invalid_value, required
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

EVENT_FIELDS = frozenset(
    {
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingComponent",
        "reportingController",
        "source",
        "type",
    }
)


def event_fields(obj: Object) -> dict[str, str]:
    about = obj.get("involvedObject") or {}
    component = (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
    out = {
        "reason": obj.get("reason", ""),
        "type": obj.get("type", ""),
        "source": component,
        "reportingComponent": obj.get("reportingComponent", ""),
        "reportingController": obj.get("reportingComponent", ""),
    }
    for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"):
        out[f"involvedObject.{key}"] = out[f"regarding.{key}"] = about.get(key, "")
    return out


def _event(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    own = obj["metadata"].get("namespace", "")
    if (about and about != own) or (not about and own not in ("default", "kube-system") and obj.get("involvedObject")):
        text = "does not match event.namespace"
        out.append(invalid_value("involvedObject.namespace", about, text))
    if request.resource.group == "events.k8s.io" and request.verb == "create":
        out += _new_event(obj)
    return out


def _new_event(obj: Object) -> list[Cause]:
    out: list[Cause] = []
    if obj.get("type") not in ("Normal", "Warning"):
        out.append(invalid_value("type", "", f"has invalid value: {obj.get('type', '')}"))
    if not obj.get("eventTime"):
        return [required("eventTime"), *out]
    for path, key in (("reportingController", "reportingComponent"), ("reportingInstance", "reportingInstance")):
        if not obj.get(key):
            out.append(required(path))
    for key in ("action", "reason"):
        if not obj.get(key):
            out.append(required(key))
    return out


_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE = {value: key for key, value in _TO_CORE.items()}


def event_to_stored(obj: Object) -> Object:
    """events.k8s.io/v1 to v1, the stored version."""
    out = {_TO_CORE.get(key, key): value for key, value in obj.items()}
    out.setdefault("reportingComponent", "")
    out.setdefault("reportingInstance", "")
    return out


def event_from_stored(obj: Object) -> Object:
    """v1 to events.k8s.io/v1."""
    out = {_FROM_CORE.get(key, key): value for key, value in obj.items()}
    for key in ("reportingController", "reportingInstance"):
        if not out.get(key):
            out.pop(key, None)
    return out


EVENTS = Strategy(
    fields=event_fields,
    field_names=EVENT_FIELDS,
    validate_create=_event,
    create_on_update=True,
    # a generateName may end with a dash here, because event recorders use that
    name_errors=lambda name: metadata.subdomain_errors(name.rstrip(".")),
)

STRATEGIES = {"events": EVENTS, "events.events.k8s.io": EVENTS}
