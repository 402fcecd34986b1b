"""The server's state for all verbs: store, registry and admission. Kubernetes: the generic registry's Store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError, bad_request
from volcano_py.sandbox.apiserver.registry.request import Request, User
from volcano_py.sandbox.apiserver.registry.resources import Registry, Resource
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.serializer.bodies import read_object
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Collection, Entry, Store

Object = dict[str, Any]


@dataclass(slots=True)
class Attributes:
    """The input of admission: the new object (None for a deletion) and the stored one (None for a creation).

    Objects are complete (with kind and apiVersion); mutating callables change `obj` in place or replace it.
    `request` has user, namespace, name, subresource, dryRun; `operation` is CREATE, UPDATE, DELETE or
    CONNECT.
    """

    operation: str
    request: Request
    obj: Object | None
    old: Object | None


Admission = Callable[[Attributes], Awaitable[None]]


@dataclass(slots=True)
class Result:
    """An object as the response to a request: its stored bytes, and the HTTP status."""

    resource: Resource
    tail: bytes
    status: int = 200


@dataclass(slots=True)
class Plain:
    """A response that is not a stored object: a Status, a Scale, a review; or text when `text` is set."""

    body: Object | None
    status: int = 200
    text: bytes | None = None
    content_type: str = "application/json"


@dataclass(slots=True)
class Stream:
    """A streamed response, until the iterator ends or the client disconnects."""

    pieces: AsyncGenerator[bytes, None]
    content_type: str = "text/plain"


class StrictError(Exception):
    """fieldValidation=Strict found unknown or repeated fields."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("strict decoding error: " + ", ".join(problems))


@dataclass(slots=True)
class Api:
    """One API server. `mutating` and `validating` are called in order for every write, by resource (`*` for all)."""

    store: Store = field(default_factory=Store)
    registry: Registry = field(default_factory=Registry)
    mutating: dict[str, list[Admission]] = field(default_factory=dict)
    validating: dict[str, list[Admission]] = field(default_factory=dict)
    # (resource, subresource) -> its handler, in addition to the generic ones
    subresources: dict[tuple[str, str], Callable[[Api, Request], Awaitable[Result | Plain | Stream]]] = field(
        default_factory=dict
    )
    # other handlers of writes: dynamic admission, quota; each has handles(), mutate() and validate()
    hooks: list[Any] = field(default_factory=list)
    logs: dict[str, bytes] = field(default_factory=dict)  # pod uid/container -> text
    features: frozenset[str] = frozenset()  # the enabled feature gates
    kubernetes: str = "1.36"  # the version whose resources are served
    extensions: dict[str, Any] = field(default_factory=dict)  # state of optional modules

    def resource(self, group: str, plural: str) -> Resource:
        """A resource that must exist; KeyError otherwise."""
        found = self.registry.find(group, plural)
        if found is None:
            raise KeyError(f"no resource {plural} in group {group!r}")
        return found

    # --- decoding ----------------------------------------------------------------------------------------------------

    def decode_body(self, request: Request) -> Object:
        """The object in a request's body, normalised, defaulted, in stored form."""
        resource = request.resource
        duplicates: list[str] | None = None if request.field_validation == "Ignore" else []
        raw = read_object(request.body, request.content_type, resource.kind, duplicates)
        problems = [_duplicate(path) for path in duplicates or []]
        try:
            return self.decode(request, raw, problems)
        except StrictError as error:
            raise bad_request(f"{_handled(resource, raw)}: {error}") from None

    def decode(self, request: Request, raw: Object, problems: list[str] | None = None) -> Object:
        """Convert an object of the request's version to stored form; raises StatusError or StrictError."""
        resource = request.resource
        problems = problems if problems is not None else []
        version, kind = raw.get("apiVersion") or resource.api_version, raw.get("kind") or resource.kind
        if not isinstance(version, str) or not isinstance(kind, str):
            raise bad_request("Object 'Kind' is missing or not a string")
        if resource.custom is not None:
            decoded: Object = resource.custom.decode(request, raw, problems)
            return decoded
        if kind == resource.kind and version != resource.api_version and (version, kind) in self.registry.by_kind:
            text = f"the API version in the data ({version}) does not match the expected API version"
            raise bad_request(f"{text} ({resource.api_version})")
        if version != resource.api_version or kind != resource.kind:
            raise bad_request(f"{_handled(resource, raw)}: {self._mismatch(version, kind, resource)}")
        unknown = codec.Unknown()
        try:
            obj: Object = codec.normalise(resource.type, raw, unknown)
        except codec.DecodeError as error:
            raise bad_request(f"{_handled(resource, raw)}: {error}") from None
        report(request, problems + [f'unknown field "{path}"' for path in unknown.paths])
        if resource.to_stored is not None:
            obj = resource.to_stored(obj)
        resource.strategy.default(obj)
        return obj

    def _mismatch(self, version: str, kind: str, resource: Resource) -> str:
        short = version.rpartition("/")[2]
        if (version, kind) in self.registry.by_kind:
            return f"converting ({short}.{kind}) to ({resource.group or 'core'}.{resource.kind}): unknown conversion"
        return f'no kind "{kind}" is registered for version "{version}" in scheme'

    # --- admission ---------------------------------------------------------------------------------------------------

    def admits(self, resource: Resource) -> bool:
        """Whether any admission applies to writes of this resource."""
        name = resource.qualified
        if any(table.get(name) or table.get("*") for table in (self.mutating, self.validating)):
            return True
        return any(hook.handles(resource) for hook in self.hooks)

    async def admit(self, chain: str, attributes: Attributes) -> None:
        """Run the mutating or validating callables of a resource."""
        table = self.mutating if chain == "mutating" else self.validating
        name = attributes.request.resource.qualified
        for rule in (*table.get("*", ()), *table.get(name, ())):
            await rule(attributes)
        for hook in self.hooks:
            if hook.handles(attributes.request.resource):
                await (hook.mutate if chain == "mutating" else hook.validate)(attributes)

    # --- writing -----------------------------------------------------------------------------------------------------

    def commit(self, request: Request, type_: str, obj: Object) -> bytes:
        """Store an object, or only encode it for a dry run; returns its bytes."""
        resource = request.resource
        if request.dry_run:
            if type_ == ADDED:
                obj["metadata"].pop("resourceVersion", None)
            return orjson.dumps(obj)[1:]
        return self.write(resource, type_, obj).tail

    def write(self, resource: Resource, type_: str, obj: Object) -> Entry:
        """Store an object in stored form, with its selector fields."""
        meta = obj["metadata"]
        if type_ == DELETED:
            # the event of a deletion has the last stored object
            last = resource.collection.get(meta.get("namespace", ""), meta["name"])
            if last is not None:
                obj = last.load()
                meta = obj["metadata"]
        return self.store.commit(resource.collection, type_, obj, selector_fields(resource, obj))

    def entry(self, collection: Collection, revision: int, tail: bytes) -> Entry:
        """Decode a stored object; raises KeyError or another error for invalid bytes."""
        obj: Object = orjson.loads(b"{" + tail)
        meta = obj["metadata"]
        plural, _, group = collection.name.partition(".")
        resource = self.registry.find(group, plural)
        fields = selector_fields(resource, obj) if resource is not None else {"metadata.name": meta["name"]}
        labels = meta.get("labels") or {}
        return Entry(meta.get("namespace", ""), meta["name"], meta.get("uid", ""), revision, tail, labels, fields)

    def remove(self, request: Request, obj: Object) -> bytes:
        """Remove an object; returns its last bytes."""
        return self.commit(request, DELETED, obj)

    def modify(self, request: Request, obj: Object) -> bytes:
        return self.commit(request, MODIFIED, obj)

    def system_request(self, verb: str, resource: Resource, namespace: str, name: str, user: str) -> Request:
        """A request of the cluster's own components, without HTTP."""
        return Request(
            verb,
            resource,
            namespace,
            name,
            user=User(user, ("system:masters", "system:authenticated")),
            manager=user.rpartition(":")[2],
        )


def selector_fields(resource: Resource, obj: Object) -> dict[str, str]:
    """The values for field selectors."""
    fields = resource.strategy.fields(obj)
    fields["metadata.name"] = obj["metadata"]["name"]
    if resource.namespaced:
        fields["metadata.namespace"] = obj["metadata"].get("namespace", "")
    return fields


def _duplicate(path: str) -> str:
    return path if path.startswith("line ") else f'duplicate field "{path}"'


def _handled(resource: Resource, raw: Object) -> str:
    kind = raw.get("kind") or resource.kind
    version = str(raw.get("apiVersion") or resource.api_version).rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {resource.kind}'


def report(request: Request, problems: list[str]) -> None:
    """Report unknown and repeated fields as the request's fieldValidation requires."""
    if not problems or request.field_validation == "Ignore":
        return
    if request.field_validation == "Strict":
        raise StrictError(problems)
    for problem in problems:
        request.warn(problem)


def match_namespace(request: Request, meta: Object) -> None:
    """Set the namespace of the path; another namespace in the object is a 400."""
    wanted = request.namespace if request.resource.namespaced else ""
    given = meta.get("namespace", "")
    if given == wanted:
        return
    if given and wanted:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise bad_request(text)
    if wanted:
        meta["namespace"] = wanted
    else:
        meta.pop("namespace", None)


def complete(resource: Resource, obj: Object) -> Object:
    """The object with kind and apiVersion in front, for admission and patches."""
    if resource.from_stored is not None:
        obj = resource.from_stored(obj)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def bare(resource: Resource, obj: Object) -> Object:
    """The inverse of complete."""
    obj = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return resource.to_stored(obj) if resource.to_stored is not None else obj


now = metadata.now
__all__ = ["Admission", "Api", "Attributes", "Plain", "Result", "StatusError", "StrictError"]
