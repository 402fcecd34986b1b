"""The dispatcher's machine: no I/O, time is a number."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from volcano_py.scheduler.dispatch.follow_ups import follow_ups
from volcano_py.scheduler.dispatch.machine import MAX_EVENTS, Failure, Machine
from volcano_py.scheduler.dispatch.messages import Revoke
from volcano_py.scheduler.dispatch.waiting import MOST_WITHDRAWN
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    Nomination,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)

DOWN = Failure("unreachable", "connection refused", sent=False)
HALF = Failure("unreachable", "no answer in time", sent=True)
BUSY = Failure("busy", "internal error")
NO = Failure("rejected", "no such node")
GONE = Failure("rejected", "not found", pod_gone=True)


def bind(name="a", node="n1", group="ns/g"):
    return Bind("ns", name, f"uid-{name}", node, group)


def evict(name="a"):
    return Evict("ns", name, f"uid-{name}", "ns/g", "preempt")


def condition(name="a", message="m"):
    return PodCondition("ns", name, f"uid-{name}", "Unschedulable", message)


def status(name="g", phase="Pending", urgent=False):
    return PodGroupStatus("ns", name, "u", {"phase": phase}, urgent)


def nomination(name="a", node="n1"):
    return Nomination("ns", name, f"uid-{name}", node)


def event(name="a", message="m"):
    return Event("Pod", "ns", name, "", "Normal", "R", message)


@pytest.fixture
def machine():
    made = Machine(max_in_flight=4, heartbeat_timeout=30, jitter=lambda: 0.5)
    made.lead(True, 0.0)
    return made


CHANGED = Failure("conflict", "the object has been modified")


def outcomes(machine):
    return {r.id: r.outcome for r in machine.results()}


def ops(items):
    return [i.op for i in items]


def test_a_bind_is_written_and_acknowledged_with_its_times(machine):
    machine.plan(1, [bind()], now=1.0)
    (item,) = machine.take(3.0)
    assert item.op == bind()
    machine.done(item, 3.5)
    (result,) = machine.results()
    assert (result.id, result.outcome, result.waited, result.took) == (1, "done", 2.0, 0.5)


def test_a_bind_is_followed_by_volcanos_event(machine):
    machine.plan(1, [bind()], 0)
    machine.done(machine.take(0)[0], 1)
    (item,) = machine.take(1)
    assert item.op == Event("Pod", "ns", "a", "uid-a", "Normal", "Scheduled", "Successfully assigned ns/a to n1")
    machine.done(item, 2)
    assert [r.id for r in machine.results()] == [1], "follow-ups have no result"
    assert machine.backlog == 0


def test_an_eviction_is_reported_on_pod_and_group():
    pod, group = follow_ups(evict())
    assert (pod.type, pod.reason, pod.message) == ("Warning", "Evict", "Pod is evicted, because of preempt")
    assert (group.kind, group.name, group.type, group.reason, group.message) == (
        "PodGroup",
        "g",
        "Normal",
        "Evict",
        "preempt",
    )


def test_no_more_than_the_limit_are_in_flight(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(10)], 0)
    first = machine.take(0)
    assert len(first) == 4 and machine.take(0) == []
    machine.done(first[0], 1)
    assert len(machine.take(1)) == 1


def test_nothing_is_written_without_leadership():
    machine = Machine()
    machine.plan(1, [bind(), condition("b")], 0)
    assert machine.take(0) == []
    assert outcomes(machine) == {1: "lost", 2: "lost"}


def test_after_leadership_waiting_operations_are_lost_and_the_others_end(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(6)], 0)
    in_flight = machine.take(0)
    machine.lead(False, 1)
    assert outcomes(machine) == {5: "lost", 6: "lost"}
    machine.done(in_flight[0], 2)
    machine.failed(in_flight[1], DOWN, 2)
    machine.failed(in_flight[2], HALF, 2)
    machine.failed(in_flight[3], Failure("not-leading", "x", sent=False), 2)
    assert outcomes(machine) == {1: "done", 2: "lost", 3: "unknown", 4: "lost"}
    assert machine.take(3) == [] and machine.backlog == 0


def test_an_operation_that_may_have_been_carried_out_is_never_lost(machine):
    machine.plan(1, [bind()], 0)
    machine.failed(machine.take(0)[0], HALF, 1)
    machine.lead(False, 2)
    assert outcomes(machine) == {1: "unknown"}


def test_urgent_operations_overtake_a_long_queue_of_binds(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(100)], 0)
    machine.plan(200, [evict("v"), status(phase="Inqueue", urgent=True)], 0)
    begun = []
    while len(begun) < 8:
        for item in machine.take(0):
            begun.append(item.op)
            machine.done(item, 0)
    kinds = Counter(type(op) for op in begun)
    assert kinds[Evict] == 1 and kinds[PodGroupStatus] == 1


def test_binds_do_not_starve_conditions_and_events(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(1000)], 0)
    machine.plan(2000, [condition(f"c{i}") for i in range(50)] + [event(f"e{i}") for i in range(50)], 0)
    seen = Counter()
    for _ in range(60):
        for item in machine.take(0):
            seen[type(item.op)] += 1
            machine.done(item, 0)
    assert seen[PodCondition] >= 5 and seen[Event] >= 5
    assert seen[Bind] > 6 * (seen[PodCondition] + seen[Event])


def test_lower_lanes_never_use_all_slots(machine):
    machine.plan(1, [condition(f"c{i}") for i in range(50)] + [event(f"e{i}") for i in range(50)], 0)
    machine.take(0)
    assert machine.in_flight < 4
    machine.plan(200, [bind("b")], 0)
    assert ops(machine.take(0)) == [bind("b")]


def test_writes_on_one_object_never_overlap_and_keep_their_order(machine):
    machine.plan(1, [bind("a")], 0)
    machine.plan(2, [evict("a")], 0)
    (first,) = machine.take(0)
    assert first.op == bind("a") and machine.take(0) == []
    machine.done(first, 1)
    assert evict("a") in ops(machine.take(1))


def test_of_pending_statuses_only_the_newest_is_written(machine):
    machine.plan(1, [status(phase="Pending")], 0)
    (in_flight,) = machine.take(0)
    machine.plan(2, [status(phase="Inqueue", urgent=True)], 0)
    machine.plan(3, [status(phase="Running")], 0)
    assert outcomes(machine) == {2: "superseded"}
    machine.done(in_flight, 1)
    (item,) = machine.take(1)
    assert item.op.status == {"phase": "Running"}
    assert item.lane == 0, "it inherits the lane of the one it replaced"


def test_queue_statuses_are_coalesced_by_queue(machine):
    machine.plan(1, [QueueStatus("q", {"cpu": "1"}), QueueStatus("r", {"cpu": "1"})], 0)
    machine.plan(3, [QueueStatus("q", {"cpu": "2"})], 0)
    assert outcomes(machine) == {1: "superseded"}
    assert sorted(i.op.allocated["cpu"] for i in machine.take(0)) == ["1", "2"]


def test_conditions_of_one_pod_are_a_second_apart(machine):
    machine.plan(1, [condition(message="one")], 0.0)
    machine.done(machine.take(0.0)[0], 0.1)
    [machine.done(e, 0.1) for e in machine.take(0.1)]
    machine.plan(2, [condition(message="two")], 0.2)
    assert machine.take(0.5) == []
    machine.plan(3, [condition(message="three")], 0.6)
    assert machine.wake_at(0.6) == pytest.approx(1.1)
    (item,) = machine.take(1.1)
    assert item.op.message == "three"
    assert outcomes(machine) == {1: "done", 2: "superseded"}


def test_a_condition_behind_one_in_flight_waits_a_second_too(machine):
    machine.plan(1, [condition(message="one")], 0)
    (in_flight,) = machine.take(0)
    machine.plan(2, [condition(message="two")], 0)
    machine.done(in_flight, 1)
    assert not [i for i in machine.take(1.5) if isinstance(i.op, PodCondition)]
    assert [i for i in machine.take(2.0) if isinstance(i.op, PodCondition)]


def test_a_bind_supersedes_the_pending_condition(machine):
    machine.plan(1, [condition("a")], 0)
    machine.plan(2, [bind("a")], 0)
    assert outcomes(machine) == {1: "superseded"}
    assert ops(machine.take(0)) == [bind("a")]


@pytest.mark.parametrize("failure", [BUSY, HALF, DOWN])
def test_a_bind_does_not_wait_for_the_back_off_of_a_condition(machine, failure):
    machine.plan(1, [condition("a")], 0)
    (in_flight,) = machine.take(0)
    machine.plan(2, [bind("a")], 0)
    machine.failed(in_flight, failure, 8)
    assert outcomes(machine) == {1: "superseded"}
    assert ops(machine.take(9)) == [bind("a")]


def test_a_rejected_bind_fails_and_the_pod_gets_a_condition(machine):
    machine.plan(1, [bind()], 0)
    machine.failed(machine.take(0)[0], NO, 1)
    (result,) = machine.results()
    assert (result.outcome, result.message) == ("failed", "no such node")
    (item,) = machine.take(1)
    assert item.op == PodCondition("ns", "a", "uid-a", "SchedulerError", "failed to bind to node n1: no such node")


@pytest.mark.parametrize("op", [bind("a"), evict("a")], ids=["bind", "evict"])
@pytest.mark.parametrize(("rejection", "outcome"), [(NO, "unknown"), (GONE, "failed")], ids=["no", "gone"])
def test_a_rejection_after_an_attempt_that_may_have_taken_effect(machine, op, rejection, outcome):
    """The outcome is unknown. A bind had taken effect, and its pod could not be read: its capacity was given away.
    Found by the simulation."""
    machine.plan(1, [op], 0)
    machine.failed(machine.take(0)[0], HALF, 0)
    machine.failed(machine.take(60)[0], rejection, 60)
    assert outcomes(machine) == {1: outcome}


def test_a_rejected_bind_of_a_deleted_pod_gets_no_condition(machine):
    machine.plan(1, [bind()], 0)
    machine.failed(machine.take(0)[0], Failure("rejected", "not found", pod_gone=True), 1)
    assert machine.take(1) == [] and outcomes(machine) == {1: "failed"}


def test_a_write_to_a_busy_server_is_retried_with_back_off_then_fails(machine):
    machine.plan(1, [bind()], 0)
    now, pauses = 0.0, []
    while True:
        items = machine.take(now)
        if not items:
            wake = machine.wake_at(now)
            if wake is None:
                break
            pauses.append(wake - now)
            now = wake
            continue
        machine.failed(items[0], BUSY, now)
    assert outcomes(machine) == {1: "unknown"}, "a 5xx may be sent after the write"
    assert pauses == sorted(pauses) and len(pauses) == 7


def test_a_busy_object_does_not_hold_up_others(machine):
    machine.plan(1, [bind("a"), bind("b")], 0)
    one, two = machine.take(0)
    machine.failed(one, BUSY, 0)
    machine.done(two, 0)
    assert outcomes(machine) == {2: "done"}


def test_retry_after_is_honoured(machine):
    machine.plan(1, [bind()], 0)
    machine.failed(machine.take(0)[0], Failure("busy", "429", sent=False, retry_after=7.0), 0)
    assert machine.take(6.9) == [] and len(machine.take(7.0)) == 1


def test_an_unreachable_server_is_probed_by_one_write_at_a_time(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(8)], 0)
    for item in machine.take(0):
        machine.failed(item, DOWN, 0)
    now, gaps = 0.0, []
    for _ in range(10):
        assert machine.take(now) == []
        wake = machine.wake_at(now)
        gaps.append(wake - now)
        now = wake
        probe = machine.take(now)
        assert len(probe) == 1 and machine.wake_at(now) is None
        machine.failed(probe[0], DOWN, now)
    assert gaps[0] < 0.2 and max(gaps) <= 5.0 and gaps[-1] == pytest.approx(5.0)
    assert machine.results() == []
    now = machine.wake_at(now)
    (probe,) = machine.take(now)
    machine.done(probe, now)
    assert len(machine.take(now)) == 4, "the server is reachable: all continue"


def test_an_outage_neither_loses_nor_repeats_operations(machine):
    machine.plan(1, [bind(f"p{i}") for i in range(20)], 0)
    carried_out, now, fail = [], 0.0, 15
    while machine.backlog:
        for item in machine.take(now):
            if fail:
                fail -= 1
                machine.failed(item, DOWN, now)
            else:
                if isinstance(item.op, Bind):
                    carried_out.append(item.op.name)
                machine.done(item, now)
        now = machine.wake_at(now) or now + 0.01
    assert sorted(carried_out) == sorted(f"p{i}" for i in range(20))
    assert set(outcomes(machine).values()) == {"done"}


def test_revoking_a_node_withdraws_its_waiting_binds_only(machine):
    machine.plan(1, [bind(f"p{i}", "dead" if i % 2 else "n1") for i in range(8)], 0)
    in_flight = machine.take(0)
    machine.revoke(Revoke("Node", "dead"), 0)
    assert outcomes(machine) == {6: "revoked", 8: "revoked"}
    for item in in_flight:
        machine.done(item, 1)
    assert {i.op.node for i in machine.take(1) if isinstance(i.op, Bind)} == {"n1"}


def test_revoking_a_job_withdraws_binds_and_evictions(machine):
    machine.plan(1, [bind(f"x{i}", group="ns/other") for i in range(4)], 0)
    machine.take(0)
    machine.plan(5, [bind("a"), evict("b"), bind("c", group="ns/other")], 0)
    machine.revoke(Revoke("Job", "ns/g"), 0)
    assert outcomes(machine) == {5: "revoked", 6: "revoked"}


def test_revoking_a_pod_compares_its_uid(machine):
    machine.plan(1, [bind(f"x{i}") for i in range(4)], 0)
    machine.take(0)
    machine.plan(5, [bind("a")], 0)
    machine.revoke(Revoke("Pod", "ns/a", "another"), 0)
    assert outcomes(machine) == {}
    machine.revoke(Revoke("Pod", "ns/a", "uid-a"), 0)
    assert outcomes(machine) == {5: "revoked"}


def test_the_result_of_a_revoked_bind_that_may_have_succeeded_is_unknown(machine):
    machine.plan(1, [bind("a", "dead")], 0)
    machine.failed(machine.take(0)[0], HALF, 0)
    machine.revoke(Revoke("Node", "dead"), 0)
    assert outcomes(machine) == {1: "unknown"}


def test_a_missing_heartbeat_is_detected_and_any_message_counts_as_one(machine):
    machine.beat(0)
    assert not machine.silent(30) and machine.silent(30.1)
    machine.plan(1, [], 30)
    assert not machine.silent(60)
    machine.revoke(Revoke("Node", "n"), 60)
    assert not machine.silent(90) and machine.silent(90.1)


class Random(RuleBasedStateMachine):
    """In any sequence of events each operation gets one result, and no object has two writes in flight."""

    @initialize()
    def begin(self):
        self.machine = Machine(max_in_flight=3, jitter=lambda: 0.5)
        self.now = 0.0
        self.next_id = 1
        self.in_flight = []
        self.results = {}
        self.sent = {}
        self.lead(True)

    def collect(self):
        for result in self.machine.results():
            assert result.id not in self.results, "two results for one operation"
            self.results[result.id] = result.outcome

    @rule(leading=st.booleans())
    def lead(self, leading):
        self.machine.lead(leading, self.now)

    names = st.sampled_from("abcd")

    @rule(
        plan=st.lists(
            st.one_of(
                st.builds(bind, names, st.sampled_from(["n1", "n2"])),
                st.builds(evict, names),
                st.builds(condition, names, st.sampled_from(["x", "y"])),
                st.builds(status, names, st.just("p"), st.booleans()),
                st.builds(event, names),
            ),
            max_size=5,
        )
    )
    def plan(self, plan):
        for op in plan:
            self.sent[self.next_id] = op
            self.next_id += 1
        self.machine.plan(self.next_id - len(plan), plan, self.now)

    @rule(what=st.sampled_from([("Node", "n1"), ("Job", "ns/g"), ("Pod", "ns/a")]))
    def revoke(self, what):
        self.machine.revoke(Revoke(*what), self.now)

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.3, 1.0, 6.0]))
    def take(self, seconds):
        self.now += seconds
        self.in_flight += self.machine.take(self.now)

    @precondition(lambda self: self.in_flight)
    @rule(how=st.sampled_from([None, None, DOWN, HALF, BUSY, NO]), data=st.data())
    def answer(self, how, data):
        item = self.in_flight.pop(data.draw(st.integers(0, len(self.in_flight) - 1)))
        if how is None:
            self.machine.done(item, self.now)
        else:
            self.machine.failed(item, how, self.now)

    @invariant()
    def one_write_an_object(self):
        self.collect()
        assert all(n == 1 for n in Counter(i.key for i in self.in_flight).values())
        assert len(self.in_flight) <= 3 and self.machine.in_flight == len(self.in_flight)

    def teardown(self):
        # Complete everything, with a server that works.
        for _ in range(10_000):
            for item in self.in_flight:
                self.machine.done(item, self.now)
            self.in_flight = self.machine.take(self.now)
            if not self.in_flight:
                wake = self.machine.wake_at(self.now)
                if wake is None:
                    break
                self.now = wake
        self.collect()
        assert self.machine.backlog == 0
        assert set(self.results) == set(self.sent)


Random.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestRandom = Random.TestCase


def test_a_conflict_ends_the_operation_and_is_not_repeated(machine):
    machine.plan(1, [status(), bind()], 0)
    items = {type(item.op).__name__: item for item in machine.take(0)}
    machine.failed(items["PodGroupStatus"], CHANGED, 0)
    assert outcomes(machine) == {1: "conflict"}
    assert machine.take(10) == [] and machine.backlog == 1


def test_only_the_newest_nomination_of_a_pod_is_written():
    machine = Machine()
    machine.lead(True, 0.0)
    machine.plan(1, [nomination(node="n1"), nomination(node="n2"), nomination("b")], 0.0)
    assert sorted((i.op.name, i.op.node) for i in machine.take(0.0)) == [("a", "n2"), ("b", "n1")]
    assert [(r.id, r.outcome) for r in machine.results()] == [(1, "superseded")]


def test_a_pod_that_a_profile_evicts_gets_the_event_of_kube_scheduler():
    evicted = Evict("ns", "a", "uid-a", "ns/g", "preempt", event="Preempted by pod x on node n1")
    assert follow_ups(evicted) == [
        Event("Pod", "ns", "a", "uid-a", "Normal", "Preempted", "Preempted by pod x on node n1")
    ]


def test_before_a_regular_end_only_gangs_whose_binds_have_begun_are_bound(machine):
    begun = [bind(f"a{i}", group="ns/begun") for i in range(6)]
    other = [bind(f"b{i}", group="ns/other") for i in range(2)]
    machine.plan(1, [*begun, *other, condition("c")], now=0.0)
    first = machine.take(0.0)
    assert len(first) == 4
    machine.finish()
    assert outcomes(machine) == {7: "lost", 8: "lost", 9: "lost"}
    machine.plan(20, [bind("late")], now=1.0)
    assert outcomes(machine) == {20: "lost"}
    for item in first:
        machine.done(item, 1.0)
    written = []
    while items := machine.take(1.0):
        written += ops(items)
        for item in items:
            machine.done(item, 1.0)
    assert [op for op in written if isinstance(op, Bind)] == begun[4:]
    assert outcomes(machine) == dict.fromkeys(range(1, 7), "done")
    assert machine.backlog == 0


def test_a_regular_end_that_loses_the_lease_writes_nothing_more(machine):
    machine.plan(1, [bind(f"a{i}") for i in range(6)], now=0.0)
    first = machine.take(0.0)
    machine.finish()
    machine.lead(False, 1.0)
    assert outcomes(machine) == {5: "lost", 6: "lost"}
    machine.failed(first[0], DOWN, 1.0)
    assert machine.take(1.0) == []


def test_under_overload_evictions_and_binds_go_first_then_statuses_then_events():
    machine = Machine(max_in_flight=8, jitter=lambda: 0.5)
    machine.lead(True, 0.0)
    operations = [event(f"e{i}") for i in range(500)] + [condition(f"c{i}") for i in range(500)]
    operations += [bind(f"b{i}") for i in range(100)] + [evict(f"v{i}") for i in range(100)]
    machine.plan(1, operations, 0.0)
    order = []
    while items := machine.take(0.0):
        order += [type(item.op).__name__ for item in items]
        for item in items:
            machine.done(item, 0.0)
    done = {name: [i for i, kind in enumerate(order) if kind == name] for name in set(order)}
    last = max(done["Bind"][99], done["Evict"][99])
    assert last < 240, "200 urgent writes are delayed by at most one in seven"
    assert abs(done["Bind"][99] - done["Evict"][99]) < 10
    between = order[: last + 1]
    assert 0 < between.count("Event") <= between.count("PodCondition") < 30, "the others do not starve, either"
    assert done["PodCondition"][-1] < done["Event"][-1]


def test_events_of_one_object_are_bounded_too(machine):
    machine.plan(1, [event(message=f"m{i}") for i in range(MAX_EVENTS + 5)], 0.0)
    assert machine.backlog == MAX_EVENTS
    assert [r.message for r in machine.results()] == ["too many pending Events"] * 5


def test_what_was_withdrawn_takes_no_memory_while_nothing_is_written(machine):
    machine.failed(taken(machine, bind("first", node="n0")), DOWN, 0.0)
    number = 10
    for _ in range(5):
        machine.plan(number, [bind(f"p{i}") for i in range(MOST_WITHDRAWN // 2)], 0.0)
        machine.revoke(Revoke("Node", "n1", why="the cache audit verifies Node n1"), 0.0)
        number += MOST_WITHDRAWN
    results = machine.results()
    assert {r.outcome for r in results} == {"revoked"} and results[0].message == "the cache audit verifies Node n1"
    assert sum(len(lane) for lane in machine._waiting._lanes) <= MOST_WITHDRAWN + 1
    assert machine.backlog == 1


def taken(machine, op):
    machine.plan(1, [op], 0.0)
    (item,) = machine.take(0.0)
    return item
