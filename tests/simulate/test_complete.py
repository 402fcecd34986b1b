"""What the API server, admission and controllers would add to a described object."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.complete import complete
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import parse

Manifest = dict[str, Any]


def completed(*manifests: Manifest) -> dict[tuple[str, str], Manifest]:
    made, rejected = complete(list(manifests), frozenset(("volcano",)), 1_700_000_000.0)
    assert not rejected
    return {(o["kind"], o["metadata"]["name"]): o for o in made}


def pod(**spec: Any) -> Manifest:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}], **spec}}


def priority_class(name: str, value: int, **more: Any) -> Manifest:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def test_a_pod_has_the_priority_and_the_policy_of_its_class() -> None:
    made = completed(pod(priorityClassName="c"), priority_class("c", 7, preemptionPolicy="Never"))["Pod", "p"]["spec"]
    assert (made["priority"], made["preemptionPolicy"]) == (7, "Never")


def test_without_a_class_it_has_that_of_the_lowest_default_class() -> None:
    classes = (priority_class("high", 9, globalDefault=True), priority_class("low", 3, globalDefault=True))
    assert completed(pod(), *classes)["Pod", "p"]["spec"]["priority"] == 3


def test_without_a_default_class_the_priority_is_0() -> None:
    assert completed(pod(), priority_class("c", 7))["Pod", "p"]["spec"]["priority"] == 0


def test_limits_are_default_requests() -> None:
    made = completed(
        pod(
            containers=[{"name": "a", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}}],
            resources={"limits": {"cpu": "4", "memory": "2Gi", "hugepages-2Mi": "4Mi"}},
        )
    )["Pod", "p"]["spec"]
    assert made["containers"][0]["resources"]["requests"] == {"cpu": 1, "memory": "1Gi"}
    assert made["resources"]["requests"] == {"hugepages-2Mi": "4Mi"}, "what containers ask for counts for the pod"


def test_ports_in_the_network_of_the_host_are_ports_of_the_host() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 90, "hostPort": 91}]
    made = completed(pod(hostNetwork=True, containers=[{"name": "a", "ports": ports}]))["Pod", "p"]["spec"]
    assert [p["hostPort"] for p in made["containers"][0]["ports"]] == [80, 91]


def test_a_node_out_of_reach_is_tolerated_for_a_while_unless_the_pod_has_its_own_toleration() -> None:
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    made = completed(pod(tolerations=[mine]))["Pod", "p"]["spec"]["tolerations"]
    assert made[0] == mine
    assert [(t["key"], t["tolerationSeconds"]) for t in made[1:]] == [("node.kubernetes.io/unreachable", 300)]
    everything = [{"operator": "Exists"}]
    assert completed(pod(tolerations=everything))["Pod", "p"]["spec"]["tolerations"] == everything


def test_a_topology_without_mode_is_hard() -> None:
    spec = {
        "networkTopology": {"highestTierAllowed": 1},
        "subGroupPolicy": [{"name": "a", "networkTopology": {"mode": "soft"}}, {"name": "b"}],
    }
    made = completed({"kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec})["PodGroup", "g"]["spec"]
    assert made["networkTopology"] == {"highestTierAllowed": 1, "mode": "hard"}
    assert made["subGroupPolicy"] == spec["subGroupPolicy"]


@pytest.mark.parametrize("kind", ["Service", "ReplicationController", "PodDisruptionBudget"])
def test_namespaced_objects_are_in_the_default_namespace(kind: str) -> None:
    assert completed({"kind": kind, "metadata": {"name": "o"}})[kind, "o"]["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("kind", ["Node", "PriorityClass", "Namespace", "HyperNode"])
def test_cluster_scoped_objects_have_no_namespace(kind: str) -> None:
    assert "namespace" not in completed({"kind": kind, "metadata": {"name": "o"}})[kind, "o"]["metadata"]


NULLS = """
kind: Node
metadata: {name: n, creationTimestamp: null}
spec: null
status: {allocatable: null, capacity: {cpu: 4, memory: 8Gi, pods: 10}}
---
kind: Queue
metadata: {name: q, annotations: null}
spec: {weight: null, reclaimable: null, parent: ""}
status: null
---
kind: PodGroup
metadata: {name: g, namespace: null, creationTimestamp: null}
spec: {minMember: null, queue: "", networkTopology: null, subGroupPolicy: null, minResources: null}
status: {phase: "", conditions: null}
---
kind: Pod
metadata: {name: p, namespace: "", uid: "", labels: null, annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulerName: "", nodeName: "", priority: null, tolerations: null, containers: [{name: c, resources: null}]}
status: {phase: null}
"""


def test_null_and_empty_fields_count_as_missing() -> None:
    made = completed(*parse(NULLS, "-"))
    sparse = completed(
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4, "memory": "8Gi", "pods": 10}}},
        {"kind": "Queue", "metadata": {"name": "q"}},
        {"kind": "PodGroup", "metadata": {"name": "g"}},
        {**pod(), "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}}},
    )
    assert made["PodGroup", "g"]["status"] == sparse["PodGroup", "g"]["status"]
    made["Pod", "p"]["spec"].pop("nodeName")
    sparse["Pod", "p"]["spec"]["containers"][0]["name"] = "c"
    for each, wanted in sparse.items():
        assert {k: made[each].get(k) for k in ("metadata", "spec")} == {k: wanted.get(k) for k in ("metadata", "spec")}
    simulation = Simulation(parse(NULLS, "-"))
    assert simulation.cycle(configuration(DEFAULT_TEXT, False)).bound == {"default/p": "n"} and not simulation.rejected


def test_a_described_object_without_a_namespace_is_in_the_default_one_also_with_raw() -> None:
    simulation = Simulation(parse(NULLS, "-"), raw=True)
    assert set(simulation.objects) >= {("Pod", "default/p"), ("PodGroup", "default/g"), ("Node", "n")}


def test_a_queue_has_the_defaults_of_admission() -> None:
    path = {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "2/3"}
    made = completed({"kind": "Queue", "metadata": {"name": "q", "annotations": path}, "spec": {"weight": 0}})
    annotations = made["Queue", "q"]["metadata"]["annotations"]
    assert list(annotations.values()) == ["root/a/b", "1/2/3"] and made["Queue", "q"]["spec"]["weight"] == 1


def test_a_namespace_may_name_the_queue_of_its_groups() -> None:
    namespace = {"kind": "Namespace", "metadata": {"name": "default"}}
    namespace["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "theirs"}  # type: ignore[index]
    other = {"kind": "PodGroup", "metadata": {"name": "o"}, "spec": {"queue": "mine"}}
    made = completed({"kind": "PodGroup", "metadata": {"name": "g"}}, other, pod(), namespace)
    queues = {name: o["spec"]["queue"] for (kind, name), o in made.items() if kind == "PodGroup"}
    assert queues == {"g": "theirs", "o": "mine", "podgroup-pod-default-p": "theirs"}


def test_given_values_are_kept() -> None:
    given = pod()
    completed(given)
    assert given == pod()


def test_huge_pages_of_a_pod_replace_those_of_its_containers() -> None:
    containers = [{"name": "a", "resources": {"limits": {"hugepages-2Mi": "2Mi"}}}]
    made = completed(pod(containers=containers, resources={"limits": {"hugepages-2Mi": "4Mi"}}))["Pod", "p"]["spec"]
    assert made["resources"]["requests"] == {"hugepages-2Mi": "4Mi"}


def test_label_keys_of_affinity_become_part_of_the_selector_once() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["rev", "lacking"]}
    weighted = {"weight": 1, "podAffinityTerm": {**term, "matchLabelKeys": [], "mismatchLabelKeys": ["rev"]}}
    affinity = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]},
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                term,
                {"topologyKey": "zone", "matchLabelKeys": ["rev"]},
            ]
        },
    }
    given = pod(affinity=affinity)
    given["metadata"]["labels"] = {"rev": "7"}
    made = completed(given)["Pod", "p"]
    read = made["spec"]["affinity"]
    away, nobody = read["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert away["labelSelector"]["matchExpressions"] == [{"key": "rev", "operator": "In", "values": ["7"]}]
    assert "labelSelector" not in nobody
    near = read["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert near["labelSelector"]["matchExpressions"] == [{"key": "rev", "operator": "NotIn", "values": ["7"]}]
    assert completed(made)["Pod", "p"]["spec"]["affinity"] == read


def test_affinity_that_cannot_be_decoded_is_reported() -> None:
    bad = pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": 3}]}})
    assert Simulation([bad]).rejected


def test_a_namespace_has_its_name_for_a_label_also_where_only_its_pods_are_described() -> None:
    made = completed(pod(), {"kind": "Namespace", "metadata": {"name": "lab", "labels": {"team": "a"}}})
    assert made["Namespace", "default"]["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}
    assert made["Namespace", "lab"]["metadata"]["labels"] == {"team": "a", "kubernetes.io/metadata.name": "lab"}


def test_of_an_object_that_is_described_twice_the_last_description_counts() -> None:
    first, last = (pod(containers=[{"name": "a", "resources": {"requests": {"cpu": cpu}}}]) for cpu in (1, 2))
    last["metadata"]["namespace"] = "default"
    elsewhere = pod()
    elsewhere["metadata"]["namespace"] = "lab"
    made, _ = complete([first, elsewhere, last], frozenset(("volcano",)), 0.0)
    least = [o["spec"]["minResources"] for o in made if o["kind"] == "PodGroup"]
    assert [amounts.get("cpu") for amounts in least] == ["2", None]


def test_times_may_be_written_without_quotation_marks() -> None:
    text = "kind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-01T00:00:00Z}"
    assert Simulation(parse(text, "-")).now == 1767225600.0


def test_a_kind_of_another_api_group_is_another_kind() -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Queue", "metadata": {"name": "lab"}}
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    metrics = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "Node", "metadata": {"name": "n1"}}
    made = completed(queue, budget, metrics)
    assert ("PodDisruptionBudget", "b") in made, "of another version"
    assert ("Queue", "lab") not in made and ("Node", "n1") not in made
    assert not Simulation([queue, metrics], raw=True).objects


def test_a_label_that_is_null_is_empty() -> None:
    node, pod = parse(
        """
kind: Node
metadata: {name: n, labels: {gpu: }}
status: {allocatable: {cpu: 1, pods: 1}}
---
kind: Pod
metadata: {name: p, annotations: {note: }}
spec: {nodeSelector: {gpu: }, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
""",
        "here",
    )
    assert (node["metadata"]["labels"], pod["metadata"]["annotations"]) == ({"gpu": ""}, {"note": ""})
    assert Simulation([node, pod]).cycle(configuration(DEFAULT_TEXT, True)).bound == {"default/p": "n"}
