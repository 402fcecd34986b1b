"""Loads the objects of a List into a sandbox: missing objects are created, owners before their dependents.

Into a running sandbox through its API server: each object gets a new uid (owner references are updated), and its
status if no kubelet or controller of the sandbox reports it. Into a data folder that no sandbox uses: unchanged, with
uid and status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, ApiError, NotFound
from volcano_py.sandbox.apiserver.registry.api import Api, bare
from volcano_py.sandbox.apiserver.storage.store import ADDED
from volcano_py.sandbox.dump import prefix

Object = dict[str, Any]

FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "Queue", "ServiceAccount")
# objects that change or deny later ones
LAST = (
    "ResourceQuota",
    "LimitRange",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
FINISHED = ("Succeeded", "Failed")
_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
)
DEFINITION_SECONDS = 3.0  # until a definition that was just created is served

Report = Callable[[str, str], None]  # the result ("created", "kept", "left out", "rejected"), the rest of the line


def ordered(objects: Iterable[Object]) -> list[Object]:
    """Sort by kind, and parents (owners; for queues the parent queue) before their children."""
    rows = list(objects)
    by_uid = {obj["metadata"].get("uid"): obj for obj in rows}
    queues = {obj["metadata"]["name"]: obj for obj in rows if obj["kind"] == "Queue"}
    depths: dict[int, int] = {}

    def depth(obj: Object) -> int:
        known = depths.get(id(obj))
        if known is None:
            depths[id(obj)] = 0  # a cycle of owners
            above = [by_uid.get(row.get("uid")) for row in obj["metadata"].get("ownerReferences") or []]
            if obj["kind"] == "Queue":
                above.append(queues.get((obj.get("spec") or {}).get("parent", "")))
            known = depths[id(obj)] = max((depth(parent) + 1 for parent in above if parent is not None), default=0)
        return known

    def rank(obj: Object) -> tuple[int, int]:
        kind = obj["kind"]
        place = FIRST.index(kind) if kind in FIRST else len(FIRST) + (kind in LAST)
        return place, depth(obj)

    return sorted(rows, key=rank)


def called(obj: Object) -> str:
    """`Pod default/web-0`."""
    meta = obj["metadata"]
    return f"{obj['kind']} {meta['namespace'] + '/' if meta.get('namespace') else ''}{meta['name']}"


async def into_server(client: Client, objects: list[Object], report: Report) -> None:
    """Create the missing objects in a running sandbox."""
    served = _Served(client)
    uids: dict[str, str] = {}  # new uids, by the uids in the file
    for obj in ordered(objects):
        meta = obj["metadata"]
        if meta.get("deletionTimestamp"):
            report("left out", f"{called(obj)}: it was being deleted")
            continue
        try:
            resource = await served.find(obj["apiVersion"], obj["kind"])
            if resource is None:
                report("rejected", f"{called(obj)}: the server has no kind {obj['kind']} in {obj['apiVersion']}")
                continue
            path = _path(obj, resource)
            try:
                made = orjson.loads(await client.raw("POST", path, body=orjson.dumps(_to_create(obj, uids))))
                await _set_status(client, f"{path}/{meta['name']}", obj, resource)
                report("created", called(obj))
            except AlreadyExists:
                made = orjson.loads(await client.raw("GET", f"{path}/{meta['name']}"))
                report("kept", f"{called(obj)}: it already exists")
            if meta.get("uid"):
                uids[meta["uid"]] = made["metadata"]["uid"]
        except ApiError as error:
            report("rejected", f"{called(obj)}: {error}")


def _path(obj: Object, resource: Object) -> str:
    namespace = f"/namespaces/{obj['metadata'].get('namespace') or 'default'}" if resource["namespaced"] else ""
    return f"{prefix(obj['apiVersion'])}{namespace}/{resource['name']}"


def _to_create(obj: Object, uids: dict[str, str]) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_SERVER}
    # the garbage collector would delete dependents of a missing owner
    owners = [
        {**row, "uid": uids[row["uid"]]} for row in meta.pop("ownerReferences", None) or [] if row.get("uid") in uids
    ]
    if owners:
        meta["ownerReferences"] = owners
    return {**obj, "metadata": meta}


async def _set_status(client: Client, path: str, obj: Object, resource: Object) -> None:
    """Write a status that no controller of the sandbox computes."""
    status = obj.get("status")
    live = obj["kind"] in ("Namespace", "CustomResourceDefinition") or (
        obj["kind"] == "Pod" and (status or {}).get("phase") not in FINISHED
    )
    if not status or live or not resource.get("hasStatus"):
        return
    body = orjson.dumps({"status": status})
    await client.raw("PATCH", f"{path}/status", body=body, content_type="application/merge-patch+json")


class _Served:
    """The served resources, by apiVersion and kind."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.known: dict[tuple[str, str], Object] = {}

    async def find(self, version: str, kind: str) -> Object | None:
        """A resource of discovery, with hasStatus; waits for one that was just defined."""
        ends = asyncio.get_running_loop().time() + DEFINITION_SECONDS
        while (version, kind) not in self.known:
            await self._read(version)
            if (version, kind) not in self.known:
                if "." not in version or asyncio.get_running_loop().time() > ends:
                    return None
                await asyncio.sleep(0.05)
        return self.known[version, kind]

    async def _read(self, version: str) -> None:
        try:
            rows = orjson.loads(await self.client.raw("GET", prefix(version)))["resources"]
        except NotFound:
            return
        names = {row["name"] for row in rows}
        for row in rows:
            if "/" not in row["name"]:
                self.known[version, row["kind"]] = {**row, "hasStatus": f"{row['name']}/status" in names}


def into_store(api: Api, objects: list[Object], report: Report) -> None:
    """Store the missing objects, unchanged, in a store that is not served yet."""
    for obj in ordered(objects):
        resource = api.registry.by_kind.get((obj["apiVersion"], obj["kind"]))
        meta = obj["metadata"]
        if resource is None:
            report("rejected", f"{called(obj)}: the kind {obj['kind']} does not exist in {obj['apiVersion']}")
        elif resource.collection.get(meta.get("namespace", ""), meta["name"]) is not None:
            report("kept", f"{called(obj)}: it already exists")
        else:
            api.write(resource, ADDED, bare(resource, obj))
            report("created", called(obj))
