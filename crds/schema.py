"""Building blocks of the schemas in this folder: small functions that return OpenAPI v3 fragments."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def string(description: str = "", **rules: Any) -> Schema:
    return _described(description, type="string", **rules)


def enum(description: str, *values: str, **rules: Any) -> Schema:
    return _described(description, type="string", enum=list(values), **rules)


def subdomain(description: str = "", **rules: Any) -> Schema:
    return string(description, maxLength=253, pattern=DNS_SUBDOMAIN, **rules)


def boolean(description: str = "", **rules: Any) -> Schema:
    return _described(description, type="boolean", **rules)


def integer(description: str = "", minimum: int | None = 0, **rules: Any) -> Schema:
    """A whole number of any size. `minimum=None` allows negative ones."""
    if minimum is not None:
        rules["minimum"] = minimum
    return _described(description, type="integer", **rules)


def int32(description: str = "", minimum: int | None = 0, **rules: Any) -> Schema:
    return integer(description, minimum, format="int32", **rules)


def int64(description: str = "", minimum: int | None = 0, **rules: Any) -> Schema:
    return integer(description, minimum, format="int64", **rules)


def time(description: str = "") -> Schema:
    return string(description, format="date-time")


def struct(description: str = "", *, required: tuple[str, ...] = (), rules: tuple = (), **properties: Schema) -> Schema:
    """An object with these fields. `rules` are pairs of CEL expression and message."""
    schema = _described(description, type="object", properties=properties)
    if required:
        schema["required"] = list(required)
    if rules:
        schema["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return schema


def map_of(values: Schema, description: str = "") -> Schema:
    return _described(description, type="object", additionalProperties=values)


def list_of(items: Schema, description: str = "", **rules: Any) -> Schema:
    return _described(description, type="array", items=items, **rules)


def atomic_list(items: Schema, description: str = "") -> Schema:
    """A list that server-side apply replaces as a whole."""
    return list_of(items, description, **{"x-kubernetes-list-type": "atomic"})


def quantity() -> Schema:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    }


def resource_list(description: str) -> Schema:
    return map_of(quantity(), description)


def label_selector(description: str) -> Schema:
    schema = struct(
        description,
        matchExpressions=atomic_list(
            struct(
                "One requirement on the labels.",
                required=("key", "operator"),
                key=string("The label."),
                operator=string("In, NotIn, Exists or DoesNotExist."),
                values=atomic_list(string(), "Values for In and NotIn."),
            ),
            "All of these must hold.",
        ),
        matchLabels=map_of(string(), "Labels with exactly these values."),
    )
    schema["x-kubernetes-map-type"] = "atomic"
    return schema


def condition() -> Schema:
    """The generic condition of Kubernetes."""
    return struct(
        "One aspect of the object's state.",
        required=("lastTransitionTime", "message", "reason", "status", "type"),
        type=string(
            maxLength=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
        status=enum("", "True", "False", "Unknown"),
        reason=string(minLength=1, maxLength=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        message=string(maxLength=32768),
        lastTransitionTime=time("When the status last changed."),
        observedGeneration=int64("The generation of the object that the condition speaks of."),
    )


def object_reference(description: str) -> Schema:
    schema = struct(
        description,
        apiVersion=string(),
        fieldPath=string(),
        kind=string(),
        name=string(),
        namespace=string(),
        resourceVersion=string(),
        uid=string(),
    )
    schema["x-kubernetes-map-type"] = "atomic"
    return schema


def template_metadata(description: str) -> Schema:
    """The metadata that objects made from a template get."""
    return struct(
        description,
        annotations=map_of(string()),
        finalizers=list_of(string()),
        labels=map_of(string()),
        name=string(),
        namespace=string(),
    )


def _described(description: str, **rules: Any) -> Schema:
    return ({"description": description} if description else {}) | rules
