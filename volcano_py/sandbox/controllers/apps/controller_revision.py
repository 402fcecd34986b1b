"""ControllerRevisions: the templates of a StatefulSet or DaemonSet over time. Kubernetes: the controller history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api, complete
from volcano_py.sandbox.controllers.runtime.adoption import Adoption, controller_reference
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.hashing import template_hash
from volcano_py.sandbox.controllers.runtime.owners import Owners

Object = dict[str, Any]

COLLECTION = "controllerrevisions.apps"
POD_LABEL = "controller-revision-hash"


class Revisions(NamedTuple):
    """An owner's history: all revisions, oldest first, and the one of the current template."""

    all: list[Object]
    update: Object

    def template(self, name: str) -> Object:
        """The template of a revision; the current one for an unknown name."""
        found = next((row for row in self.all if row["metadata"]["name"] == name), self.update)
        out = dict(found["data"]["spec"]["template"])
        out.pop("$patch", None)
        return out


class History:
    """The revisions of the objects of one collection."""

    def __init__(self, api: Api, owners: Owners, client: Client, owner_collection: str) -> None:
        self.api = api
        self.client = client
        self.resource = api.resource("apps", "controllerrevisions")
        self.adoption = Adoption(self.resource.collection, owners, client)
        self.owner_collection = owner_collection

    async def record(self, owner: Object) -> Revisions:
        """Make the current template the newest revision; an existing revision of it gets a new number."""
        entries = await self.adoption.claim(owner)
        rows = [complete(self.resource, entry.load()) for entry in entries]
        rows.sort(key=lambda row: (row["revision"], row["metadata"]["name"]))
        data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
        number = rows[-1]["revision"] + 1 if rows else 1
        same = [row for row in rows if row["data"] == data]
        if not same:
            made = await self._create(owner, data, number)
            return Revisions([*rows, made], made)
        found = same[-1]
        if found is not rows[-1]:
            found["revision"] = number
            key = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
            await self.client.update(COLLECTION, key, lambda copy: copy.update(revision=number))
            rows.sort(key=lambda row: row["revision"])
        return Revisions(rows, found)

    async def truncate(self, owner: Object, revisions: Revisions, live: Iterable[str]) -> None:
        """Delete the oldest revisions that no pod has, beyond revisionHistoryLimit."""
        kept = {*live, revisions.update["metadata"]["name"]}
        idle = [row for row in revisions.all if row["metadata"]["name"] not in kept]
        spare = len(idle) - owner["spec"].get("revisionHistoryLimit", 10)
        for row in idle[: max(spare, 0)]:
            entry = self.resource.collection.get(row["metadata"]["namespace"], row["metadata"]["name"])
            if entry is not None:
                await self.client.delete(COLLECTION, entry)

    async def _create(self, owner: Object, data: Object, number: int) -> Object:
        hashed = template_hash(data, (owner.get("status") or {}).get("collisionCount"))
        labels = {
            **(owner["spec"]["template"]["metadata"].get("labels") or {}),
            "controller.kubernetes.io/hash": hashed,
        }
        meta = {
            "name": f"{owner['metadata']['name']}-{hashed}",
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(owner)],
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": meta,
            "data": data,
            "revision": number,
        }
        try:
            return await self.client.create(COLLECTION, body)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                status = dict(owner.get("status") or {})
                status["collisionCount"] = status.get("collisionCount", 0) + 1
                await self.client.set_status(self.owner_collection, owner, status)
            raise
