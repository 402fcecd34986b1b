"""The schedulers that share the nodes, and their policies: the key `sharding.yaml` of a ConfigMap, or flags.

For example:

    schedulerConfigs:
      - name: volcano
        policies:
          - {name: allocation-rate, arguments: {minCPUUtil: 0, maxCPUUtil: 0.6}}
          - {name: node-limit, arguments: {minNodes: 2, maxNodes: 100}}
    shardSyncPeriod: 60s
    enableNodeEventTrigger: true
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml
from msgspec import Struct, field

from volcano_py.api import yaml_documents
from volcano_py.api.duration import parse_duration
from volcano_py.controllers.sharding.policies import ALLOCATION_RATE, NODE_LIMIT, POLICIES, WARMUP

KEY = "sharding.yaml"
DEFAULT_PERIOD = 120.0
"""Interval in seconds if 0 or less is configured."""
FLAG_PARTS = "name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes"


class PolicyRef(Struct, rename="camel"):
    name: str = ""
    weight: float = 0.0
    """0 counts as 1."""
    arguments: dict[str, Any] | None = None


class SchedulerSpec(Struct, rename="camel"):
    """One scheduler. The fields after `policies` are Volcano's older notation."""

    name: str = ""
    type: str = ""
    policies: list[PolicyRef] | None = None
    arguments: dict[str, Any] | None = None
    cpu_utilization_min: float = 0.0
    cpu_utilization_max: float = 0.0
    prefer_warmup_nodes: bool = False
    min_nodes: int = 0
    max_nodes: int = 0


class Sharding(Struct, rename="camel"):
    scheduler_configs: list[SchedulerSpec] | None = None
    shard_sync_period: str = ""
    enable_node_event_trigger: bool | None = None


class Settings(Struct):
    """The active settings of the controller."""

    schedulers: list[SchedulerSpec] = field(default_factory=list)
    period: float = 60.0
    node_events: bool = True


def parse(text: str) -> Sharding:
    """A configuration, without its defaults. Raises ValueError with the invalid field."""
    try:
        document = yaml_documents.load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{KEY} is not YAML: {' '.join(str(error).split())}") from None
    try:
        found = msgspec.convert(document or {}, Sharding)
    except msgspec.ValidationError as error:
        raise ValueError(f"{KEY}: {error}") from None
    problems = list(_problems(found))
    if problems:
        raise ValueError("; ".join(problems))
    return found


def parse_flag(text: str) -> SchedulerSpec:
    """One value of --scheduler-configs. Raises ValueError."""
    parts = text.split(":")
    if len(parts) != len(FLAG_PARTS.split(":")):
        raise ValueError(f"invalid scheduler config format: {text}, expected 7 colon-separated parts: {FLAG_PARTS}")
    name, type_, low, high, warm, least, most = parts
    where = f"scheduler config {text}"
    spec = SchedulerSpec(
        name=name,
        type=type_,
        cpu_utilization_min=_number(float, low, f"{where}: invalid min utilization"),
        cpu_utilization_max=_number(float, high, f"{where}: invalid max utilization"),
        prefer_warmup_nodes=_boolean(warm, f"{where}: invalid prefer warmup flag"),
        min_nodes=_number(int, least, f"{where}: invalid min nodes"),
        max_nodes=_number(int, most, f"{where}: invalid max nodes"),
    )
    _older_policies(spec)
    return spec


def settings_of(sharding: Sharding, otherwise: Settings) -> Settings:
    """The settings of a configuration; flags provide missing values."""
    period = parse_duration(sharding.shard_sync_period) if sharding.shard_sync_period else otherwise.period
    events = sharding.enable_node_event_trigger
    return Settings(
        schedulers=[with_defaults(spec) for spec in sharding.scheduler_configs or ()],
        period=period if period > 0 else DEFAULT_PERIOD,
        node_events=otherwise.node_events if events is None else events,
    )


def with_defaults(spec: SchedulerSpec) -> SchedulerSpec:
    """The spec with the policies that correspond to its older fields."""
    spec = msgspec.structs.replace(spec, policies=list(spec.policies or ()) or None)
    _older_policies(spec)
    assert spec.policies is not None
    if (spec.min_nodes > 0 or spec.max_nodes > 0) and not has_policy(spec, NODE_LIMIT):
        limits = {"minNodes": spec.min_nodes, "maxNodes": spec.max_nodes}
        spec.policies.append(PolicyRef(NODE_LIMIT, 0, limits))
    return spec


def has_policy(spec: SchedulerSpec, name: str) -> bool:
    return any(policy.name == name for policy in spec.policies or ())


def _older_policies(spec: SchedulerSpec) -> None:
    if spec.policies:
        return
    if spec.arguments is None:
        spec.arguments = {"minCPUUtil": spec.cpu_utilization_min, "maxCPUUtil": spec.cpu_utilization_max}
    spec.policies = [PolicyRef(ALLOCATION_RATE, 1, dict(spec.arguments))]
    if spec.prefer_warmup_nodes:
        spec.policies.append(PolicyRef(WARMUP, 1))


def _problems(sharding: Sharding) -> Iterator[str]:
    if not sharding.scheduler_configs:
        yield "sharding config must contain at least one schedulerConfig entry"
    try:
        parse_duration(sharding.shard_sync_period or "0")
    except ValueError as error:
        yield f"shardSyncPeriod: {error}"
    names = set[str]()
    for number, spec in enumerate(sharding.scheduler_configs or ()):
        where = f"schedulerConfigs[{number}]"
        if not spec.name:
            yield f"{where}: name must not be empty"
            continue
        where += f" ({spec.name})"
        if spec.name in names:
            yield f"{where}: the name is used twice"
        names.add(spec.name)
        yield from _problems_of(spec, where)


def _problems_of(spec: SchedulerSpec, where: str) -> Iterator[str]:
    low, high = spec.cpu_utilization_min, spec.cpu_utilization_max
    for title, value in (("cpuUtilizationMin", low), ("cpuUtilizationMax", high)):
        if not 0 <= value <= 1:
            yield f"{where}: {title} {value:.2f} out of range [0,1]"
    if low > high:
        yield f"{where}: cpuUtilizationMin ({low:.2f}) must be <= cpuUtilizationMax ({high:.2f})"
    if spec.min_nodes < 0:
        yield f"{where}: minNodes must not be negative, got {spec.min_nodes}"
    if spec.max_nodes < spec.min_nodes:
        yield f"{where}: maxNodes ({spec.max_nodes}) must be >= minNodes ({spec.min_nodes})"
    for policy in spec.policies or ():
        yield from _problems_of_policy(policy, f"{where}: policy {policy.name!r}")


def _problems_of_policy(policy: PolicyRef, where: str) -> Iterator[str]:
    if policy.name not in POLICIES:
        yield f"{where} is unknown: use one of {', '.join(POLICIES)}"
        return
    if policy.weight < 0:
        yield f"{where}: weight must not be negative, got {policy.weight:g}"
    limits = {"minNodes", "maxNodes"} & set(policy.arguments or {})
    if limits and policy.name != NODE_LIMIT:
        yield f"{where}: only {NODE_LIMIT} may have {' and '.join(sorted(limits))}"
        return
    try:
        POLICIES[policy.name](policy.arguments or {})
    except ValueError as error:
        yield f"{where}: {error}"


def _number(kind: Any, text: str, where: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{where}: {text!r} is not a number") from None


def _boolean(text: str, where: str) -> bool:
    if text.lower() not in ("true", "t", "1", "false", "f", "0"):
        raise ValueError(f"{where}: {text!r} is neither true nor false")
    return text.lower() in ("true", "t", "1")


def text_of(data: Mapping[str, str] | None) -> str:
    """The configuration in a ConfigMap's data; empty if there is none."""
    return (data or {}).get(KEY, "").strip()
