"""Deployments: one ReplicaSet for each template, and the change from one to the next.

Kubernetes: the deployment controller. deployment_revisions, _rollout and _status decide.
"""

from __future__ import annotations

import time
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api, complete
from volcano_py.sandbox.controllers.apps import deployment_revisions as revisions
from volcano_py.sandbox.controllers.apps import deployment_rollout as rollout
from volcano_py.sandbox.controllers.apps import deployment_status
from volcano_py.sandbox.controllers.runtime.adoption import Adoption
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

COLLECTION = "deployments.apps"
SETS = "replicasets.apps"


def controller(api: Api, owners: Owners, pods: Pods) -> Controller:
    deployments = Deployments(api, owners, pods)
    return Controller(
        "deployment-controller",
        deployments.sync,
        wakes={COLLECTION: deployments.adoption.owner_changed, SETS: deployments.adoption.dependent_changed},
        owns=COLLECTION,
        workers=4,
    )


class Deployments:
    """Executes the decisions."""

    def __init__(self, api: Api, owners: Owners, pods: Pods) -> None:
        self.client = Client(api, "deployment-controller")
        self.sets = api.resource("apps", "replicasets")
        self.owners = owners
        self.pods = pods
        self.adoption = Adoption(self.sets.collection, owners, self.client)

    async def sync(self, key: Any) -> float | None:
        deployment = self.client.get(COLLECTION, key)
        if deployment is None:
            return None
        entries = await self.adoption.claim(deployment)
        new, olds = revisions.split(deployment, [complete(self.sets, entry.load()) for entry in entries])
        if not deployment["metadata"].get("deletionTimestamp"):
            paused = deployment["spec"].get("paused")
            everything = [*olds, *([new] if new is not None else [])]
            if new is not None:
                await self._renew(deployment, new, olds)
            if paused or rollout.is_scaling(deployment, everything):
                await self._scale(deployment, new, olds)
            elif rollout.is_rolling(deployment):
                new = await self._roll(deployment, new, olds)
            else:
                new = await self._recreate(deployment, new, olds)
        now = time.time()
        status = deployment_status.status_of(deployment, new, olds, now)
        await self.client.set_status(COLLECTION, deployment, status)
        if deployment_status.is_complete(deployment, status):
            for row in revisions.outdated(deployment, olds):
                await self._delete(row)
        return deployment_status.seconds_to_deadline(deployment, status, now)

    async def _roll(self, deployment: Object, new: Object | None, olds: list[Object]) -> Object | None:
        if new is None:
            surge = rollout.size(deployment) + rollout.max_surge(deployment) - sum(map(rollout.size, olds))
            return await self._create(deployment, max(min(surge, rollout.size(deployment)), 0), olds)
        wanted = rollout.new_size(deployment, new, olds)
        if wanted != rollout.size(new):
            await self._resize(deployment, new, wanted)
        sizes = rollout.shrink_old(deployment, new, olds)
        for row in olds:
            await self._resize(deployment, row, sizes.get(rollout.name(row), rollout.size(row)))
        return new

    async def _recreate(self, deployment: Object, new: Object | None, olds: list[Object]) -> Object | None:
        for row in olds:
            await self._resize(deployment, row, 0)
        for row in olds:
            entries = self.owners.owned(row["metadata"]["uid"], "pods")
            if any(not pod.finished for pod in self.pods.of(entries)):
                return new  # the end of the last pod starts the next sync
        if new is None:
            return await self._create(deployment, rollout.size(deployment), olds)
        await self._resize(deployment, new, rollout.size(deployment))
        return new

    async def _scale(self, deployment: Object, new: Object | None, olds: list[Object]) -> None:
        sizes = rollout.scale(deployment, new, olds)
        for row in [*olds, *([new] if new is not None else [])]:
            wanted = sizes.get(rollout.name(row), rollout.size(row))
            if wanted or rollout.size(row):
                await self._resize(deployment, row, wanted, remember=True)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def _create(self, deployment: Object, replicas: int, olds: list[Object]) -> Object | None:
        """Create the ReplicaSet of the current template; if the name is in use, choose another one."""
        body = revisions.new_replica_set(deployment, replicas, revisions.next_revision(olds))
        try:
            new = await self.client.create(SETS, body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            collisions = (deployment.get("status") or {}).get("collisionCount", 0) + 1
            status = {**(deployment.get("status") or {}), "collisionCount": collisions}
            await self.client.set_status(COLLECTION, deployment, status)
            raise
        name = rollout.name(new)
        if replicas:
            await self._report_size(deployment, name, 0, replicas)
        rows = (deployment.get("status") or {}).get("conditions") or []
        if (
            deployment["spec"].get("progressDeadlineSeconds", deployment_status.NO_DEADLINE)
            != deployment_status.NO_DEADLINE
        ):
            text = f'Created new replica set "{name}"'
            rows = deployment_status.put(rows, "Progressing", "True", "NewReplicaSetCreated", text, time.time())
            deployment.setdefault("status", {})["conditions"] = rows
        await self._number(deployment, revisions.revision(new))
        return new

    async def _renew(self, deployment: Object, new: Object, olds: list[Object]) -> None:
        """Set number and annotations of the newest ReplicaSet, and the number of the Deployment."""
        annotations = revisions.newest_annotations(deployment, new, olds)
        ready = deployment["spec"].get("minReadySeconds", 0)
        if annotations != (new["metadata"].get("annotations") or {}) or ready != new["spec"].get("minReadySeconds", 0):
            new["metadata"]["annotations"] = annotations
            new["spec"]["minReadySeconds"] = ready

            def change(obj: Object) -> None:
                obj["metadata"]["annotations"] = annotations
                obj["spec"]["minReadySeconds"] = ready

            await self.client.update(SETS, _key(new), change, uid=new["metadata"]["uid"])
        await self._number(deployment, revisions.revision(new))

    async def _number(self, deployment: Object, number: int) -> None:
        if revisions.revision(deployment) != number:
            deployment["metadata"].setdefault("annotations", {})[revisions.REVISION] = str(number)

            def change(obj: Object) -> None:
                obj["metadata"].setdefault("annotations", {})[revisions.REVISION] = str(number)

            await self.client.update(COLLECTION, _key(deployment), change, uid=deployment["metadata"]["uid"])

    async def _resize(self, deployment: Object, row: Object, replicas: int, *, remember: bool = False) -> None:
        before = rollout.size(row)
        annotations = revisions.size_annotations(deployment)
        known = (row["metadata"].get("annotations") or {}).items() >= annotations.items()
        if before == replicas and (known or not remember):
            return

        def change(obj: Object) -> None:
            obj["spec"]["replicas"] = replicas
            obj["metadata"].setdefault("annotations", {}).update(annotations)

        await self.client.update(SETS, _key(row), change, uid=row["metadata"]["uid"])
        change(row)
        if before != replicas:
            await self._report_size(deployment, rollout.name(row), before, replicas)

    async def _report_size(self, deployment: Object, name: str, before: int, after: int) -> None:
        word = "up" if after > before else "down"
        text = f"Scaled {word} replica set {name} from {before} to {after}"
        await self.client.event(deployment, "Normal", "ScalingReplicaSet", text)

    async def _delete(self, row: Object) -> None:
        entry = self.sets.collection.entries.get(_key(row))
        if entry is not None and entry.uid == row["metadata"]["uid"]:
            await self.client.delete(SETS, entry)


def _key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
