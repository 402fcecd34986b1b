"""Pre-bind steps in the dispatcher's machine: order, barriers, undo. No I/O, time is a number."""

import pytest

from volcano_py.scheduler.dispatch.machine import BUSY_ATTEMPTS, POLL, Failure, Machine
from volcano_py.scheduler.dispatch.messages import Revoke
from volcano_py.scheduler.dispatch.pre_bind.barriers import StepWrite
from volcano_py.scheduler.model.jobs.pre_bind import AllocateClaim, AwaitDevices, AwaitVolume, BindVolume, SelectNode
from volcano_py.scheduler.model.plan import Bind, Event, Evict, PodCondition

NO = Failure("rejected", "it is taken")
BUSY = Failure("busy", "internal error")
NOT_YET = Failure("not-yet", "no volume yet", sent=False)
DOWN = Failure("unreachable", "connection refused")


def select(claim):
    return SelectNode("ns", claim, f"uid-{claim}", "n1")


def wait(claim):
    return AwaitVolume("ns", claim, f"uid-{claim}", "n1", timeout=60)


def volume(claim):
    return BindVolume(f"pv-{claim}", "ns", claim, f"uid-{claim}")


def bind(name, *steps, barrier="ns/g"):
    return Bind("ns", name, f"uid-{name}", "n1", "ns/g", None, steps, barrier)


@pytest.fixture
def machine():
    made = Machine(max_in_flight=8, heartbeat_timeout=30, jitter=lambda: 0.5)
    made.lead(True, 0.0)
    return made


def shown(item):
    op = item.op
    if isinstance(op, StepWrite):
        claim = op.step.claim
        return f"{'undo ' if op.undo else ''}{type(op.step).__name__} {claim}"
    return f"{type(op).__name__} {op.name}"


def run(machine, now=1.0, failing=None, seen=None):
    """Execute the writes that may begin until none is left; `failing`: the failures, by the text of the write."""
    seen = [] if seen is None else seen
    while items := machine.take(now):
        for item in items:
            if isinstance(item.op, PodCondition) or shown(item).startswith("Event"):
                machine.done(item, now)
                continue
            seen.append(shown(item))
            failure = (failing or {}).get(shown(item))
            if failure is None:
                machine.done(item, now)
            else:
                machine.failed(item, failure, now)
    return seen


def outcomes(machine):
    return {r.id: r.outcome for r in machine.results()}


def test_the_steps_are_written_in_order_and_the_bind_last(machine):
    machine.plan(1, [bind("a", select("x"), wait("x"), barrier="")], 0.0)
    assert machine.backlog == 2
    assert run(machine) == ["SelectNode x", "AwaitVolume x", "Bind a"]
    assert outcomes(machine) == {1: "done"} and machine.backlog == 0


def test_a_pod_whose_devices_are_awaited_gets_one_event(machine):
    claims = [AllocateClaim("ns", name, "", "a", "uid-a") for name in "xy"]
    awaited = [AwaitDevices("ns", name, "") for name in "xy"]
    machine.plan(1, [bind("a", *claims, *awaited, barrier=""), bind("b", *claims, barrier="")], 0.0)
    events = []
    while items := machine.take(1.0):
        for item in items:
            events += [item.op] if isinstance(item.op, Event) else []
            machine.done(item, 1.0)
    text = "waiting for binding conditions for device on node n1"
    waiting = Event("Pod", "ns", "a", "uid-a", "Normal", "BindingConditionsPending", text)
    assert [(e.name, e.reason) for e in events].count(("a", "BindingConditionsPending")) == 1
    assert waiting in events and "BindingConditionsPending" not in [e.reason for e in events if e.name == "b"]


def test_no_member_is_bound_before_all_steps_of_the_gang_have_succeeded(machine):
    machine.plan(1, [bind("a", volume("x")), bind("b"), bind("c", volume("y"), wait("y"))], 0.0)
    items = machine.take(1.0)
    assert [shown(i) for i in items] == ["BindVolume x", "BindVolume y"]
    machine.done(items[0], 1.0)
    assert machine.take(1.0) == []
    machine.done(items[1], 1.0)
    assert run(machine) == ["AwaitVolume y", "Bind a", "Bind b", "Bind c"]


def test_a_failed_step_undoes_the_others_and_fails_every_member(machine):
    machine.plan(1, [bind("a", volume("x"), wait("x")), bind("b"), bind("c", volume("y"))], 0.0)
    seen = run(machine, failing={"AwaitVolume x": NO})
    assert seen[:3] == ["BindVolume x", "BindVolume y", "AwaitVolume x"]
    assert seen[3:] == ["undo AwaitVolume x", "undo BindVolume y", "undo BindVolume x"]
    results = machine.results()
    assert {r.id: r.outcome for r in results} == {1: "failed", 2: "failed", 3: "failed"}
    assert {r.message for r in results} == {"execute preBind for pod ns/a failed: it is taken"}


def test_the_other_pods_of_the_statement_do_not_wait(machine):
    machine.plan(1, [bind("a", volume("x"), barrier=""), bind("b", volume("y"), barrier="")], 0.0)
    run(machine, failing={"BindVolume x": NO})
    assert outcomes(machine) == {1: "failed", 2: "done"}


def test_each_failed_member_gets_a_condition(machine):
    machine.plan(1, [bind("a", volume("x")), bind("b")], 0.0)
    (item,) = machine.take(1.0)
    machine.failed(item, NO, 1.0)
    (undo,) = machine.take(1.0)
    machine.done(undo, 1.0)
    found = [i.op for i in machine.take(1.0)]
    assert {(c.name, c.reason) for c in found} == {("a", "SchedulerError"), ("b", "SchedulerError")}


def test_waiting_ends_with_the_time_limit(machine):
    machine.plan(1, [bind("a", select("x"), wait("x"))], 0.0)
    failing = {"AwaitVolume x": NOT_YET}
    assert run(machine, 1.0, failing) == ["SelectNode x", "AwaitVolume x"]
    assert machine.wake_at(1.0) == 1.0 + POLL
    assert run(machine, 30.0, failing) == ["AwaitVolume x"]
    assert outcomes(machine) == {}
    assert run(machine, 61.0, failing) == ["AwaitVolume x", "undo AwaitVolume x", "undo SelectNode x"]
    assert outcomes(machine) == {1: "failed"}


def test_a_busy_server_is_retried_a_limited_number_of_times(machine):
    machine.plan(1, [bind("a", select("x"))], 0.0)
    seen = []
    for now in range(1, 200):
        run(machine, float(now), {"SelectNode x": BUSY}, seen)
    assert seen == ["SelectNode x"] * BUSY_ATTEMPTS + ["undo SelectNode x"]
    assert outcomes(machine) == {1: "failed"}


def test_an_outage_delays_the_steps(machine):
    machine.plan(1, [bind("a", select("x"))], 0.0)
    (item,) = machine.take(1.0)
    machine.failed(item, DOWN, 1.0)
    assert run(machine, 100.0) == ["SelectNode x", "Bind a"]


@pytest.mark.parametrize("deleted", [Revoke("Node", "n1"), Revoke("Job", "ns/g"), Revoke("Pod", "ns/b", "uid-b")])
def test_a_deletion_revokes_the_gang_and_undoes_its_steps(machine, deleted):
    machine.plan(1, [bind("a", select("x")), bind("b", select("y"), wait("y"))], 0.0)
    first = machine.take(1.0)
    machine.done(first[0], 1.0)
    machine.revoke(deleted, 1.0)
    assert outcomes(machine) == {}
    machine.done(first[1], 1.0)
    assert run(machine) == ["undo SelectNode y", "undo SelectNode x"]
    assert outcomes(machine) == {1: "revoked", 2: "revoked"}


def test_without_leadership_nothing_is_undone(machine):
    machine.plan(1, [bind("a", select("x"), wait("x")), bind("b")], 0.0)
    (item,) = machine.take(1.0)
    machine.lead(False, 1.0)
    machine.failed(item, Failure("unreachable", "leadership ended"), 1.0)
    assert outcomes(machine) == {1: "lost", 2: "lost"} and machine.backlog == 0
    machine.lead(True, 2.0)
    assert run(machine) == []


def test_a_step_in_flight_when_the_gang_fails_is_undone_if_it_succeeds(machine):
    machine.plan(1, [bind("a", volume("x")), bind("b", volume("y"))], 0.0)
    first, second = machine.take(1.0)
    machine.failed(first, NO, 1.0)
    assert machine.take(1.0) == []
    machine.done(second, 1.0)
    assert run(machine) == ["undo BindVolume y", "undo BindVolume x"]
    assert outcomes(machine) == {1: "failed", 2: "failed"}


def test_a_rejected_bind_undoes_the_steps_of_its_own_pod(machine):
    machine.plan(1, [bind("a", volume("x"), wait("x")), bind("b", volume("y"))], 0.0)
    seen = run(machine, failing={"Bind a": NO})
    assert seen[:3] == ["BindVolume x", "BindVolume y", "AwaitVolume x"]
    assert sorted(seen[3:5]) == ["Bind a", "Bind b"]
    assert seen[5:] == ["undo AwaitVolume x", "undo BindVolume x"]
    results = {r.id: (r.outcome, r.message) for r in machine.results()}
    assert results == {1: ("failed", "failed to bind to node n1: it is taken"), 2: ("done", "")}
    assert machine.backlog == 0


def test_a_bind_that_may_have_succeeded_keeps_its_steps(machine):
    machine.plan(1, [bind("a", volume("x"), barrier="")], 0.0)
    (step,) = machine.take(1.0)
    machine.done(step, 1.0)
    (item,) = machine.take(1.0)
    machine.failed(item, Failure("unreachable", "no answer in time"), 1.0)
    now = machine.wake_at(1.0)
    assert run(machine, now, {"Bind a": NO}) == ["Bind a"]
    assert set(outcomes(machine)) == {1}


def test_the_eviction_of_a_pod_whose_bind_waits_ends_that_bind(machine):
    """The pod holds no node yet. It was deleted, and its controller created another one. Found by the simulation."""
    machine.plan(1, [bind("a", volume("x"), wait("x")), bind("b")], 0.0)
    assert run(machine, failing={"AwaitVolume x": NOT_YET}) == ["BindVolume x", "AwaitVolume x"]
    machine.plan(3, [Evict("ns", "a", "uid-a", "ns/g", "preemption")], 2.0)
    assert run(machine, 60.0) == ["undo BindVolume x"]
    assert outcomes(machine) == {1: "revoked", 2: "revoked", 3: "revoked"}
    machine.plan(4, [Evict("ns", "a", "uid-a", "ns/g", "preemption")], 61.0)
    assert run(machine, 61.0) == ["Evict a"]
