"""Waiting for a job: what a phase means for what is waited for, and why its pods do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from volcano_py.api import batch, names
from volcano_py.api.kinds import EVENT, JOB, POD, PODGROUP
from volcano_py.cli.follow import Followed, Source
from volcano_py.cli.waiting import Look, wait

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]

FINAL = (batch.COMPLETED, batch.FAILED, batch.TERMINATED)
"""Phases that a job does not leave."""
_PAST_RUNNING = (batch.RUNNING, batch.COMPLETING, batch.COMPLETED)
_LONGEST = 160
"""Characters of a reason that are shown."""


async def until_phase(client: Client, job: Manifest, wanted: str, timeout: float, from_aborted: bool = False) -> None:
    """Wait until a job (as the server answered it) has a phase. `from_aborted`: it is Aborted, and is being resumed.

    Raises NotReached when it ends otherwise, or is deleted.
    """
    metadata = job["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    group = f"{name}-{metadata.get('uid', '')}"
    sources = [
        Source.one(JOB, name, namespace),
        Source.one(PODGROUP, group, namespace)._replace(optional=True),
        Source(EVENT, namespace, field_selector=_about(group), optional=True),
    ]
    await wait(client, f"job {namespace}/{name}", sources, look(wanted, namespace, name, from_aborted), timeout)


def _about(group: str) -> str:
    """The field selector of the Events of a PodGroup."""
    return f"involvedObject.kind={PODGROUP.kind},involvedObject.name={group}"


def look(wanted: str, namespace: str, name: str, from_aborted: bool = False) -> Callable[[Followed], Look]:
    """How a job is looked at by one who waits for the phase `wanted`."""

    def seen(followed: Followed) -> Look:
        jobs = followed.objects()
        if not jobs:
            return Look("gone", lost="was deleted while it was waited for")
        reason = why_pending(followed.objects(1)) or why_not_let_in(followed.objects(2))
        return of_job(jobs[0], reason, wanted, f"-n {namespace} -N {name}", from_aborted)

    return seen


def of_job(job: Manifest, reason: str, wanted: str, named: str, from_aborted: bool) -> Look:
    """A job of which `wanted` is waited for; `reason`: why it is Pending; `named`: its name as options."""
    status = job.get("status") or {}
    phase = (status.get("state") or {}).get("phase") or batch.PENDING
    total = sum(task.get("replicas", 0) for task in job.get("spec", {}).get("tasks") or ())
    counts = [(key, status.get(key, 0)) for key in ("running", "succeeded", "failed")]
    text = ", ".join((phase, *(f"{count} of {total} {key}" for key, count in counts if count)))
    if phase == batch.PENDING and reason:
        text += f": {reason}"
    running, succeeded = status.get("running", 0), status.get("succeeded", 0)
    done = succeeded if wanted == batch.COMPLETED else running + succeeded
    if phase == wanted or (wanted == batch.RUNNING and phase in _PAST_RUNNING):
        return Look(text, total, total, reached=True)
    if phase == batch.ABORTED and not from_aborted:
        return Look(text, done, total, lost=f"is Aborted; go on with `vcctl job resume {named}`")
    if phase in FINAL:
        said = (status.get("state") or {}).get("message", "")
        why = f" ({said})" if said else ""
        look_at = f"see `vcctl job view {named}` and `vcctl job logs {named}`"
        return Look(text, done, total, lost=f"is {phase}{why}; {look_at}")
    return Look(text, done, total)


def why_pending(groups: list[Manifest]) -> str:
    """The newest reason that the scheduler gives for a PodGroup that waits."""
    for group in groups:
        for condition in reversed((group.get("status") or {}).get("conditions") or ()):
            if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
                return _shortened(condition.get("message"))
    return ""


def why_not_let_in(events: list[Manifest]) -> str:
    """The newest such reason in the Events of a PodGroup; one that may not have pods yet has no conditions."""
    told = [e for e in events if e.get("reason") == "Unschedulable"]
    newest = max(told, key=lambda e: str(e.get("lastTimestamp") or e.get("eventTime") or ""), default=None)
    return _shortened(newest.get("message")) if newest else ""


def _shortened(message: object) -> str:
    text = " ".join(str(message or "").split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


async def until_gone(client: Client, namespace: str, name: str, timeout: float) -> None:
    """Wait until a job and its pods are no more."""

    def seen(followed: Followed) -> Look:
        jobs, pods = followed.objects(), followed.objects(1)
        if not jobs and not pods:
            return Look("gone", reached=True)
        return Look(f"being deleted, {len(pods)} pods left")

    sources = [Source.one(JOB, name, namespace), Source(POD, namespace, f"{names.JOB_NAME}={name}")]
    await wait(client, f"job {namespace}/{name}", sources, seen, timeout)
