"""ResourceClaims of pods: created from templates, and released. Kubernetes: the resource claim controller.

Pods of a PodGroup share the claims of the group (`group_claims`).
A claim that was created for a pod is deleted with the pod, or when the pod has finished. Reservations of deleted or
finished pods are removed from all claims, and with the last reservation the allocation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.resource.group_claims import (
    CLAIMS,
    GROUPS,
    TEMPLATES,
    GroupClaims,
    claim_of,
    entry_of,
    group_of,
    is_served,
)
from volcano_py.sandbox.controllers.resource.template_claims import claim_from_template
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]
Item = tuple[str, str]  # a collection and a key

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_CLAIM_BYTES = (b'"resourceClaims":', b'"extendedResourceClaimStatus":')
_FINISHED = ("Succeeded", "Failed")


def controller(api: Api) -> Controller:
    claims = ResourceClaims(api)
    return Controller(
        "resourceclaim-controller",
        claims.sync,
        wakes={
            **({GROUPS: claims.group_changed} if claims.groups is not None else {}),
            "pods": claims.pod_changed,
            CLAIMS: lambda event: [] if event.type == DELETED else [(CLAIMS, event.entry.key)],
            TEMPLATES: lambda _: claims.without_claim(),
        },
    )


class ResourceClaims:
    def __init__(self, api: Api) -> None:
        self.client = Client(api, "resourceclaim-controller")
        self.pods = api.resource("", "pods").collection
        self.claims = api.resource("resource.k8s.io", "resourceclaims").collection
        self.waiting: set[str] = set()  # pods whose template, or group, is missing
        self.groups = GroupClaims(api, self.client) if is_served(api) else None

    def pod_changed(self, event: Event) -> Iterable[Item]:
        entry = event.entry
        if not any(name in entry.tail for name in _CLAIM_BYTES):
            return
        yield "pods", entry.key
        if event.type == DELETED or entry.fields["status.phase"] in _FINISHED:
            self.waiting.discard(entry.key)
            yield from ((CLAIMS, row.key) for row in self.claims.select(entry.namespace))

    def group_changed(self, event: Event) -> Iterable[Item]:
        entry = event.entry
        if event.type == DELETED:
            yield from ((CLAIMS, row.key) for row in self.claims.select(entry.namespace))
        elif b'"resourceClaims":' in entry.tail:
            yield GROUPS, entry.key
        for key in sorted(self.waiting):
            if key.startswith(f"{entry.namespace}/"):
                yield "pods", key

    def without_claim(self) -> list[Item]:
        groups = self.groups.waiting if self.groups is not None else ()
        return [*((GROUPS, key) for key in sorted(groups)), *(("pods", key) for key in sorted(self.waiting))]

    async def sync(self, item: Any) -> None:
        collection, key = item
        if collection == GROUPS:
            if self.groups is not None:
                await self.groups.sync(key)
            return
        obj = self.client.get(collection, key)
        if obj is None:
            return
        if collection == CLAIMS:
            await self._sync_claim(obj, key)
        elif not obj["metadata"].get("deletionTimestamp") and not _is_finished(obj):
            await self._make_claims(obj, key)

    async def _make_claims(self, pod: Object, key: str) -> None:
        status = pod.get("status") or {}
        rows = {row["name"]: row for row in status.get("resourceClaimStatuses") or ()}
        made = dict(rows)
        self.waiting.discard(key)
        for row in pod["spec"].get("resourceClaims") or ():
            template = row.get("resourceClaimTemplateName")
            if template and row["name"] not in rows:
                group = self.client.get(GROUPS, group_of(pod)) if self.groups is not None and group_of(pod) else None
                if self.groups is not None and group_of(pod) and group is None:
                    self.waiting.add(key)  # the claim may be one of the group
                    continue
                if group is not None and entry_of(group, row):
                    shared = claim_of(group, row["name"])
                    if shared:
                        made[row["name"]] = {"name": row["name"], "resourceClaimName": shared}
                    else:
                        self.waiting.add(key)
                    continue
                claim = await self._claim_from_template(pod, row["name"], template, key)
                if claim is not None:
                    made[row["name"]] = {"name": row["name"], "resourceClaimName": claim}
        if made != rows:
            found = list(made.values())
            await self.client.set_status("pods", pod, {**status, "resourceClaimStatuses": found})

    async def _claim_from_template(self, pod: Object, name: str, template: str, key: str) -> str | None:
        """The name of the claim of a pod from a template; None while the template does not exist."""
        meta = pod["metadata"]
        for entry in self.claims.select(meta["namespace"]):
            found = entry.load()["metadata"]
            if _owner(found) == meta["uid"] and (found.get("annotations") or {}).get(POD_CLAIM_NAME) == name:
                return entry.name
        described = self.client.get(TEMPLATES, f"{meta['namespace']}/{template}")
        if described is None:
            self.waiting.add(key)
            text = f"PodResourceClaim {name}: resourceclaimtemplate.resource.k8s.io {template!r} not found"
            await self.client.event(pod, "Warning", "FailedResourceClaimCreation", text)
            return None
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        reference = {**owner, "controller": True, "blockOwnerDeletion": True}
        wanted = claim_from_template(described, name, pod, POD_CLAIM_NAME, reference)
        made = await self.client.create(CLAIMS, wanted)
        name_made: str = made["metadata"]["name"]
        return name_made

    async def _sync_claim(self, claim: Object, key: str) -> None:
        meta, status = claim["metadata"], claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        left = [row for row in reserved if self._is_used_by(meta["namespace"], row)]
        released = len(left) != len(reserved)
        if released:
            new = {k: v for k, v in status.items() if k not in ("reservedFor", "allocation", "devices")}
            if left:
                new = {**status, "reservedFor": left}
            await self.client.set_status(CLAIMS, claim, new)
            status = new
        # A claim that is being allocated has the finalizer first.
        over = released or meta.get("deletionTimestamp")
        if over and not status.get("allocation") and FINALIZER in (meta.get("finalizers") or ()):

            def release(obj: Object) -> None:
                obj["metadata"]["finalizers"] = [f for f in obj["metadata"].get("finalizers") or () if f != FINALIZER]

            await self.client.update(CLAIMS, key, release, uid=meta["uid"])
        owner = _owner(meta)
        if owner and not left and not meta.get("deletionTimestamp") and self._has_ended(meta["namespace"], owner):
            entry = self.claims.entries.get(key)
            if entry is not None:
                await self.client.delete(CLAIMS, entry)

    def _is_used_by(self, namespace: str, consumer: Object) -> bool:
        if consumer.get("resource") == "podgroups" and self.groups is not None:
            group = self.client.get(GROUPS, f"{namespace}/{consumer['name']}")
            return group is not None and group["metadata"]["uid"] == consumer.get("uid")
        if consumer.get("resource") != "pods":
            return True
        entry = self.pods.get(namespace, consumer["name"])
        return entry is not None and entry.uid == consumer.get("uid") and entry.fields["status.phase"] not in _FINISHED

    def _has_ended(self, namespace: str, uid: str) -> bool:
        """Whether the pod of a claim has finished."""
        found = next((row for row in self.pods.select(namespace) if row.uid == uid), None)
        return found is not None and found.fields["status.phase"] in _FINISHED


def _owner(meta: Object) -> str:
    """The uid of the pod that a claim was created for."""
    return next((row["uid"] for row in meta.get("ownerReferences") or () if row.get("controller")), "")


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in _FINISHED
