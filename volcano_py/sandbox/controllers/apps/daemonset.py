"""DaemonSets: a pod on every node that fits. Kubernetes: the daemonset controller.

daemonset_plan decides the next step.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import Event
from volcano_py.sandbox.controllers.apps import daemonset_plan
from volcano_py.sandbox.controllers.apps.controller_revision import POD_LABEL, History
from volcano_py.sandbox.controllers.runtime import pod_control
from volcano_py.sandbox.controllers.runtime.adoption import Adoption
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.owners import Owners
from volcano_py.sandbox.controllers.runtime.pods import Pod, Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

COLLECTION = "daemonsets.apps"
_HASH = "controller.kubernetes.io/hash"
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def controller(api: Api, owners: Owners, pods: Pods) -> Controller:
    daemons = DaemonSets(api, owners, pods)
    wakes = {
        COLLECTION: daemons.owner_changed,
        "pods": daemons.adoption.dependent_changed,
        "nodes": daemons.node_changed,
    }
    return Controller("daemon-set-controller", daemons.sync, wakes=wakes, owns=COLLECTION)


class DaemonSets:
    """Executes the decisions."""

    def __init__(self, api: Api, owners: Owners, pods: Pods) -> None:
        self.client = Client(api, "daemon-set-controller")
        self.pods = pods
        self.sets = api.resource("apps", "daemonsets").collection
        self.nodes = api.resource("", "nodes").collection
        self.adoption = Adoption(pods.collection, owners, self.client)
        self.history = History(api, owners, self.client, COLLECTION)

    def owner_changed(self, event: Event) -> Iterable[str]:
        self.history.adoption.note(event)
        return self.adoption.owner_changed(event)

    def node_changed(self, event: Event) -> Iterable[str]:
        return tuple(self.sets.entries)

    async def sync(self, key: Any) -> float | None:
        owner = self.client.get(COLLECTION, key)
        if owner is None:
            return None
        revisions = await self.history.record(owner)
        update = revisions.update["metadata"]["labels"][_HASH]
        nodes = {entry.name: entry.load() for entry in self.nodes.select()}
        mine = await self._by_node(owner)
        now = time.time()
        failure = None
        if not owner["metadata"].get("deletionTimestamp"):
            step = daemonset_plan.plan(owner, nodes, mine, update, now)
            failure = await pod_control.create(self.client, owner, (new_pod(owner, n, update) for n in step.create))
            await pod_control.delete(self.client, owner, [pod.entry for pod in step.delete])
            if any(step):
                mine = await self._by_node(owner)
        status, again = daemonset_plan.status_of(owner, nodes, mine, update, now)
        await self.client.set_status(COLLECTION, owner, status)
        live = {pod.labels.get(POD_LABEL) for rows in mine.values() for pod in rows}
        names = [r["metadata"]["name"] for r in revisions.all if r["metadata"]["labels"].get(_HASH) in live]
        await self.history.truncate(owner, revisions, names)
        if failure is not None:
            raise failure
        return again

    async def _by_node(self, owner: Object) -> dict[str, list[Pod]]:
        """The pods by their current or future node."""
        out: dict[str, list[Pod]] = {}
        for pod in self.pods.of(await self.adoption.claim(owner)):
            out.setdefault(pod.node or _node_of_affinity(pod.entry.load()), []).append(pod)
        return out


def _node_of_affinity(pod: Object) -> str:
    hard = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_HARD) or {}
    for term in hard.get("nodeSelectorTerms") or ():
        for row in term.get("matchFields") or ():
            if row["key"] == "metadata.name" and row.get("values"):
                name: str = row["values"][0]
                return name
    return ""


def new_pod(owner: Object, node: str, revision: str) -> Object:
    """A pod for one node, with node affinity; the scheduler binds it."""
    pod = pod_control.from_template(owner["spec"]["template"], owner)
    pod["metadata"]["labels"][POD_LABEL] = revision
    spec = pod["spec"]
    affinity = dict(spec.get("affinity") or {})
    row = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity["nodeAffinity"] = {
        **(affinity.get("nodeAffinity") or {}),
        _HARD: {"nodeSelectorTerms": [{"matchFields": [row]}]},
    }
    spec["affinity"] = affinity
    spec["tolerations"] = daemonset_plan.tolerations(owner)
    return pod
