"""Responses in the form that the client accepts: objects and lists, as Tables, or as metadata alone.

Kubernetes: handlers/response.go.
"""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.endpoints.verbs.read import Page
from volcano_py.sandbox.apiserver.endpoints.watch import object_event
from volcano_py.sandbox.apiserver.printers import table
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.serializer.negotiate import Form
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]
YAML_TYPE = "application/yaml"


def object_body(form: Form, resource: Resource, tail: bytes, include: str = "") -> bytes:
    """One object in the requested form."""
    if not form.as_:
        data = resource.object_bytes(tail)
    elif form.as_ == "Table":
        data = orjson.dumps(table.table(form, resource, [loaded(resource, tail)], {}, include))
    else:
        obj = loaded(resource, tail)
        data = orjson.dumps(partial(form, obj))
    return finished(form, data)


def loaded(resource: Resource, tail: bytes) -> Object:
    obj: Object = orjson.loads(resource.object_bytes(tail))
    return obj


def partial(form: Form, obj: Object) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": obj["metadata"],
    }


def list_body(form: Form, resource: Resource, page: Page, include: str = "") -> bytes:
    """A list in the requested form."""
    meta: Object = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    if form.as_ == "Table":
        rows = [loaded(resource, entry.tail) for entry in page.entries]
        return finished(form, orjson.dumps(table.table(form, resource, rows, meta, include)))
    if form.as_:
        if form.as_ == "PartialObjectMetadata":
            text = f"you requested {form.as_}, but the requested object is a list (*core.{resource.list_kind})"
            raise StatusError(406, "NotAcceptable", text)
        items = [partial(form, loaded(resource, entry.tail)) for entry in page.entries] or None
        body = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": meta,
            "items": items,
        }
        return finished(form, orjson.dumps(body))
    return finished(form, items_body(resource, [entry.tail for entry in page.entries], meta))


def items_body(resource: Resource, tails: list[bytes], meta: Object) -> bytes:
    """A list object from stored bytes."""
    if resource.custom is not None:
        meta = {"continue": "", **meta}
    head = orjson.dumps({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": meta})
    item = resource.item_bytes
    return b'%s,"items":[%s]}' % (head[:-1], b",".join([item(tail) for tail in tails]))


class _Dumper(yaml.SafeDumper):
    """YAML as Kubernetes writes it: sorted keys, and quotes for strings that could be read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    """Quote a string that could be read as another type, as Go's encoder does."""
    tag = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    plain = tag == "tag:yaml.org,2002:str"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _string)


def to_yaml(value: Any) -> bytes:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=True, default_flow_style=False, width=10**9, allow_unicode=True
    )
    return text.encode()


def finished(form: Form, data: bytes) -> bytes:
    if form.media == "yaml":
        return to_yaml(orjson.loads(data))
    if form.pretty:
        return orjson.dumps(orjson.loads(data), option=orjson.OPT_INDENT_2)
    return data


def event_encoder(form: Form, include: str = "") -> Any:
    """The encoder of watch events in the requested form."""
    if form.as_ == "Table":

        def encode(resource: Resource, type_: str, entry: Entry) -> bytes:
            body = table.table(
                form,
                resource,
                [loaded(resource, entry.tail)],
                {"resourceVersion": str(entry.rv)},
                include,
                columns=False,
            )
            return orjson.dumps({"type": type_, "object": body}) + b"\n"

        return encode
    if form.as_:

        def encode_partial(resource: Resource, type_: str, entry: Entry) -> bytes:
            obj = partial(form, loaded(resource, entry.tail))
            return orjson.dumps({"type": type_, "object": obj}) + b"\n"

        return encode_partial
    return object_event
