"""GangPermit's tables: they follow the pods, are removed with them, and no attempt reads all pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.decisions import Decision
from volcano_py.scheduler.profiles.plugins.gang_permit import GangPermit

IN_GROUP = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default", "uid": "g"},
    "spec": {"minMember": 2},
}


def trial() -> tuple[Trial, GangPermit]:
    plugins = {"multiPoint": {"enabled": [{"name": "GangPermit"}], "disabled": [{"name": "PrioritySort"}]}}
    t = Trial(config={"profiles": [{"plugins": plugins}]})
    (plugin,) = t.scheduler._profiles["default-scheduler"].permit
    assert isinstance(plugin, GangPermit)
    t.scheduler.set_object(GROUP, 0)
    return t, plugin


def tables(plugin: GangPermit) -> tuple[int, int, int]:
    return len(plugin._groups), len(plugin._started), len(plugin._given_up)


def test_a_gang_is_placed_without_reading_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    t, plugin = trial()
    t.node("n1")
    monkeypatch.setattr(Cluster, "pods", lambda self: pytest.fail("all pods are read"))
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
    t.scheduler.delete_object(GROUP, t.now)
    assert tables(plugin) == (0, 0, 0)


def test_the_deletion_of_a_waiting_member_rejects_the_others() -> None:
    t, plugin = trial()
    t.node("n1")
    t.pod("a", **IN_GROUP)
    t.pod("b", **IN_GROUP, schedulingGates=[{"name": "later"}])
    decided: list[Decision] = t.run()
    assert [w.pod.name for w in t.scheduler.waiting_pods()] == ["a"]
    assert decided == []
    t.delete("a")
    assert tables(plugin)[1] == 0
    t.delete("b")
    t.scheduler.delete_object(GROUP, t.now)
    assert tables(plugin) == (0, 0, 0)
    t.check()
