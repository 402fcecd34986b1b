"""The asynchronous client; `volcano_py.client.sync` has the same methods for programs without an event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from volcano_py.api import batch, names
from volcano_py.api.kinds import EVENT, JOB, POD, PODGROUP, QUEUE
from volcano_py.cli import job_commands
from volcano_py.cli.explain_facts import LEASE
from volcano_py.cli.follow import Source, following
from volcano_py.client import explanations, log_lines
from volcano_py.client.errors import ConfigurationError, Invalid, translating
from volcano_py.client.explanations import Explanation, WhatIf
from volcano_py.client.jobs import checked
from volcano_py.client.log_lines import LogLine, Selection
from volcano_py.client.views import Job, Jobs, Pods, Queue, Queues, job_of, pod_of, queue_of
from volcano_py.client.waits import Progress, reach, until_deleted, until_queue
from volcano_py.kube import client as kube
from volcano_py.kube import credentials
from volcano_py.kube.errors import Forbidden, KubeError

if TYPE_CHECKING:
    from typing import Self

Manifest = dict[str, Any]


class AsyncClient:
    """A cluster and a default namespace.

    `kubeconfig`: its path; by default KUBECONFIG, in a pod its service account, else ~/.kube/config. `context`: one of
    the kubeconfig; by default its current one. `namespace`: the default of all calls; by default that of the context.
    `scheduler` and `lease` (NAMESPACE/NAME) are those of the scheduler, for `explain` and `what_if`. A job is given by
    its name or as a Job. All methods raise ClientError.
    """

    def __init__(
        self,
        kubeconfig: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        namespace: str = "",
        scheduler: str = "volcano",
        lease: str = LEASE,
        timeout: float = 30.0,
    ) -> None:
        try:
            if kubeconfig is None and context is None and not credentials.in_kubeconfig_environment():
                found = kube.Client.for_flags(timeout=timeout)
            else:
                found = kube.Client.from_kubeconfig(kubeconfig, context, timeout=timeout)
        except (KubeError, OSError, ValueError) as error:
            text = str(error).removesuffix("; name one with --kubeconfig or KUBECONFIG")
            remedy = "pass Client(kubeconfig=PATH), or set KUBECONFIG"
            raise ConfigurationError(text, object="client", remedy=remedy) from None
        self.api = found
        """The client for all other kinds and verbs."""
        self.namespace = namespace or found.namespace or "default"
        self._scheduler, self._lease = scheduler, lease

    async def __aenter__(self) -> Self:
        await self.api.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.api.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.api.credentials.server} namespace={self.namespace}>"

    def _where(self, job: Job | str, namespace: str) -> tuple[str, str, str]:
        """Namespace, name, and both as the object of an exception."""
        if isinstance(job, Job):
            namespace, name = namespace or job.namespace, job.name
        else:
            name = job
        namespace = namespace or self.namespace
        if not name:
            raise Invalid("the name of the job is empty", object="job", field="name", remedy="pass its name")
        return namespace, name, f"job {namespace}/{name}"

    # -- jobs

    async def submit(self, job: Mapping[str, Any], *, namespace: str = "", dry_run: bool = False) -> Job:
        """Create a job. `dry_run`: the server only validates it, and returns it with its defaults."""
        manifest = checked(dict(job))
        metadata = manifest["metadata"]
        namespace = namespace or metadata.get("namespace") or self.namespace
        about = f"job {namespace}/{metadata.get('name') or metadata.get('generateName')}"
        with translating(about, self.api):
            if dry_run:
                body = orjson.dumps({**manifest, "metadata": {**metadata, "namespace": namespace}})
                answer = await self.api.raw("POST", JOB.path(namespace), params={"dryRun": "All"}, body=body)
                return job_of(orjson.loads(answer))
            return job_of(await self.api.create(JOB, manifest, namespace))

    async def get(self, job: Job | str, *, namespace: str = "") -> Job:
        """The current state of a job; for a waiting job with the reason."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            manifest = await self.api.get(JOB, name, namespace)
            found = job_of(manifest)
            if found.finished or found.running:
                return found
            group = f"{name}-{found.uid}"
            groups = await self._readable(PODGROUP, namespace, f"metadata.name={group}")
            events = await self._readable(
                EVENT, namespace, f"involvedObject.kind={PODGROUP.kind},involvedObject.name={group}"
            )
            return job_of(manifest, groups, events)

    async def _readable(self, rt: Any, namespace: str, field_selector: str) -> list[Manifest]:
        """Objects, none without the permission to list them: they only explain."""
        try:
            return list(await self.api.list(rt, namespace, field_selector=field_selector))
        except Forbidden:
            return []

    async def status(self, job: Job | str, *, namespace: str = "") -> str:
        """The phase of a job, such as Running."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            return job_of(await self.api.get(JOB, name, namespace)).phase

    async def jobs(
        self, *, namespace: str = "", all_namespaces: bool = False, labels: str | None = None, queue: str = ""
    ) -> Jobs:
        """The jobs of a namespace or of all, the newest first. `labels`: a label selector."""
        with translating("jobs", self.api):
            where = None if all_namespaces else namespace or self.namespace
            found = [job_of(one) for one in await self.api.list(JOB, where, label_selector=labels)]
        chosen = [one for one in found if not queue or one.queue == queue]
        return Jobs(sorted(chosen, key=lambda one: one.created, reverse=True))

    async def pods(self, job: Job | str, *, namespace: str = "") -> Pods:
        """The pods of a job."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            found = await self.api.list(POD, namespace, label_selector=f"{names.JOB_NAME}={name}")
        return Pods(sorted((pod_of(one) for one in found), key=lambda one: (one.task, one.index)))

    async def wait(
        self,
        job: Job | str,
        *,
        phase: str = batch.COMPLETED,
        timeout: float | None = None,
        progress: bool | Callable[[Job], object] | None = None,
        namespace: str = "",
    ) -> Job:
        """Wait until a job has a phase. `timeout`: seconds, None: no limit.

        `progress`: a function that is called with each new state, or whether to show a bar; by default it is shown in
        notebooks and terminals. Raises JobFailed if the job ends otherwise, and WaitTimeout.
        """
        if phase not in batch.PHASES:
            raise Invalid(
                f"phase is {phase!r}", object="wait", field="phase", remedy=f"use one of {', '.join(batch.PHASES)}"
            )
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            return await reach(self.api, namespace, name, phase, timeout, Progress(progress))

    async def watch(self, job: Job | str | None = None, *, namespace: str = "") -> AsyncIterator[Job]:
        """The state of a job, and each change of it until it has ended; without a job, those of all in the namespace,
        without end."""
        about, selector = "jobs", None
        namespace = namespace or self.namespace
        if job is not None:
            namespace, name, about = self._where(job, namespace if not isinstance(job, Job) else "")
            selector = f"metadata.name={name}"
            with translating(about, self.api):
                await self.api.get(JOB, name, namespace)
        with translating(about, self.api):
            async with following(self.api, Source(JOB, namespace, field_selector=selector)) as followed:
                last: dict[str, Job] = {}
                for manifest in followed.objects():
                    found = job_of(manifest)
                    last[found.key] = found
                    yield found
                while job is None or not any(one.finished for one in last.values()):
                    change = await followed.next()
                    if change is None:
                        continue
                    found = job_of(change.object, deleted=change.deleted)
                    if last.get(found.key) != found:
                        last[found.key] = found
                        yield found

    async def logs(
        self,
        job: Job | str,
        *,
        follow: bool = False,
        task: str = "",
        index: int | None = None,
        container: str = "",
        tail: int | None = None,
        since: float | None = None,
        namespace: str = "",
    ) -> AsyncIterator[LogLine]:
        """The lines that the pods of a job have logged; with `follow` also new ones until the job has ended.

        `tail`: the last lines of each pod; `since`: seconds. A stream that breaks continues behind the last line;
        raises LogsInterrupted if that is not possible.
        """
        namespace, name, _ = self._where(job, namespace)
        selection = Selection(task, index, container, tail, since)
        lines = (log_lines.follow if follow else log_lines.read)(self.api, namespace, name, selection)
        try:
            async for line in lines:
                yield line
        finally:
            await lines.aclose()  # type: ignore[attr-defined]

    async def suspend(
        self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = ""
    ) -> None:
        """Abort a job: its pods are deleted, and it can be resumed."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            await job_commands.suspend(self.api, namespace, name)
            if wait:
                await reach(self.api, namespace, name, batch.ABORTED, timeout, Progress(False))

    async def resume(
        self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = ""
    ) -> None:
        """Resume a suspended job. `wait`: until it runs."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            await job_commands.resume(self.api, namespace, name)
            if wait:
                await reach(self.api, namespace, name, batch.RUNNING, timeout, Progress(False), from_aborted=True)

    async def delete(
        self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = ""
    ) -> None:
        """Delete a job and its pods. `wait`: until they are gone."""
        namespace, name, about = self._where(job, namespace)
        with translating(about, self.api):
            await self.api.delete(JOB, name, namespace)
            if wait:
                await until_deleted(self.api, namespace, name, timeout)

    # -- questions

    async def explain(self, name: Job | str, *, kind: str = "job", namespace: str = "") -> Explanation:
        """Why a job (or a podgroup, pod or queue) waits, and which changes let it start."""
        if isinstance(name, Job):
            namespace, name = namespace or name.namespace, name.name
        where = namespace or self.namespace
        return await explanations.explain(self.api, kind, name, where, self._scheduler, self._lease)

    async def what_if(
        self,
        *jobs: Mapping[str, Any],
        add_nodes: str | Sequence[str] = (),
        configuration: str | None = None,
        cycles: int = 3,
    ) -> WhatIf:
        """What would change with further jobs, nodes (`"4xcpu=32,memory=256Gi"`, `"2xNODE"`) or another configuration
        of the scheduler. Nothing is written."""
        manifests = []
        for job in jobs:
            manifest = checked(dict(job))
            metadata = {"namespace": self.namespace, **manifest["metadata"]}
            manifests.append({**manifest, "metadata": metadata})
        nodes = [add_nodes] if isinstance(add_nodes, str) else list(add_nodes)
        return await explanations.what_if(self.api, manifests, nodes, configuration, cycles, self._scheduler)

    # -- queues

    async def queues(self) -> Queues:
        """All queues."""
        with translating("queues", self.api):
            found = [queue_of(one) for one in await self.api.list(QUEUE)]
        return Queues(sorted(found, key=lambda one: one.name))

    async def queue(self, name: str) -> Queue:
        """One queue."""
        with translating(f"queue {name}", self.api):
            return queue_of(await self.api.get(QUEUE, name))

    async def create_queue(
        self,
        name: str,
        *,
        weight: int = 1,
        parent: str = "",
        capability: Mapping[str, str | int] | None = None,
        deserved: Mapping[str, str | int] | None = None,
        guarantee: Mapping[str, str | int] | None = None,
        reclaimable: bool = True,
        timeout: float | None = 30.0,
    ) -> Queue:
        """Create a queue, and wait until it is open. `timeout`: seconds; 0: do not wait."""
        spec: Manifest = {"weight": weight, "reclaimable": reclaimable}
        if parent:
            spec["parent"] = parent
        for key, amounts in (("capability", capability), ("deserved", deserved)):
            if amounts:
                spec[key] = {resource: str(amount) for resource, amount in amounts.items()}
        if guarantee:
            spec["guarantee"] = {"resource": {resource: str(amount) for resource, amount in guarantee.items()}}
        manifest = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        with translating(f"queue {name}", self.api):
            created = await self.api.create(QUEUE, manifest)
            return queue_of(created) if timeout == 0 else await until_queue(self.api, name, "Open", timeout)

    async def update_queue(self, name: str, **spec: Any) -> Queue:
        """Change fields of a queue's spec: `update_queue("research", weight=3)`."""
        with translating(f"queue {name}", self.api):
            return queue_of(await self.api.patch(QUEUE, name, {"spec": spec}))

    async def open_queue(self, name: str, *, timeout: float | None = 30.0) -> Queue:
        """Open a queue, and wait until it accepts jobs."""
        return await self._operate(name, "OpenQueue", ("Open",), timeout)

    async def close_queue(self, name: str, *, timeout: float | None = 30.0) -> Queue:
        """Close a queue, and wait until it accepts no jobs; those in it continue (its state is Closing then)."""
        return await self._operate(name, "CloseQueue", ("Closed", "Closing"), timeout)

    async def _operate(self, name: str, action: str, states: Sequence[str], timeout: float | None) -> Queue:
        with translating(f"queue {name}", self.api):
            found = await self.api.get(QUEUE, name)
            await job_commands.send(self.api, QUEUE, found, action, "default")
            return await until_queue(self.api, name, states, timeout)

    async def delete_queue(self, name: str) -> None:
        """Delete a queue, which must be closed."""
        with translating(f"queue {name}", self.api):
            await self.api.delete(QUEUE, name)
