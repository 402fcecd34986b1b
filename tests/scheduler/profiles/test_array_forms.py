"""The array form and the object form of the rules agree, and so do kept and new results."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.cluster_events import NodeChanged, PodChanged
from volcano_py.scheduler.profiles.columns import SomeColumns
from volcano_py.scheduler.profiles.configuration import load
from volcano_py.scheduler.profiles.decisions import BindPod
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Score
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.scheduler import PodScheduler

CARD = "example.com/card"
STRATEGIES: list[dict[str, Any]] = [
    {"type": "LeastAllocated"},
    {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}, {"name": CARD, "weight": 2}]},
    {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "ephemeral-storage", "weight": 5}],
        "requestedToCapacityRatio": {
            "shape": [
                {"utilization": 0, "score": 10},
                {"utilization": 30, "score": 0},
                {"utilization": 100, "score": 7},
            ]
        },
    },
]
amounts = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["0", "100m", "1", "1500m", "7"]), "memory": st.sampled_from(["0", "1Mi", "3000", "2Gi"])},
    optional={CARD: st.sampled_from(["0", "1", "3"]), "ephemeral-storage": st.sampled_from(["1Gi", "700"])},
)
taints = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from("ab"), "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])}
    ),
    max_size=2,
)
term = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(["disk", "zone"]),
                    "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
                    "values": st.just(["x"]),
                }
            ),
            max_size=2,
        )
    }
)
near = st.fixed_dictionaries(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(
            st.fixed_dictionaries(
                {
                    "topologyKey": st.sampled_from(["zone", "kubernetes.io/hostname"]),
                    "labelSelector": st.sampled_from(
                        [{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}, {}]
                    ),
                }
            ),
            max_size=1,
        )
    }
)
pods = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.just("c"),
                    "image": st.sampled_from(["a", "b:1"]),
                    "resources": amounts.map(lambda a: {"requests": a}),
                    "ports": st.sampled_from([[], [{"containerPort": 80, "hostPort": 80}]]),
                }
            ),
            min_size=1,
            max_size=2,
        ),
        "tolerations": st.sampled_from([[], [{"key": "a", "operator": "Exists"}], [{"operator": "Exists"}]]),
        "nodeSelector": st.sampled_from([None, {"disk": "x"}]),
        "priority": st.sampled_from([0, 10]),
        "topologySpreadConstraints": st.lists(
            st.fixed_dictionaries(
                {
                    "topologyKey": st.sampled_from(["zone", "kubernetes.io/hostname"]),
                    "maxSkew": st.integers(1, 3),
                    "whenUnsatisfiable": st.sampled_from(["ScheduleAnyway", "DoNotSchedule"]),
                    "labelSelector": st.sampled_from([{"matchLabels": {"app": "a"}}, {}]),
                    "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
                    "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
                }
            ),
            max_size=2,
        ),
        "affinity": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {
                    "nodeAffinity": st.fixed_dictionaries(
                        {
                            "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
                                st.fixed_dictionaries({"weight": st.integers(1, 9), "preference": term}), max_size=2
                            )
                        },
                        optional={
                            "requiredDuringSchedulingIgnoredDuringExecution": st.lists(
                                term, min_size=1, max_size=2
                            ).map(lambda terms: {"nodeSelectorTerms": terms})
                        },
                    ),
                    **dict.fromkeys(("podAffinity", "podAntiAffinity"), near),
                }
            ),
        ),
    }
)
nodes = st.lists(
    st.fixed_dictionaries(
        {
            "capacity": amounts.flatmap(lambda a: st.just({**a, "pods": "2"})),
            "labels": st.dictionaries(
                st.sampled_from(["disk", "zone", "kubernetes.io/hostname"]), st.sampled_from(["x", "y", ""])
            ),
            "taints": taints,
            "cordoned": st.booleans(),
            "images": st.sampled_from([[], [{"names": ["a:latest"], "sizeBytes": 500_000_000}]]),
        }
    ),
    min_size=1,
    max_size=8,
)


def node_of(i: int, fields: dict[str, Any]) -> Node:
    capacity = {"cpu": "8", "memory": "8Gi"} | {k: v for k, v in fields["capacity"].items() if v != "0"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{i}", "labels": fields["labels"]},
        "spec": {"taints": fields["taints"], "unschedulable": fields["cordoned"]},
        "status": {"allocatable": capacity, "images": fields["images"]},
    }
    node: Node = from_manifest(Node, manifest)
    return node


def pod_of(name: str, spec: dict[str, Any], node: str = "") -> PodInfo:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "ab"[len(name) % 2]}}
    whole = {**spec, "schedulerName": "default-scheduler", "nodeName": node}
    return PodInfo(from_manifest(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole}))


def config(strategy: dict[str, Any]) -> dict[str, Any]:
    args = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    return {"profiles": [{"pluginConfig": args}]}


@settings(max_examples=80)
@given(nodes, st.lists(st.tuples(pods, st.integers(0, 7)), max_size=10), pods, st.sampled_from(STRATEGIES))
def test_both_forms_agree(
    machines: list[dict[str, Any]], there: list[tuple[dict[str, Any], int]], wanted: dict[str, Any], strategy: Any
) -> None:
    scheduler = PodScheduler(load(config(strategy)))
    cluster: ProfileCluster = scheduler.cluster
    for i, fields in enumerate(machines):
        scheduler.handle(NodeChanged(None, node_of(i, fields)), 0.0)
    for i, (spec, at) in enumerate(there):
        scheduler.handle(PodChanged(None, pod_of(f"p{i}", spec, f"n{at}")), 0.0)
    pod, columns = pod_of("new", wanted), cluster.columns
    odd = SomeColumns(columns, np.arange(0, len(columns), 2))
    profile = scheduler._profiles["default-scheduler"]
    rules = {*profile._filter, *profile._score}
    assert {r.name for r in rules if r.scope is not DOMAIN} >= {"NodeResourcesFit", "TaintToleration", "NodeAffinity"}
    for rule in rules:
        state = CycleState()
        if isinstance(rule, Score):
            rule.pre_score(state, pod, columns.infos)
        for part in (columns, odd) if rule.scope is not STATIC else (columns,):
            if rule.scope is DOMAIN:
                continue
            if hasattr(rule, "filter") and (mask := rule.filter_columns(pod, part)) is not None:
                assert mask.tolist() == [rule.filter(state, pod, n).ok for n in part.infos], rule.name
            if not isinstance(rule, Score) or (raw := rule.score_columns(pod, part)) is None:
                continue
            plain = {n.name: rule.score(state, pod, n) for n in part.infos}
            assert raw.tolist() == list(plain.values()), rule.name
            rule.normalize(state, pod, plain)
            assert rule.normalize_columns(raw).tolist() == list(plain.values()), rule.name


@settings(max_examples=40)
@given(nodes, st.lists(pods, min_size=1, max_size=3), st.lists(st.integers(0, 9), min_size=5, max_size=25))
def test_kept_results_equal_those_of_a_new_scheduler(
    machines: list[dict[str, Any]], shapes: list[dict[str, Any]], course: list[int]
) -> None:
    kept = PodScheduler(load({}))
    bound: dict[str, PodInfo] = {}
    for i, fields in enumerate(machines):
        kept.handle(NodeChanged(None, node_of(i, fields)), 0.0)
    for turn, choice in enumerate(course):
        if choice > 7 and bound:  # a pod ends
            kept.handle(PodChanged(bound.pop(next(iter(bound))), None), 0.0)
            continue
        if choice == 7:  # a node changes
            machines[0] = {**machines[0], "cordoned": not machines[0]["cordoned"]}
            kept.handle(NodeChanged(None, node_of(0, machines[0])), 0.0)
            continue
        name, spec = f"p{turn}", shapes[choice % len(shapes)]
        fresh = PodScheduler(load({}))
        for i, fields in enumerate(machines):
            fresh.handle(NodeChanged(None, node_of(i, fields)), 0.0)
        for other in bound.values():
            fresh.handle(PodChanged(None, other), 0.0)
        answers = []
        for scheduler in (kept, fresh):
            scheduler.handle(PodChanged(None, pod_of(name, spec)), 0.0)
            decided = scheduler.attempt(0.0) or []
            answers.append([(type(d).__name__, getattr(d, "node", ""), getattr(d, "message", "")) for d in decided])
        assert answers[0] == answers[1]
        placed = next((a[1] for a in answers[0] if a[0] == BindPod.__name__), "")
        if placed:
            bound[f"default/{name}"] = pod_of(name, spec, placed)
            kept.handle(PodChanged(pod_of(name, spec), bound[f"default/{name}"]), 0.0)
        else:
            kept.handle(PodChanged(pod_of(name, spec), None), 0.0)


def cluster_of(machines: list[dict[str, Any]], there: list[tuple[dict[str, Any], int]]) -> PodScheduler:
    """A scheduler with these nodes, and pods on them by the number of their node."""
    scheduler = PodScheduler(load({}))
    for i, fields in enumerate(machines):
        scheduler.handle(NodeChanged(None, node_of(i, fields)), 0.0)
    for i, (spec, at) in enumerate(there):
        scheduler.handle(PodChanged(None, pod_of(f"p{i:0{1 + at % 2}}", spec, f"n{at}")), 0.0)
    return scheduler


@settings(max_examples=80)
@given(nodes, st.lists(st.tuples(pods, st.integers(0, 7)), max_size=10), pods, st.sets(st.integers(0, 7), min_size=2))
def test_scores_of_the_nodes_that_fit_agree(
    machines: list[dict[str, Any]], there: list[tuple[dict[str, Any], int]], wanted: dict[str, Any], fitting: set[int]
) -> None:
    scheduler = cluster_of(machines, there)
    pod, columns = pod_of("new", wanted), scheduler.cluster.columns
    fits = np.array([i for i in sorted(fitting) if i < len(columns)], dtype=np.intp)
    chosen = [columns.infos[i] for i in fits.tolist()]
    for score in scheduler._profiles["default-scheduler"]._score:
        state = CycleState()
        # The spread score of one node reads the array form: tests/scheduler/rules/test_spread.py has other judges.
        if score.scope is not DOMAIN or score.name == "PodTopologySpread" or not len(fits):
            continue
        if not score.pre_score(state, pod, chosen).ok:
            continue
        array = score.score_fitting(state, pod, columns, fits)
        if array is not None:
            plain = {n.name: score.score(state, pod, n) for n in chosen}
            score.normalize(state, pod, plain)
            assert array.tolist() == list(plain.values())


@settings(max_examples=120)
@given(nodes, st.lists(st.tuples(pods, st.integers(0, 7)), max_size=10), pods)
def test_filters_over_other_nodes_agree(
    machines: list[dict[str, Any]], there: list[tuple[dict[str, Any], int]], wanted: dict[str, Any]
) -> None:
    scheduler = cluster_of(machines, there)
    pod, columns = pod_of("new", wanted), scheduler.cluster.columns
    profile = scheduler._profiles["default-scheduler"]
    state = CycleState()
    profile.pre_filter(state, pod)
    everything = np.ones(len(columns), dtype=np.bool_)
    for rule in profile._far_filters:
        if rule.name not in state.skip_filter:
            array = rule.filter_fitting(state, pod, columns, everything)
            assert array is not None
            assert array.tolist() == [rule.filter(state, pod, n).ok for n in columns.infos], rule.name
