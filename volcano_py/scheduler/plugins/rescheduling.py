"""rescheduling: move pods from nodes with high load to nodes with low load. Volcano: plugin rescheduling.

The plugin selects victims; the action shuffle evicts them, and their controllers create them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import field

from volcano_py.api import quantity
from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.pod_qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_of
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_usage import PERIOD
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

LOW_NODE_UTILIZATION = "lowNodeUtilization"
_AFTER = 0.01
"""Seconds after the end of an interval at which the next run is due."""
_QOS = (BEST_EFFORT, BURSTABLE, GUARANTEED)


class NamedStrategy(msgspec.Struct):
    """The name of a strategy, with its parameters."""

    name: str = ""
    params: dict[str, Any] = {}


@dataclass
class LastRun:
    """The time of the last rescheduling, kept between sessions; the first session counts as one."""

    time: float | None = None


class Rescheduling(Plugin):
    """See `Arguments`."""

    name = "rescheduling"

    class Arguments(PluginArguments):
        interval: str = "5m"
        """The time between two runs, as a Go duration."""
        period: str = field(default="5m", name="metricsPeriod")
        """The period over which the load is averaged; only 10m is measured."""
        strategies: list[NamedStrategy] = field(default_factory=lambda: [NamedStrategy(LOW_NODE_UTILIZATION)])
        """The strategies that select victims."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        try:
            self.interval = parse_duration(self.arguments.interval)
        except ValueError:
            self.warn(f"interval is {self.arguments.interval!r}, it must be a duration such as 5m; 5m stays in force")
            self.interval = 300.0
        for strategy in self.arguments.strategies:
            if strategy.name not in STRATEGIES:
                self.warn(f"strategy {strategy.name!r} is unknown; use {', '.join(STRATEGIES)}")

    def on_session_open(self, session: Session) -> None:
        last = session.cluster.keep(LastRun)
        if last.time is None:
            last.time = session.now
        if session.now - last.time <= self.interval:
            session.wake_at(last.time + self.interval + _AFTER)
            return
        last.time = session.now
        session.wake_at(session.now + self.interval + _AFTER)
        measured = session.deviations.careful_rescheduling or self.arguments.period == PERIOD
        for strategy in self.arguments.strategies:
            find = STRATEGIES.get(strategy.name)
            if find is not None:
                self._add(session, find, strategy.params, measured)

    def _add(self, session: Session, find: Find, params: dict[str, Any], measured: bool) -> None:
        session.add_victim_tasks(lambda tasks: find(session, params, measured, tasks))


Find = Callable[[Session, dict[str, Any], bool, list[Task]], list[Task]]
"""(session, parameters, whether the load is measured, running tasks) → victims."""


@dataclass
class _Load:
    """The used part of a node's cpu and memory, in percent."""

    node: int
    cpu: float
    memory: float


def low_node_utilization(session: Session, params: dict[str, Any], measured: bool, tasks: list[Task]) -> list[Task]:
    """Pods of nodes above `targetThresholds`, while nodes below `thresholds` have capacity for them."""
    low_below, high_above = _thresholds(params, "thresholds"), _thresholds(params, "targetThresholds")
    loads = _loads(session, measured)
    objects = session.table.objects
    low = [
        load
        for load in loads
        if not objects[load.node].spec.unschedulable and load.cpu < low_below[0] and load.memory < low_below[1]
    ]
    high = [load for load in loads if load not in low and (load.cpu > high_above[0] or load.memory > high_above[1])]
    if not low or len(low) == len(loads) or not high:
        return []
    allocatable = session.numbers.allocatable
    budget = [
        sum((high_above[i] - (load.cpu, load.memory)[i]) / 100 * allocatable.item(i, load.node) for load in low)
        for i in (0, 1)
    ]
    victims: list[Task] = []
    for load in sorted(high, key=lambda load: -(load.cpu + load.memory)):
        victims += _from_node(session, load, high_above, budget, tasks)
    return victims


STRATEGIES: dict[str, Find] = {LOW_NODE_UTILIZATION: low_node_utilization}
"""The strategies by name."""


def _from_node(
    session: Session, load: _Load, target: tuple[float, float], budget: list[float], tasks: list[Task]
) -> list[Task]:
    """The pods to evict from one node; `budget` and `load` are reduced by what these pods use."""
    careful = session.deviations.careful_rescheduling
    given = {t.key if careful else t.name: t for t in tasks}
    capacity = _capacity(session, load.node)
    found = []
    for task in sorted(session.on_node(load.node), key=_least_important_first):
        if not (load.cpu >= target[0] or load.memory >= target[1]) or 0 in budget:
            break
        victim = given.get(task.key if careful else task.name)
        if victim is None:
            continue
        request = (victim.request.milli_cpu, victim.request.memory)
        if careful and any(requested > left for requested, left in zip(request, budget, strict=True)):
            continue
        for i in (0, 1):
            budget[i] -= request[i]
        load.cpu -= 100 * request[0] / capacity[0] if capacity[0] else 0.0
        load.memory -= 100 * request[1] / capacity[1] if capacity[1] else 0.0
        found.append(victim)
    return found


def _least_important_first(task: Task) -> tuple[bool, int, int, str]:
    priority = task.pod.spec.priority
    return (priority is not None, priority or 0, _QOS.index(qos_of(task.pod)), task.key)


def _loads(session: Session, measured: bool) -> list[_Load]:
    """The load of each node. Volcano counts a node without a measurement as a node without load."""
    careful = session.deviations.careful_rescheduling
    found = []
    for node, name in enumerate(session.table.names):
        usage = session.cluster.usage.get(name)
        if usage is not None and measured and (usage.is_fresh(session.now) or not careful):
            found.append(_Load(node, usage.cpu, usage.memory))
        elif not careful:
            found.append(_Load(node, 0.0, 0.0))
    return found


def _capacity(session: Session, node: int) -> tuple[int, int]:
    capacity = session.table.objects[node].status.capacity or {}
    return quantity.milli_value(capacity.get(CPU, 0)), quantity.value(capacity.get(MEMORY, 0))


def _thresholds(params: Mapping[str, Any], key: str) -> tuple[float, float]:
    """Percent of cpu and memory; 100 where no valid value is set."""
    given = params.get(key)
    values = given if isinstance(given, dict) else {}
    cpu, memory = (v if isinstance(v := values.get(name), int) else 100 for name in ("cpu", "memory"))
    return float(cpu), float(memory)
