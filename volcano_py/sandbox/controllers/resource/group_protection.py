"""Takes the finalizer off a deleted PodGroup of scheduling.k8s.io when no pod names it any more. Kubernetes:
pkg/controller/scheduling/podgroupprotection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

GROUPS = "podgroups.scheduling.k8s.io"
FINALIZER = "scheduling.k8s.io/podgroup-protection"
_DELETING = b'"deletionTimestamp":'
_NAMES_GROUP = b'"schedulingGroup":'


def is_served(api: Api) -> bool:
    """Whether the API server has groups with the finalizer."""
    return api.registry.find("scheduling.k8s.io", "podgroups") is not None


def controller(api: Api) -> Controller:
    client = Client(api, "podgroup-protection-controller")
    pods = api.resource("", "pods").collection
    waiting: set[str] = set()  # deleted groups that pods name

    def group_changed(event: Event) -> Iterable[str]:
        if event.type == DELETED:
            waiting.discard(event.entry.key)
        elif _DELETING in event.entry.tail:
            yield event.entry.key

    def pod_changed(event: Event) -> Iterable[str]:
        over = event.type == DELETED or event.entry.fields["status.phase"] in ("Succeeded", "Failed")
        if waiting and over and _NAMES_GROUP in event.entry.tail:
            yield from (key for key in [_group_of(event.entry.load())] if key in waiting)

    def in_use(key: str) -> bool:
        rows = (entry for entry in pods.select(key.partition("/")[0]) if _NAMES_GROUP in entry.tail)
        alive = (entry for entry in rows if entry.fields["status.phase"] not in ("Succeeded", "Failed"))
        return any(_group_of(entry.load()) == key for entry in alive)

    async def sync(key: Any) -> None:
        group = client.get(GROUPS, key)
        if group is None or not group["metadata"].get("deletionTimestamp"):
            return
        if FINALIZER not in (group["metadata"].get("finalizers") or ()):
            return
        if in_use(key):
            waiting.add(key)
            return

        def change(copy: Object) -> None:
            copy["metadata"]["finalizers"] = [row for row in copy["metadata"]["finalizers"] if row != FINALIZER]

        await client.update(GROUPS, key, change, uid=group["metadata"]["uid"])

    return Controller("podgroup-protection-controller", sync, wakes={GROUPS: group_changed, "pods": pod_changed})


def _group_of(pod: Object) -> str:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return f"{pod['metadata']['namespace']}/{name}"
