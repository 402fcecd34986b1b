"""Runs controllers: shared informers, and a work queue with workers per controller. Volcano: framework.Controller.

A controller requests its kinds on construction (`Cluster.mirror`), adds keys to its queue, and receives each key in
`process`. An exception of `process` is logged and retried with back-off. If an informer or a worker ends anyway, all
controllers end, and the process is restarted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

from volcano_py.api import kinds, names
from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.kinds import ResourceType
from volcano_py.api.meta import ApiObject
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers import metrics, progress
from volcano_py.controllers.executor import Executor, NotLeading
from volcano_py.controllers.failures import FailureLog
from volcano_py.controllers.kopf_watch import KINDS as KOPF_KINDS
from volcano_py.controllers.kopf_watch import KopfWatch
from volcano_py.controllers.mirror import Feed, Mirror
from volcano_py.kube import definitions
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError
from volcano_py.kube.health import Health, Progress
from volcano_py.kube.informer import Informer
from volcano_py.kube.supervise import run_all
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)


def pods_of_task(owner_uid: str, task: str, phase: str) -> str:
    """The index value of the pods of one task of a Job, in one phase."""
    return f"{owner_uid}/{task}/{phase}"


def _pods_of_owner(pod: Pod) -> Iterable[str]:
    owner = pod.metadata.controller
    if owner is None:
        return ()
    task = (pod.metadata.annotations or {}).get(names.TASK_SPEC)
    return (owner.uid,) if task is None else (owner.uid, pods_of_task(owner.uid, task, pod.status.phase))


def _podgroups_of_queue(podgroup: PodGroup) -> Iterable[str]:
    return (podgroup.spec.queue,)


def jobs_of_flow(namespace: str, name: str) -> str:
    """The index value of the Jobs of a JobFlow."""
    return f"{names.CREATED_BY_JOB_FLOW}={namespace}.{name}"


def jobs_of_template(namespace: str, name: str) -> str:
    """The index value of the Jobs of a JobTemplate."""
    return f"{names.CREATED_BY_JOB_TEMPLATE}={namespace}.{name}"


def _jobs_of_owner_and_labels(job: Job) -> Iterable[str]:
    owner, labels = job.metadata.controller, job.metadata.labels or {}
    if owner is not None:
        yield owner.uid
    for key in (names.CREATED_BY_JOB_FLOW, names.CREATED_BY_JOB_TEMPLATE):
        if key in labels:
            yield f"{key}={labels[key]}"


def _queues_of_parent(queue: Queue) -> Iterable[str]:
    return (queue.spec.parent,) if queue.spec.parent else ()


INDEXES: dict[ResourceType, Callable[[Any], Iterable[str]]] = {
    kinds.POD: _pods_of_owner,
    kinds.JOB: _jobs_of_owner_and_labels,
    kinds.PODGROUP: _podgroups_of_queue,
    kinds.QUEUE: _queues_of_parent,
}
"""Index functions of `Mirror.by_index`: pods and Jobs by the UID of their controller, pods also by `pods_of_task`, Jobs
also by `jobs_of_flow` and `jobs_of_template`, PodGroups by queue, queues by parent.
"""


LONGEST_SLEEP = 60.0
"""Seconds after which a controller that waits for a time of day reads the clock again: it may have been corrected."""
OPTIONAL = (kinds.NAMESPACE,)
"""Kinds that controllers do without if they may not list them, as with the rights of Volcano's chart."""


class Controller(Protocol):
    """The interface between the runner and a controller."""

    name: str
    workers: int
    queue: WorkQueue[str]

    async def process(self, key: str) -> None:
        """Reconcile one object; an exception leads to a retry."""


class Cluster:
    """The informers and mirrors that controllers share: one per kind, created on demand."""

    def __init__(self, client: Client, executor: Executor, kopf: KopfWatch | None = None) -> None:
        """`kopf` watches the rarely changing kinds; without it informers do."""
        self.client = client
        self.executor = executor
        self.kopf = kopf
        self._informers: list[Informer[Any]] = []
        self._mirrors: dict[ResourceType, Mirror[Any]] = {}
        self._single: dict[tuple[ResourceType, str, str], Mirror[Any]] = {}

    def mirror(self, rt: ResourceType) -> Mirror[Any]:
        """The mirror of one kind. Call it before `run`."""
        if rt not in self._mirrors:
            struct: type[ApiObject] = kinds.STRUCTS[rt]
            feed: Feed[Any]
            if self.kopf is not None and rt in KOPF_KINDS:
                feed = self.kopf.feed(rt)
            else:
                feed = self._informer(Informer(self.client, rt, type=struct, optional=rt in OPTIONAL))
            mirror: Mirror[Any] = Mirror(feed, struct, INDEXES.get(rt))
            self._mirrors[rt] = mirror
            self.executor.attach(rt, mirror)
        return self._mirrors[rt]

    def mirror_one(self, rt: ResourceType, namespace: str, name: str) -> Mirror[Any]:
        """The mirror of one object: no other object of its kind is listed. Call it before `run`."""
        key = (rt, namespace, name)
        if key not in self._single:
            struct: type[ApiObject] = kinds.STRUCTS[rt]
            only = f"metadata.name={name}"
            informer: Informer[Any] = Informer(self.client, rt, type=struct, namespace=namespace, field_selector=only)
            self._single[key] = Mirror(self._informer(informer), struct)
        return self._single[key]

    def _informer(self, informer: Informer[Any]) -> Informer[Any]:
        self._informers.append(informer)
        return informer

    @property
    def informers(self) -> list[Informer[Any]]:
        return list(self._informers)

    @property
    def kinds(self) -> list[ResourceType]:
        return list(self._mirrors)

    @property
    def feeds(self) -> list[Feed[Any]]:
        """All feeds that must be listed before work begins."""
        return [mirror.informer for mirror in (*self._mirrors.values(), *self._single.values())]

    def synced(self) -> bool:
        """Whether all feeds have been listed."""
        return all(feed.synced.is_set() for feed in self.feeds)


async def run_controllers(cluster: Cluster, controllers: Sequence[Controller], health: Health | None = None) -> None:
    """Watch, and start each controller when its kinds are listed; run until cancelled or a task ends.

    Raises the exception that ended the task: NotLeading when leadership is lost, TaskEnded if it returned. `health`
    gets a check for each informer and controller.
    """
    health = health or Health()
    parts: dict[str, Coroutine[Any, Any, None]] = {}
    for number, informer in enumerate(cluster.informers):
        name = f"informer {informer.rt.plural}"
        name = f"{name} {number}" if name in parts else name  # a single ConfigMap may be watched beside another
        parts[name] = health.watched(name, informer.run(), informer.problem)
    if cluster.kopf is not None and cluster.kopf.feeds:
        parts["kopf"] = health.watched("kopf", cluster.kopf.run())
    parts["definitions"] = health.watched("definitions", definitions.follow(cluster.client, cluster.kinds))
    parts |= {controller.name: _start(controller, health) for controller in controllers}
    await run_all(parts)


def mirrors_of(controller: Controller) -> list[Mirror[Any]]:
    """The mirrors that a controller has as attributes, or in a dict attribute."""
    kept = [value for value in vars(controller).values() if isinstance(value, Mirror | dict)]
    values = [one for value in kept for one in (value.values() if isinstance(value, dict) else (value,))]
    return [one for one in values if isinstance(one, Mirror)]


async def _start(controller: Controller, health: Health) -> None:
    """Wait for the caches of one controller, and run its workers: a missing CRD blocks no other controller."""
    for mirror in mirrors_of(controller):
        await mirror.informer.synced.wait()
    log.info("starting %s: caches are synced", controller.name)
    failures = FailureLog(log)
    busy = progress.of_workers(controller.workers)
    health.add(f"workers of {controller.name}", progress.check(busy))
    await run_all({f"{controller.name} {number}": _work(controller, failures, one) for number, one in enumerate(busy)})


async def _work(controller: Controller, failures: FailureLog, busy: Progress) -> None:
    queue = controller.queue
    progress.use(busy)
    while True:
        busy.idle()
        key = await queue.get()
        busy.working()
        try:
            await controller.process(key)
        except NotLeading:
            raise
        except KubeError as error:
            failures.report(f"{controller.name}: {key}", error)
            metrics.RECONCILE_FAILURES.labels(controller.name).inc()
            queue.add_rate_limited(key)
        except Exception:
            # A fault in a controller, or an unexpected object: the other keys must be processed.
            log.exception("%s: %s failed", controller.name, key)
            metrics.RECONCILE_FAILURES.labels(controller.name).inc()
            queue.add_rate_limited(key)
        finally:
            queue.done(key)
