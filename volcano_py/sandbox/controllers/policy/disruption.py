"""PodDisruptionBudgets: how many pods may be evicted now. Kubernetes: the disruption controller."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata, selectors
from volcano_py.sandbox.apiserver.apimachinery.selectors import Match
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.schema.codec import parse_time
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.intstr import scaled
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pod, Pods
from volcano_py.sandbox.controllers.runtime.runner import GATHER, Controller

Object = dict[str, Any]

COLLECTION = "poddisruptionbudgets.policy"
EVICTED_SECONDS = 120.0  # after this time an allowed eviction that did not happen is dropped
_SCALES = ("replicasets.apps", "statefulsets.apps", "replicationcontrollers", "deployments.apps")


class NoScale(Exception):
    """The number of replicas of a pod's controller is unknown."""


def controller(api: Api, owners: Owners, pods: Pods) -> Controller:
    budgets = Disruption(api, owners, pods)
    wakes = {COLLECTION: budgets.budget_changed, "pods": budgets.pod_changed}
    wakes |= dict.fromkeys(_SCALES, budgets.scale_changed)
    return Controller("disruption-controller", budgets.sync, wakes=wakes, gather=GATHER)


class Disruption:
    def __init__(self, api: Api, owners: Owners, pods: Pods) -> None:
        self.client = Client(api, "disruption-controller")
        self.owners = owners
        self.pods = pods
        self.selectors: dict[str, dict[str, Match | None]] = {}  # by namespace and key; None selects all pods

    def budget_changed(self, event: Event) -> Iterable[str]:
        entry = event.entry
        known = self.selectors.setdefault(entry.namespace, {})
        known.pop(entry.key, None)
        selector = entry.load()["spec"].get("selector")
        if event.type != DELETED and selector is not None:
            known[entry.key] = selectors.from_label_selector(selector)
        if not known:
            del self.selectors[entry.namespace]
        yield entry.key

    def pod_changed(self, event: Event) -> Iterable[str]:
        for key, match in self.selectors.get(event.entry.namespace, {}).items():
            rows = (event.entry, event.prev) if event.prev is not None else (event.entry,)
            if match is None or any(match(row.labels) for row in rows):
                yield key

    def scale_changed(self, event: Event) -> Iterable[str]:
        """After a change of replicas: sync all budgets of the namespace."""
        return tuple(self.selectors.get(event.entry.namespace, ()))

    async def sync(self, key: Any) -> float | None:
        budget = self.client.get(COLLECTION, key)
        if budget is None:
            return None
        now = time.time()
        pods = self._pods(budget, key)
        try:
            expected, desired = needs(budget, pods, lambda: self._expected(pods))
        except NoScale as error:
            await self.client.set_status(COLLECTION, budget, failed_status(budget, str(error)))
            return None
        status, again = status_of(budget, pods, expected, desired, now)
        await self.client.set_status(COLLECTION, budget, status)
        return again

    def _pods(self, budget: Object, key: str) -> list[Pod]:
        known = self.selectors.get(budget["metadata"]["namespace"], {})
        if key not in known:
            return []
        match = known[key]
        rows = self.pods.collection.select(budget["metadata"]["namespace"])
        found = self.pods.of([entry for entry in rows if match is None or match(entry.labels)])
        return [pod for pod in found if not pod.finished]

    def _expected(self, pods: list[Pod]) -> int:
        """The sum of the replicas of these pods' controllers."""
        scales: dict[str, int] = {}
        for pod in pods:
            node, row = ("pods", pod.entry.key), None
            while (above := self.owners.controller(node)) is not None:
                row = above
                node = self.owners.alive.get(row["uid"], ("", ""))
            entry = self.owners.entry(node) if row is not None else None
            if row is None:
                raise NoScale(f'found no controller ref for pod "{pod.name}"')
            if entry is None or node[0] not in _SCALES:
                kind = row["kind"].lower()
                raise NoScale(f"{kind}s.{row['apiVersion'].partition('/')[0]} does not implement the scale subresource")
            scales[entry.uid] = entry.load()["spec"].get("replicas", 1)
        return sum(scales.values())


def needs(budget: Object, pods: list[Pod], expected: Any) -> tuple[int, int]:
    """(expected pods, pods that must be healthy); `expected` counts the replicas of their controllers."""
    spec = budget["spec"]
    if spec.get("maxUnavailable") is not None:
        total = expected() if pods else 0
        return total, max(total - scaled(spec["maxUnavailable"], total, up=True), 0)
    minimum = spec.get("minAvailable")
    if minimum is None:
        return 0, 0
    if isinstance(minimum, int):
        return len(pods), minimum
    total = expected() if pods else 0
    return total, scaled(minimum, total, up=True)


def status_of(budget: Object, pods: list[Pod], expected: int, desired: int, now: float) -> tuple[Object, float | None]:
    """The status, and the seconds until an eviction that did not happen is dropped."""
    old: Object = budget.get("status") or {}
    there = {pod.name: pod for pod in pods}
    leaving, waits = {}, []
    for name, stamp in (old.get("disruptedPods") or {}).items():
        left = parse_time(stamp).timestamp() + EVICTED_SECONDS - now
        if name in there and not there[name].deleting and left > 0:
            leaving[name] = stamp
            waits.append(left)
    healthy = sum(pod.ready and not pod.deleting and pod.name not in leaving for pod in pods)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status: Object = {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": _condition(budget, allowed > 0, "SufficientPods" if allowed else "InsufficientPods", ""),
    }
    if leaving:
        status["disruptedPods"] = leaving
    return status, min(waits, default=None)


def failed_status(budget: Object, message: str) -> Object:
    """Set disruptionsAllowed to 0 while the expected number of pods is unknown."""
    status = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
    status["observedGeneration"] = budget["metadata"].get("generation", 0)
    status["conditions"] = _condition(budget, False, "SyncFailed", message)
    return status


def _condition(budget: Object, value: bool, reason: str, message: str) -> list[Object]:
    old = (budget.get("status") or {}).get("conditions") or []
    text = "True" if value else "False"
    known = next((row for row in old if row["type"] == "DisruptionAllowed"), None)
    stamp = known["lastTransitionTime"] if known is not None and known["status"] == text else metadata.now()
    row = {
        "type": "DisruptionAllowed",
        "status": text,
        "observedGeneration": budget["metadata"].get("generation", 0),
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }
    return [*(other for other in old if other is not known), row]
