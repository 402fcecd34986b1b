import asyncio

from fake_api import PODS, pod, status

from volcano_py.kube.events import Correlator, EventRecorder, reference

REF = {"kind": "Pod", "apiVersion": "v1", "namespace": "ns", "name": "a", "uid": "u"}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_the_same_event_again_counts_up():
    correlator = Correlator("volcano", clock=Clock())
    first = correlator.correlate(REF, "Warning", "Unschedulable", "no room", now=10)
    second = correlator.correlate(REF, "Warning", "Unschedulable", "no room", now=20)
    assert first.patch is None and first.create["count"] == 1
    assert second.name == first.name and second.patch["count"] == 2
    assert second.create["firstTimestamp"] == "1970-01-01T00:00:10Z"
    assert second.patch["lastTimestamp"] == "1970-01-01T00:00:20Z"


def test_similar_messages_are_combined():
    correlator = Correlator("volcano", clock=Clock())
    writes = [correlator.correlate(REF, "Normal", "Pulled", f"image {i}") for i in range(12)]
    assert [w.create["message"] for w in writes[:9]] == [f"image {i}" for i in range(9)]
    assert writes[9].create["message"] == "(combined from similar events): image 9"
    assert writes[10].name == writes[9].name and writes[10].patch["count"] == 2


def test_similar_messages_long_after_are_new():
    clock = Clock()
    correlator = Correlator("volcano", clock=clock)
    for i in range(9):
        correlator.correlate(REF, "Normal", "Pulled", f"image {i}")
    clock.now += 601
    assert correlator.correlate(REF, "Normal", "Pulled", "other").create["message"] == "other"


def test_an_object_that_spams_is_held_back_alone():
    clock = Clock()
    correlator = Correlator("volcano", clock=clock)
    kept = [correlator.correlate(REF, "Normal", "R", "same") for _ in range(100)]
    assert sum(w is not None for w in kept) == 25 and correlator.dropped == 75
    assert correlator.correlate({**REF, "name": "b", "uid": "v"}, "Normal", "R", "same")
    clock.now += 301
    assert correlator.correlate(REF, "Normal", "R", "same")
    assert correlator.correlate(REF, "Normal", "R", "same") is None


async def test_events_are_written_and_counted_on_the_server(api, client):
    recorder = EventRecorder(client, "volcano", "host")
    made = await client.create(PODS, pod("a"), "default")
    task = asyncio.create_task(recorder.run())
    for _ in range(3):
        recorder.event(made, "Normal", "Scheduled", "Successfully assigned default/a to n1")
    await recorder.flush()
    (stored,) = [o for (p, _, _), o in api.objects.items() if p == "events"]
    assert stored["count"] == 3 and stored["metadata"]["namespace"] == "default"
    assert stored["involvedObject"]["uid"] == made["metadata"]["uid"]
    assert stored["source"] == {"component": "volcano", "host": "host"}
    assert stored["metadata"]["name"].startswith("a.")
    task.cancel()


async def test_an_event_that_expired_is_created_again(api, client):
    recorder = EventRecorder(client, "volcano")
    task = asyncio.create_task(recorder.run())
    recorder.event(REF, "Normal", "R", "m")
    await recorder.flush()
    (key,) = [k for k in api.objects if k[0] == "events"]
    api.remove("events", key[2], "ns")
    recorder.event(REF, "Normal", "R", "m")
    await recorder.flush()
    (stored,) = [o for (p, _, _), o in api.objects.items() if p == "events"]
    assert stored["count"] == 1
    task.cancel()


async def test_a_rejected_event_is_dropped_and_the_next_written(api, client):
    recorder = EventRecorder(client, "volcano")
    task = asyncio.create_task(recorder.run())
    api.fault("POST ", lambda r: status(403, "Forbidden", "the namespace is being terminated"))
    recorder.event(REF, "Normal", "R", "one")
    recorder.event(REF, "Normal", "R", "two")
    await recorder.flush()
    assert [o["message"] for (p, _, _), o in api.objects.items() if p == "events"] == ["two"]
    assert recorder.dropped == 1
    task.cancel()


async def test_a_full_queue_never_blocks(api, client):
    recorder = EventRecorder(client, "volcano")
    for i in range(1500):
        recorder.event(REF, "Normal", "R", str(i))
    assert recorder.dropped == 500


def test_references_come_from_objects_and_references():
    assert reference({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
    }
    assert reference(REF) == REF
