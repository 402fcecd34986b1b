"""The form of a response that a client accepts: JSON or YAML, the object itself, a Table or only metadata.

Kubernetes: handlers/negotiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.serializer.bodies import JSON, MEDIA_TYPES, YAML

META_GROUP = "meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Form:
    """media: json or yaml; as_: '' (the object), Table, PartialObjectMetadata, PartialObjectMetadataList, or a
    discovery form; version: of that form's group."""

    media: str = "json"
    as_: str = ""
    version: str = "v1"
    pretty: bool = False


OBJECT = Form()
_VIEWS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@lru_cache(maxsize=512)
def negotiate(accept: str, views: tuple[str, ...] = _VIEWS) -> Form:
    """The first acceptable form of an Accept header; 406 if there is none."""
    if not accept or accept == JSON:
        return OBJECT
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        values = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media in (JSON, "*/*", "application/*", "application/json;stream=watch"):
            kind = "json"
        elif media in (YAML, "application/x-yaml"):
            kind = "yaml"
        else:
            continue
        as_, version, group = values.get("as", ""), values.get("v", ""), values.get("g", "")
        if not as_:
            if values.get("g") or values.get("v"):
                continue
            return Form(kind, pretty=values.get("pretty") == "1")
        if as_ in views:
            if group == META_GROUP and version in ("v1", "v1beta1"):
                return Form(kind, as_, version)
            if group == "apidiscovery.k8s.io" and version == "v2":
                return Form(kind, as_, version)
    raise not_acceptable()


def not_acceptable() -> StatusError:
    text = f"only the following media types are accepted: {MEDIA_TYPES}"
    return StatusError(406, "NotAcceptable", text)
