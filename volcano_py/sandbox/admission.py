"""Volcano's admission rules, called by the sandbox's API server without a webhook in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.sandbox.apiserver.api import Admission, Api, Attributes
from volcano_py.sandbox.apiserver.errors import StatusError
from volcano_py.sandbox.apiserver.store import DELETED, Event
from volcano_py.webhooks import jobs, podgroups, queues
from volcano_py.webhooks.lookup import Manifest, QueueIndex

JOBS = "jobs.batch.volcano.sh"
PODGROUPS = "podgroups.scheduling.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"


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


def deny(attributes: Attributes, webhook: str, problems: list[str]) -> None:
    """Refuse a request in the words in which the API server passes a webhook's no on."""
    if problems:
        message = "; ".join(problems)
        text = f'admission webhook "{webhook}" denied the request: {message}'
        raise StatusError(400, "", text)


def guarded(rule: Admission, webhook: str) -> Admission:
    """A rule that meets an object of a wrong shape (the schema is checked later) refuses it instead of failing."""

    async def admit(attributes: Attributes) -> None:
        try:
            await rule(attributes)
        except (TypeError, AttributeError, KeyError, ValueError, IndexError) as error:
            deny(attributes, webhook, [f"the object cannot be read: {error}"])

    return admit


def install(api: Api) -> None:
    """Put Volcano's rules for jobs, podgroups and queues into the chain."""
    known = StoredQueues(api)

    async def mutate_job(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            attributes.obj = jobs.mutate_job(attributes.obj)

    async def validate_job(attributes: Attributes) -> None:
        if attributes.request.subresource or attributes.obj is None:
            return
        if attributes.operation == "CREATE":
            problems = jobs.validate_job_create(attributes.obj, known)
        elif attributes.operation == "UPDATE" and attributes.old is not None:
            if attributes.obj["metadata"].get("deletionTimestamp"):
                return
            problems = jobs.validate_job_update(attributes.old, attributes.obj)
        else:
            return
        deny(attributes, "validatejob.volcano.sh", problems)

    async def mutate_podgroup(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            namespace = api.store.collections["namespaces"].get("", attributes.request.namespace)
            attributes.obj = podgroups.mutate_podgroup(attributes.obj, namespace.load() if namespace else None)

    async def validate_podgroup(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            problems = podgroups.validate_podgroup(attributes.obj, known)
            deny(attributes, "validatepodgroup.volcano.sh", problems)

    async def mutate_queue(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            attributes.obj = queues.mutate_queue(attributes.obj)

    async def validate_queue(attributes: Attributes) -> None:
        if attributes.request.subresource:
            return
        if attributes.operation == "DELETE" and attributes.old is not None:
            problems = queues.validate_queue_delete(attributes.old["metadata"]["name"], known)
        elif attributes.obj is not None:
            problems = queues.validate_queue(attributes.obj, known, attributes.old)
        else:
            return
        deny(attributes, "validatequeue.volcano.sh", problems)

    for name, mutate, validate in (
        (JOBS, mutate_job, validate_job),
        (PODGROUPS, mutate_podgroup, validate_podgroup),
        (QUEUES, mutate_queue, validate_queue),
    ):
        api.mutating.setdefault(name, []).append(guarded(mutate, f"mutate{name.split('s.')[0]}.volcano.sh"))
        api.validating.setdefault(name, []).append(guarded(validate, f"validate{name.split('s.')[0]}.volcano.sh"))


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
