"""All that can happen to small JobFlows: the reconciler against jobs that move, fail, are restarted, deleted or expire.

For each shape of a flow every state is visited that can be reached, whichever way events and looks of the controller
are mixed. A state is the flow's phase, the completed jobs of its status, and the phases of its jobs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from volcano_py.api.batch import Job, JobSpec, Task
from volcano_py.api.flow import Flow, FlowDependsOn, JobFlow, JobTemplate, Probe, TaskStatus
from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.instructions import Create, Delete, Together, UpdateStatus
from volcano_py.controllers.jobflow.members import make_job
from volcano_py.controllers.jobflow.probes import far_enough
from volcano_py.controllers.jobflow.reconcile import Observed, reconcile
from volcano_py.controllers.jobflow.state import ENDED

MOVES = {
    "": ("Pending",),
    "Pending": ("Running", "Terminating"),
    "Running": ("Completing", "Failed", "Restarting", "Aborted", "Terminating"),
    "Restarting": ("Pending", "Failed"),
    "Aborted": ("Restarting",),
    "Completing": ("Completed",),
    "Terminating": ("Terminated",),
}
"""What a job does next; the others stay as they are."""
FINISHED = ("Completed", "Failed", "Terminated")
LOOKS = 4
"""Of the controller in a row, after which nothing more happens."""


class Shape(NamedTuple):
    targets: tuple[tuple[int, ...], ...]
    """Of each entry, by their numbers: earlier ones only."""
    probe: bool = False
    delete: bool = False
    expire: bool = False


class State(NamedTuple):
    phase: str
    completed: frozenset[str]
    jobs: tuple[str | None, ...]


class Tally(NamedTuple):
    shapes: set[Shape]
    pairs: set[tuple[str, tuple[str | None, ...]]]
    counts: dict[str, int]


TALLY = Tally(set(), set(), {"states": 0, "looks": 0, "created": 0})


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.integers(1, 3))
    targets = [tuple(sorted(draw(st.sets(st.integers(0, n - 1))))) if n else () for n in range(count)]
    return Shape(tuple(targets), draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))


class Model:
    """One shape, and the real reconciler on any of its states."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        probe = Probe(task_status_list=[TaskStatus(task_name="t", phase="Running")]) if shape.probe else None
        self.entries = [
            Flow(name=f"e{n}", depends_on=FlowDependsOn(targets=[f"e{t}" for t in targets], probe=probe))
            for n, targets in enumerate(shape.targets)
        ]
        spec = JobSpec(tasks=[Task(name="t", replicas=1)], ttl_seconds_after_finished=0 if shape.expire else None)
        self.templates = {
            entry.name: JobTemplate(metadata=ObjectMeta(name=entry.name, namespace="n"), spec=spec)
            for entry in self.entries
        }
        self.names = [f"f-{entry.name}" for entry in self.entries]
        self.made = [self._job(entry) for entry in self.entries]

    def _job(self, entry: Flow) -> Job:
        made = make_job(self._flow("", frozenset()), entry, self.templates[entry.name])
        job = msgspec.convert(made, Job)
        job.metadata.uid = f"uid-{entry.name}"
        return job

    def _flow(self, phase: str, completed: frozenset[str]) -> JobFlow:
        flow = JobFlow(metadata=ObjectMeta(name="f", namespace="n", uid="flow"))
        flow.spec.flows = self.entries
        flow.spec.job_retain_policy = "delete" if self.shape.delete else "retain"
        flow.status.state.phase = phase
        flow.status.completed_jobs = sorted(completed) or None
        return flow

    def jobs(self, state: State) -> dict[str, Job]:
        found = {}
        for name, job, phase in zip(self.names, self.made, state.jobs, strict=True):
            if phase is not None:
                counts = {"t": {"phase": {"Running": 1}}} if phase == "Running" else None
                status = msgspec.convert({"state": {"phase": phase}, "taskStatusCount": counts}, type(job.status))
                found[name] = msgspec.structs.replace(job, status=status)
        return found

    def look(self, state: State) -> State:
        """One reconcile, whose instructions are executed."""
        TALLY.counts["looks"] += 1
        flow, jobs = self._flow(state.phase, state.completed), self.jobs(state)
        after = list(state.jobs)
        phase, completed = state.phase, state.completed
        for one in _flat(reconcile(Observed(flow, 0.0, self.templates, jobs))):
            if isinstance(one, UpdateStatus):
                phase = one.status["state"]["phase"]
                completed = frozenset(one.status.get("completedJobs") or ())
            elif isinstance(one, Create):
                number = self.names.index(one.obj["metadata"]["name"])
                self._check_turn(number, state, jobs)
                after[number] = ""
                TALLY.counts["created"] += 1
            elif isinstance(one, Delete):
                after[self.names.index(one.name)] = None
        return State(phase, completed, tuple(after))

    def _check_turn(self, number: int, state: State, jobs: dict[str, Job]) -> None:
        """No job is created twice, after the end, or before its dependencies are ready."""
        assert state.jobs[number] is None and state.phase not in ENDED
        assert not (self.shape.expire and self.names[number] in state.completed), f"made again: {state}"
        for target in self.shape.targets[number]:
            name = self.names[target]
            depends = self.entries[number].depends_on
            assert depends is not None
            expired = self.shape.expire and name in state.completed and name not in jobs
            assert expired or far_enough(jobs[name], depends.probe, (), {}), state

    def happens(self, state: State, *, kindly: bool) -> Iterator[State]:
        """What jobs may do; unless `kindly`, a user may also delete one."""
        for number, phase in enumerate(state.jobs):
            others: list[str | None] = [*MOVES.get(phase or "", ())] if phase is not None else []
            expires = self.shape.expire and phase in FINISHED
            if phase is not None and (expires or not kindly):
                others.append(None)
            for other in others:
                yield state._replace(jobs=(*state.jobs[:number], other, *state.jobs[number + 1 :]))


def _flat(instructions: list[Any]) -> list[Any]:
    return [one for each in instructions for one in (each.instructions if isinstance(each, Together) else [each])]


def explore(shape: Shape) -> None:
    """Visit every state, and check each."""
    model = Model(shape)
    start = State("", frozenset(), (None,) * len(shape.targets))
    follows: dict[State, set[State]] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if state in follows:
            continue
        looked = model.look(state)
        if state.phase in ENDED:
            assert looked.phase == state.phase, state
        follows[state] = {looked, *model.happens(state, kindly=True)}
        waiting.extend(follows[state])
        waiting.extend(model.happens(state, kindly=False))
        _check_rest(model, state)
    _check_ways_out(follows)
    TALLY.shapes.add(shape)
    TALLY.counts["states"] += len(follows)
    TALLY.pairs.update((state.phase, state.jobs) for state in follows)


def _check_rest(model: Model, state: State) -> None:
    """The controller comes to rest, and where no job moves any more, that is the end."""
    for _ in range(LOOKS):
        state = model.look(state)
    assert model.look(state) == state
    if not any(phase in MOVES for phase in state.jobs if phase is not None):
        assert state.phase in ENDED, f"stuck: {model.shape} {state}"


def _check_ways_out(follows: dict[State, set[State]]) -> None:
    """From every state an end can be reached without anybody's help."""
    before: dict[State, set[State]] = {}
    for state, others in follows.items():
        for other in others:
            before.setdefault(other, set()).add(state)
    good = {state for state in follows if state.phase in ENDED}
    waiting = deque(good)
    while waiting:
        for earlier in before.get(waiting.popleft(), ()):
            if earlier not in good:
                good.add(earlier)
                waiting.append(earlier)
    assert good == set(follows), f"no way out of {next(iter(set(follows) - good))}"


@settings(max_examples=4, deadline=None)
@given(shapes())
@example(Shape(((),)))
@example(Shape(((), (0,))))
@example(Shape(((), (0,)), probe=True, expire=True))
@example(Shape(((), (), (0, 1)), delete=True))
def _every_flow_ends(shape: Shape) -> None:
    if shape not in TALLY.shapes:
        explore(shape)


def test_no_flow_gets_stuck() -> None:
    """What was looked at is printed with -s."""
    _every_flow_ends()
    phases = {phase for phase, _ in TALLY.pairs}
    print(
        f"jobflows: {len(TALLY.shapes)} shapes, {TALLY.counts['states']} states, {len(TALLY.pairs)} pairs of phase and "
        f"jobs' phases, {TALLY.counts['looks']} looks, {TALLY.counts['created']} jobs made"
    )
    assert phases == {"", "Pending", "Running", "Succeed", "Failed"}
    assert {phase for _, jobs in TALLY.pairs for phase in jobs} >= {None, *MOVES, *FINISHED}
