"""How much work large groups cost, by counts: no pod is looked at again for each other pod of its group."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.scheduler.profiles.test_root_groups_oracle import group, node, outcome, pod
from tests.scheduler.profiles.trial import Trial
from tests.scheduler.profiles.trial import node as made_node
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import NodeStatus
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.profiles.cluster_events import GroupChanged, NodeChanged, PodChanged
from volcano_py.scheduler.profiles.groups import preemption
from volcano_py.scheduler.profiles.groups.attempt import GroupAttempt
from volcano_py.scheduler.profiles.groups.room import rooms
from volcano_py.scheduler.profiles.groups.tree import Tree
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.release import V1_37

GATES = ("GenericWorkload", "SchedulerPopFromBackoffQ")


def trial(**spec: Any) -> Trial:
    """A cluster with the PodGroup `g`."""
    t = Trial(features=GATES, release=V1_37)
    add_group(t, "g", spec)
    return t


def add_group(t: Trial, name: str, spec: dict[str, Any]) -> None:
    manifest = {"kind": "PodGroup", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    found = from_manifest(PodGroup, manifest)
    assert isinstance(found, PodGroup)
    t.scheduler.handle(GroupChanged(found.key, found), 0)


def counting(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Callable[[], int]:
    """The number of calls of a method from now on."""
    calls = itertools.count()
    method = getattr(owner, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        next(calls)
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return lambda: next(calls)


@pytest.mark.parametrize("policy", [{"basic": {}}, {"gang": {"minCount": 60}}])
def test_a_member_that_joins_a_group_asks_the_gates_for_no_other_member(
    policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    t = trial(schedulingPolicy=policy)
    gates = counting(monkeypatch, Profile, "pre_enqueue")
    for i in range(120):
        t.pod(f"p{i:03}", schedulingGroup={"podGroupName": "g"})
    # Two for each pod that joins while the gang is gated, one for each other, and one for each when it is complete.
    assert gates() <= 2 * 60 + 60 + 60


def test_a_new_member_with_a_scheduling_gate_gates_the_group() -> None:
    t = trial(schedulingPolicy={"basic": {}})
    t.node("n1", cpu=4)
    t.pod("a", schedulingGroup={"podGroupName": "g"})
    t.pod("b", schedulingGroup={"podGroupName": "g"}, schedulingGates=[{"name": "example.com/wait"}])
    assert t.settle() == {}
    t.scheduler.handle(PodChanged(t.scheduler.cluster.members["default/g"]["default/b"], None), 0)
    assert sorted(t.settle()) == ["a"]


def test_an_attempt_reads_no_pod_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    t = trial(schedulingPolicy={"gang": {"minCount": 20}})
    t.node("n1", cpu=10)
    t.node("n2", cpu=10)
    for i in range(20):
        t.pod(f"p{i:02}", cpu=1, schedulingGroup={"podGroupName": "g"})
    read = counting(monkeypatch, PodInfo, "__init__")
    assert len(t.scheduler.attempt(0) or ()) >= 20
    assert read() == 0


def test_preemption_lists_the_pods_of_a_whole_group_once_for_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    t = trial(schedulingPolicy={"gang": {"minCount": 1}}, priority=5)
    add_group(t, "low", {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}})
    t.node("n1", cpu=40)
    for i in range(40):
        t.pod(f"low-{i:02}", cpu=1, node="n1", schedulingGroup={"podGroupName": "low"})
    t.pod("p", cpu=20, priority=5, schedulingGroup={"podGroupName": "g"})
    listed = counting(monkeypatch, Tree, "on_nodes")
    assert [d for d in t.scheduler.attempt(0) or () if type(d).__name__ == "EvictPod"]
    assert listed() < 12


def test_placements_without_room_are_not_tried_but_the_first_states_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: Counter[str] = Counter()
    inside = GroupAttempt._inside

    def counted(self: GroupAttempt, at: Any) -> Any:
        tried[at.key] += 1
        return inside(self, at)

    monkeypatch.setattr(GroupAttempt, "_inside", counted)
    attempts = counting(monkeypatch, GroupAttempt, "run")
    nodes = [node(f"n{i:02}", 3 if i == 7 else 2, f"r{i:02}") for i in range(12)]
    waiting = [pod(f"p{i}", "g") for i in range(3)]
    found = outcome([*nodes, group("g", 3, "rack"), *waiting])
    assert set(found["bound"].values()) == {"n07"}
    assert tried["default/g"] == attempts() == 1
    tried.clear()
    found = outcome([*nodes, group("g", 4, "rack"), *waiting, pod("p3", "g")])
    assert found["reason"]["default/p3"].startswith(
        "pod group is unschedulable, 0/12 placements are available, first placement status: "
        "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining"
    )
    assert tried["default/g"] == attempts() - 2 > 0


def test_a_placement_has_room_for_all_pods_that_fit_there_together() -> None:
    """Against a search through all ways to place the pods."""
    for seed in range(60):
        r = random.Random(seed)
        t = trial(schedulingPolicy={"basic": {}})
        free = [(r.randint(0, 6), r.randint(0, 3)) for _ in range(r.randint(1, 3))]
        for i, (cpu, pods) in enumerate(free):
            amounts: dict[str, str | int | float] = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
            t.scheduler.handle(
                NodeChanged(None, msgspec.structs.replace(made_node(f"n{i}"), status=NodeStatus(allocatable=amounts))),
                0,
            )
        wanted = [r.randint(0, 3) for _ in range(r.randint(1, 5))]
        infos = [t.pod(f"p{i}", cpu=cpu) for i, cpu in enumerate(wanted)]
        cluster = t.scheduler.cluster
        most = 0
        for at in itertools.product((None, *range(len(free))), repeat=len(wanted)):
            here = [[w for w, a in zip(wanted, at, strict=True) if a == i] for i in range(len(free))]
            if all(sum(h) <= cpu and len(h) <= pods for h, (cpu, pods) in zip(here, free, strict=True)):
                most = max(most, sum(map(len, here)))
        [room] = rooms(cluster.columns, [frozenset(cluster.nodes)], infos, t.scheduler._profiles)
        assert room >= most, seed
        if len(set(wanted)) == 1:
            assert min(room, len(wanted)) == most, (seed, "with equal pods exactly")


def test_the_count_of_room_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees with running pods, weaker pods and topology keys at two levels, with the count and without it."""
    for seed in range(25):
        objects = random_tree(random.Random(seed))
        with_count = outcome(objects)
        with monkeypatch.context() as m:
            m.setattr("volcano_py.scheduler.profiles.groups.attempt.rooms", lambda c, found, p, q: [10**6] * len(found))
            without = outcome(objects)
        assert with_count == without, seed


def random_tree(r: random.Random) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    for i in range(r.randint(2, 6)):
        of = node(f"n{i}", r.randint(1, 4), f"r{r.randint(0, 2)}")
        of["metadata"]["labels"]["zone"] = f"z{i % 2}"
        objects.append(of)
    for i in range(r.randint(0, 3)):
        objects.append(pod(f"weak-{i}", "", 0, f"n{r.randrange(2)}"))
    least = {"schedulingPolicy": {"gang": {"minGroupCount": r.randint(1, 2)}}, "priority": 5}
    if r.random() < 0.6:
        least["schedulingConstraints"] = {"topology": [{"key": "zone"}]}
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    objects.append({**kind, "metadata": {"name": "root", "namespace": "default"}, "spec": least})
    for i in range(r.randint(1, 3)):
        key = r.choice(("rack", ""))
        objects.append(group(f"c{i}", r.randint(1, 3), key, priority=5, parentCompositePodGroupName="root"))
        objects += [pod(f"c{i}-{j}", f"c{i}", 5) for j in range(r.randint(1, 4))]
        if r.random() < 0.2:
            objects.append(pod(f"c{i}-runs", f"c{i}", 5, "n0"))
    return objects


def test_a_victim_is_evaluated_for_the_pods_that_it_can_affect_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six pods on different nodes, and 36 weaker ones of other labels: not 6 × 36 evaluations."""
    objects = [node(f"n{i}", 6, "r") for i in range(6)]
    objects += [pod(f"weak-{i}-{j}", "", 0, f"n{i}") for i in range(6) for j in range(6)]
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "mine"}}}
    for i, each in enumerate(objects[:6]):
        each["metadata"]["labels"]["rack"] = f"r{i}"
    objects.append(group("g", 6, priority=5))
    for i in range(6):
        mine = pod(f"g-{i}", "g", 5)
        mine["metadata"]["labels"] = {"app": "mine"}
        mine["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        objects.append(mine)
    evaluated: Counter[str] = Counter()
    still_fits = preemption._still_fits

    def counted(cluster: Any, profile: Any, info: PodInfo, at: str) -> bool:
        evaluated[info.name] += 1
        return still_fits(cluster, profile, info, at)

    monkeypatch.setattr(preemption, "_still_fits", counted)
    found = outcome(objects)
    assert len(found["deleted"]) == 6 and len(found["bound"]) == 6
    assert evaluated.total() == 36


def test_the_reach_of_rules_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preemption with affinity, anti-affinity of both sides and spreading, if every placed pod is evaluated or not."""
    evicted = 0
    for seed in range(80):
        objects = random_neighbours(random.Random(seed))
        quick = outcome(objects)
        with monkeypatch.context() as m:
            m.setattr(Profile, "reach", lambda self, pod, other, skipped: None)
            whole = outcome(objects)
        assert quick == whole, seed
        evicted += len(quick["deleted"])
    assert evicted > 100


def random_neighbours(r: random.Random) -> list[dict[str, Any]]:
    """A gang that must evict, with rules about the neighbours of pods."""
    objects = [node(f"n{i}", 4, f"r{i % 3}") for i in range(r.randint(2, 6))]
    for i, each in enumerate(objects):
        each["metadata"]["labels"]["kubernetes.io/hostname"] = f"n{i}"
    count = r.randint(1, 4)
    rules = rule_of(r)
    running = [(i, j) for i in range(len(objects)) for j in range(r.randint(2, 4))]
    for i, j in running:
        weak = pod(f"weak-{i}-{j}", "", r.randint(0, 1), f"n{i}")
        weak["metadata"]["labels"] = {"app": r.choice("abc")}
        if r.random() < 0.3:
            weak["spec"].update(rule_of(r))
        objects.append(weak)
    objects.append(group("g", r.randint(1, count), priority=5))
    for i in range(count):
        mine = pod(f"g-{i}", "g", 5)
        mine["metadata"]["labels"] = {"app": "a"}
        mine["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        mine["spec"].update(rules)
        objects.append(mine)
    return objects


def rule_of(r: random.Random) -> dict[str, Any]:
    """Fields of a pod: a rule about pods with a random label, in racks or on nodes."""
    selector = {"matchLabels": {"app": r.choice("abc")}}
    key = r.choice(("rack", "kubernetes.io/hostname"))
    match r.randrange(4):
        case 0:
            spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            return {"topologySpreadConstraints": [spread]}
        case 1:
            return {}
        case kind:
            name = "podAffinity" if kind == 2 else "podAntiAffinity"
            terms = [{"topologyKey": key, "labelSelector": selector}]
            return {"affinity": {name: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
