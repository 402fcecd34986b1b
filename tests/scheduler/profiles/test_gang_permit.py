"""GangPermit's tables: they follow the pods, are removed with them, and no attempt reads all pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.cluster_events import ObjectChanged
from volcano_py.scheduler.profiles.decisions import Decision, Patch
from volcano_py.scheduler.profiles.plugins.gangs.gang_permit import POD_GROUP, GangPermit

IN_GROUP = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
CREATED = "1970-01-01T00:00:00Z"
GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default", "uid": "g"},
    "spec": {"minMember": 2},
}


def trial(group: dict[str, Any] = GROUP, **arguments: Any) -> tuple[Trial, GangPermit]:
    plugins = {"multiPoint": {"enabled": [{"name": "GangPermit"}], "disabled": [{"name": "PrioritySort"}]}}
    given = [{"name": "GangPermit", "args": arguments}]
    t = Trial(config={"profiles": [{"plugins": plugins, "pluginConfig": given}]})
    (plugin,) = t.scheduler._profiles["default-scheduler"].permit
    assert isinstance(plugin, GangPermit)
    t.scheduler.handle(ObjectChanged(group), 0)
    return t, plugin


def group_of(members: int, **spec: Any) -> dict[str, Any]:
    return {
        **GROUP,
        "metadata": {**GROUP["metadata"], "creationTimestamp": CREATED},
        "spec": {"minMember": members, **spec},
    }


def statuses(t: Trial, decided: list[Decision]) -> list[dict[str, Any]]:
    """The statuses that are written; the group gets them."""
    found = []
    for patch in (d for d in decided if isinstance(d, Patch)):
        found.append(patch.patch["status"])
        old = t.scheduler._world.objects.get(POD_GROUP, "default/g")
        assert old is not None
        t.scheduler.handle(ObjectChanged({**old, **patch.patch}), t.now)
    return found


def tables(plugin: GangPermit) -> tuple[int, int, int]:
    return len(plugin._groups), len(plugin._started), len(plugin._given_up)


def test_a_gang_is_placed_without_reading_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    t, plugin = trial()
    t.node("n1")
    monkeypatch.setattr(ProfileCluster, "pods", lambda self: pytest.fail("all pods are read"))
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP)
    assert t.settle() == {"a": "n1", "b": "n1"}
    t.delete("a")
    t.pod("c", **IN_GROUP)
    assert t.settle() == {"b": "n1", "c": "n1"}
    assert tables(plugin) == (1, 0, 0)
    t.delete("b")
    t.delete("c")
    assert tables(plugin) == (0, 0, 0)
    t.check()


def test_tables_end_with_the_group() -> None:
    t, plugin = trial()
    t.node("n1", cpu=1)
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP)
    t.run()
    assert tables(plugin)[2] == 1, "the group is removed"
    t.delete("a")
    t.delete("b")
    t.scheduler.handle(ObjectChanged(GROUP, deleted=True), t.now)
    assert tables(plugin) == (0, 0, 0)


def test_the_deletion_of_a_waiting_member_rejects_the_others() -> None:
    t, plugin = trial()
    t.node("n1")
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP)
    decided: list[Decision] = t.scheduler.attempt(t.now) or []
    assert [w.pod.name for w in t.scheduler.waiting_pods()] == ["a"]
    assert decided == []
    t.delete("a")
    assert tables(plugin)[1] == 0
    t.delete("b")
    t.scheduler.handle(ObjectChanged(GROUP, deleted=True), t.now)
    assert tables(plugin) == (0, 0, 0)
    t.check()


def test_a_gang_that_cannot_fit_holds_nothing() -> None:
    """9 of 10 members fit: they would wait for the last one, and hold their nodes for the timeout."""
    t, _ = trial(group_of(10, scheduleTimeoutSeconds=10))
    t.node("n1", cpu=5)
    t.node("n2", cpu=4)
    for i in range(10):
        t.pod(f"w{i}", **IN_GROUP)
    decided = t.run()
    assert t.scheduler.waiting_pods() == []
    lacking = "9 of 10 members fit at the same time; they request 10 cpu, 9 is free"
    assert all(lacking in message for message in t.messages().values())
    assert statuses(t, decided) == [{"phase": "Unschedulable", "message": lacking}]
    t.pod("solo", cpu=5, priority=-1)
    assert t.settle() == {"solo": "n1"}, "others get the capacity"
    t.node("n3", cpu=9)
    t.tick(3)
    assert len(t.settle()) == 11


def test_rules_of_nodes_and_types_of_members_are_counted() -> None:
    t, _ = trial(group_of(2, minTaskMember={"leader": 2}))
    t.node("n1", cpu=8)
    t.node("n2", cpu=1, labels={"gpu": "yes"})
    leader = {"labels": {**IN_GROUP["labels"], "volcano.sh/task-spec": "leader"}, "nodeSelector": {"gpu": "yes"}}
    t.pod("a", **leader)
    t.pod("b", **leader)
    decided = t.run()
    assert t.scheduler.waiting_pods() == []
    assert statuses(t, decided)[0]["message"].startswith("1 of 2 members fit at the same time")


def test_members_may_wait_for_evictions() -> None:
    """Pods of lower priority count as free: one of them is evicted for the last member."""
    t, _ = trial(group_of(2))
    t.node("n1", cpu=2)
    t.pod("low", cpu=1, nodeName="n1", priority=0)
    t.pod("a", **IN_GROUP, priority=9)
    t.pod("b", **IN_GROUP, priority=9)
    t.settle()
    t.tick(3)
    assert t.settle() == {"a": "n1", "b": "n1"}


def held(t: Trial, seconds: int) -> int:
    """For how many of the seconds a member holds its node."""
    count = 0
    for _ in range(seconds):
        t.tick()
        t.run()
        count += bool(t.scheduler.waiting_pods())
    return count


ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"x": "x"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def test_a_wait_that_places_nothing_is_not_repeated_again_and_again() -> None:
    """The count does not see rules between pods: nine members get a node, the tenth is rejected by anti-affinity."""
    t, _ = trial(group_of(10, scheduleTimeoutSeconds=10))
    for i in range(9):
        t.node(f"n{i}", cpu=4)
    labels = {"labels": {**IN_GROUP["labels"], "x": "x"}}
    for i in range(10):
        t.pod(f"w{i}", **labels, affinity=ALONE)
    decided = t.run()
    assert len(t.scheduler.waiting_pods()) == 9, "nearly all have a node: they wait once"
    decided += t.tick(10)
    [status] = statuses(t, decided)
    assert status["phase"] == "Unschedulable"
    assert status["message"].startswith("timeout after 10 s: 9 of 10 members had a node; w9 fits on no node: 9 node(s)")
    seconds = 0
    for second in range(600):
        t.node("n0", cpu=4, labels={"changes": str(second)})  # an event after which the members are tried
        seconds += held(t, 1)
    assert seconds < 60, "until the tenth is tried, which may be in its back-off, and less and less often"


def test_the_timeout_from_the_creation_is_final() -> None:
    t, _ = trial(group_of(2, scheduleTimeoutSeconds=20), timeoutFrom="creation")
    t.node("n1", cpu=1)
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP)
    decided = t.run()
    assert [s["phase"] for s in statuses(t, decided)] == ["Unschedulable"]
    decided = t.tick(19) + t.run()
    assert all(s["phase"] == "Unschedulable" for s in statuses(t, decided))
    decided = t.tick(1) + t.run()
    [status] = statuses(t, decided)
    text = (
        "timeout: not scheduled within 20 s of its creation: 0 of 2 members had a node; "
        "1 of 2 members fit at the same time; they request 2 cpu, 1 is free"
    )
    assert (status["phase"], status["message"]) == ("Failed", text)
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [("Failed", "ScheduleTimeout")]
    t.node("n2", cpu=8)
    t.tick(30)
    assert t.settle() == {}
    assert "was not scheduled within 20 s of its creation; delete it and create it again" in t.messages()["a"]


def test_a_scheduled_group_has_no_end() -> None:
    t, _ = trial(group_of(2, scheduleTimeoutSeconds=5), timeoutFrom="creation")
    t.node("n1", cpu=4)
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP)
    decided = t.run()
    decided = t.bind(decided) + t.run()
    assert statuses(t, t.decided)[-1]["phase"] == "Scheduled"
    t.delete("a")
    t.tick(30)
    t.pod("c", **IN_GROUP)
    assert t.settle() == {"b": "n1", "c": "n1"}
