"""The next actions of a JobFlow: Jobs to create, its status, or the deletion of its Jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.flow import DELETE, SUCCEED, Flow, JobFlow, JobTemplate, Probe
from volcano_py.api.kinds import JOB, JOBFLOW
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Again, Create, Delete, Emit, Instruction, Together
from volcano_py.controllers.jobflow import probes
from volcano_py.controllers.jobflow.members import (
    entries,
    expires,
    is_foreign,
    is_made_by,
    job_name,
    make_job,
)
from volcano_py.controllers.jobflow.probes import Answers, Question
from volcano_py.controllers.jobflow.state import ENDED, next_phase
from volcano_py.controllers.jobflow.status import status_of

MISSING_TEMPLATE = "MissingJobTemplate"
"""Reason of the Event about a JobTemplate that an entry needs."""


class Observed(Struct):
    """A JobFlow and its related objects, each by name."""

    flow: JobFlow
    now: float
    templates: Mapping[str, JobTemplate] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """By the name of their Job."""
    answers: Answers = field(default_factory=dict)


class _Look(NamedTuple):
    """Values derived from the observed state."""

    seen: Observed
    entries: dict[str, Flow]
    own: dict[str, Job]
    expired: list[str]
    """Jobs that were completed and then deleted because their TTL expired."""

    def job_name(self, entry: str) -> str:
        return job_name(self.seen.flow.metadata.name, entry)

    def missing(self) -> list[Flow]:
        """The entries that need a Job and have none."""
        there = {*self.seen.jobs, *self.expired}
        return [entry for name, entry in self.entries.items() if self.job_name(name) not in there]

    def targets(self, entry: Flow) -> list[Job] | None:
        """The Jobs that an entry depends on, without expired ones; None while one is missing."""
        wanted = (self.job_name(target) for target in _targets(entry))
        jobs = [self.own.get(name) for name in wanted if name not in self.expired]
        return None if None in jobs else [job for job in jobs if job is not None]

    def pods(self, job: Job) -> Sequence[Pod]:
        return self.seen.pods.get(job.metadata.name, ())


def questions(seen: Observed) -> set[Question]:
    """The requests to pods that the reconciliation needs."""
    if seen.flow.status.state.phase in ENDED or seen.flow.metadata.deletion_timestamp is not None:
        return set()
    look = _look(seen)
    return {
        question
        for entry in look.missing()
        for job in look.targets(entry) or ()
        for question in probes.questions(job, _probe(entry), look.pods(job))
    }


def reconcile(seen: Observed) -> list[Instruction]:
    """The status first, so that it is correct even if a Job cannot be created."""
    flow, look = seen.flow, _look(seen)
    phase = flow.status.state.phase
    if flow.metadata.deletion_timestamp is not None:
        return []
    if phase in ENDED:
        return _clean_up(look) if phase == SUCCEED and flow.spec.job_retain_policy == DELETE else []
    status = status_of(_in_order(look), flow.status, look.expired, seen.now)
    status.state.phase = next_phase(phase, status, len(look.entries)) or phase
    instructions: list[Instruction] = _foreign(look)
    made: list[Create] = []
    probing = waits = False
    for entry in look.missing():
        due, why = _due(look, entry)
        if due:
            made += due
        elif why:
            instructions.append(Emit("Warning", *why, once=True))
            waits |= why[0] == MISSING_TEMPLATE
        probing |= not due and _probe(entry) is not None
    if waits and not phase and not made and not look.own:
        return instructions  # nothing has begun: a client that completes what it has just created gets no conflict
    if status != flow.status:
        instructions.insert(0, status_write(JOBFLOW, flow, status))
    if made:
        instructions.append(Together(tuple(made)))
    if status.state.phase != phase:
        instructions.append(Again(0))  # the actions of the new phase
    elif probing:
        instructions.append(Again(probes.PERIOD_SECONDS))
    return instructions


def _look(seen: Observed) -> _Look:
    flow = seen.flow
    known = entries(flow)
    own = {name: job for name, job in seen.jobs.items() if is_made_by(job, flow) and not is_foreign(job, flow)}
    completed = set(flow.status.completed_jobs or ())
    expired = [
        name
        for entry in known.values()
        if (name := job_name(flow.metadata.name, entry.name)) in completed
        and name not in seen.jobs
        and expires(seen.templates.get(entry.name), entry)
    ]
    return _Look(seen, known, own, expired)


def _targets(entry: Flow) -> list[str]:
    return (entry.depends_on.targets or []) if entry.depends_on else []


def _probe(entry: Flow) -> Probe | None:
    return entry.depends_on.probe if entry.depends_on else None


def _in_order(look: _Look) -> list[Job]:
    """The JobFlow's Jobs in the order of the entries; Jobs without an entry come last."""
    place = {look.job_name(name): number for number, name in enumerate(look.entries)}
    return sorted(look.own.values(), key=lambda job: (place.get(job.metadata.name, len(place)), job.metadata.name))


def _due(look: _Look, entry: Flow) -> tuple[list[Create], tuple[str, str] | None]:
    """The Job of an entry if it is due; otherwise (reason, message) if it can never be created."""
    if unknown := [target for target in _targets(entry) if target not in look.entries]:
        message = f"flow {entry.name}: dependsOn.targets contains {unknown[0]!r}, which is not a flow of this JobFlow"
        return [], ("UnknownTarget", message)
    targets, probe = look.targets(entry), _probe(entry)
    if targets is None:
        return [], None
    if not all(probes.far_enough(job, probe, look.pods(job), look.seen.answers) for job in targets):
        wrong = list(probes.mistakes(probe, targets)) if probe else []
        message = f"flow {entry.name}: {wrong[0]}; it waits until its targets are Completed" if wrong else ""
        return [], ("InvalidProbe", message) if wrong else None
    template = look.seen.templates.get(entry.name)
    if template is None:
        where = f"{look.seen.flow.metadata.namespace}/{entry.name}"
        return [], (MISSING_TEMPLATE, f"JobTemplate {where} does not exist: create it to continue the flow")
    manifest = make_job(look.seen.flow, entry, template)
    event = Emit("Normal", "Created", f"created job {manifest['metadata']['name']}")
    return [Create(JOB, manifest, blame="FailedCreate", event=event)], None


def _foreign(look: _Look) -> list[Instruction]:
    """Jobs of other owners with the name of one of this JobFlow's (except Jobs that are being deleted)."""
    return [
        Emit("Warning", "ForeignJob", f"job {name} is not controlled by this JobFlow: delete or rename it", once=True)
        for entry in look.entries
        if (job := look.seen.jobs.get(name := look.job_name(entry))) is not None
        and name not in look.own
        and not is_made_by(job, look.seen.flow)
    ]


def _clean_up(look: _Look) -> list[Instruction]:
    return [
        Delete(JOB, job.metadata.namespace, job.metadata.name, job.metadata.uid)
        for job in look.own.values()
        if job.metadata.deletion_timestamp is None
    ]
