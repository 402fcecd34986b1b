"""Volcano's admission rules, called by the sandbox's API server without a webhook in between.

The rules for pods are not in the chain of admission, which costs every write of every pod a copy: they are asked
when a pod is made, and only for pods that name Volcano's scheduler or a group.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from volcano_py.api import kinds
from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Admission, Api, Attributes
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.webhooks import pods
from volcano_py.webhooks.lookup import Manifest, QueueIndex, Queues
from volcano_py.webhooks.paths import PATHS, Asked, Path, Surroundings, judge

QUEUES = "queues.scheduling.volcano.sh"
OPENING_SECONDS = 5.0
"""How long a new Job waits for the first state of its queue."""


class StoredQueues:
    """The queues of the store, kept as an index."""

    def __init__(self, api: Api) -> None:
        self.index = QueueIndex()
        collection = api.store.collection(QUEUES)
        for entry in collection.select():
            self.index.put(entry.load())
        collection.observers.append(self._changed)

    def _changed(self, event: Event) -> None:
        if event.type == DELETED:
            self.index.remove(event.entry.name)
        else:
            self.index.put(event.entry.load())

    def get(self, name: str) -> Manifest | None:
        return self.index.get(name)

    def children(self, name: str) -> Sequence[Manifest]:
        return self.index.children(name)

    def all(self) -> Iterable[Manifest]:
        return self.index.all()


class StoredNamespaces:
    """The namespaces of the store."""

    def __init__(self, api: Api) -> None:
        self._collection = api.store.collections["namespaces"]

    def get(self, name: str) -> Manifest | None:
        entry = self._collection.get("", name)
        return entry.load() if entry else None


def deny(webhook: str, problems: Sequence[str]) -> None:
    """Refuse a request in the words in which the API server passes a webhook's no on."""
    if problems:
        message = "; ".join(problems)
        text = f'admission webhook "{webhook}" denied the request: {message}'
        raise StatusError(400, "", text)


def install(api: Api) -> None:
    """Put Volcano's rules into the chain, and those for pods before it."""
    _install_for_pods(api)
    around = Surroundings(queues=StoredQueues(api), namespaces=StoredNamespaces(api))
    for path in PATHS.values():
        if path.rt is not kinds.POD:
            chain = api.mutating if path.mutates else api.validating
            chain.setdefault(f"{path.rt.plural}.{path.rt.group}", []).append(_admission(path, around))


def _admission(path: Path, around: Surroundings) -> Admission:
    async def admit(attributes: Attributes) -> None:
        if attributes.operation not in path.operations or attributes.request.subresource:
            return
        if path is PATHS["/jobs/validate"] and attributes.operation == "CREATE":
            await _queue_has_state(around.queues, (attributes.obj or {}).get("spec") or {})
        old = attributes.old
        name = old["metadata"]["name"] if old is not None else ""
        asked = Asked(attributes.operation, attributes.obj, old, name, attributes.request.namespace)
        verdict = judge(path, asked, around)
        deny(f"{path.webhook}.volcano.sh", verdict.problems)
        if verdict.obj is not None:
            attributes.obj = verdict.obj

    return admit


async def _queue_has_state(queues: Queues, spec: Manifest) -> None:
    """Wait until the queue controller has set the state of a Job's queue, for `OPENING_SECONDS` at most.

    Whoever applies a folder with a queue and its Jobs creates them within milliseconds, and Volcano rejects a Job whose
    queue has no state yet. A webhook may take that time, too.
    """
    deadline = time.monotonic() + OPENING_SECONDS
    while time.monotonic() < deadline:
        queue = queues.get(spec.get("queue") or DEFAULT_QUEUE)
        if queue is None or (queue.get("status") or {}).get("state"):
            return
        await asyncio.sleep(0.02)


def _install_for_pods(api: Api) -> None:
    """Have new pods of Volcano's judged. There are no resource groups here, so nothing is added to them."""
    resource = api.resource("", "pods")
    before = resource.strategy.admit_create
    path, around = PATHS["/pods/validate"], Surroundings()

    def admit(api: Api, pod: dict[str, Any], request: Request) -> None:
        if before is not None:
            before(api, pod, request)
        try:
            concerned = pods.concerns(pod)
        except (TypeError, AttributeError):
            concerned = True  # its shape is wrong; the rules say so
        if concerned:
            deny(f"{path.webhook}.volcano.sh", judge(path, Asked("CREATE", pod), around).problems)

    # the strategy is shared by all API servers of the process
    resource.strategy = replace(resource.strategy, admit_create=admit)


def first_queues() -> list[dict[str, Any]]:
    """The queues that Volcano's scheduler makes when it starts."""
    return [
        {
            "metadata": {"name": ROOT_QUEUE},
            "spec": {"reclaimable": False, "weight": 1},
            "status": {"state": QUEUE_OPEN},
        },
        {
            "metadata": {"name": DEFAULT_QUEUE},
            "spec": {"reclaimable": True, "weight": 1},
            "status": {"state": QUEUE_OPEN},
        },
    ]
