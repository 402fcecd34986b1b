"""The fields that the dispatcher reads from an object in a response of the API server. Volcano: client-go's typed
objects.

If an object cannot be decoded (for example, because a tenant has nested it thousands of levels deep), the identity, the
node and the deletion are still read: a write has succeeded, and a pod can still be evicted.
"""

from __future__ import annotations

from msgspec import Struct, field

from volcano_py.kube import scan
from volcano_py.kube.errors import InvalidResponse


class Meta(Struct, rename="camel"):
    """metadata."""

    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class Spec(Struct, rename="camel"):
    """spec of a pod."""

    node_name: str = ""
    scheduler_name: str = ""


class PodAnswer(Struct):
    """A pod, or the metadata of any other object."""

    metadata: Meta = field(default_factory=Meta)
    spec: Spec = field(default_factory=Spec)


class MetaAnswer(Struct):
    """Any other object; only its metadata is read."""

    metadata: Meta = field(default_factory=Meta)


def scan_answer(error: InvalidResponse, namespace: str, name: str) -> PodAnswer:
    """The object in a response that could not be decoded. Raises `error` if it is another object or incomplete."""
    meta = scan.texts(error.body, "metadata")
    if (meta.get("namespace", ""), meta.get("name")) != (namespace, name) or not scan.complete(error.body):
        raise error
    spec = scan.texts(error.body, "spec")
    return PodAnswer(
        Meta(meta.get("uid", ""), meta.get("resourceVersion", ""), meta.get("deletionTimestamp")),
        Spec(spec.get("nodeName", ""), spec.get("schedulerName", "")),
    )
