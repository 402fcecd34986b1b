"""Nodes that the cache audit holds take no pods of profiles, and their pods are tried again afterwards."""

from __future__ import annotations

from tests.scheduler.profiles.trial import Trial, node
from volcano_py.scheduler.framework.held_nodes import TEXT
from volcano_py.scheduler.profiles.cluster_events import NodeReleased
from volcano_py.scheduler.profiles.decisions import BindPod, Decision, EvictPod, Fail


def bound(decisions: list[Decision]) -> dict[str, str]:
    return {d.pod.key: d.node for d in decisions if isinstance(d, BindPod)}


def test_a_held_node_takes_no_pod_and_gets_none_by_eviction() -> None:
    trial = Trial()
    trial.node("a", cpu=1)
    trial.pod("weak", cpu=1)
    trial.bind(trial.run())
    trial.node("b", cpu=8)
    trial.scheduler.cluster.model.hold({"a": "Node a", "b": "Node b"})
    trial.pod("strong", cpu=1, priority=10)
    decided = trial.run()
    assert not bound(decided) and not any(isinstance(d, EvictPod) for d in decided)
    (why,) = [d.message for d in decided if isinstance(d, Fail)]
    assert f"2 {TEXT}" in why


def test_a_pod_is_tried_again_when_its_node_is_released() -> None:
    trial = Trial()
    trial.node("a")
    model = trial.scheduler.cluster.model
    model.hold({}, "Pod default/x")
    trial.pod("p")
    assert not bound(trial.run())
    model.hold({})
    trial.tick(20)
    assert not bound(trial.run())  # no event has reached the queue
    trial.scheduler.handle(NodeReleased(node("a", 4)), trial.now)
    assert bound(trial.run()) == {"default/p": "a"}
