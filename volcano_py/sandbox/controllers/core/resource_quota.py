"""The status of a ResourceQuota: limits and usage. Kubernetes: the resource quota controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.admission import quota as counting
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED, Collection, Event
from volcano_py.sandbox.controllers.runtime.owners import Object
from volcano_py.sandbox.controllers.runtime.runner import GATHER, Controller


def controller(api: Api) -> Controller:
    """Counts again when a quota changes, when an object is deleted, and when a pod ends."""
    quotas = api.resource("", "resourcequotas")

    def concerns(collection: Collection, event: Event, before: list[Object]) -> Iterable[str]:
        if not quotas.collection.entries:
            return
        if collection is quotas.collection:
            wanted = event.type != DELETED
        elif event.type == DELETED:
            wanted = True
        else:
            wanted = collection.name == "pods" and event.entry.fields["status.phase"] in ("Succeeded", "Failed")
        if wanted and event.entry.namespace:
            yield event.entry.namespace

    async def sync(namespace: Any) -> None:
        for entry in list(quotas.collection.select(namespace)):
            quota = entry.load()
            hard = (quota.get("spec") or {}).get("hard") or {}
            status = {"hard": hard, "used": counting.total(api, quota)} if hard else {}
            if quota.get("status") != status:
                quota["status"] = status
                api.write(quotas, MODIFIED, quota)

    return Controller("resourcequota-controller", sync, everything=concerns, gather=GATHER)
