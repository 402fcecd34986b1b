"""The controller that says in a ResourceQuota's status what its namespace may use and does use."""

from __future__ import annotations

import asyncio

from volcano_py.sandbox.apiserver import quota as counting
from volcano_py.sandbox.apiserver.api import Api
from volcano_py.sandbox.apiserver.store import ADDED, DELETED, MODIFIED, Collection, Event

DELAY = 0.05  # seconds that changes are gathered


class QuotaController:
    """Counts again when a quota changes, when something is deleted, and when a pod ends."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.due: set[str] = set()
        self.timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self.api.store.listeners.append(self.observe)
        quotas = self.api.store.collection("resourcequotas")
        for entry in quotas.select():
            self._queue(entry.namespace)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.observe in self.api.store.listeners:
            self.api.store.listeners.remove(self.observe)

    def observe(self, collection: Collection, event: Event) -> None:
        """Queue the namespaces that have to be counted."""
        quotas = self.api.store.collection("resourcequotas")
        if not quotas.entries:
            return
        if collection is quotas:
            wanted = event.type == ADDED or event.type == MODIFIED
        elif event.type == DELETED:
            wanted = True
        else:
            phase = event.entry.fields.get("status.phase")
            wanted = collection.name == "pods" and phase in ("Succeeded", "Failed")
        if wanted:
            self._queue(event.entry.namespace)

    def _queue(self, namespace: str) -> None:
        self.due.add(namespace)
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(DELAY, self._count)

    def _count(self) -> None:
        self.timer = None
        due, self.due = self.due, set()
        resource = self.api.resource("", "resourcequotas")
        for namespace in due:
            for entry in list(resource.collection.select(namespace)):
                quota = entry.load()
                hard = (quota.get("spec") or {}).get("hard") or {}
                status = {"hard": hard, "used": counting.total(self.api, quota)} if hard else {}
                if quota.get("status") != status:
                    quota["status"] = status
                    self.api.write(resource, MODIFIED, quota)
