"""hypothesis strategies: fields of objects that certain plugins read, added to a drawn cluster.

They are labels and annotations without effect while their plugin is not configured.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as s

from tests.strategies import Manifest, one_in

DRAWN_PLUGINS = ("nodegroup", "tdm", "resource-strategy-fit", "task-topology")
"""Plugins that are drawn in addition to those of a theme."""
GROUPS = ("gold", "iron", "tin")
ZONES = ("night", "never")
GPU = "nvidia.com/gpu"


@s.composite
def plugin_arguments(draw: s.DrawFn, plugin: str) -> Manifest:
    """Arguments of the plugin, flags among them."""
    if plugin == "nodegroup":
        return {
            "strict": one_in(draw, 4),
            "enablePreferredOrder": draw(s.booleans()),
            "enableHierarchy": draw(s.booleans()),
        }
    if plugin == "tdm":
        found: Manifest = {
            "tdm.revocable-zone.night": draw(s.sampled_from(("0:00-0:00", "00:00-23:59", "00:00-23:59", "0:00-0:01"))),
            "tdm.evict.period": draw(s.sampled_from(("1s", "1m", "1500ms"))),
        }
        if not one_in(draw, 4):
            found["tdm.revocable-zone.never"] = draw(s.sampled_from(("22:00-23:00", "1:00-0:00", "25:00-26:00")))
        return found
    if plugin == "resource-strategy-fit":
        return draw(strategy_arguments())
    return {"task-topology.weight": draw(s.sampled_from((1, 1, 2, 10)))}


@s.composite
def strategy_arguments(draw: s.DrawFn) -> Manifest:
    found: Manifest = {}
    if draw(s.booleans()):
        names = draw(s.lists(s.sampled_from(("cpu", "memory", GPU, "nvidia.com/*", "nv*", "pods")), unique=True))
        found["resources"] = {
            name: {
                "type": draw(s.sampled_from(("MostAllocated", "MostAllocated", "LeastAllocated", "Other"))),
                "weight": draw(s.sampled_from((1, 2, 0))),
            }
            for name in names
        }
    if one_in(draw, 3):
        found["resourceStrategyFitWeight"] = draw(s.sampled_from((0, 1, -1)))
    if one_in(draw, 3):
        weights = {GPU: draw(s.sampled_from((1, 3, -1))), "example.com/x": 1}
        found["sra"] = {"enable": True, "resources": ",".join(weights), "weight": draw(s.sampled_from((0, 1, 10)))}
        found["sra"]["resourceWeight"] = weights
    if one_in(draw, 3):
        found["proportional"] = {"enable": True, "resources": f"{GPU},example.com/x"}
        rates = {f"{GPU}.cpu": draw(s.sampled_from((1, 2, 0.5, -1)))}
        if draw(s.booleans()):
            rates[f"{GPU}.memory"] = draw(s.sampled_from((1, 2, 0)))
        found["proportional"]["resourceProportion"] = rates
    return found


@s.composite
def add_plugin_fields(draw: s.DrawFn, objects: list[Manifest], plugin: str) -> None:
    """Add the fields that the plugin reads to the objects."""
    by_kind: dict[str, list[Manifest]] = {}
    for o in objects:
        by_kind.setdefault(o["kind"], []).append(o)
    if plugin == "nodegroup":
        draw(groups(by_kind["Node"], by_kind["Queue"]))
    elif plugin == "tdm":
        draw(on_revocable_nodes(by_kind))
    elif plugin == "resource-strategy-fit":
        draw(devices(by_kind))
    elif plugin == "task-topology":
        draw(roles(by_kind))


@s.composite
def groups(draw: s.DrawFn, nodes: list[Manifest], queues: list[Manifest]) -> None:
    for node in nodes:
        if not one_in(draw, 6):
            name = "" if one_in(draw, 12) else draw(s.sampled_from(GROUPS))
            node["metadata"]["labels"]["volcano.sh/nodegroup-name"] = name
    some = s.lists(s.sampled_from(GROUPS), max_size=3, unique=True)
    for queue in queues:
        if not one_in(draw, 5):
            affinity: Manifest = {}
            for key in ("nodeGroupAffinity", "nodeGroupAntiAffinity"):
                away = key == "nodeGroupAntiAffinity"
                if away and not one_in(draw, 4):
                    continue
                affinity[key] = {}
                for kind in ("required", "preferred"):
                    chosen = draw(some) if away or one_in(draw, 3) else draw(s.permutations(GROUPS))
                    if chosen:
                        affinity[key][f"{kind}DuringSchedulingIgnoredDuringExecution"] = chosen
            queue["spec"]["affinity"] = affinity
        if one_in(draw, 4):
            limits: Any = {draw(s.sampled_from(GROUPS)): {"cpu": str(draw(s.integers(0, 3)))}}
            if one_in(draw, 3):
                limits[draw(s.sampled_from(GROUPS))] = {"memory": "2Gi", "pods": "3"}
            text = "{" if one_in(draw, 10) else json.dumps(limits)
            annotate(queue, "volcano.sh/nodegroup-resource-limits", text)


@s.composite
def on_revocable_nodes(draw: s.DrawFn, by_kind: dict[str, list[Manifest]]) -> None:
    for node in by_kind["Node"]:
        if one_in(draw, 3):
            node["metadata"]["labels"]["volcano.sh/revocable-zone"] = draw(s.sampled_from(ZONES))
    for group in by_kind.get("PodGroup", []):
        key = draw(s.sampled_from(("", "", "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")))
        if key:
            annotate(group, key, draw(s.sampled_from(("1", "2", "50%", "34%", "100%", "0", "x"))))
        if one_in(draw, 3):
            annotate(group, "volcano.sh/preemptable", "true")
        pods = [p for p in by_kind.get("Pod", []) if group_of(p) == group["metadata"]["name"]]
        wanted = draw(s.sampled_from(("", "true", "true", "false", "false", "*")))
        for pod in pods:
            if wanted == "*":
                annotate(pod, "volcano.sh/revocable-zone", "*")
            elif wanted:
                annotate(pod, "volcano.sh/preemptable", wanted)
            if one_in(draw, 12):
                annotate(pod, "volcano.sh/revocable-zone", draw(s.sampled_from(("night", "*"))))


@s.composite
def devices(draw: s.DrawFn, by_kind: dict[str, list[Manifest]]) -> None:
    for node in by_kind["Node"]:
        status = node["status"]
        for name, one_of in ((GPU, 2), ("example.com/x", 5)):
            if one_in(draw, one_of):
                status["allocatable"] = {**status["allocatable"], name: str(draw(s.integers(0, 4)))}
    for pod in by_kind.get("Pod", []):
        if one_in(draw, 5):
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            pod["spec"]["containers"][0]["resources"] = {"requests": {**requests, GPU: str(draw(s.integers(1, 2)))}}
        if one_in(draw, 8):
            kind = draw(s.sampled_from(("MostAllocated", "LeastAllocated")))
            annotate(pod, "volcano.sh/resource-strategy-scoring-type", kind)
            weights = draw(s.sampled_from(('{"cpu": 1}', '{"cpu": 3, "memory": 1}', f'{{"{GPU}": 2}}', "{", "")))
            if weights:
                annotate(pod, "volcano.sh/resource-strategy-weight", weights)


@s.composite
def roles(draw: s.DrawFn, by_kind: dict[str, list[Manifest]]) -> None:
    names = ("ps", "worker", "chief")
    for group in by_kind.get("PodGroup", []):
        if one_in(draw, 4):
            continue
        for pod in by_kind.get("Pod", []):
            if group_of(pod) == group["metadata"]["name"] and not one_in(draw, 8):
                role = draw(s.sampled_from(names))
                if one_in(draw, 10):
                    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), "volcano.sh/task-spec": role}
                else:
                    annotate(pod, "volcano.sh/task-spec", role)
        have = sorted(
            {
                role
                for pod in by_kind.get("Pod", [])
                if group_of(pod) == group["metadata"]["name"]
                and (role := pod["metadata"]["annotations"].get("volcano.sh/task-spec"))
            }
        )
        known = s.sampled_from((*have, *have, *have, "stranger") if one_in(draw, 12) or not have else have)
        some = s.lists(known, min_size=1, max_size=3, unique=not one_in(draw, 12)).map(",".join)
        for key in ("affinity", "anti-affinity"):
            if not one_in(draw, 3):
                text = ";".join(draw(s.lists(some, min_size=1, max_size=2)))
                annotate(group, f"volcano.sh/task-topology-{key}", text)
        if one_in(draw, 3):
            annotate(group, "volcano.sh/task-topology-task-order", draw(some))


def annotate(o: Manifest, key: str, value: str) -> None:
    o["metadata"]["annotations"] = {**(o["metadata"].get("annotations") or {}), key: value}


def group_of(pod: Manifest) -> str:
    return (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")
