"""ReplicaSets: spec.replicas pods, and a status with their counts. Kubernetes: the replicaset controller."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.controllers.runtime import pod_control
from volcano_py.sandbox.controllers.runtime.adoption import Adoption
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pod, Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

COLLECTION = "replicasets.apps"


def controller(api: Api, owners: Owners, pods: Pods) -> Controller:
    client = Client(api, "replicaset-controller")
    adoption = Adoption(pods.collection, owners, client)

    async def sync(key: Any) -> float | None:
        owner = client.get(COLLECTION, key)
        if owner is None:
            return None
        mine = pods.of(await adoption.claim(owner))
        failure = None
        if not owner["metadata"].get("deletionTimestamp"):
            active = [pod for pod in mine if pod.active]
            missing = owner["spec"]["replicas"] - len(active)
            if missing > 0:
                made = (pod_control.from_template(owner["spec"]["template"], owner) for _ in range(missing))
                failure = await pod_control.create(client, owner, made)
            elif missing < 0:
                chosen = sorted(active, key=deletion_order(active))[:-missing]
                await pod_control.delete(client, owner, [pod.entry for pod in chosen])
            if missing:
                mine = pods.of(await adoption.claim(owner))
        status, again = status_of(owner, mine, failure.message if failure else "", time.time())
        await client.set_status(COLLECTION, owner, status)
        if failure is not None:
            raise failure  # retried with back-off
        return again

    return Controller(
        "replicaset-controller",
        sync,
        wakes={COLLECTION: adoption.owner_changed, "pods": adoption.dependent_changed},
        owns=COLLECTION,
        workers=4,
    )


def deletion_order(pods: list[Pod]) -> Any:
    """A sort key: the order in which pods are deleted."""
    crowd = Counter(pod.node for pod in pods)
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}

    def key(pod: Pod) -> tuple[Any, ...]:
        return (
            bool(pod.node),
            phases.get(pod.phase, 0),
            pod.ready,
            pod.deletion_cost,
            -crowd[pod.node],
            -pod.ready_since,
            -pod.restarts,
            _newest_first(pod.created),
            pod.name,
        )

    return key


def _newest_first(stamp: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in stamp)


def status_of(owner: Object, pods: list[Pod], failure: str, now: float) -> tuple[Object, float | None]:
    """The status according to the pods, and the seconds until it changes without an event."""
    spec, old = owner["spec"], owner.get("status") or {}
    active = [pod for pod in pods if pod.active]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    waits = [pod.available_in(spec.get("minReadySeconds", 0), now) for pod in active]
    status: Object = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(pod.ready for pod in active),
        "availableReplicas": sum(wait == 0 for wait in waits),
        "terminatingReplicas": sum(pod.deleting and not pod.finished for pod in pods),
        "observedGeneration": owner["metadata"].get("generation", 0),
        "conditions": _conditions(old.get("conditions") or [], failure),
    }
    return trimmed(status), min((wait for wait in waits if wait), default=None)


def _conditions(old: list[Object], failure: str) -> list[Object]:
    """The condition ReplicaFailure while pods cannot be created, with the time of the first failure."""
    rows = [row for row in old if row["type"] != "ReplicaFailure"]
    if failure:
        known = next((row for row in old if row["type"] == "ReplicaFailure"), None)
        stamp = known["lastTransitionTime"] if known else metadata.now()
        rows.append(
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": stamp,
                "reason": "FailedCreate",
                "message": failure,
            }
        )
    return rows


def trimmed(status: Object) -> Object:
    """The status without zeroes and empty lists, which are omitted."""
    always = ("replicas", "terminatingReplicas")
    return {key: value for key, value in status.items() if value or key in always}
