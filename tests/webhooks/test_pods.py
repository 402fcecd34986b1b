"""Admission of pods: resource groups, the queue's gate, and disruption budgets."""

import copy

import pytest

from volcano_py.webhooks.pods import concerns, mutate_pod, validate_pod

GATE = "scheduling.volcano.sh/queue-allocation-gate"
AFFINITY = '{"nodeAffinity": {}}'
GROUPS = [
    {
        "resourceGroup": "management",
        "object": {"key": "namespace", "value": ["admin"]},
        "schedulerName": "default-scheduler",
        "labels": {"kind": "management"},
        "tolerations": [{"key": "admin", "operator": "Exists"}],
        "affinity": AFFINITY,
    },
    {"resourceGroup": "cpu", "object": {"key": "annotation", "value": ["pool: cpu"]}, "labels": {"kind": "cpu"}},
    {"resourceGroup": "gpu", "labels": {"kind": "gpu"}, "affinity": "{", "schedulerName": "volcano"},
    {"resourceGroup": "odd", "object": {"key": "label", "value": ["x: y"]}, "labels": {"kind": "odd"}},
]


def pod(annotations=None, namespace="lab", **spec):
    return {"metadata": {"name": "p", "namespace": namespace, "annotations": annotations or {}}, "spec": spec}


def test_a_group_gives_its_settings():
    before = pod(namespace="admin", nodeSelector={"kind": "x", "zone": "a"}, tolerations=[{"key": "own"}])
    kept = copy.deepcopy(before)
    spec = mutate_pod(before, GROUPS)["spec"]
    assert before == kept
    assert spec == {
        "nodeSelector": {"kind": "management", "zone": "a"},
        "tolerations": [{"key": "own"}, {"key": "admin", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "schedulerName": "default-scheduler",
    }


def test_own_affinity_stays():
    assert mutate_pod(pod(namespace="admin", affinity={"podAffinity": {}}), GROUPS)["spec"]["affinity"] == {
        "podAffinity": {}
    }


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ({"pool": "cpu"}, "cpu"),
        ({"volcano.sh/resource-group": "gpu"}, "gpu"),
        ({"volcano.sh/resource-group": "gpu", "pool": "cpu"}, "cpu"),
        ({"x": "y"}, None),
        ({}, None),
    ],
)
def test_the_first_fitting_group_counts(annotations, kind):
    spec = mutate_pod(pod(annotations), GROUPS)["spec"]
    assert spec.get("nodeSelector", {}).get("kind") == kind
    assert "affinity" not in spec


def test_the_queue_gate_is_added_once_and_only_with_the_feature():
    annotated = pod({GATE: "true"}, schedulingGates=[{"name": "other"}])
    gated = mutate_pod(annotated, queue_gate=True)
    assert gated["spec"]["schedulingGates"] == [{"name": "other"}, {"name": GATE}]
    assert mutate_pod(gated, queue_gate=True) == gated
    assert mutate_pod(annotated) == annotated
    assert "schedulingGates" not in mutate_pod(pod({GATE: "false"}), queue_gate=True)["spec"]


MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize("value", ["1", "+2", "50%", "1%", "99%", "50%%"])
def test_budgets(value):
    assert validate_pod(pod({MIN: value}, schedulerName="volcano")) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", f"pod p: metadata.annotations: invalid value <'0'> for {MIN}, it must be a positive integer"),
        ("-1", "positive integer"),
        ("0%", "between 1% ~ 99%"),
        ("100%", "between 1% ~ 99%"),
        ("1.5", "invalid syntax"),
        ("", "invalid syntax"),
        ("1_0", "invalid syntax"),
        ("9" * 5000, "invalid syntax"),
    ],
)
def test_budgets_that_are_none(value, message):
    (problem,) = validate_pod(pod({MIN: value}, schedulerName="volcano"))
    assert message in problem
    assert validate_pod(pod({MIN: value}, schedulerName="default-scheduler")) == []
    assert validate_pod(pod({MIN: value}, schedulerName="own"), ["own"]) == [problem]


def test_only_one_budget():
    both = validate_pod(pod({MIN: "0", MAX: "1"}, schedulerName="volcano"))
    assert ["positive integer" in both[0], "keep one" in both[1], len(both)] == [True, True, 2]


@pytest.mark.parametrize(
    ("given", "concerned"),
    [
        (pod(), False),
        (pod(schedulerName="default-scheduler"), False),
        (pod(schedulerName="volcano"), True),
        (pod({"scheduling.k8s.io/group-name": "g"}), True),
        (pod({"scheduling.volcano.sh/group-name": "g"}), True),
        (pod({"volcano.sh/resource-group": "gpu"}), True),
    ],
)
def test_plain_pods_are_left_alone(given, concerned):
    assert concerns(given) is concerned
