"""Waiting for the phase of a job and the state of a queue, and showing the progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from volcano_py.api import batch, names
from volcano_py.api.kinds import EVENT, JOB, POD, PODGROUP, QUEUE
from volcano_py.cli.follow import Source, following
from volcano_py.cli.job_waits import FINAL
from volcano_py.client.errors import JobFailed, WaitTimeout
from volcano_py.client.views import Job, Queue, job_of, queue_of

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_TICK = 0.5
_PAST_RUNNING = (batch.RUNNING, batch.COMPLETING, batch.COMPLETED)


class Progress:
    """Shows each new state of a job: in a notebook as HTML that is replaced, on a terminal as one line.

    `wanted`: a function to call instead, or whether to show anything; None: if there is a notebook or a terminal.
    """

    def __init__(self, wanted: bool | Callable[[Job], object] | None) -> None:
        self._call = wanted if callable(wanted) else None
        self._shown = False
        self._handle: Any = None
        self._notebook = wanted is not False and self._call is None and "ipykernel" in sys.modules
        self._terminal = self._call is None and (wanted is True or (wanted is None and sys.stderr.isatty()))

    def show(self, job: Job) -> None:
        """Show a state."""
        if self._call is not None:
            self._call(job)
        elif self._notebook:
            self._display(job)
        elif self._terminal:
            end, begin = ("", "\r\x1b[K") if sys.stderr.isatty() else ("\n", "")
            print(f"{begin}{job}", end=end, file=sys.stderr, flush=True)
            self._shown = bool(begin)

    def _display(self, job: Job) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(job, display_id=True)
        else:
            self._handle.update(job)

    def end(self) -> None:
        """End the line."""
        if self._shown:
            print(file=sys.stderr)


async def reach(
    client: Client,
    namespace: str,
    name: str,
    phase: str,
    timeout: float | None,
    progress: Progress,
    from_aborted: bool = False,
) -> Job:
    """Wait until a job has a phase. Raises JobFailed, WaitTimeout and KubeError."""
    about = f"job {namespace}/{name}"
    deadline = None if timeout is None else time.monotonic() + timeout
    uid = (await client.get(JOB, name, namespace))["metadata"].get("uid", "")
    group = f"{name}-{uid}"
    sources = (
        Source.one(JOB, name, namespace),
        Source.one(PODGROUP, group, namespace)._replace(optional=True),
        Source(
            EVENT,
            namespace,
            field_selector=f"involvedObject.kind={PODGROUP.kind},involvedObject.name={group}",
            optional=True,
        ),
    )
    last: Job | None = None
    try:
        async with following(client, *sources) as followed:
            while True:
                found = followed.objects()
                if not found or found[0]["metadata"].get("uid", "") != uid:
                    raise JobFailed("it was deleted", object=about, remedy="submit it again")
                job = job_of(found[0], followed.objects(1), followed.objects(2))
                if job != last:
                    progress.show(job)
                    last = job
                if job.phase == phase or (phase == batch.RUNNING and job.phase in _PAST_RUNNING):
                    return job
                if job.phase in FINAL or (job.phase == batch.ABORTED and not from_aborted):
                    raise _failed(job, about)
                left = _TICK if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    state = str(job).removeprefix(f"{about}: ")
                    lost = "" if followed.connected else ", and the API server does not respond"
                    raise WaitTimeout(
                        f"it is still {state} after {timeout:g} s{lost}",
                        object=about,
                        remedy=f"increase timeout, or see client.explain({name!r})",
                    )
                await followed.next(min(_TICK, left))
    finally:
        progress.end()


def _failed(job: Job, about: str) -> JobFailed:
    message = f"it is {job.phase}{f' ({job.message})' if job.message else ''}"
    if job.phase == batch.ABORTED:
        remedy = f"resume it with client.resume({job.name!r})"
    else:
        remedy = f"see client.logs({job.name!r}) and client.pods({job.name!r})"
    return JobFailed(message, object=about, remedy=remedy, job=job)


async def until_deleted(client: Client, namespace: str, name: str, timeout: float | None) -> None:
    """Wait until a job and its pods are deleted. Raises WaitTimeout."""
    deadline = None if timeout is None else time.monotonic() + timeout
    sources = (Source.one(JOB, name, namespace), Source(POD, namespace, f"{names.JOB_NAME}={name}"))
    async with following(client, *sources) as followed:
        while followed.objects() or followed.objects(1):
            left = _TICK if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(
                    f"{len(followed.objects(1))} pods are still being deleted after {timeout:g} s",
                    object=f"job {namespace}/{name}",
                    remedy="increase timeout, or look for finalizers of the pods",
                )
            await followed.next(min(_TICK, left))


async def until_queue(client: Client, name: str, states: str | Sequence[str], timeout: float | None) -> Queue:
    """Wait until a queue has a state. Raises WaitTimeout."""
    deadline = None if timeout is None else time.monotonic() + timeout
    wanted = (states,) if isinstance(states, str) else tuple(states)
    async with following(client, Source.one(QUEUE, name)) as followed:
        while True:
            found = [queue_of(one) for one in followed.objects()]
            if found and found[0].state in wanted:
                return found[0]
            left = _TICK if deadline is None else deadline - time.monotonic()
            if left <= 0:
                state = (found[0].state or "without a state") if found else "deleted"
                raise WaitTimeout(
                    f"it is {state} after {timeout:g} s",
                    object=f"queue {name}",
                    remedy="check that the controller-manager runs: volcano-py doctor",
                )
            await followed.next(min(_TICK, left))
