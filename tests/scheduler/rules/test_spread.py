"""The rule about even spreading: constraints and counts of pods to rejections and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano_py.api.affinity import TopologySpreadConstraint
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod, ReplicaSet, ReplicationController, Service, StatefulSet, Toleration
from volcano_py.api.meta import LabelSelector
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.domains import Domains, domains
from volcano_py.scheduler.rules.spread import (
    HOSTNAME,
    SYSTEM_DEFAULTS,
    ZONE,
    DomainPods,
    Preference,
    SpreadConstraint,
    countings,
    default_selectors,
    included,
    includes,
    of_pod,
    scores,
    with_selectors,
)

WEB = LabelSelector(match_labels={"app": "web"})
NODES = [
    from_manifest(Node, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}})
    for name, labels, taints in (
        ("n0", {HOSTNAME: "n0", ZONE: "a"}, []),
        ("n1", {HOSTNAME: "n1", ZONE: "a", "disk": "ssd"}, []),
        ("n2", {HOSTNAME: "n2", ZONE: "b"}, [{"key": "k", "effect": "NoSchedule"}]),
        ("n3", {HOSTNAME: "n3", ZONE: "c"}, [{"key": "k", "effect": "PreferNoSchedule"}]),
        ("n4", {HOSTNAME: "n4"}, []),
    )
]


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    for node in NODES:
        found.upsert("Node", node)
    return found


def constraint(key: str, **fields: Any) -> SpreadConstraint:
    return of_pod(TopologySpreadConstraint(**{"topology_key": key, "label_selector": WEB, "max_skew": 1} | fields), {})


EVERYWHERE = "11111"
FILTER = {
    # constraints, labels of the pod, pods on each node, members: codes
    "below the skew": ([(ZONE, 1, 1)], "web", [0, 1, 1, 1, 9], EVERYWHERE, "00001"),
    "one domain is ahead": ([(ZONE, 1, 1)], "web", [1, 1, 1, 1, 0], EVERYWHERE, "22001"),
    "a greater skew": ([(ZONE, 2, 1)], "web", [1, 1, 1, 1, 0], EVERYWHERE, "00001"),
    "a pod that does not select itself": ([(ZONE, 1, 1)], "db", [1, 1, 1, 1, 0], EVERYWHERE, "00001"),
    "an empty domain": ([(ZONE, 1, 1)], "web", [1, 0, 1, 0, 0], EVERYWHERE, "22201"),
    "an empty domain that does not count": ([(ZONE, 1, 1)], "web", [1, 0, 1, 0, 0], "11100", "00001"),
    "pods on nodes that do not count": ([(ZONE, 1, 1)], "web", [1, 5, 1, 1, 0], "10111", "00001"),
    "fewer domains than the minimum": ([(ZONE, 1, 4)], "web", [1, 1, 1, 1, 0], EVERYWHERE, "22221"),
    "the minimum of domains": ([(ZONE, 1, 3)], "web", [1, 0, 1, 1, 0], EVERYWHERE, "00001"),
    "no domains": ([(ZONE, 1, 1)], "web", [1, 0, 0, 0, 0], "00000", "00001"),
    "host names": ([(HOSTNAME, 1, 1)], "web", [1, 0, 2, 1, 0], EVERYWHERE, "20220"),
    # n4 has no zone, so it is no domain of host names either
    "two constraints": ([(HOSTNAME, 1, 1), (ZONE, 3, 1)], "web", [1, 1, 2, 1, 0], EVERYWHERE, "00201"),
    "a label that no node has": ([("rack", 1, 1)], "web", [0] * 5, EVERYWHERE, "11111"),
}


@pytest.mark.parametrize(("given", "app", "pods", "members", "expected"), FILTER.values(), ids=FILTER)
def test_filter(
    given: list[tuple[str, int, int]], app: str, pods: list[int], members: str, expected: str, cluster: Cluster
) -> None:
    constraints = [constraint(key, max_skew=skew, min_domains=least) for key, skew, least in given]
    found = _domain_pods(cluster, constraints, pods, members, {"app": app})
    by_column = np.stack([p.of_nodes() for p in found])
    by_node = [[p.of_node(node.metadata.labels or {}) for node in NODES] for p in found]
    assert by_column.tolist() == by_node
    first = [next((code for code in codes if code), 0) for codes in by_column.T.tolist()]
    assert "".join(map(str, first)) == expected


def _domain_pods(
    cluster: Cluster, constraints: list[SpreadConstraint], pods: list[int], members: str, labels: dict[str, str]
) -> list[DomainPods]:
    ok = np.array([m == "1" for m in members])
    found = countings([domains(cluster, c.key) for c in constraints], [ok] * len(constraints))
    return [DomainPods(c, each, np.array(pods), labels) for c, each in zip(constraints, found, strict=True)]


def test_a_simulation_moves_pods(cluster: Cluster) -> None:
    (before,) = _domain_pods(cluster, [constraint(ZONE)], [1, 1, 1, 1, 0], EVERYWHERE, {"app": "web"})
    after = before.clone()
    after.move("a", -1)
    assert "".join(map(str, after.of_nodes())) == "00001"
    after.move("b", 1)
    assert "".join(map(str, after.of_nodes())) == "00201"
    assert "".join(map(str, before.of_nodes())) == "22001"
    after.move("a zone without nodes", 1)
    assert after.of_node({ZONE: "a zone without nodes"}) == 0


SCORE = {
    # keys with their skew, pods on each node, members, all keys needed: scores
    "none selected: all nodes are equal": ([(ZONE, 1)], [0] * 5, EVERYWHERE, True, [100, 100, 100, 100, 0]),
    # weight ln(3 + 2) = 1.609: 2 pods 3, 1 pod 2, 0 pods 0, each rounded; 100·(3 + 0 − raw) // 3
    "zones": ([(ZONE, 1)], [2, 0, 1, 0, 0], EVERYWHERE, True, [0, 0, 33, 100, 0]),
    # the skew less 1 is added: 5, 4 and 2; 100·(5 + 2 − raw) // 5
    "a greater skew": ([(ZONE, 3)], [2, 0, 1, 0, 0], EVERYWHERE, True, [40, 40, 60, 100, 0]),
    # weight ln(5 + 2) = 1.946: 4, 0, 2, 0, 0
    "host names": ([(HOSTNAME, 1)], [2, 0, 1, 0, 0], EVERYWHERE, True, [0, 100, 50, 100, 100]),
    "host names count on all nodes": ([(HOSTNAME, 1)], [2, 0, 1, 0, 0], "01111", True, [0, 100, 50, 100, 100]),
    "zones count on members only": ([(ZONE, 1)], [2, 0, 1, 0, 0], "01111", True, [100, 100, 0, 100, 0]),
    # n4 gets nothing from its zone, which counts as a domain: ln(4 + 2) = 1.792, raw 4, 4, 2, 0, 0
    "a missing label that is not needed": ([(ZONE, 1)], [2, 0, 1, 0, 7], EVERYWHERE, False, [0, 0, 50, 100, 100]),
    # raw: host names ln(4 + 2)·(2, 0, 1, 0) and zones ln(3 + 2)·(2, 2, 1, 0): 6.8, 3.2, 3.4, 0
    "two constraints": ([(HOSTNAME, 1), (ZONE, 1)], [2, 0, 1, 0, 0], EVERYWHERE, True, [0, 57, 57, 100, 0]),
}


@pytest.mark.parametrize(("given", "pods", "members", "need_all", "expected"), SCORE.values(), ids=SCORE)
def test_score(
    given: list[tuple[str, int]], pods: list[int], members: str, need_all: bool, expected: list[int], cluster: Cluster
) -> None:
    ok = np.array([m == "1" for m in members])
    preferences = [
        Preference(constraint(key, max_skew=skew), domains(cluster, key), np.array(pods), ok) for key, skew in given
    ]
    assert scores(preferences, np.arange(5), need_all).tolist() == expected


def test_only_the_given_nodes_are_compared(cluster: Cluster) -> None:
    zones = Preference(constraint(ZONE), domains(cluster, ZONE), np.array([2, 0, 1, 0, 0]), np.ones(5, dtype=bool))
    # zones b and c: weight ln(2 + 2) = 1.386: raw 1 and 0
    assert scores([zones], np.array([2, 3]), True).tolist() == [0, 100]
    assert scores([zones], np.array([4]), True).tolist() == [0]
    assert scores([zones], np.array([], dtype=np.intp), True).tolist() == []


def test_a_missing_label_and_an_empty_one_are_one_domain_of_the_score() -> None:
    """As in kube-scheduler, which reads both as an empty text."""
    zones = Domains(np.array([0, 1, -1]), ["", "a"])
    given = Preference(constraint(ZONE), zones, np.array([0, 2, 2]), np.ones(3, dtype=bool))
    # two domains of 2 pods: weight ln(2 + 2) = 1.386: raw 3, 3 and, without the label, 0
    assert scores([given], np.arange(3), False).tolist() == [0, 0, 100]


@pytest.mark.parametrize(
    ("affinity", "taints", "selector", "tolerations", "expected"),
    [
        (None, None, {"disk": "ssd"}, [], "01000"),
        ("Honor", None, {"disk": "ssd"}, [], "01000"),
        ("Ignore", None, {"disk": "ssd"}, [], "11111"),
        (None, "Ignore", None, [], "11111"),
        (None, "Honor", None, [], "11011"),
        (None, "Honor", None, [Toleration(key="k", operator="Exists")], "11111"),
        ("Ignore", "Honor", {"disk": "ssd"}, [], "11011"),
    ],
)
def test_policies(
    affinity: str | None,
    taints: str | None,
    selector: Any,
    tolerations: list[Toleration],
    expected: str,
    cluster: Cluster,
) -> None:
    c = constraint(ZONE, node_affinity_policy=affinity, node_taints_policy=taints)
    assert "".join(str(int(ok)) for ok in included(cluster, c, selector, None, tolerations)) == expected
    assert "".join(str(int(includes(node, c, selector, None, tolerations))) for node in NODES) == expected


@pytest.mark.parametrize(
    ("selector", "keys", "labels", "selected", "counts"),
    [
        (WEB, [], {"app": "web"}, True, True),
        (WEB, [], {"app": "db"}, False, True),
        (WEB, ["version"], {"app": "web", "version": "1"}, True, True),
        (WEB, ["version"], {"app": "web", "version": "2"}, False, True),
        (WEB, ["color"], {"app": "web"}, True, True),  # the pod has no such label
        (LabelSelector(), [], {"app": "db"}, True, False),
        (LabelSelector(), ["version"], {"version": "1"}, True, True),
        (None, [], {"app": "web"}, False, False),
        (None, ["version"], {"version": "1"}, False, False),
    ],
)
def test_selected_pods(
    selector: LabelSelector | None, keys: list[str], labels: dict[str, str], selected: bool, counts: bool
) -> None:
    given = TopologySpreadConstraint(topology_key=ZONE, label_selector=selector, match_label_keys=keys)
    found = of_pod(given, {"app": "web", "version": "1"})
    assert (found.selects(labels), found.counts) == (selected, counts)


OWNED = {
    # kind and API version of the controller, its selector: the selectors in addition to the Services'
    "ReplicaSet": (ReplicaSet, "apps/v1", {"matchLabels": {"app": "web"}}, [WEB]),
    "StatefulSet": (StatefulSet, "apps/v1", {"matchLabels": {"app": "web"}}, [WEB]),
    "ReplicationController": (ReplicationController, "v1", {"app": "web"}, [WEB]),
    "another API version": (ReplicaSet, "extensions/v1", {"matchLabels": {"app": "web"}}, []),
    "an empty selector": (ReplicaSet, "apps/v1", {}, []),
    "an invalid selector": (ReplicaSet, "apps/v1", {"matchExpressions": [{"key": "a", "operator": "No"}]}, []),
}


@pytest.mark.parametrize(("kind", "version", "selector", "expected"), OWNED.values(), ids=OWNED)
def test_default_selectors_of_controllers(kind: Any, version: str, selector: Any, expected: Any) -> None:
    cluster = Cluster()
    meta = {"name": "w", "namespace": "default"}
    cluster.upsert(kind.__name__, from_manifest(kind, {"metadata": meta, "spec": {"selector": selector}}))
    owner = {"apiVersion": version, "kind": kind.__name__, "name": "w", "uid": "u", "controller": True}
    assert list(default_selectors(pod([owner]), cluster)) == expected
    other = {**owner, "name": "another"}
    assert default_selectors(pod([other]), cluster) == ()


@pytest.mark.parametrize(
    ("namespace", "selector", "expected"),
    [
        ("default", {"app": "web"}, [WEB]),
        ("default", {"app": "web", "version": "2"}, []),
        ("default", {}, []),
        ("default", None, []),
        ("other", {"app": "web"}, []),
    ],
)
def test_default_selectors_of_services(namespace: str, selector: Any, expected: Any) -> None:
    cluster = Cluster()
    meta = {"name": "s", "namespace": namespace}
    cluster.upsert("Service", from_manifest(Service, {"metadata": meta, "spec": {"selector": selector}}))
    assert list(default_selectors(pod([]), cluster)) == expected


def test_default_constraints() -> None:
    found = [with_selectors(c, (WEB,)) for c in SYSTEM_DEFAULTS]
    assert [(c.key, c.max_skew, c.selects({"app": "web"})) for c in found] == [
        (HOSTNAME, 3, True),
        (ZONE, 5, True),
    ]


def pod(owners: list[dict[str, Any]]) -> Pod:
    meta = {"name": "p", "namespace": "default", "labels": {"app": "web", "version": "1"}, "ownerReferences": owners}
    return from_manifest(Pod, {"metadata": meta, "spec": {"containers": []}})
