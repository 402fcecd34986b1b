"""Which events requeue a pod that spreading or affinity between pods rejected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial, node, pod
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, ClusterEvent, Kind
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

ZONE = "topology.kubernetes.io/zone"
SELECTOR = {"matchLabels": {"app": "web"}}


def waiting(**constraint: Any) -> PodInfo:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    return pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread | constraint])


def apart() -> PodInfo:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": SELECTOR}]}
    return pod("p", affinity={"podAntiAffinity": rule})


def helps(plugin: str, p: PodInfo, kind: Kind, action: ActionType, old: Any, new: Any) -> bool:
    profile = Trial().scheduler._profiles["default-scheduler"]
    return any(i.helps(p, ClusterEvent(kind, action, old, new)) for i in profile.interests[plugin])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod("q", labels={"app": "web"}, node="n"), True),
        (None, pod("q", labels={"app": "web"}), False),
        (None, pod("q", labels={"app": "other"}, node="n"), False),
        (pod("q", labels={"app": "web"}, node="n"), pod("q", node="n"), True),
        (pod("q", labels={"app": "web"}), pod("q"), False),
    ],
)
def test_spread_reads_pods_on_nodes(old: PodInfo | None, new: PodInfo, expected: bool) -> None:
    action = ActionType.ADD if old is None else ActionType.POD_LABEL
    assert helps("PodTopologySpread", waiting(), Kind.ASSIGNED_POD, action, old, new) is expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", True), ("Ignore", False)])
def test_a_toleration_helps_if_the_constraint_honours_taints(policy: str, expected: bool) -> None:
    p = waiting(nodeTaintsPolicy=policy)
    new = pod("p", labels={"app": "web"}, tolerations=[{"operator": "Exists"}])
    assert helps("PodTopologySpread", p, Kind.UNSCHEDULED_POD, ActionType.TOLERATION, p, new) is expected


def test_a_taint_helps_spread_only_on_nodes_that_count() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    for labels, expected in (({ZONE: "a"}, True), ({}, False)):
        old, new = node("n", labels=labels), node("n", labels=labels, taints=taints)
        assert helps("PodTopologySpread", waiting(), Kind.NODE, ActionType.TAINT, old, new) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [({ZONE: "a"}, {ZONE: "b"}, True), ({ZONE: "a"}, {}, True), ({}, {ZONE: "a"}, False)],
)
def test_events_of_a_node_without_the_key_do_not_help(
    before: dict[str, str], after: dict[str, str], expected: bool
) -> None:
    old, new = node("n", labels=before), node("n", labels=after)
    assert helps("InterPodAffinity", apart(), Kind.NODE, ActionType.NODE_LABEL, old, new) is expected


def test_the_deletion_of_a_nominated_pod_may_help() -> None:
    gone = pod("q", labels={"app": "web"})
    assert not helps("InterPodAffinity", apart(), Kind.ASSIGNED_POD, ActionType.DELETE, gone, None)
    gone.pod.status.nominated_node_name = "n"
    assert helps("InterPodAffinity", apart(), Kind.ASSIGNED_POD, ActionType.DELETE, gone, None)
