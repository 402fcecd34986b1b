"""Volcano's admission rules, called by the sandbox's API server without a webhook in between.

The rules for pods are not in the chain of admission, which costs every write of every pod a copy: they are asked
when a pod is made, and only for pods that name Volcano's scheduler or a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from volcano_py.api.scheduling import DEFAULT_QUEUE, QUEUE_OPEN, ROOT_QUEUE
from volcano_py.sandbox.apiserver.api import Admission, Api, Attributes
from volcano_py.sandbox.apiserver.errors import StatusError
from volcano_py.sandbox.apiserver.request import Request
from volcano_py.sandbox.apiserver.store import DELETED, Event
from volcano_py.webhooks import jobs, podgroups, pods, queues
from volcano_py.webhooks.cronjobs import validate_cronjob
from volcano_py.webhooks.hypernodes import validate_hypernode
from volcano_py.webhooks.jobflows import validate_jobflow
from volcano_py.webhooks.lookup import Manifest, QueueIndex
from volcano_py.webhooks.operations import OPERATIONS

JOBS = "jobs.batch.volcano.sh"
PODGROUPS = "podgroups.scheduling.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"

_MISSHAPEN = (TypeError, AttributeError, KeyError, ValueError, IndexError)
"""What rules raise for an object of a wrong shape; schemas are checked later."""

Rule = Callable[[Manifest], list[str]]

_ALONE: tuple[tuple[str, str, str, Rule], ...] = (
    ("hypernodes.topology.volcano.sh", "/hypernodes/validate", "validatehypernode.volcano.sh", validate_hypernode),
    ("jobflows.flow.volcano.sh", "/jobflows/validate", "validatejobflow.volcano.sh", validate_jobflow),
    ("cronjobs.batch.volcano.sh", "/cronjobs/validate", "validatecronjob.volcano.sh", validate_cronjob),
)
"""Rules that look at nothing but the new object."""


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


def deny(webhook: str, problems: list[str]) -> None:
    """Refuse a request in the words in which the API server passes a webhook's no on."""
    if problems:
        message = "; ".join(problems)
        text = f'admission webhook "{webhook}" denied the request: {message}'
        raise StatusError(400, "", text)


def guarded(rule: Admission, webhook: str) -> Admission:
    """A rule that refuses an object of a wrong shape instead of failing."""

    async def admit(attributes: Attributes) -> None:
        try:
            await rule(attributes)
        except _MISSHAPEN as error:
            deny(webhook, [f"the object cannot be read: {error}"])

    return admit


def install(api: Api) -> None:
    """Put Volcano's rules into the chain, and those for pods before it."""
    _install_for_pods(api)
    for name, path, webhook, rule in _ALONE:
        api.validating.setdefault(name, []).append(guarded(_alone(rule, path, webhook), webhook))
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
        deny("validatejob.volcano.sh", problems)

    async def mutate_podgroup(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            namespace = api.store.collections["namespaces"].get("", attributes.request.namespace)
            attributes.obj = podgroups.mutate_podgroup(attributes.obj, namespace.load() if namespace else None)

    async def validate_podgroup(attributes: Attributes) -> None:
        if attributes.operation == "CREATE" and attributes.obj is not None:
            problems = podgroups.validate_podgroup(attributes.obj, known)
            deny("validatepodgroup.volcano.sh", problems)

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
        deny("validatequeue.volcano.sh", problems)

    for name, mutate, validate in (
        (JOBS, mutate_job, validate_job),
        (PODGROUPS, mutate_podgroup, validate_podgroup),
        (QUEUES, mutate_queue, validate_queue),
    ):
        api.mutating.setdefault(name, []).append(guarded(mutate, f"mutate{name.split('s.')[0]}.volcano.sh"))
        api.validating.setdefault(name, []).append(guarded(validate, f"validate{name.split('s.')[0]}.volcano.sh"))


def _alone(rule: Rule, path: str, webhook: str) -> Admission:
    async def validate(attributes: Attributes) -> None:
        if attributes.operation not in OPERATIONS[path] or attributes.request.subresource:
            return
        if attributes.obj is not None and not attributes.obj["metadata"].get("deletionTimestamp"):
            deny(webhook, rule(attributes.obj))

    return validate


def _install_for_pods(api: Api) -> None:
    """Have new pods of Volcano's judged. There are no resource groups here, so nothing is added to them."""
    resource = api.resource("", "pods")
    before = resource.strategy.admit_create

    def admit(api: Api, pod: dict[str, Any], request: Request) -> None:
        if before is not None:
            before(api, pod, request)
        try:
            problems = pods.validate_pod(pod) if pods.concerns(pod) else []
        except _MISSHAPEN as error:
            problems = [f"the object cannot be read: {error}"]
        deny("validatepod.volcano.sh", problems)

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
