"""podGroupPostFilter: plugins of users for root groups that were rejected, and what is observed of preemption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry

from tests.scheduler.profiles.trial import Trial
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import PodDisruptionBudget
from volcano_py.api.gang import PodGroup
from volcano_py.profile_plugin import (
    SUCCESS,
    Code,
    Handle,
    NoArguments,
    PodGroupPostFilter,
    PodGroupPostFilterResult,
    PodInfo,
    RejectedGroup,
    Status,
    unresolvable,
    unschedulable,
)
from volcano_py.scheduler.pods.group_metrics import GroupMetrics
from volcano_py.scheduler.profiles.cluster_events import GroupChanged
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, load
from volcano_py.scheduler.profiles.decisions import EvictPod, GroupCondition, Nominate
from volcano_py.scheduler.profiles.release import V1_36, V1_37

GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "SchedulerPopFromBackoffQ")
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
TOO_FEW = (
    "0/1 placements are available, first placement status: minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
)


class Chosen(PodGroupPostFilter):
    """Returns what a test sets."""

    name = "Chosen"
    answer: ClassVar[PodGroupPostFilterResult | None] = None
    seen: ClassVar[list[RejectedGroup]] = []

    def __init__(self, arguments: NoArguments, handle: Handle) -> None: ...

    def pod_group_post_filter(self, group: RejectedGroup) -> PodGroupPostFilterResult:
        self.seen.append(group)
        return self.answer  # type: ignore[return-value]


class EvictsOneApp(PodGroupPostFilter):
    """Evicts the pods of one app, of any priority, if the group fits then."""

    name = "EvictsOneApp"

    def __init__(self, arguments: NoArguments, handle: Handle) -> None:
        self._handle = handle

    def pod_group_post_filter(self, group: RejectedGroup) -> PodGroupPostFilterResult:
        spare = [p for p in self._handle.pods() if p.labels.get("app") == "spare"]
        nodes = group.nodes_without(spare)
        if nodes is None:
            return PodGroupPostFilterResult(unschedulable("evictions of spare pods do not help"))
        return PodGroupPostFilterResult(Status(Code.SUCCESS, ("spare pods are evicted",)), nodes, tuple(spare))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Chosen.seen.clear()
    Chosen.answer = PodGroupPostFilterResult(unschedulable("no idea"))


def trial(*plugins: type[PodGroupPostFilter], points: Mapping[str, Any] | None = None) -> Trial:
    """A node with two CPUs for a gang of two pods of two CPUs."""
    t = Trial(*plugins, points=points, features=GATES, release=V1_37)
    t.node("n1", cpu=2)
    manifest = {
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5},
    }
    found = from_manifest(PodGroup, manifest)
    assert isinstance(found, PodGroup)
    t.scheduler.handle(GroupChanged(found.key, found), 0)
    return t


def members(t: Trial, cpu: int = 2) -> list[PodInfo]:
    return [t.pod(name, cpu=cpu, priority=5, schedulingGroup={"podGroupName": "g"}) for name in ("a", "b")]


def condition(t: Trial) -> str:
    return [d.message for d in t.decided if isinstance(d, GroupCondition)][-1]


def test_a_plugin_gets_the_group_and_its_reasons_are_joined_with_those_of_others() -> None:
    t = trial(Chosen, points={"podGroupPostFilter": {"disabled": [{"name": "DefaultPreemption"}]}})
    members(t, cpu=3)
    t.run()
    (group,) = Chosen.seen
    assert isinstance(group.root, PodGroup) and group.root.key == "default/g"
    assert [p.name for p in group.waiting] == ["a", "b"]
    assert list(group.reasons)[-1] == TOO_FEW and group.tried
    assert condition(t).endswith("remaining, deallocation and deletion of ResourceClaims completed, no idea")


def test_default_preemption_without_victims_ends_the_calls() -> None:
    t = trial(Chosen)
    members(t, cpu=3)
    t.run()
    assert condition(t).endswith(f"remaining, {NO_VICTIMS}") and not Chosen.seen


def test_plugins_listed_at_the_point_come_first_and_unresolvable_ends_the_calls() -> None:
    Chosen.answer = PodGroupPostFilterResult(unresolvable("it is Sunday"))
    t = trial(Chosen, points={"podGroupPostFilter": {"enabled": [{"name": "Chosen"}]}})
    members(t)
    t.pod("weak", cpu=2, node="n1")
    assert not [d for d in t.run() if isinstance(d, EvictPod)]
    assert condition(t).endswith("remaining, it is Sunday")


@pytest.mark.parametrize("point", ["podGroupPostFilter", "multiPoint"])
def test_without_default_preemption_groups_evict_nothing(point: str) -> None:
    t = Trial(
        config={"profiles": [{"plugins": {point: {"disabled": [{"name": "DefaultPreemption"}]}}}]},
        features=GATES,
        release=V1_37,
    )
    assert "DefaultPreemption" not in t.scheduler._profiles["default-scheduler"].config.points["podGroupPostFilter"]
    single = t.scheduler._profiles["default-scheduler"].config.points["postFilter"]
    assert ("DefaultPreemption" in single) == (point == "podGroupPostFilter")


def test_a_plugin_evicts_what_it_has_tried() -> None:
    points = {"podGroupPostFilter": {"enabled": [{"name": "EvictsOneApp"}], "disabled": [{"name": "*"}]}}
    t = trial(EvictsOneApp, points=points)
    t.node("n2", cpu=2)
    t.pod("important", cpu=2, node="n1", priority=99, labels={"app": "spare"})
    t.pod("weak", cpu=2, node="n2", priority=0)
    members(t)
    assert not [d for d in t.run() if isinstance(d, EvictPod)], "one node is not enough"
    t.check()
    t.delete("weak")
    t.tick(3)
    decided = t.run()
    assert [d.pod.name for d in decided if isinstance(d, EvictPod)] == ["important"]
    assert {d.pod.name: d.node for d in decided if isinstance(d, Nominate)} == {"a": "n1", "b": "n2"}
    assert condition(t).endswith("remaining, spare pods are evicted")
    t.bind(decided)
    t.tick(3)
    assert t.settle() == {"a": "n1", "b": "n2"}
    t.check()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "returned NoneType, not PodGroupPostFilterResult"),
        (PodGroupPostFilterResult(Status(Code.ERROR, ("no quota service",))), "no quota service"),
        (PodGroupPostFilterResult(Status(Code.PENDING)), "returned the status Pending"),
        (PodGroupPostFilterResult(SUCCESS, {"default/a": "n9"}), "the node 'n9' nominated to default/a does not exist"),
    ],
)
def test_a_fault_of_a_plugin_is_an_error_of_the_group(answer: Any, text: str) -> None:
    Chosen.answer = answer
    t = trial(Chosen, points={"podGroupPostFilter": {"enabled": [{"name": "Chosen"}]}})
    members(t)
    t.run()
    assert condition(t) == f'error in "Chosen" PodGroupPostFilter plugins: {text}'
    assert t.messages()["a"] == condition(t)
    t.check()


def test_kubernetes_1_36_has_no_such_point() -> None:
    document = {"profiles": [{"plugins": {"podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]}}}]}
    with pytest.raises(ProfilesConfigurationError, match=r"Kubernetes 1\.36 has no point 'podGroupPostFilter'"):
        load(document, release=V1_36)
    assert load(document, release=V1_37)


# ---- what is observed -----------------------------------------------------------------------------------


def test_preemption_and_placements_are_counted() -> None:
    registry = CollectorRegistry()
    now = iter(range(100))
    metrics = GroupMetrics(registry, lambda: float(next(now)))
    t = trial()
    t.scheduler._world.observations = metrics
    t.node("n2", cpu=2)
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
    }
    t.scheduler.cluster.model.upsert("PodDisruptionBudget", from_manifest(PodDisruptionBudget, budget))
    for i in (1, 2):
        t.pod(f"weak-{i}", cpu=2, node=f"n{i}", labels={"app": "kept" if i == 1 else "other"})
    members(t)
    victims = {d.pod.pod.metadata.uid for d in t.run() if isinstance(d, EvictPod)}
    assert len(victims) == 2
    metrics.evicting(victims, by_group=True)
    metrics.evicted("weak-1", ok=True)
    metrics.evicted("weak-2", ok=False)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"scheduler_{name}", labels)

    profile = {"profile": "default-scheduler"}
    assert value("workload_preemption_attempts_total", result="Success") == 1
    assert value("workload_preemption_victims_sum") == 2
    assert value("preemption_workload_disruptions_sum", preemptor="podgroup") == 2
    assert value("preemption_pdb_violations_total", preemptor="podgroup") == 1
    assert value("preemption_evaluation_duration_seconds_count", preemptor="podgroup", result="Success") == 1
    assert value("preemption_execution_duration_seconds_count", preemptor="podgroup", result="error") == 1
    assert value("generated_placements_total", **profile) == 2, "the attempt, and the trial without weaker pods"
    assert value("placement_evaluations_total", result="infeasible", **profile) == 1
    assert value("placement_evaluations_total", result="feasible", **profile) == 1
    t.pod("alone", cpu=2, priority=9)
    t.run()
    assert value("preemption_evaluation_duration_seconds_count", preemptor="pod", result="Success") == 1
    assert value("workload_preemption_victims_count") == 1, "only groups"


def test_the_parts_of_the_queue_count_pods_and_entries() -> None:
    t = trial()
    members(t, cpu=3)
    t.pod("orphan", schedulingGroup={"podGroupName": "missing"})
    t.pod("single", cpu=9)
    queue = t.scheduler.queue
    assert queue.sizes() == {"active": 3, "backoff": 0, "unschedulable": 0, "gated": 0, "incomplete": 1, "pending": 0}
    assert queue.entities()["active", "podgroup"] == 1
    assert queue.entities()["active", "pod"] == 1
    t.run()
    assert queue.sizes()["backoff"] == 2 and queue.sizes()["unschedulable"] == 1
    assert queue.entities()["backoff", "podgroup"] == 1
    assert queue.incoming_entities["backoff", "ScheduleAttemptFailure", "podgroup"] == 1
    assert queue.incoming["backoff", "ScheduleAttemptFailure"] == 2
