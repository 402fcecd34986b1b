"""The cache audit finds and corrects every kind of drift, and takes no event in flight for one. The time is manual."""

import asyncio

import pytest
from fake_api import status
from msgspec import convert

from tests.faults.drift import WAYS, Way, group, node, pod, watched
from tests.waiting import budget
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.cache.audit.audit import IN_FLIGHT
from volcano_py.scheduler.cache.audit.drift import of_objects
from volcano_py.scheduler.model.plan import Bind


class Time:
    """A clock that goes on when the audit sleeps."""

    def __init__(self):
        self.now = 0.0
        self.when_waiting = None
        self.before_reading = None

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        if seconds == IN_FLIGHT / 20 and self.when_waiting is not None:
            await self.when_waiting()
        if seconds == IN_FLIGHT and self.before_reading is not None:
            self.before_reading()
        await asyncio.sleep(0.001)


async def until(test):
    async with asyncio.timeout(budget()):
        while not test():
            await asyncio.sleep(0.002)


@pytest.fixture
async def w():
    time = Time()
    async with watched(clock=time.clock, sleep=time.sleep) as made:
        made.time = time
        yield made


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
async def test_drift_is_found_and_corrected_within_a_minute(w, way: Way):
    await until(lambda: w.audit.rounds)
    assert not w.drifts
    begun = w.time.now
    way.inject(w)
    await until(lambda: w.drifts and w.correct())
    assert w.time.now - begun < 60
    first = w.drifts[0]
    assert (first.kind, first.form) == (way.kind, way.form)
    assert not way.field or first.field == way.field
    assert first.kept != first.found
    rounds = w.audit.rounds
    count = len(w.drifts)
    await until(lambda: w.audit.rounds > rounds + 1)
    assert len(w.drifts) == count


CHANGES = [
    lambda w: w.change_silently("Pod", pod("new", "n2")),
    lambda w: w.change_silently("Node", node("n1", "2")),
    lambda w: w.delete_silently("Pod", "running"),
]


@pytest.mark.parametrize("change", CHANGES, ids=["added", "modified", "deleted"])
async def test_an_event_in_flight_is_no_drift_and_holds_no_node(w, change):
    await until(lambda: w.audit.rounds)
    held, lists, arrived = [], [], []
    w.model.hold = lambda *why: held.append(why)
    for informer in w.cache.informers.values():
        informer.list_again = lists.append

    async def arrive():
        """The watch returns the event a moment after the audit has seen the difference."""
        if not arrived:
            arrived.append(True)
            w.api.history.append(event)
            w.api.changed.set()
            w.api.changed = asyncio.Event()
            await asyncio.sleep(0.1)

    w.time.when_waiting = arrive
    put = w.api.put
    w.api.put = lambda *args: (put(*args), events.append(w.api.history[-1]))[0]
    events = []
    change(w)
    (event,) = events
    rounds = w.audit.rounds
    await until(lambda: w.audit.rounds > rounds + 1)
    assert arrived and w.correct()
    assert not (w.drifts or held or lists)


async def test_what_the_watch_returns_after_the_correction_changes_nothing(w):
    await until(lambda: w.audit.rounds)
    w.api.put("nodes", node("n1", "4"))
    late = w.api.history.pop()
    w.change_silently("Node", node("n1", "2"))
    await until(lambda: w.drifts and w.correct())
    w.api.history.append(late)
    w.api.put("nodes", node("n3"))  # wakes the watch, which continues after the list
    await until(lambda: "n3" in w.model.nodes.index)
    assert w.model.nodes.objects[w.model.nodes.index["n1"]].status.allocatable["cpu"] == "2"
    assert w.correct()


@pytest.mark.parametrize(
    ("inject", "nodes"),
    [
        (lambda w: w.change_silently("Pod", pod("new", "n2")), {"n2"}),
        (lambda w: w.delete_silently("Pod", "running"), {"n1"}),
        (lambda w: w.change_silently("Node", node("n1", "2")), {"n1"}),
        (lambda w: w.change_silently("PodGroup", group(2)), {"n1", "n2"}),
        (lambda w: w.delete_silently("Pod", "waiting"), set()),
        (lambda w: w.change_silently("PriorityClass", {"metadata": {"name": "high"}, "value": 7}), set()),
    ],
)
async def test_nodes_are_held_from_the_doubt_to_the_correction(w, inject, nodes):
    await until(lambda: w.audit.rounds)
    seen = []
    for informer in w.cache.informers.values():

        def watch_list(doubted, list_again=informer.list_again):
            seen.append({name for name in w.model.nodes.index if name in w.model.held})
            return list_again(doubted)

        informer.list_again = watch_list
    inject(w)
    await until(lambda: w.drifts and w.correct())
    assert seen == [nodes]
    assert not w.model.held and w.model.dirty
    if nodes:
        assert [found for found, _ in w.withdrawn] == [sorted(nodes) if len(nodes) == 1 else None]
    else:
        assert not w.withdrawn


async def test_a_pod_of_which_only_the_metadata_is_known_holds_every_node():
    time = Time()
    async with watched(clock=time.clock, sleep=time.sleep, pages=(1, 1)) as w:
        await until(lambda: w.audit.rounds)
        w.change_silently("Pod", pod("a-new", "n2"))
        w.change_silently("Pod", pod("b-new", "n2"))
        w.change_silently("Pod", pod("c-new", "n2"))
        await until(lambda: len(w.drifts) == 3 and w.correct())
        assert [found for found, _ in w.withdrawn] == [None]


async def test_every_object_is_compared_with_its_content_within_as_many_rounds_as_there_are_pages():
    time = Time()
    async with watched(clock=time.clock, sleep=time.sleep, pages=(1, 1)) as w:
        for name in ("n1", "n2"):
            w.cache.informers["Node"].store[name].metadata.labels["zone"] = "?"
        await until(lambda: len(w.drifts) == 2 and w.correct())
        assert {(drift.key, drift.form) for drift in w.drifts} == {("n1", "content"), ("n2", "content")}
        assert w.audit.rounds <= 4


async def test_a_bind_whose_result_is_not_known_is_not_doubted(w):
    await until(lambda: w.audit.rounds)
    uid = w.model.tasks["default/waiting"].uid
    w.in_flight = {uid}
    w.model.assume(Bind("default", "waiting", uid, "n2", "default/g"))
    rounds = w.audit.rounds
    await until(lambda: w.audit.rounds > rounds + 1)
    assert not w.drifts and w.model.tasks["default/waiting"].node == "n2"


async def test_a_bind_that_the_api_server_has_and_no_watch_returned_is_no_drift(w):
    await until(lambda: w.audit.rounds)
    w.time.before_reading = lambda: w.change_silently("Pod", pod("waiting", "n2"))
    w.model.assume(Bind("default", "waiting", w.model.tasks["default/waiting"].uid, "n2", "default/g"))
    await until(lambda: w.model.tasks["default/waiting"].pod.spec.node_name)
    assert "assumed" not in {drift.form for drift in w.drifts}


async def test_a_pod_that_was_read_is_not_replaced_by_what_the_watch_returned_before(w):
    """Its bind had an unknown outcome, and the watch was behind. The object in the informer's store got the version of
    the one that was read: the audit took the older one for correct, and the watch's newer one was ignored. Found by the
    simulation."""
    await until(lambda: w.audit.rounds)
    store = w.cache.informers["Pod"].store
    known = store["default/waiting"]
    version = known.metadata.resource_version
    newer = str(int(version) + 1000)
    w.cache.put("Pod", convert(pod("waiting", "n2", uid=known.metadata.uid, resourceVersion=newer), Pod))
    rounds = w.audit.rounds
    await until(lambda: w.audit.rounds > rounds + 1)
    assert not w.drifts and w.model.tasks["default/waiting"].node == "n2"
    assert store["default/waiting"].metadata.resource_version == version


async def test_kinds_that_cannot_be_listed_hold_up_no_others(w):
    await until(lambda: w.audit.rounds)
    w.api.fault("GET /api/v1/nodes", status(500, "InternalError"), times=100)
    w.change_silently("Pod", pod("new", "n2"))
    await until(lambda: w.drifts and "default/new" in w.model.tasks)
    await until(lambda: w.audit.unread)
    assert w.audit.unread == ("nodes",)


async def test_a_kind_that_the_cluster_lacks_is_not_listed(w):
    informer = w.cache.informers["Numatopology"]
    listed = []
    informer.page = lambda *arguments: listed.append(arguments)
    informer.missing = True
    rounds = w.audit.rounds
    await until(lambda: w.audit.rounds > rounds + 1)
    assert not listed and not w.audit.unread


async def test_requests_are_bounded(w):
    await until(lambda: w.audit.rounds > 1)
    requests, begun = w.audit.requests, w.time.now
    rounds = w.audit.rounds
    await until(lambda: w.audit.rounds > rounds + 3)
    minutes = (w.time.now - begun) / 60
    assert 0 < (w.audit.requests - requests) / minutes <= 240
    assert w.audit.bytes > 0


def test_the_first_different_field_is_named_with_both_values():
    old = convert(node("n", "1", zone="a"), Node)
    new = convert(node("n", "2", zone="a"), Node)
    new.metadata.resource_version = "7"
    found = of_objects("Node", "n", "stale", old, new)
    assert found.field == "status.allocatable.cpu"
    assert found.text == "the cache had status.allocatable.cpu '1', correct is '2' (stale); it was corrected"
