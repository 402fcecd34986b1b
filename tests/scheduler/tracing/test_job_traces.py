"""The spans of a job's trace, by the times at which things happened."""

from __future__ import annotations

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, PodGroupStatus
from volcano_py.scheduler.tracing import job_traces
from volcano_py.scheduler.tracing.job_traces import PARENT, JobTraces, TracedSpan

CREATED = 1_767_225_600.0  # 2026-01-01T00:00:00Z
CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def cluster(count: int, minimum: int, *, annotations: dict[str, str] | None = None) -> Cluster:
    model = Cluster()
    metadata = {"name": "g", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    group = {"metadata": {**metadata, "annotations": annotations}, "spec": {"minMember": minimum, "queue": "q"}}
    model.upsert("PodGroup", from_manifest(PodGroup, group))
    for i in range(count):
        meta = {"name": f"p{i}", "namespace": "default", "uid": f"u{i}", "creationTimestamp": "2026-01-01T00:00:05Z"}
        meta["annotations"] = {"scheduling.k8s.io/group-name": "g"}
        spec = {"schedulerName": "volcano", "containers": [{"name": "c"}]}
        model.upsert("Pod", from_manifest(Pod, {"metadata": meta, "spec": spec}))
    return model


def bind(number: int) -> Bind:
    return Bind("default", f"p{number}", f"u{number}", "n1", "default/g")


def collected() -> tuple[list[tuple[TracedSpan, str]], JobTraces]:
    found: list[tuple[TracedSpan, str]] = []
    return found, JobTraces(lambda span, parent: found.append((span, parent)))


def durations(span: TracedSpan) -> dict[str, float]:
    return {child.name: child.end - child.begin for child in span.spans}


def test_a_trace_has_the_parts_from_the_creation_to_the_last_binding() -> None:
    found, traces = collected()
    model = cluster(2, 2, annotations={PARENT: CONTEXT})
    traces.decided([PodGroupStatus("default", "g", "", {"phase": "Inqueue"}, False, "")], model, CREATED + 3)
    traces.decided([bind(0), bind(1)], model, CREATED + 9)
    traces.bind_ended(bind(0), True, model, CREATED + 10)
    assert not found, "a pod of the minimum is not bound"
    traces.bind_ended(bind(1), True, model, CREATED + 11)
    [(span, parent)] = found
    assert (span.name, span.begin, span.end) == ("schedule default/g", CREATED, CREATED + 11) and parent == CONTEXT
    assert durations(span) == {"wait for admission": 3, "create pods": 2, "wait for nodes": 4, "bind": 2}
    assert [(pod.attributes["k8s.pod.name"], pod.end - pod.begin) for pod in span.spans[-1].spans] == [
        ("p0", 1),
        ("p1", 2),
    ]
    assert span.attributes["volcano.queue.name"] == "q" and span.attributes["volcano.pods"] == 2


def test_a_bind_that_failed_is_counted_and_its_pod_is_awaited_again() -> None:
    found, traces = collected()
    model = cluster(1, 1)
    traces.decided([bind(0)], model, CREATED + 9)
    traces.bind_ended(bind(0), False, model, CREATED + 10)
    assert not found
    traces.decided([bind(0)], model, CREATED + 20)
    traces.bind_ended(bind(0), True, model, CREATED + 21)
    [(span, parent)] = found
    assert span.attributes["volcano.failed_binds"] == 1 and parent == ""
    assert durations(span) == {"wait for nodes": 15, "bind": 1}


def test_times_of_jobs_that_never_start_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_traces, "MOST_JOBS", 1)
    found, traces = collected()
    model = cluster(1, 1)
    other = {"metadata": {"name": "other", "namespace": "default"}, "spec": {"minMember": 1}}
    model.upsert("PodGroup", from_manifest(PodGroup, other))
    traces.decided([bind(0)], model, CREATED)
    traces.decided([PodGroupStatus("default", "other", "", {"phase": "Inqueue"}, False, "")], model, CREATED)
    traces.bind_ended(bind(0), True, model, CREATED)
    assert not found, "the older job was dropped"


def test_a_pod_of_a_profile_has_a_trace_of_its_own() -> None:
    found, traces = collected()
    model = cluster(2, 2, annotations={PARENT: CONTEXT})
    op = Bind("default", "p0", "u0", "n1", "")
    traces.decided([op], model, CREATED + 8)
    traces.bind_ended(op, False, model, CREATED + 9)
    traces.decided([op], model, CREATED + 20)
    traces.bind_ended(op, True, model, CREATED + 21)
    [(span, parent)] = found
    assert (span.name, span.begin, span.end, parent) == ("schedule default/p0", CREATED + 5, CREATED + 21, "")
    assert durations(span) == {"wait for nodes": 15, "bind": 1}
    assert span.attributes["k8s.node.name"] == "n1" and span.attributes["volcano.failed_binds"] == 1


def test_a_deleted_job_has_no_trace() -> None:
    found, traces = collected()
    model = cluster(1, 1)
    traces.decided([bind(0)], model, CREATED)
    traces.forget("default", "g")
    traces.bind_ended(bind(0), True, model, CREATED)
    assert not found
