"""Sharding: policies, pipelines, configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tests.conformance.controllers.comparing import BECAUSE, Data, same
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.controllers.sharding.assign import assign
from volcano_py.controllers.sharding.config import (
    PolicyRef,
    SchedulerSpec,
    has_policy,
    parse,
    parse_flag,
    with_defaults,
)
from volcano_py.controllers.sharding.policies import NodeView, allocation_rate, node_limit, warmup
from volcano_py.controllers.sharding.usage import Usage

WARM_FLAG = f"{BECAUSE}sharding-flags"


def sharding_policies(case: Data) -> str:
    state, expected = case["state"], case["output"]["r0"]
    match case["operation"]:
        case "Select":
            names = [node["metadata"]["name"] for node in case["input"].get("candidates") or ()]
            select = node_limit(state).select
            assert select is not None
            return same(list(select(names)), [node["metadata"]["name"] for node in expected or ()])
        case "Filter" | "Score":
            metadata = case["input"]["node"]["metadata"]
            if "warmupLabel" in state:
                score = warmup(state).score
                assert score is not None
                return same(score(NodeView(metadata["name"], metadata.get("labels") or {})), expected)
            return _rated(case)
    return f"operation {case['operation']} is not known"


def _rated(case: Data) -> str:
    """The utilisation was not recorded: there has to be one with the recorded answer, and no other answer."""
    state, expected = case["state"], case["output"]["r0"]
    low, high = state["minCPURounded"], state["maxCPURounded"]
    policy = allocation_rate({"minCPUUtil": low, "maxCPUUtil": high})
    assert policy.accepts is not None and policy.score is not None
    nodes = [NodeView("n", cpu=percent / 100) for percent in range(101)]
    if case["operation"] == "Filter":
        found = {policy.accepts(node) for node in [*nodes, NodeView("n")]}
        inside = [node for node in nodes if low <= (node.cpu or 0) <= high]
        return same(expected in found and all(map(policy.accepts, inside)), True)
    scores = {round(policy.score(node), 9) for node in [*nodes, NodeView("n")]}
    return same(round(expected, 9) in scores, True)


def sharding_assignments(case: Data) -> str:
    metrics = case["state"]["metricsProvider"]["metrics"]
    nodes = []
    for node in case["input"]["nodes"]:
        name = node["metadata"]["name"]
        cpu = metrics[name]["CPUUtilization"] if name in metrics else None
        nodes.append(NodeView(name, node["metadata"].get("labels") or {}, cpu))
    return same(assign(_specs(case["state"]["schedulerConfigs"]), nodes), case["output"]["assignments"])


def _specs(recorded: list[Data]) -> list[SchedulerSpec]:
    return [
        SchedulerSpec(
            name=one["Name"],
            policies=[PolicyRef(ref["Name"], ref.get("Weight") or 0, ref.get("Arguments")) for ref in one["Policies"]],
        )
        for one in recorded
    ]


def sharding_controller(case: Data) -> str:
    given = case["input"]
    usage = Usage()
    for obj in given["nodesAndPods"]:
        if obj["kind"] == "Pod":
            usage.seen(from_manifest(Pod, obj))
    views = []
    for obj in given["nodesAndPods"]:
        if obj["kind"] == "Node":
            node = from_manifest(Node, obj)
            rates = usage.rates(node)
            views.append(NodeView(node.metadata.name, node.metadata.labels or {}, rates.cpu, rates.memory))
    measured = {view.name: (view.cpu, view.memory) for view in views}
    recorded = {name: (one["CPUUtilization"], one["MemoryUtilization"]) for name, one in given["nodeMetrics"].items()}
    made = assign(_specs(given["schedulerConfigs"]), views)
    return same(measured, recorded) or same(made, case["output"]["assignments"])


def sharding_config(case: Data) -> str:
    given, output = case["input"], case["output"]
    match case["operation"]:
        case "ParseShardingConfig":
            try:
                made = msgspec.to_builtins(parse(given["data"]))
            except ValueError as error:
                return "" if output.get("error") else str(error)
            return same(_given(made), _given(output["r0"])) if not output.get("error") else f"accepted: {made}"
        case "ParseConfig":
            return _flags(case)
        case "applyPolicyDefaults":
            spec = msgspec.convert(given["spec"], SchedulerSpec)
            expected = (case.get("after") or case["input"])["spec"]
            return same(_given(msgspec.to_builtins(with_defaults(spec))), _given(expected))
        case "hasPolicy":
            spec = SchedulerSpec(policies=msgspec.convert(given["policies"], list[PolicyRef]))
            return same(has_policy(spec, given["name"]), output["r0"])
        case "schedulerConfigFromSpec":
            spec = with_defaults(msgspec.convert(given["spec"], SchedulerSpec))
            made = [(ref.name, ref.weight or 1, ref.arguments) for ref in spec.policies or ()]
            return same(made, [(ref["Name"], ref["Weight"], ref["Arguments"]) for ref in output["r0"]["Policies"]])
    return f"operation {case['operation']} is not known"


def _flags(case: Data) -> str:
    try:
        made = [parse_flag(text) for text in case["state"]["SchedulerConfigsRaw"]]
    except ValueError as error:
        return "" if case["output"].get("error") else str(error)
    if case["output"].get("error"):
        return f"accepted: {made}"
    expected = case["after"]["state"]["SchedulerConfigs"]
    differing = [(mine, theirs) for mine, theirs in zip(made, expected, strict=True) if _both(mine) != _given(theirs)]
    warm = [mine for mine, _ in differing if mine.prefer_warmup_nodes]
    return WARM_FLAG if differing and len(warm) == len(differing) else same(differing, [])


def _both(spec: SchedulerSpec) -> Any:
    return _given(msgspec.to_builtins(spec))


def _given(value: Any) -> Any:
    """Without what is empty or zero."""
    if isinstance(value, dict):
        return {key: _given(one) for key, one in value.items() if one not in (None, "", False, [], {}) and one != 0}
    if isinstance(value, list):
        return [_given(one) for one in value]
    return value


RUNNERS: dict[str, Callable[[Data], str]] = {
    "sharding_policies": sharding_policies,
    "sharding_assignments": sharding_assignments,
    "sharding_controller": sharding_controller,
    "sharding_config": sharding_config,
}
