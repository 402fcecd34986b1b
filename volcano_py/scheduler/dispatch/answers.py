"""What the dispatcher reads of an object that the API server answers with. Volcano: client-go's typed objects.

An object that any tenant made undecodable (nested thousands of levels deep, say) is still read as far as its
identity, its node and its deletion go: a write on it has been carried out, and a pod can still be evicted.
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


class Seen(Struct):
    """A pod, or the metadata of any other object."""

    metadata: Meta = field(default_factory=Meta)
    spec: Spec = field(default_factory=Spec)


class SeenMeta(Struct):
    """An object of which only the metadata is of interest."""

    metadata: Meta = field(default_factory=Meta)


def scanned(error: InvalidResponse, namespace: str, name: str) -> Seen:
    """The object in an answer that could not be decoded. Raises `error` when it is another one or not whole."""
    meta = scan.texts(error.body, "metadata")
    if (meta.get("namespace", ""), meta.get("name")) != (namespace, name) or not scan.complete(error.body):
        raise error
    spec = scan.texts(error.body, "spec")
    return Seen(
        Meta(meta.get("uid", ""), meta.get("resourceVersion", ""), meta.get("deletionTimestamp")),
        Spec(spec.get("nodeName", ""), spec.get("schedulerName", "")),
    )
