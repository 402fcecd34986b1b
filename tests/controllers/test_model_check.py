"""Model checks: jobs and queues driven through everything that can happen to them, by hypothesis.

No job is ever stuck, every end frees what the job held, and every pair of a phase and something that can happen in it
was seen. `pytest -s` prints the numbers.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.controllers.ledger import Ledger
from tests.controllers.world import job, task
from volcano_py.api import batch, bus
from volcano_py.api.scheduling import QUEUE_CLOSED, QUEUE_CLOSING, QUEUE_OPEN, QUEUE_UNKNOWN, Queue
from volcano_py.controllers.instructions import Patch
from volcano_py.controllers.job.request import INTERNAL_EVENTS, Request
from volcano_py.controllers.job.state import FINISHED, TABLE
from volcano_py.controllers.queue.reconcile import SHUT, Blocked, FollowUp
from volcano_py.controllers.queue.reconcile import Observed as QueueObserved
from volcano_py.controllers.queue.reconcile import reconcile as reconcile_queue

EVENTS = (
    bus.OUT_OF_SYNC,
    bus.POD_PENDING,
    bus.POD_RUNNING,
    bus.POD_FAILED,
    bus.POD_EVICTED,
    bus.TASK_COMPLETED,
    bus.TASK_FAILED,
    bus.JOB_UNKNOWN,
)
COMMANDS = (bus.ABORT_JOB, bus.RESUME_JOB, bus.RESTART_JOB, bus.TERMINATE_JOB, bus.COMPLETE_JOB)
ACTIONS = (
    bus.ABORT_JOB,
    bus.RESTART_JOB,
    bus.RESTART_TASK,
    bus.RESTART_POD,
    bus.TERMINATE_JOB,
    bus.COMPLETE_JOB,
    bus.RESUME_JOB,
)
SEEN: set[tuple[str, str]] = set()
RUNS: list[str] = []
ROUNDS = 5
"""What hypothesis draws depends on which modules are loaded; it goes on until every pair was seen, but not for ever."""

_STOPPED = (batch.ABORTED, *FINISHED)
_STOPPING = (batch.ABORTING, batch.COMPLETING, batch.TERMINATING)
_NOTHING_LIVES = "the phase is entered when no pod lives"
UNREACHABLE = {
    **{(phase, bus.JOB_UNKNOWN): "the PodGroup goes with the first kill" for phase in (*_STOPPING, *_STOPPED)},
    **{
        (phase, bus.POD_PENDING): "pods are made in phases before this one, and reported before any other event"
        for phase in (*_STOPPING, *_STOPPED)
    },
    **{
        (phase, event): _NOTHING_LIVES
        for phase in (batch.ABORTED, batch.TERMINATED)
        for event in (bus.POD_RUNNING, bus.POD_FAILED, bus.TASK_COMPLETED, bus.TASK_FAILED)
    },
}

policies = st.lists(
    st.tuples(
        st.sampled_from([event for event in EVENTS if event not in INTERNAL_EVENTS]),
        st.sampled_from(ACTIONS),
        st.booleans(),
    ),
    max_size=3,
    unique_by=lambda one: one[0],
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    tasks = []
    for name in ("work", "side")[: draw(st.integers(1, 2))]:
        replicas = draw(st.integers(1, 3))
        least = draw(st.integers(0, replicas))
        tasks.append(task(name, replicas, minAvailable=least, maxRetry=1))
    spec: dict[str, Any] = {"maxRetry": draw(st.integers(1, 4))}
    spec["policies"] = [
        {"event": event, "action": action} | ({"timeout": "5s"} if wait or event == bus.POD_PENDING else {})
        for event, action, wait in draw(policies)
    ]
    if draw(st.booleans()):
        spec["policies"].append({"exitCode": 42, "action": draw(st.sampled_from(ACTIONS))})
    if draw(st.booleans()):
        spec["minSuccess"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        spec["plugins"] = {"svc": [], "env": []}
    return job(*tasks, **spec)


class JobLife(RuleBasedStateMachine):
    """A job, and all clients that change it."""

    @initialize(manifest=jobs(), running=st.booleans())
    def submit(self, manifest: dict[str, Any], running: bool) -> None:
        self.world = Ledger(manifest)
        self.world.settle()
        if running:
            self.start_all()

    def pods_in(self, *phases: str) -> list[str]:
        return [n for n, p in self.world.pods.items() if p["status"]["phase"] in phases]

    @precondition(lambda self: self.world.group is not None)
    @rule(phase=st.sampled_from(["Inqueue", "Inqueue", "Inqueue", "Running", "Unknown"]))
    def schedule(self, phase: str) -> None:
        self.world.group_phase(phase)

    @precondition(lambda self: self.pods_in("Pending"))
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.world.pod_phase(data.draw(st.sampled_from(self.pods_in("Pending"))), "Running")

    @precondition(lambda self: self.pods_in("Pending"))
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        self.world.bind(data.draw(st.sampled_from(self.pods_in("Pending"))))

    @precondition(lambda self: self.world.phase in (batch.PENDING, batch.RESTARTING))
    @rule()
    def start_all(self) -> None:
        if self.world.group is not None and self.world.group["status"]["phase"] == "Pending":
            self.world.group_phase("Inqueue")
        for name in self.pods_in("Pending"):
            if name in self.world.pods:
                self.world.pod_phase(name, "Running")

    @precondition(lambda self: self.pods_in("Running"))
    @rule(data=st.data(), end=st.sampled_from([("Succeeded", 0), ("Succeeded", 0), ("Failed", 1), ("Failed", 42)]))
    def end(self, data: st.DataObject, end: tuple[str, int]) -> None:
        self.world.pod_phase(data.draw(st.sampled_from(self.pods_in("Running"))), *end)

    @precondition(lambda self: self.pods_in("Running"))
    @rule(data=st.data(), restarts=st.integers(1, 3))
    def restart_containers(self, data: st.DataObject, restarts: int) -> None:
        self.world.pod_phase(data.draw(st.sampled_from(self.pods_in("Running"))), "Running", restarts=restarts)

    @precondition(lambda self: self.world.pods)
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        self.world.delete_pod(data.draw(st.sampled_from(list(self.world.pods))))
        self.world.settle()

    @precondition(lambda self: self.leaving())
    @rule(data=st.data())
    def reap(self, data: st.DataObject) -> None:
        self.world.reap(data.draw(st.sampled_from(self.leaving())))
        self.world.settle()

    def leaving(self) -> list[str]:
        return [n for n, p in self.world.pods.items() if "deletionTimestamp" in p["metadata"]]

    @rule(action=st.sampled_from(COMMANDS))
    def command(self, action: str) -> None:
        self.world.ask(Request(bus.COMMAND_ISSUED, action))

    @precondition(lambda self: self.world.phase == batch.RUNNING and len(self.pods_in("Running", "Pending")) > 0)
    @rule(data=st.data(), action=st.sampled_from(COMMANDS))
    def command_while_a_pod_is_taken_away(self, data: st.DataObject, action: str) -> None:
        name = data.draw(st.sampled_from(self.pods_in("Running", "Pending")))
        self.world.bind(name)
        self.world.delete_pod(name)
        self.world.settle()
        self.command(action)

    @rule(replicas=st.integers(1, 4))
    def resize(self, replicas: int) -> None:
        self.world.resize(replicas)

    @rule()
    def time_passes(self) -> None:
        self.world.tick()

    @invariant()
    def the_phase_is_one_of_the_table(self) -> None:
        if hasattr(self, "world"):
            assert self.world.phase in TABLE, self.world.describe()

    @invariant()
    def a_finished_job_has_no_group_and_no_starting_pods(self) -> None:
        if hasattr(self, "world") and self.world.phase in FINISHED:
            world = self.world
            left = [n for n in world.living() if "deletionTimestamp" not in world.pods[n]["metadata"]]
            assert not left, world.describe()
            assert world.group is None, world.describe()

    def teardown(self) -> None:
        """From wherever it is, the job comes to an end when nothing more goes wrong, and holds nothing then."""
        world = self.world
        self.bring_to_rest()
        if world.phase == batch.ABORTED:
            world.ask(Request(bus.COMMAND_ISSUED, bus.RESUME_JOB))
            assert world.phase != batch.ABORTED, world.describe()
            self.bring_to_rest()  # a policy may have stopped it once more
        SEEN.update(world.visited)
        RUNS.append(world.phase)

    def bring_to_rest(self) -> None:
        world = self.world
        for _ in range(40):
            if world.phase in _STOPPED and not world.living():
                break
            world.fair_round()
        else:
            raise AssertionError(f"stuck: {world.describe()}")
        world.settle()
        assert world.group is None, world.describe()
        assert not world.others, (world.others, world.describe())


def rare_lives() -> None:
    """What chance seldom finds: a pod that another client is deleting gets further while its job comes to an end."""
    ends: list[tuple[str, dict[str, Any]]] = [
        (f"command {action}", {"maxRetry": 1}) for action in (bus.ABORT_JOB, bus.COMPLETE_JOB)
    ]
    restarts = {"maxRetry": 1, "policies": [{"event": bus.POD_FAILED, "action": bus.RESTART_JOB}]}
    for how, spec in (*ends, ("fail", restarts), ("succeed", {"minSuccess": 1})):
        for later in ("start", "succeed", "fail", "crash"):
            world = Ledger(job(task("work", 1), task("side", 1, minAvailable=0), **spec))
            world.settle()
            world.group_phase("Inqueue")
            world.pod_phase("train-work-0", "Running")
            world.bind("train-side-0")
            if later != "start":
                world.pod_phase("train-side-0", "Running")
            world.delete_pod("train-side-0")
            if how == "succeed":
                world.pod_phase("train-work-0", "Succeeded", 0)
            elif how == "fail":
                world.pod_phase("train-work-0", "Failed", 1)
            else:
                world.ask(Request(bus.COMMAND_ISSUED, how.removeprefix("command ")))
            further: dict[str, tuple[Any, ...]] = {
                "start": ("Running",),
                "succeed": ("Succeeded", 0),
                "fail": ("Failed", 1),
                "crash": ("Running", None, 3),
            }
            world.pod_phase("train-side-0", *further[later])
            SEEN.update(world.visited)
    gang = Ledger(job(task("work", 1), task("side", 1)))
    gang.settle()
    gang.group_phase("Inqueue")
    gang.pod_phase("train-work-0", "Running")
    gang.pod_phase("train-work-0", "Succeeded", 0)
    gang.ask(Request(bus.COMMAND_ISSUED, bus.TERMINATE_JOB))
    gang.delete_pod("train-work-0")
    gang.settle()
    SEEN.update(gang.visited)


HAPPENINGS = (*EVENTS, *(f"command {action}" for action in COMMANDS))
EVERYTHING = {(phase, what) for phase in TABLE for what in HAPPENINGS}


def test_a_few_jobs_come_to_an_end_and_free_what_they_held() -> None:
    SEEN.clear()
    RUNS.clear()
    rare_lives()
    lives = settings(max_examples=60, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(JobLife, settings=lives)  # type: ignore[no-untyped-call]
    found = SEEN & EVERYTHING
    assert len(found) > len(EVERYTHING) // 2, "too little happens"
    assert not found & set(UNREACHABLE), f"thought unreachable: {sorted(found & set(UNREACHABLE))}"


@pytest.mark.slow
def test_every_job_comes_to_an_end_and_frees_what_it_held() -> None:
    SEEN.clear()
    RUNS.clear()
    rare_lives()
    reachable = EVERYTHING - set(UNREACHABLE)
    for further in range(ROUNDS):
        found = SEEN & EVERYTHING
        if further and found >= reachable:
            break
        lives = settings(max_examples=600, stateful_step_count=40 + further, deadline=None)
        run_state_machine_as_test(JobLife, settings=lives)  # type: ignore[no-untyped-call]
    found = SEEN & EVERYTHING
    ends = {phase: RUNS.count(phase) for phase in sorted(set(RUNS))}
    print(f"\njobs: {len(RUNS)} lives, ends {ends}; {len(found)} of {len(reachable)} pairs of phase and event seen")
    assert found >= reachable, f"not seen: {sorted(reachable - found)}"
    assert found <= reachable, f"thought unreachable: {sorted(found - reachable)}"


PARENTS = {"team": "root", "group": "team", "leaf": "group", "other": "root"}
QUEUE_ACTIONS = (bus.SYNC_QUEUE, bus.OPEN_QUEUE, bus.CLOSE_QUEUE)
QUEUE_STATES = ("", QUEUE_OPEN, QUEUE_CLOSING, QUEUE_CLOSED, QUEUE_UNKNOWN)
QUEUE_SEEN: set[tuple[str, str]] = set()


class QueueLife(RuleBasedStateMachine):
    """A tree of queues, people who open and close them, and PodGroups that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.members = dict.fromkeys(PARENTS, 0)
        self.follow_ups: list[FollowUp] = []
        self.closed_by_hand: set[str] = set()
        self.queues = {name: self.made(name, parent) for name, parent in ({"root": ""} | PARENTS).items()}
        for name in PARENTS:
            self.ask(name, bus.SYNC_QUEUE)

    @staticmethod
    def made(name: str, parent: str) -> Queue:
        queue = Queue()
        queue.metadata.name, queue.spec.parent = name, parent
        queue.status.state = QUEUE_OPEN if name == "root" else ""
        return queue

    def ask(self, name: str, action: str) -> None:
        """Carry out an action, and its follow-up actions for other queues."""
        self.follow_ups = [FollowUp(name, action)]
        for _ in range(200):
            if not self.follow_ups:
                return
            follow_up = self.follow_ups.pop(0)
            QUEUE_SEEN.add((self.queues[follow_up.queue].status.state, follow_up.action))
            try:
                instructions, more = reconcile_queue(self.observed(follow_up.queue), follow_up.action)
            except Blocked:
                continue  # the error is reported; the parent stays shut until it is opened
            for one in instructions:
                if isinstance(one, Patch):
                    self.patch(one.name, one.body)
            self.follow_ups += more
        raise AssertionError(f"no end in sight: {self.states()}")

    def patch(self, name: str, body: dict[str, Any]) -> None:
        queue = self.queues[name]
        queue.metadata.annotations = {
            **(queue.metadata.annotations or {}),
            **body.get("metadata", {}).get("annotations", {}),
        }
        queue.status.state = body.get("status", {}).get("state", queue.status.state)

    def observed(self, name: str) -> QueueObserved:
        queue = self.queues[name]
        children = [self.queues[child] for child, parent in PARENTS.items() if parent == name]
        parent = self.queues.get(queue.spec.parent)
        return QueueObserved(copy.deepcopy(queue), self.members.get(name, 0), parent, children)

    def states(self) -> dict[str, str]:
        return {name: queue.status.state for name, queue in self.queues.items()}

    @rule(name=st.sampled_from(list(PARENTS)), action=st.sampled_from(QUEUE_ACTIONS))
    def command(self, name: str, action: str) -> None:
        if action == bus.CLOSE_QUEUE and self.queues[name].status.state == QUEUE_OPEN:
            self.closed_by_hand.add(name)
        if action == bus.OPEN_QUEUE and self.queues[PARENTS[name]].status.state not in SHUT:
            self.closed_by_hand.discard(name)
        self.ask(name, action)

    @rule(name=st.sampled_from(list(PARENTS)), more=st.booleans())
    def podgroup(self, name: str, more: bool) -> None:
        self.members[name] = self.members[name] + 1 if more else max(0, self.members[name] - 1)
        self.ask(name, bus.SYNC_QUEUE)

    @rule(name=st.sampled_from(list(PARENTS)), state=st.sampled_from(["", QUEUE_UNKNOWN]))
    def write_status(self, name: str, state: str) -> None:
        """A user writes the status."""
        self.queues[name].status.state = state
        self.closed_by_hand.discard(name)

    @invariant()
    def no_queue_is_open_below_a_shut_one_and_none_closes_forever(self) -> None:
        for name, parent in PARENTS.items():
            state = self.queues[name].status.state
            if self.queues[parent].status.state in SHUT:
                assert state != QUEUE_OPEN, self.states()
            assert state != QUEUE_CLOSING or self.members[name], self.states()

    def teardown(self) -> None:
        """With all PodGroups deleted and the tree opened from above, all are open except those closed by hand."""
        for name in PARENTS:
            self.members[name] = 0
            self.ask(name, bus.SYNC_QUEUE)
        for name in PARENTS:
            if name not in self.closed_by_hand and self.queues[PARENTS[name]].status.state not in SHUT:
                self.ask(name, bus.OPEN_QUEUE)
        for name, parent in PARENTS.items():
            if name not in self.closed_by_hand and self.queues[parent].status.state not in SHUT:
                assert self.queues[name].status.state == QUEUE_OPEN, self.states()


def test_no_queue_is_stuck() -> None:
    QUEUE_SEEN.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        QueueLife, settings=settings(max_examples=250, stateful_step_count=25, deadline=None)
    )
    everything = {(state, action) for state in QUEUE_STATES for action in QUEUE_ACTIONS}
    print(f"\nqueues: {len(QUEUE_SEEN & everything)} of {len(everything)} pairs of state and action seen")
    assert everything <= QUEUE_SEEN, sorted(everything - QUEUE_SEEN)
