"""PodGroups of scheduling.k8s.io: the end of attempts, and groups that change meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tests.scheduler.profiles.trial import Trial
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.framework.search.node_rules import LOCAL
from volcano_py.scheduler.profiles.cluster_events import BindEnded, GroupChanged
from volcano_py.scheduler.profiles.decisions import EvictPod
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status
from volcano_py.scheduler.profiles.release import V1_37

GATES = ("GangScheduling", "GenericWorkload", "SchedulerPopFromBackoffQ")


def group(count: int, uid: str = "1") -> PodGroup:
    metadata = {"name": "g", "namespace": "default", "uid": uid}
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    found = from_manifest(PodGroup, {"kind": "PodGroup", "metadata": metadata, "spec": spec})
    assert isinstance(found, PodGroup)
    return found


def trial() -> Trial:
    t = Trial(features=GATES)
    t.node("n1", cpu=2)
    t.scheduler.handle(GroupChanged("default/g", group(2)), 0)
    return t


def test_a_group_that_does_not_fit_is_not_tried_forever() -> None:
    t = trial()
    for name in ("a", "b"):
        t.pod(name, cpu=2, schedulingGroup={"podGroupName": "g"})
    assert t.settle() == {}
    assert t.scheduler.attempt(0) is None
    t.node("n2", cpu=2)
    assert sorted(t.settle()) == ["a", "b"]
    t.check()


def test_recreated_members_belong_to_the_recreated_group() -> None:
    t = Trial(features=GATES)
    t.node("n1", cpu=2)
    t.scheduler.handle(GroupChanged("default/g", group(1)), 0)
    t.pod("a", schedulingGroup={"podGroupName": "g"})
    decided = t.run()
    t.scheduler.handle(GroupChanged("default/g", group(3, uid="2")), 0)
    t.scheduler.handle(BindEnded("default/a", "conflict"), 0)
    assert t.scheduler.attempt(0) is None, "the new group waits for three members"
    assert decided
    t.check()


def put_group(t: Trial, name: str, mode: str, priority: int | None = None) -> None:
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": mode, "priority": priority}
    found = from_manifest(PodGroup, {"kind": "PodGroup", "metadata": metadata, "spec": spec})
    t.scheduler.handle(GroupChanged(f"default/{name}", found), 0)


def two_gangs(mode: str, priority: int | None = None) -> Trial:
    """Gang g fills n1 and n2; n3 is empty."""
    t = Trial(features=GATES)
    put_group(t, "g", mode, priority)
    for name in ("n1", "n2", "n3"):
        t.node(name, cpu=2)
    for name, where in (("a", "n1"), ("b", "n2")):
        t.pod(name, cpu=2, node=where, schedulingGroup={"podGroupName": "g"})
    return t


def evicted(t: Trial) -> set[str]:
    return {d.pod.name for d in t.run() if isinstance(d, EvictPod)}


def test_a_gang_with_disruption_mode_pod_group_is_evicted_as_a_whole() -> None:
    t = two_gangs("PodGroup")
    t.pod("strong", cpu=2, node="n3", priority=100)
    t.pod("urgent", cpu=2, priority=10)
    assert evicted(t) == {"a", "b"}
    t = two_gangs("Pod")
    t.pod("strong", cpu=2, node="n3", priority=100)
    t.pod("urgent", cpu=2, priority=10)
    assert len(evicted(t)) == 1


def test_one_pod_is_preferred_to_a_gang() -> None:
    t = two_gangs("PodGroup")
    t.pod("single", cpu=2, node="n3")
    t.pod("urgent", cpu=2, priority=10)
    assert evicted(t) == {"single"}


def test_a_gang_is_ranked_by_the_priority_of_its_group() -> None:
    t = two_gangs("PodGroup", priority=50)
    t.pod("strong", cpu=2, node="n3", priority=100)
    t.pod("urgent", cpu=2, priority=50)
    assert evicted(t) == set(), "the gang is as important"
    t.pod("more-urgent", cpu=2, priority=51)
    assert evicted(t) == {"a", "b"}


def test_a_gang_with_an_equally_important_member_is_not_evicted() -> None:
    t = Trial(features=GATES)
    put_group(t, "g", "PodGroup")
    t.node("n1", cpu=2)
    t.node("n2", cpu=2)
    t.pod("a", cpu=2, node="n1", schedulingGroup={"podGroupName": "g"})
    t.pod("b", cpu=2, node="n2", priority=10, schedulingGroup={"podGroupName": "g"})
    t.pod("urgent", cpu=2, priority=10)
    assert evicted(t) == set()


def test_a_gang_is_not_evicted_if_the_pod_fits_beside_it() -> None:
    t = Trial(features=GATES)
    put_group(t, "g", "PodGroup")
    t.node("n1", cpu=4)
    t.node("n2", cpu=1)
    for name, where in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        t.pod(name, cpu=1, node=where, schedulingGroup={"podGroupName": "g"})
    t.pod("single", cpu=2, node="n1")
    t.pod("urgent", cpu=2, priority=10)
    assert evicted(t) == {"single"}


def test_no_member_evicts_its_own_gang() -> None:
    t = Trial(features=GATES)
    put_group(t, "g", "PodGroup")
    t.node("n1", cpu=2)
    t.pod("a", cpu=2, node="n1", schedulingGroup={"podGroupName": "g"})
    t.pod("b", cpu=2, priority=10, schedulingGroup={"podGroupName": "g"})
    assert evicted(t) == set()


def test_budgets_count_the_members_on_other_nodes() -> None:
    """Evicting a violates a budget of b: the single pod is evicted, although it is more important."""
    t = two_gangs("PodGroup")
    t.pod("single", cpu=2, node="n3", priority=5)
    t.delete("b")
    t.pod("b", cpu=2, node="n2", labels={"app": "b"}, schedulingGroup={"podGroupName": "g"})
    metadata = {"name": "b", "namespace": "default"}
    budget = {
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": "b"}}},
        "status": {"disruptionsAllowed": 0},
    }
    t.scheduler.cluster.model.upsert("PodDisruptionBudget", from_manifest(PodDisruptionBudget, budget))
    t.pod("urgent", cpu=2, priority=10)
    assert evicted(t) == {"single"}


class Counting(Filter):
    """Counts the calls for each node."""

    name = "Counting"
    scope = LOCAL
    calls: ClassVar[Counter[str]] = Counter()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.calls[node.name] += 1
        return SUCCESS


def test_putting_back_victims_evaluates_only_the_nodes_of_placed_pods() -> None:
    """With every node evaluated for every unit, a gang could not preempt in a large cluster."""
    features = ("GenericWorkload",)
    t = Trial(Counting, features=features, release=V1_37)
    for n in range(20):
        t.node(f"n{n}", cpu=2)
        for i in range(2):
            t.pod(f"v{n}-{i}", nodeName=f"n{n}")
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5}
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    found = from_manifest(PodGroup, {"kind": "PodGroup", "metadata": metadata, "spec": spec})
    t.scheduler.handle(GroupChanged("default/g", found), 0)
    for name in ("a", "b"):
        t.pod(name, cpu=2, priority=5, schedulingGroup={"podGroupName": "g"})
    Counting.calls.clear()
    decided = t.run()
    assert len([d for d in decided if isinstance(d, EvictPod)]) == 4
    assert max(Counting.calls.values()) < 20, "38 of the 40 victims run on other nodes"
