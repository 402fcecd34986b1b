"""GET of one object and of lists: selectors, pages, and lists at an earlier revision.

Kubernetes: handlers/get.go, and the paging of the etcd3 store.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, selectors
from volcano_py.sandbox.apiserver.apimachinery.selectors import Match
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request, integer
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import Entry

SNAPSHOTS = 64  # unfinished paged lists that are kept
SNAPSHOT_SECONDS = 300.0


@dataclass(slots=True)
class Selection:
    """The selection of a list or watch."""

    namespace: str = ""
    name: str = ""  # metadata.name=… of the field selector, or of the path
    labels: Match | None = None
    fields: Match | None = None

    def matches(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self.name and entry.name != self.name:
            return False
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return self.fields is None or self.fields(entry.fields)


def selection(request: Request) -> Selection:
    """Read labelSelector and fieldSelector; 400 for invalid or unsupported ones."""
    query = request.query
    labels = selectors.parse_labels(query.get("labelSelector", ""))
    chosen = Selection(request.namespace, request.name, labels)
    text = query.get("fieldSelector", "")
    if text:
        try:
            terms = selectors.parse_fields(text)
        except ValueError as error:
            raise errors.bad_request(f"unable to parse requirement: {error}") from None
        for name, value, _ in terms:
            if not selectable(request.resource, name):
                raise errors.bad_request(_no_field(request.resource, name, value))
        for name, value, equal in terms:
            if name == "metadata.name" and equal:
                if request.name and request.name != value:
                    text = f"fieldSelector metadata.name={value} doesn't match the requested name {request.name}"
                    raise errors.bad_request(text)
                chosen.name = chosen.name or value
        chosen.fields = selectors.field_matcher(terms)
    return chosen


def selectable(resource: Resource, name: str) -> bool:
    if name == "metadata.name":
        return True
    if name == "metadata.namespace":
        return resource.namespaced or resource.custom is None
    return name in resource.strategy.field_names


def _no_field(resource: Resource, name: str, value: str) -> str:
    where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
    text = f"field label not supported: {name}"
    if not resource.strategy.field_names and resource.custom is None:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    if resource.custom is not None:
        return f'Unable to find "{where}" that match label selector "", field selector "{name}={value}": {text}'
    return text


def get(api: Api, request: Request) -> Entry:
    """One object, or 404."""
    resource = request.resource
    entry = resource.collection.get(request.namespace, request.name)
    if entry is None:
        raise errors.not_found(resource.group, resource.plural, request.name)
    _check_not_ahead(api, request.query.get("resourceVersion", ""))
    return entry


@dataclass(slots=True)
class Page:
    """A part of a list: its entries, the list's revision, the continue token."""

    entries: list[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None


@dataclass(slots=True)
class _Snapshot:
    entries: list[Entry]
    revision: int
    born: float = field(default_factory=time.monotonic)


def list_page(api: Api, request: Request) -> Page:
    """The list for a request."""
    query = request.query
    chosen = selection(request)
    limit = integer(query, "limit")
    token = query.get("continue", "")
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if version and not version.isdigit():
        text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise errors.bad_request(f"invalid resource version: {text}")
    _check_list_options(match, version, token, query)
    if token:
        return _next_page(api, request, chosen, limit, token)
    revision = api.store.revision
    if match == "Exact":
        wanted = int(version)
        _check_not_ahead(api, version)
        if wanted < request.resource.collection.floor:
            raise errors.expired("The resourceVersion for the provided list is too old.")
        rows = [entry for entry in request.resource.collection.at(wanted) if chosen.matches(entry)]
        revision = wanted
    else:
        _check_not_ahead(api, version)
        rows = select(request.resource, chosen)
    return _cut(api, request, rows, revision, limit, chosen)


def select(resource: Resource, chosen: Selection) -> list[Entry]:
    """The entries of a selection, in order."""
    collection = resource.collection
    if chosen.name and (chosen.namespace or not resource.namespaced):
        entry = collection.get(chosen.namespace, chosen.name)
        rows = iter([entry]) if entry is not None else iter(())
    else:
        rows = collection.select(chosen.namespace)
    if chosen.labels is None and chosen.fields is None and not chosen.name:
        return list(rows)
    return [entry for entry in rows if chosen.matches(entry)]


def _cut(api: Api, request: Request, rows: list[Entry], revision: int, limit: int, chosen: Selection) -> Page:
    if limit <= 0 or len(rows) <= limit or request.query.get("resourceVersion") == "0":
        return Page(rows, revision)
    page, rest = rows[:limit], rows[limit:]
    snapshots: dict[int, _Snapshot] = api.extensions.setdefault("snapshots", {})
    number = api.extensions["snapshot_number"] = api.extensions.get("snapshot_number", 0) + 1
    snapshots[number] = _Snapshot(rest, revision)
    while len(snapshots) > SNAPSHOTS:
        snapshots.pop(next(iter(snapshots)))
    # the token also contains the next key: a server without the snapshot returns "expired"
    payload = {"v": "meta.k8s.io/v1", "rv": revision, "start": rest[0].key, "page": number}
    made = base64.urlsafe_b64encode(orjson.dumps(payload)).decode().rstrip("=")
    remaining = len(rest) if chosen.labels is None and chosen.fields is None else None
    return Page(page, revision, made, remaining)


def _next_page(api: Api, request: Request, chosen: Selection, limit: int, token: str) -> Page:
    try:
        payload = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        number, revision, start = int(payload.get("page", 0)), int(payload["rv"]), str(payload["start"])
    except (ValueError, KeyError, TypeError, AttributeError):
        text = f"invalid continue token: continue key is not valid: invalid character in {token!r}, not a token of ours"
        raise errors.bad_request(text) from None
    if revision == -1:
        # the caller has accepted an inconsistent list: the current objects from the last key on
        rows = [entry for entry in select(request.resource, chosen) if entry.key >= start]
        return _cut(api, request, rows, api.store.revision, limit, chosen)
    snapshots: dict[int, _Snapshot] = api.extensions.setdefault("snapshots", {})
    found = snapshots.get(number)
    if found is None or found.revision != revision or time.monotonic() - found.born > SNAPSHOT_SECONDS:
        text = (
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up."
        )
        error = errors.expired(text)
        fresh = orjson.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": start})
        error.continue_token = base64.urlsafe_b64encode(fresh).decode().rstrip("=")
        raise error
    rows = [entry for entry in found.entries if chosen.matches(entry)]
    return _cut(api, request, rows, revision, limit, chosen)


def _check_not_ahead(api: Api, version: str) -> None:
    if not version or version == "0":
        return
    if not version.isdigit():
        text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise errors.StatusError(500, "", text)
    if int(version) > api.store.revision:
        raise too_large(int(version), api.store.revision)


def too_large(wanted: int, current: int) -> errors.StatusError:
    """504: the requested revision is newer than the server's."""
    text = f"Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    info = {"causes": [cause], "retryAfterSeconds": 1}
    return errors.StatusError(504, "Timeout", f"Timeout: {text}", info, {"Retry-After": "1"})


def _check_list_options(match: str, version: str, token: str, query: Any) -> None:
    causes = []
    integer(query, "timeoutSeconds")
    if "sendInitialEvents" in query:
        causes.append(errors.field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match:
        if token:
            causes.append(
                errors.field_forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
                )
            )
        if not version:
            causes.append(
                errors.field_forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if match not in ("Exact", "NotOlderThan"):
            causes.append(errors.unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        elif match == "Exact" and version == "0":
            causes.append(
                errors.field_forbidden(
                    "resourceVersionMatch", 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
                )
            )
    if causes:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", causes)
    if token and version and version != "0":
        raise errors.bad_request("specifying resource version is not allowed when using continue")
