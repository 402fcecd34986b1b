"""All objects of a sandbox as one List: through the API server of a running one, or from a data folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import yaml

from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.kube import wire
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.apiextensions.definitions import CRDS
from volcano_py.sandbox.apiserver.assembly import new_api
from volcano_py.sandbox.apiserver.storage.database import Database
from volcano_py.sandbox.apiserver.storage.store import DELETED

Object = dict[str, Any]

PAGE = 500
TWICE = ("events.k8s.io",)  # groups whose objects are also served by another group


async def served(client: Client) -> AsyncIterator[Object]:
    """All objects of a server, resource by resource in the preferred version."""
    for version, resource in await listable(client):
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            page = orjson.loads(await client.raw("GET", f"{prefix(version)}/{resource['name']}", params=query))
            for item in page.get("items") or []:
                yield {"apiVersion": version, "kind": resource["kind"], **item}
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token


def prefix(version: str) -> str:
    """The path of a group's version."""
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


async def listable(client: Client) -> list[tuple[str, Object]]:
    """(apiVersion, resource of discovery) of all resources that can be listed."""
    groups = orjson.loads(await client.raw("GET", "/apis"))["groups"]
    versions = ["v1", *(row["preferredVersion"]["groupVersion"] for row in groups if row["name"] not in TWICE)]
    out = []
    for version in versions:
        found = orjson.loads(await client.raw("GET", prefix(version)))
        out += [(version, row) for row in found["resources"] if "/" not in row["name"] and "list" in row["verbs"]]
    return out


def kept(database: Database, report: Callable[[str], None]) -> Iterator[Object]:
    """All objects of a data folder; damaged rows are reported and left out."""
    newest: dict[str, dict[str, bytes]] = {}
    for row in database.readable(report):
        objects = newest.setdefault(row.collection, {})
        objects.pop(row.key, None)
        if row.type != DELETED:
            objects[row.key] = row.tail
    definitions = [orjson.loads(b"{" + tail) for tail in newest.get(CRDS, {}).values()]
    kinds = _kinds(definitions)
    for collection, objects in newest.items():
        version, kind = kinds.get(collection, ("", ""))
        if not kind and objects:
            report(f"{len(objects)} {collection}: their definition is missing; they are left out")
            continue
        for key in sorted(objects):
            yield {"apiVersion": version, "kind": kind, **orjson.loads(b"{" + objects[key])}


def _kinds(definitions: Iterable[Object]) -> dict[str, tuple[str, str]]:
    """(apiVersion, kind) of the objects of each collection."""
    out: dict[str, tuple[str, str]] = {}
    for resource in new_api().registry:
        if resource.to_stored is None:
            out.setdefault(resource.collection.name, (resource.api_version, resource.kind))
    for definition in definitions:
        spec = definition["spec"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        out[definition["metadata"]["name"]] = (f"{spec['group']}/{stored}", spec["names"]["kind"])
    return out


class ListWriter:
    """Writes a List object by object: YAML, or JSON with one object a line."""

    def __init__(self, file: IO[str], as_json: bool) -> None:
        self.file = file
        self.as_json = as_json
        self.count = 0
        self._dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        file.write('{"apiVersion":"v1","kind":"List","items":[' if as_json else "apiVersion: v1\nkind: List\nitems:")

    def add(self, obj: Object) -> None:
        if self.as_json:
            self.file.write((",\n" if self.count else "\n") + wire.dumps(obj).decode())
        else:
            text = yaml.dump([obj], Dumper=self._dumper, sort_keys=False, allow_unicode=True)
            self.file.write(("" if self.count else "\n") + text)
        self.count += 1

    def end(self) -> None:
        empty = "" if self.count else " []"
        self.file.write("\n]}\n" if self.as_json else f"{empty}\n" if empty else "")


def read(path: Path) -> list[Object]:
    """The objects of a file: JSON or YAML, Lists or single ones. ValueError contains the error and the remedy."""
    try:
        text = path.read_bytes()
        try:
            documents = [orjson.loads(text)]  # YAML would also work, but is a hundred times slower
        except orjson.JSONDecodeError:
            documents = list(yaml.load_all(text, Loader=FAST_LOADER))
    except OSError as error:
        raise ValueError(f"cannot read {path} ({error.strerror}); use a file that `sandbox dump` wrote") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is neither JSON nor YAML: {' '.join(str(error).split())}") from None
    out: list[Object] = []
    for document in documents:
        if isinstance(document, dict) and str(document.get("kind", "")).endswith("List") and "items" in document:
            out += document["items"] or []
        elif document is not None:
            out.append(document)
    for number, obj in enumerate(out, 1):
        meta = obj.get("metadata") if isinstance(obj, dict) else None
        if not isinstance(meta, dict) or not all(map(_is_text, (obj.get("apiVersion"), obj.get("kind")))):
            raise ValueError(f"{path}: object {number} has no apiVersion, kind or metadata; add them")
        if not _is_text(meta.get("name")):
            raise ValueError(f"{path}: object {number}, a {obj['kind']}, has no metadata.name; add one")
    return out


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
