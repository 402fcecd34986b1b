"""Waiting for the phase of a job: its progress, and why its pods do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from volcano_py.api import batch, names
from volcano_py.api.kinds import EVENT, JOB, POD, PODGROUP
from volcano_py.cli.follow import Followed, Source
from volcano_py.cli.waiting import State, wait

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]

FINAL = (batch.COMPLETED, batch.FAILED, batch.TERMINATED)
"""Final phases of a job."""
_PAST_RUNNING = (batch.RUNNING, batch.COMPLETING, batch.COMPLETED)
_MAX_REASON = 160
"""Maximum characters of a reason."""


async def until_phase(client: Client, job: Manifest, target: str, timeout: float, from_aborted: bool = False) -> None:
    """Wait until a job (as returned by the server) reaches a phase. `from_aborted`: the job is Aborted and is resumed.

    Raises NotReached if it finishes otherwise, or is deleted.
    """
    metadata = job["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    group = f"{name}-{metadata.get('uid', '')}"
    sources = [
        Source.one(JOB, name, namespace),
        Source.one(PODGROUP, group, namespace)._replace(optional=True),
        Source(EVENT, namespace, field_selector=_about(group), optional=True),
    ]
    await wait(client, f"job {namespace}/{name}", sources, phase_state(target, namespace, name, from_aborted), timeout)


def _about(group: str) -> str:
    """The field selector for the Events of a PodGroup."""
    return f"involvedObject.kind={PODGROUP.kind},involvedObject.name={group}"


def phase_state(target: str, namespace: str, name: str, from_aborted: bool = False) -> Callable[[Followed], State]:
    """The progress of a job towards the phase `target`."""

    def state_of(followed: Followed) -> State:
        jobs = followed.objects()
        if not jobs:
            return State("gone", failed="was deleted")
        reason = why_pending(followed.objects(1)) or why_not_admitted(followed.objects(2))
        return of_job(jobs[0], reason, target, f"-n {namespace} -N {name}", from_aborted)

    return state_of


def of_job(job: Manifest, reason: str, target: str, named: str, from_aborted: bool) -> State:
    """The progress of a job to `target`; `reason`: why it is Pending; `named`: options that select it."""
    status = job.get("status") or {}
    phase = (status.get("state") or {}).get("phase") or batch.PENDING
    total = sum(task.get("replicas", 0) for task in job.get("spec", {}).get("tasks") or ())
    counts = [(key, status.get(key, 0)) for key in ("running", "succeeded", "failed")]
    text = ", ".join((phase, *(f"{count} of {total} {key}" for key, count in counts if count)))
    if phase == batch.PENDING and reason:
        text += f": {reason}"
    running, succeeded = status.get("running", 0), status.get("succeeded", 0)
    done = succeeded if target == batch.COMPLETED else running + succeeded
    if phase == target or (target == batch.RUNNING and phase in _PAST_RUNNING):
        return State(text, total, total, reached=True)
    if phase == batch.ABORTED and not from_aborted:
        return State(text, done, total, failed=f"is Aborted; resume it with `vcctl job resume {named}`")
    if phase in FINAL:
        message = (status.get("state") or {}).get("message", "")
        why = f" ({message})" if message else ""
        hint = f"see `vcctl job view {named}` and `vcctl job logs {named}`"
        return State(text, done, total, failed=f"is {phase}{why}; {hint}")
    return State(text, done, total)


def why_pending(groups: list[Manifest]) -> str:
    """Why a PodGroup waits: its condition Waiting, or what Volcano's scheduler reports for one that does not run."""
    for group in groups:
        status = group.get("status") or {}
        conditions = [c for c in status.get("conditions") or () if c.get("status") == "True"]
        for condition in conditions:
            if condition.get("type") == "Waiting":
                return _shortened(condition.get("message")).rstrip(".")
        if status.get("phase") in ("Running", "Completed"):
            continue  # Volcano keeps the condition Unschedulable of an earlier cycle
        for condition in reversed(conditions):
            if condition.get("type") == "Unschedulable":
                return _shortened(condition.get("message"))
    return ""


def why_not_admitted(events: list[Manifest]) -> str:
    """The latest such reason in the Events of a PodGroup; before admission it has no conditions."""
    reports = [e for e in events if e.get("reason") == "Unschedulable"]
    newest = max(reports, key=lambda e: str(e.get("lastTimestamp") or e.get("eventTime") or ""), default=None)
    return _shortened(newest.get("message")) if newest else ""


def _shortened(message: object) -> str:
    text = " ".join(str(message or "").split())
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 1] + "…"


async def until_gone(client: Client, namespace: str, name: str, timeout: float) -> None:
    """Wait until a job and its pods are deleted."""

    def state_of(followed: Followed) -> State:
        jobs, pods = followed.objects(), followed.objects(1)
        if not jobs and not pods:
            return State("gone", reached=True)
        return State(f"being deleted, {len(pods)} pods left")

    sources = [Source.one(JOB, name, namespace), Source(POD, namespace, f"{names.JOB_NAME}={name}")]
    await wait(client, f"job {namespace}/{name}", sources, state_of, timeout)
