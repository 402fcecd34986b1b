"""The answer of `vcctl explain`: verdict, blockers, timeline and changes that unblock the job, from the facts read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from volcano_py.api import batch
from volcano_py.api.bus import MAX_RUN_TIME_EXCEEDED
from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import JOB, PODGROUP
from volcano_py.cli.explain_facts import KINDS, Facts
from volcano_py.cli.explain_groups import members_of, native_report, rows_of, stated
from volcano_py.cli.wrapping import counted
from volcano_py.scheduler.explain.explanation import missing_group
from volcano_py.scheduler.explain.groups.group_rows import GroupRow
from volcano_py.scheduler.explain.rejected_pods import rejection_of
from volcano_py.scheduler.explain.table import (
    FAILED_CREATE,
    JOB_SUSPENDED,
    QUARANTINED,
    REASONS,
    WRONG_SCHEDULER,
    fields_of,
    sentence_of,
)
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.complete import complete
from volcano_py.simulate.explained import explained
from volcano_py.simulate.manifests import as_struct
from volcano_py.simulate.snapshot import OBJECT, cluster_of
from volcano_py.simulate.unblock.search import is_over, suggestions
from volcano_py.simulate.unblock.trials import Trials

_NEEDED = ("Node", "Pod", "PodGroup", f"PodGroup.{PODGROUP.group}", "Queue")
"""Kinds that a simulated cycle needs completely."""
_SUSPENDED = (batch.ABORTED, batch.ABORTING, batch.TERMINATED, batch.TERMINATING, batch.FAILED, batch.COMPLETED)
_SECONDS = len("2006-01-02T15:04:05")
_MOST_JOBS = 20
"""Maximum number of jobs of a queue that are explained."""


class Blocker(msgspec.Struct):
    """One reason. `job`: the job it belongs to, in the answer about a queue."""

    code: str
    sentence: str
    fields: dict[str, str | int] = {}
    remedy: str = ""
    job: str = ""


class Moment(msgspec.Struct):
    """One entry of the timeline."""

    time: str
    what: str


class Help(msgspec.Struct):
    """A change, or a combination of changes, after which a simulated cycle starts the job."""

    kind: str
    text: str


class Answer(msgspec.Struct):
    """The output, as table or JSON."""

    subject: str
    state: str
    verdict: str
    blockers: list[Blocker] = []
    timeline: list[Moment] = []
    unblock: list[Help] = []
    searched: bool = False
    """Whether changes were tried; if none worked, `unblock` is empty."""
    groups: list[GroupRow] = []
    """The tree of native groups, depth first."""
    notes: list[str] = []
    """Facts that could not be read, and steps that failed."""


def answer(facts: Facts, scheduler: str, unblock: bool) -> Answer:
    """Explain one object. `unblock`: also search for changes that unblock it."""
    found = _of_queue(facts) if facts.kind == "queue" else _of_group(facts, scheduler, unblock)
    if facts.scheduler is not None and found.state != "deleting":
        found.blockers.insert(0, _blocker(facts.scheduler))
        if found.state != "running":
            found.verdict = f"{sentence_of(facts.scheduler)} {found.verdict}"
    found.timeline = [m for m in timeline(facts) if not _has_passed(m, found)]
    found.notes += facts.notes
    if facts.unknown_scheduler and found.state not in ("running", "completed", "deleting"):
        found.notes.append(facts.unknown_scheduler)
    if _lacks(facts):
        found.notes.append("too little can be read to simulate a cycle; the answer is what the scheduler has reported")
    return found


def _of_group(facts: Facts, scheduler: str, unblock: bool) -> Answer:
    subject = f"{facts.kind} {facts.key}"
    if (over := _over(facts, subject)) is not None:
        return over
    early = _without_cycle(facts, scheduler)
    if early is not None:
        elsewhere = _runs_elsewhere(facts, subject, early, scheduler)
        return elsewhere or _of_profile(facts, subject, early) or _pending(subject, early)
    if _lacks(facts):
        return _reported(facts, subject)
    if problem := _failed_create(facts):
        return _pending(subject, FAILED_CREATE.because(problem=problem))
    cluster, rejected = cluster_of(facts.snapshot)
    uid = facts.group
    if facts.group_kind in NATIVE_KINDS:
        uid = cluster.native_groups.root_of(facts.group_kind, facts.group)
    task = cluster.tasks.get(facts.key) if facts.kind == "pod" else None
    if task is not None:
        uid = task.job
    for text in rejected:
        kind, _, rest = text.partition(" ")
        name, _, problem = rest.partition(": ")
        if name in (facts.key, facts.group) and kind in ("Pod", "PodGroup"):
            return _pending(subject, QUARANTINED.because(kind=kind, name=name, problem=problem))
    job = cluster.jobs.get(uid)
    if job is None or job.pod_group is None:
        pods = len(job.tasks) if job is not None else 0
        return _pending(subject, missing_group(cluster.native_groups, uid or facts.key, pods))
    groups = rows_of(cluster, job)
    if not job.tasks and facts.job is not None:
        _add_pods(cluster, facts)
    waiting = job.counts[st.PENDING]
    trials = Trials(cluster, load(facts.snapshot.configuration_text, REGISTRY.actions), facts.snapshot.time)
    found = explained(trials, uid)
    if not found.blockers:
        verdict = _named(found.verdict, uid, facts)
        if waiting and found.state == "running":
            verdict = f"The next cycle starts {subject}: {found.running} of {found.pods} pods get a node."
        return Answer(subject, "starting" if waiting else found.state, verdict, groups=groups)
    helps = suggestions(trials, uid, found.blockers) if unblock else []
    result = Answer(
        subject,
        found.state,
        _named(found.verdict, uid, facts),
        [_blocker(cause) for cause in found.blockers],
        unblock=[Help(s.kind, s.text) for s in helps],
        searched=unblock,
        groups=groups,
    )
    if unblock and is_over(trials):
        result.notes.append("many jobs wait, so only some changes were tried; others may help as well")
    return result


def _over(facts: Facts, subject: str) -> Answer | None:
    """The answer about what does not wait any more: it is deleted, bound, or completed."""
    deleted = facts.subject["metadata"].get("deletionTimestamp")
    if deleted:
        return Answer(subject, "deleting", _being_deleted(facts, str(deleted)))
    status = facts.subject.get("status") or {}
    if facts.kind == "pod" and (node := (facts.subject.get("spec") or {}).get("nodeName")):
        phase = status.get("phase") or "Pending"
        return Answer(subject, "running", f"Pod {facts.key} is bound to node {node}; its phase is {phase}.")
    state = status.get("state") or {}
    if facts.kind == "job" and state.get("reason") == MAX_RUN_TIME_EXCEEDED:
        return Answer(subject, "ended", f"Job {facts.key} is {state.get('phase')}: {state.get('message')}.")
    if facts.kind == "job" and str(state.get("phase", "")) == batch.COMPLETED:
        return Answer(subject, "completed", f"Job {facts.key} is Completed: all of its work is done.")
    return None


def _runs_elsewhere(facts: Facts, subject: str, early: Cause, scheduler: str) -> Answer | None:
    """The answer about a gang whose pods run, although the simulated cycle would not place it."""
    counts = facts.subject.get("status") or {}
    if not counts.get("running") or counts.get("pending"):
        return None
    names_other = early.fields["scheduler"] if early.code == WRONG_SCHEDULER.code else scheduler
    running = counted(int(counts["running"]), "pod")
    runs = "runs" if counts["running"] == 1 else "run"
    verdict = f"{running} of {subject} {runs}, and none is pending; their scheduler is {names_other}."
    return Answer(subject, "running", verdict)


def _of_profile(facts: Facts, subject: str, early: Cause) -> Answer | None:
    """What the scheduler has reported about a gang of another schedulerName: that is a profile, whose file the command
    cannot read. None: the scheduler has reported nothing."""
    group = next((g for g in facts.snapshot.of("PodGroup") if g.metadata.key == facts.group), None)
    waits = group is not None and any(c.type == "Waiting" and c.status == "True" for c in group.status.conditions or ())
    if early.code != WRONG_SCHEDULER.code or not waits:
        return None
    found = _reported(facts, subject)
    found.notes.append(
        f"{early.fields['scheduler']} is a profile of the scheduler, whose file this command cannot read, so nothing "
        "was tried, and the answer is what the scheduler has reported"
    )
    return found


def _being_deleted(facts: Facts, since: str) -> str:
    text = f"{KINDS[facts.kind].kind} {facts.key} has been deleted at {since}, and is not scheduled"
    finalizers = facts.subject["metadata"].get("finalizers")
    return f"{text}; it exists until its finalizers are removed: {', '.join(finalizers)}." if finalizers else f"{text}."


def _lacks(facts: Facts) -> bool:
    """Whether too little could be read for a simulated cycle."""
    return any(each.kind in _NEEDED and each.scope != OBJECT for each in facts.snapshot.unread)


def _named(verdict: str, uid: str, facts: Facts) -> str:
    """A verdict with the object's name as the user gave it."""
    text = verdict.replace(f"job {uid}", f"{facts.kind} {facts.key}", 1)
    return text.replace(f"Job {uid}", f"{KINDS[facts.kind].kind} {facts.key}", 1)


def _add_pods(cluster: Cluster, facts: Facts) -> None:
    """The pods that the controller creates once the PodGroup is admitted."""
    assert facts.job is not None
    kinds = ("PodGroup", "Queue", "PriorityClass")
    known = [{"kind": kind, **to_manifest(o)} for kind in kinds for o in facts.snapshot.of(kind)]
    objects, _ = complete([facts.job, *known], frozenset(facts.snapshot.scheduler_names), facts.snapshot.time)
    for o in objects:
        if o["kind"] == "Pod":
            cluster.upsert("Pod", as_struct(o))


def _without_cycle(facts: Facts, scheduler: str) -> Cause | None:
    """The reason that keeps the object out of every cycle."""
    spec, status = facts.subject.get("spec") or {}, facts.subject.get("status") or {}
    phase = (status.get("state") or {}).get("phase", "") if facts.kind == "job" else ""
    if phase in _SUSPENDED:
        return JOB_SUSPENDED.because(job=facts.key, phase=phase)
    is_of = members_of(facts)
    name = spec.get("schedulerName") or scheduler
    pods = sum(t.get("replicas", 0) for t in spec.get("tasks") or ()) if facts.kind == "job" else 1
    if facts.kind == "podgroup" or facts.kind in NATIVE_KINDS:
        named = [p.spec.scheduler_name for p in facts.snapshot.of("Pod") if is_of(p)]
        name = named[0] if named and scheduler not in named else scheduler
        pods = len(named)
    if name != scheduler:
        return WRONG_SCHEDULER.because(scheduler=name, responsible=scheduler, pods=pods)
    return None


def _failed_create(facts: Facts) -> str:
    """Why the API server rejects pods of a gang that lacks them: a simulated cycle would start it."""
    group = next((g for g in facts.snapshot.of("PodGroup") if g.metadata.key == facts.group), None)
    if group is None or group.status.running >= max(group.spec.min_member, 1):
        return ""
    return rejection_of(group)


def _reported(facts: Facts, subject: str) -> Answer:
    """The scheduler's own report, for users that may not read the objects of a simulated cycle."""
    groups = {g.metadata.key: g for g in facts.snapshot.of("PodGroup")}
    group = groups.get(facts.group)
    for c in (group.status.conditions or ()) if group is not None else ():
        if c.type in ("Waiting", "Unschedulable") and c.status == "True":
            remedy = REASONS[c.reason].remedy if c.reason in REASONS else ""
            verdict = f"The scheduler reports for {subject}: {c.message}"
            return Answer(subject, "pending", verdict, [Blocker(c.reason, c.message, {}, remedy)])
    if (message := native_report(facts)) is not None:
        verdict = f"The scheduler reports for {subject}: {message}"
        return Answer(subject, "pending", verdict, [Blocker("Unschedulable", message)])
    for reason, message in _carried(facts):
        remedy = REASONS[reason].remedy if reason in REASONS else ""
        verdict = f"{KINDS[facts.kind].kind} {facts.key} reports: {message}"
        return Answer(subject, "pending", verdict, [Blocker(reason, message, {}, remedy)])
    phase = group.status.phase if group is not None else "unknown"
    return Answer(subject, phase.lower(), f"The scheduler reports no reason for {subject}; its phase is {phase}.")


def _carried(facts: Facts) -> Iterator[tuple[str, str]]:
    """Reason and message in the status of the object itself, or of one of its pods that waits for a node."""
    status = facts.subject.get("status") or {}
    for found in (status.get("state") or {}, *reversed(status.get("conditions") or ())):
        if facts.kind == "job" and found.get("message"):
            yield str(found.get("reason") or "Pending"), str(found["message"])
    for pod in facts.pods:
        for c in (pod.get("status") or {}).get("conditions") or ():
            if c.get("type") == "PodScheduled" and c.get("status") == "False" and c.get("message"):
                yield str(c.get("reason") or "Unschedulable"), str(c["message"])


_PASSING = re.compile(
    r"\b0/0 tasks in gang unschedulable|The gang is not complete|gang is not complete|No cycle has tried the job yet"
    r"|\((?:PodsMissing|RolePodsMissing|SubGroupsMissing|NotTriedYet)\b"
)
"""What conditions and Events state while the controller creates the pods."""


def _has_passed(moment: Moment, found: Answer) -> bool:
    """Whether a line of the timeline reports a state in which every job is for a moment, and this one is not now."""
    now = found.blockers[0].code if found.blockers else ""
    return now not in ("PodsMissing", "RolePodsMissing", "SubGroupsMissing") and bool(_PASSING.search(moment.what))


def _of_queue(facts: Facts) -> Answer:
    """The state of a queue, and the first blocker of each of its waiting jobs."""
    cluster, _ = cluster_of(facts.snapshot)
    queue = cluster.queues.get(facts.name)
    state = (facts.subject.get("status") or {}).get("state") or "not opened yet"
    jobs = [j for j in cluster.jobs.values() if j.queue == facts.name]
    waiting = [j for j in jobs if j.counts[st.PENDING] or _is_without_pods(j)]
    waiting.sort(key=lambda j: (j.created, j.uid))
    running = sum(1 for j in jobs if j.counts[st.RUNNING] + j.counts[st.BOUND])
    runs, waits = "runs" if running == 1 else "run", "waits" if len(waiting) == 1 else "wait"
    verdict = f"Queue {facts.name} is {state}: {counted(running, 'job')} {runs}, {len(waiting)} {waits}."
    found = Answer(f"queue {facts.name}", str(state).lower(), verdict)
    if queue is None or _lacks(facts):
        return found
    trials = Trials(cluster, load(facts.snapshot.configuration_text, REGISTRY.actions), facts.snapshot.time)
    for job in waiting[:_MOST_JOBS]:
        causes = explained(trials, job.uid).blockers
        if causes:
            found.blockers.append(_blocker(causes[0], _title(job)))
    if len(waiting) > _MOST_JOBS:
        found.notes.append(f"{len(waiting) - _MOST_JOBS} more wait; explain them one by one")
    return found


def _is_without_pods(job: Job) -> bool:
    """Whether a job waits for admission, before its controller creates pods."""
    return not job.tasks and job.pod_group is not None and job.pod_group.status.phase in ("", "Pending")


def _title(job: Job) -> str:
    """`namespace/job` of the Job that owns a PodGroup, or the PodGroup's own name."""
    metadata = job.pod_group.metadata if job.pod_group is not None else None
    for owner in (metadata.owner_references or ()) if metadata is not None else ():
        if owner.kind == JOB.kind and metadata is not None and metadata.name == f"{owner.name}-{owner.uid}":
            return f"{metadata.namespace}/{owner.name}"
    return job.uid


def _pending(subject: str, cause: Cause) -> Answer:
    return Answer(subject, "pending", sentence_of(cause), [_blocker(cause)])


def _blocker(cause: Cause, job: str = "") -> Blocker:
    return Blocker(cause.code, sentence_of(cause), fields_of(cause), REASONS[cause.code].remedy, job)


def timeline(facts: Facts) -> list[Moment]:
    """Creation, conditions and Events, in chronological order."""
    metadata = facts.subject["metadata"]
    found = [Moment(str(metadata.get("creationTimestamp", "")), f"{facts.kind} {facts.name} created")]
    group = next((g for g in facts.snapshot.of("PodGroup") if g.metadata.key == facts.group), None)
    if group is not None:
        if facts.kind != "podgroup":
            found.append(Moment(group.metadata.creation_timestamp or "", f"PodGroup {group.metadata.name} created"))
        for c in group.status.conditions or ():
            found.append(Moment(c.last_transition_time or "", f"PodGroup {c.type}: {c.message or c.reason}"))
    for moment, text in stated(facts):
        found.append(Moment(moment, text))
    for event in facts.events:
        count = event.get("count") or 1
        times = f" ({count} times)" if count > 1 else ""
        stamp = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""
        found.append(Moment(str(stamp), f"{event.get('reason', '')}{times}: {event.get('message', '')}"))
    unique = {(m.time[:_SECONDS], m.what): m for m in found if m.time}
    moments = sorted(unique.values(), key=lambda m: m.time)
    return [m for m in moments if not any(_repeats(m, other) for other in moments)]


def _repeats(moment: Moment, other: Moment) -> bool:
    """Whether another moment of the same second contains this one: an Event repeats the message of its condition."""
    text = moment.what.partition(": ")[2]
    if not text or other is moment or moment.time[:_SECONDS] != other.time[:_SECONDS]:
        return False
    return len(text) < len(other.what.partition(": ")[2]) and text in other.what
