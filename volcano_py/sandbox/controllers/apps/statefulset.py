"""StatefulSets: pods with their own names and claims. Kubernetes: the statefulset controller.

statefulset_plan decides the next step.
"""

from __future__ import annotations

import re
import time
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import Event
from volcano_py.sandbox.controllers.apps import statefulset_plan
from volcano_py.sandbox.controllers.apps.controller_revision import POD_LABEL, History, Revisions
from volcano_py.sandbox.controllers.runtime import pod_control
from volcano_py.sandbox.controllers.runtime.adoption import Adoption, controller_reference
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pod, Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

COLLECTION = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def controller(api: Api, owners: Owners, pods: Pods) -> Controller:
    sets = StatefulSets(api, owners, pods)

    def owner_changed(event: Event) -> Any:
        sets.history.adoption.note(event)
        return sets.adoption.owner_changed(event)

    return Controller(
        "statefulset-controller",
        sets.sync,
        wakes={COLLECTION: owner_changed, "pods": sets.adoption.dependent_changed},
        owns=COLLECTION,
        workers=4,
    )


class StatefulSets:
    """Executes the decisions."""

    def __init__(self, api: Api, owners: Owners, pods: Pods) -> None:
        self.client = Client(api, "statefulset-controller")
        self.pods = pods
        self.adoption = Adoption(pods.collection, owners, self.client)
        self.history = History(api, owners, self.client, COLLECTION)
        self.claims = api.resource("", CLAIMS).collection

    async def sync(self, key: Any) -> float | None:
        owner = self.client.get(COLLECTION, key)
        if owner is None:
            return None
        revisions = await self.history.record(owner)
        update = revisions.update["metadata"]["name"]
        current = (owner.get("status") or {}).get("currentRevision") or update
        mine = await self._pods_by_ordinal(owner)
        now = time.time()
        failure = None
        if not owner["metadata"].get("deletionTimestamp"):
            step = statefulset_plan.plan(owner, mine, update, now)
            failure = await self._carry_out(owner, step, revisions, current)
            if any(step):
                mine = await self._pods_by_ordinal(owner)
        status, again = statefulset_plan.status_of(owner, list(mine.values()), current, update, now)
        await self.client.set_status(COLLECTION, owner, status)
        live = {pod.labels.get(POD_LABEL, "") for pod in mine.values()} | {status["currentRevision"]}
        await self.history.truncate(owner, revisions, live)
        if failure is not None:
            raise failure
        return again

    async def _pods_by_ordinal(self, owner: Object) -> dict[int, Pod]:
        """The pods by ordinal; other pods that the selector matches are ignored."""
        out = {}
        for pod in self.pods.of(await self.adoption.claim(owner)):
            match = re.fullmatch(re.escape(owner["metadata"]["name"]) + r"-(\d+)", pod.name)
            if match:
                out[int(match.group(1))] = pod
        return out

    async def _carry_out(
        self, owner: Object, step: statefulset_plan.Plan, revisions: Revisions, current: str
    ) -> StatusError | None:
        update = revisions.update["metadata"]["name"]
        for ordinal in step.create:
            name = statefulset_plan.revision_for(owner, ordinal, current, update)
            try:
                await self._claim_volumes(owner, ordinal)
            except StatusError as error:
                await self.client.event(owner, "Warning", "FailedCreate", error.message)
                return error
            made = new_pod(owner, revisions.template(name), ordinal, name)
            failure = await pod_control.create(self.client, owner, [made])
            if failure is not None:
                return failure
        scaled = (owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled")
        for pod in step.condemn:
            if scaled == "Delete":
                await self._delete_claims_of(owner, pod)
        await pod_control.delete(self.client, owner, [pod.entry for pod in (*step.condemn, *step.renew)])
        return None

    async def _claim_volumes(self, owner: Object, ordinal: int) -> None:
        """Create the claims of a pod's template that do not exist yet."""
        policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            claim = new_claim(owner, template, ordinal)
            if policy.get("whenDeleted") == "Delete":
                claim["metadata"]["ownerReferences"] = [controller_reference(owner)]
            key = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
            if key not in self.claims.entries:
                await self.client.create(CLAIMS, claim)

    async def _delete_claims_of(self, owner: Object, pod: Pod) -> None:
        """Delete the claims of a pod that is deleted by scaling down."""
        ordinal = int(pod.name.rpartition("-")[2])
        holder = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.entry.uid}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            meta = new_claim(owner, template, ordinal)["metadata"]
            if f"{meta['namespace']}/{meta['name']}" in self.claims.entries:

                def change(obj: Object) -> None:
                    obj["metadata"]["ownerReferences"] = [holder]

                await self.client.update(CLAIMS, f"{meta['namespace']}/{meta['name']}", change)


def new_claim(owner: Object, template: Object, ordinal: int) -> Object:
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
    meta: Object = {
        "name": f"{given['name']}-{owner['metadata']['name']}-{ordinal}",
        "namespace": owner["metadata"]["namespace"],
        "labels": labels,
    }
    if given.get("annotations"):
        meta["annotations"] = given["annotations"]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}


def new_pod(owner: Object, template: Object, ordinal: int, revision: str) -> Object:
    """The pod of an ordinal, with its identity and volumes."""
    pod = pod_control.from_template(template, owner)
    meta, spec = pod["metadata"], pod["spec"]
    name = f"{owner['metadata']['name']}-{ordinal}"
    del meta["generateName"]
    meta["name"] = name
    meta["labels"] |= {NAME_LABEL: name, INDEX_LABEL: str(ordinal), POD_LABEL: revision}
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claims = [
        {
            "name": row["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": f"{row['metadata']['name']}-{name}"},
        }
        for row in owner["spec"].get("volumeClaimTemplates") or ()
    ]
    if claims:
        own = {row["name"] for row in claims}
        spec["volumes"] = [*claims, *(row for row in spec.get("volumes") or () if row["name"] not in own)]
    return pod
