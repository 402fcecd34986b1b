"""How structs read and write JSON: nulls, unknown fields, raw parts, times, selectors, the table of kinds."""

import msgspec
import pytest

from volcano_py.api import affinity, codec, core, duration, kinds, meta, selector
from volcano_py.api.batch import Job
from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.api.scheduling import PodGroup

POD = {
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "creationTimestamp": None,
        "labels": None,
        "managedFields": [{"manager": "x"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "o", "uid": "u", "controller": True}],
    },
    "spec": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                }
            }
        },
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "containers": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": None},
                "ports": [{"containerPort": 80, "hostIP": "10.0.0.1"}],
            }
        ],
        "nodeSelector": None,
    },
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "lastProbeTime": None}]},
}


def test_pod_reads_what_is_needed_and_accepts_null():
    pod = codec.from_manifest(core.Pod, POD)
    assert pod.key == "ns/a"
    assert pod.metadata.labels is None
    assert pod.metadata.controller.name == "o"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.containers[0].resources.requests == {"cpu": 1, "memory": "1Gi"}
    terms = affinity.decode_affinity(
        pod.spec
    ).node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert terms[0].match_expressions[0].values == ["v"]
    assert affinity.decode_topology_spread(pod.spec)[0].max_skew == 2


def test_absent_and_null_raw_parts():
    assert affinity.decode_affinity(core.PodSpec()) is None
    assert affinity.decode_topology_spread(core.PodSpec()) == []
    spec = codec.from_manifest(core.PodSpec, {"affinity": None, "topologySpreadConstraints": None})
    assert affinity.decode_affinity(spec) is None
    assert affinity.decode_topology_spread(spec) == []


def test_detach_keeps_the_content():
    pod = core.detach(codec.from_manifest(core.Pod, POD))
    assert affinity.decode_topology_spread(pod.spec)[0].topology_key == "zone"


def test_a_wrong_type_is_an_error_that_names_the_field():
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.minMember"):
        codec.from_manifest(PodGroup, {"spec": {"minMember": "three"}})


def test_every_struct_reads_and_writes_an_empty_object():
    for resource_type, struct in kinds.STRUCTS.items():
        written = codec.to_manifest(codec.from_manifest(struct, {}))
        # One struct may serve several versions of a kind.
        versions = {other.api_version for other, of in kinds.STRUCTS.items() if of is struct}
        assert written["kind"] == resource_type.kind and written["apiVersion"] in versions
        assert codec.from_manifest(struct, written) == struct()


def test_templates_pass_through_untouched():
    template = {"metadata": {"creationTimestamp": None}, "spec": {"anything": [1, {"x": None}]}}
    manifest = {"spec": {"tasks": [{"name": "a", "template": template}]}}
    job = codec.from_manifest(Job, manifest)
    assert job.spec.tasks[0].template == template
    assert codec.to_manifest(job)["spec"]["tasks"] == manifest["spec"]["tasks"]


def test_paths():
    assert kinds.POD.path("ns", "a", "binding") == "/api/v1/namespaces/ns/pods/a/binding"
    assert kinds.POD.path() == "/api/v1/pods"
    assert kinds.QUEUE.path("ignored", "q", "status") == "/apis/scheduling.volcano.sh/v1beta1/queues/q/status"
    assert kinds.for_manifest({"apiVersion": "batch/v1", "kind": "Job"}) is kinds.BATCH_JOB
    with pytest.raises(ValueError, match="unknown kind 'Job'"):
        kinds.for_manifest({"apiVersion": "v1", "kind": "Job"})


def test_times():
    assert meta.parse_time("1970-01-01T00:01:00Z") == 60
    assert meta.parse_time("1970-01-01T01:00:00.5+01:00") == 0.5
    assert meta.format_time(60.9) == "1970-01-01T00:01:00Z"
    for wrong in ("yesterday", "2026-01-01T00:00:00", ""):
        with pytest.raises(ValueError, match="invalid time"):
            meta.parse_time(wrong)


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("1h30m", 5400, "1h30m0s"),
        ("90s", 90, "1m30s"),
        ("2m0.1s", 120.1, "2m0.1s"),
        ("300ms", 0.3, "300ms"),
        ("-1.5s", -1.5, "-1.5s"),
        ("0", 0, "0s"),
        ("1us", 1e-6, "1µs"),
        ("1.h", 3600, "1h0m0s"),
    ],
)
def test_durations(text, seconds, written):
    assert duration.parse_duration(text) == pytest.approx(seconds)
    assert duration.format_duration(seconds) == written


@pytest.mark.parametrize("text", ["", "5", "1 h", "1d", "h", "-", "1h2", "1.2.3s"])
def test_not_a_duration(text):
    with pytest.raises(ValueError, match="invalid duration"):
        duration.parse_duration(text)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ["a", "b"], {"k": "a"}, True),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("Exists", None, {"k": ""}, True),
        ("Exists", None, None, False),
        ("DoesNotExist", None, {"k": "a"}, False),
        ("DoesNotExist", None, None, True),
    ],
)
def test_selectors(operator, values, labels, expected):
    requirement = LabelSelectorRequirement(key="k", operator=operator, values=values)
    assert selector.matches(LabelSelector(match_expressions=[requirement]), labels) is expected


def test_selector_edges():
    assert selector.matches(None, {"a": "b"}) is False
    assert selector.matches(LabelSelector(), None) is True
    assert selector.matches(LabelSelector(match_labels={"a": "b"}), {"a": "c"}) is False
    with pytest.raises(ValueError, match="operator 'in' is unknown"):
        selector.matches(LabelSelector(match_expressions=[LabelSelectorRequirement(key="k", operator="in")]), {})
