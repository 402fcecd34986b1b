"""The client for programs and notebooks: the methods of `AsyncClient`, run in a background thread."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from volcano_py.api import batch
from volcano_py.cli.explain_facts import LEASE
from volcano_py.client.aio import AsyncClient
from volcano_py.client.background import discard, iterate, run
from volcano_py.client.explanations import Explanation, WhatIf
from volcano_py.client.log_lines import LogLine
from volcano_py.client.views import Job, Jobs, Pods, Queue, Queues

if TYPE_CHECKING:
    from typing import Self


def _discard(client: AsyncClient) -> None:
    discard(client.close())


class Client:
    """A cluster and a default namespace; see AsyncClient for the parameters. Use it in a `with` block, or call
    `close`."""

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
        self._client = AsyncClient(
            kubeconfig, context=context, namespace=namespace, scheduler=scheduler, lease=lease, timeout=timeout
        )

        # without `close`, aiohttp would print a warning at the end of the program
        self._finalizer = weakref.finalize(self, _discard, self._client)

    @property
    def namespace(self) -> str:
        """The default namespace."""
        return self._client.namespace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._finalizer.detach()
        run(self._client.close())

    def __repr__(self) -> str:
        return repr(self._client).replace("AsyncClient", "Client", 1)

    def submit(self, job: Mapping[str, Any], *, namespace: str = "", dry_run: bool = False) -> Job:
        """Create a job. `dry_run`: the server only validates it, and returns it with its defaults."""
        return run(self._client.submit(job, namespace=namespace, dry_run=dry_run))

    def get(self, job: Job | str, *, namespace: str = "") -> Job:
        """The current state of a job; for a waiting job with the reason."""
        return run(self._client.get(job, namespace=namespace))

    def status(self, job: Job | str, *, namespace: str = "") -> str:
        """The phase of a job, such as Running."""
        return run(self._client.status(job, namespace=namespace))

    def jobs(
        self, *, namespace: str = "", all_namespaces: bool = False, labels: str | None = None, queue: str = ""
    ) -> Jobs:
        """The jobs of a namespace or of all, the newest first. `labels`: a label selector."""
        return run(self._client.jobs(namespace=namespace, all_namespaces=all_namespaces, labels=labels, queue=queue))

    def pods(self, job: Job | str, *, namespace: str = "") -> Pods:
        """The pods of a job."""
        return run(self._client.pods(job, namespace=namespace))

    def wait(
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
        return run(self._client.wait(job, phase=phase, timeout=timeout, progress=progress, namespace=namespace))

    def watch(self, job: Job | str | None = None, *, namespace: str = "") -> Iterator[Job]:
        """The state of a job, and each change of it until it has ended; without a job, those of all in the namespace,
        without end."""
        return iterate(self._client.watch(job, namespace=namespace))

    def logs(
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
    ) -> Iterator[LogLine]:
        """The lines that the pods of a job have logged; with `follow` also new ones until the job has ended.

        `tail`: the last lines of each pod; `since`: seconds. A stream that breaks continues behind the last line;
        raises LogsInterrupted if that is not possible.
        """
        return iterate(
            self._client.logs(
                job,
                follow=follow,
                task=task,
                index=index,
                container=container,
                tail=tail,
                since=since,
                namespace=namespace,
            )
        )

    def suspend(self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = "") -> None:
        """Abort a job: its pods are deleted, and it can be resumed."""
        run(self._client.suspend(job, wait=wait, timeout=timeout, namespace=namespace))

    def resume(self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = "") -> None:
        """Resume a suspended job. `wait`: until it runs."""
        run(self._client.resume(job, wait=wait, timeout=timeout, namespace=namespace))

    def delete(self, job: Job | str, *, wait: bool = False, timeout: float | None = None, namespace: str = "") -> None:
        """Delete a job and its pods. `wait`: until they are gone."""
        run(self._client.delete(job, wait=wait, timeout=timeout, namespace=namespace))

    def explain(self, name: Job | str, *, kind: str = "job", namespace: str = "") -> Explanation:
        """Why a job (or a podgroup, pod or queue) waits, and which changes let it start."""
        return run(self._client.explain(name, kind=kind, namespace=namespace))

    def what_if(
        self,
        *jobs: Mapping[str, Any],
        add_nodes: str | Sequence[str] = (),
        configuration: str | None = None,
        cycles: int = 3,
    ) -> WhatIf:
        """What would change with further jobs, nodes (`"4xcpu=32,memory=256Gi"`, `"2xNODE"`) or another configuration
        of the scheduler. Nothing is written."""
        return run(self._client.what_if(*jobs, add_nodes=add_nodes, configuration=configuration, cycles=cycles))

    def queues(self) -> Queues:
        """All queues."""
        return run(self._client.queues())

    def queue(self, name: str) -> Queue:
        """One queue."""
        return run(self._client.queue(name))

    def create_queue(
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
        return run(
            self._client.create_queue(
                name,
                weight=weight,
                parent=parent,
                capability=capability,
                deserved=deserved,
                guarantee=guarantee,
                reclaimable=reclaimable,
                timeout=timeout,
            )
        )

    def update_queue(self, name: str, **spec: Any) -> Queue:
        """Change fields of a queue's spec: `update_queue("research", weight=3)`."""
        return run(self._client.update_queue(name, **spec))

    def open_queue(self, name: str, *, timeout: float | None = 30.0) -> Queue:
        """Open a queue, and wait until it accepts jobs."""
        return run(self._client.open_queue(name, timeout=timeout))

    def close_queue(self, name: str, *, timeout: float | None = 30.0) -> Queue:
        """Close a queue, and wait until it accepts no jobs; those in it continue (its state is Closing then)."""
        return run(self._client.close_queue(name, timeout=timeout))

    def delete_queue(self, name: str) -> None:
        """Delete a queue, which must be closed."""
        run(self._client.delete_queue(name))
