"""usage: choose nodes by how busy they are. Volcano: plugin usage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.api import quantity
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.arguments import get_float, get_int, not_negative
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.pod_request import pod_limit
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.amounts import oversubscribed
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.plugins.usage.estimates import (
    Estimate,
    ShadowLoad,
    composite,
    estimate,
    estimate_best_effort,
    risk,
    weighted,
)

_MIB = 1 << 20
_INTERVAL = 30.0


class Usage(Plugin):
    """See `Arguments`. The section `metrics` of the configuration sets the source of the measurements."""

    name = "usage"

    class Arguments(PluginArguments):
        weight: int = field(default=5, name="usage.weight")
        """The weight of the score."""
        cpu_weight: int = field(default=1, name="cpu.weight")
        """The weight of cpu in the score."""
        memory_weight: int = field(default=1, name="memory.weight")
        """The weight of memory in the score."""
        thresholds: dict[str, Any] = {}
        """`{cpu: 80, mem: 80}`: percent above which a node accepts no pods."""
        estimator: dict[str, Any] = {}
        """The estimate for new pods: `request_ratio` (0.7) of the request and `burst_ratio` (0) of the difference
        between limit and request; `risk_factor` (1.2) applies from the load `risk_threshold` (0.6) on; `be_cpu` (250m)
        and `be_mem` (200Mi) are the estimate for pods that request nothing."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        a = self.arguments
        self.weight = not_negative(a.weight, 5)
        self.cpu_weight, self.memory_weight = not_negative(a.cpu_weight, 1), not_negative(a.memory_weight, 1)
        self.thresholds = (self._percent("cpu"), self._percent("mem"))
        self.request_ratio = self._number("request_ratio", 0.7, 0.0, 1.0)
        self.burst_ratio = self._number("burst_ratio", 0.0, 0.0, 1.0)
        self.risk_threshold = self._number("risk_threshold", 0.6, 0.0, 1.0)
        self.risk_factor = self._number("risk_factor", 1.2, 1.0, float("inf"))
        self.be_cpu = self._amount("be_cpu", 250.0, 1.0, quantity.milli_value)
        self.be_memory = self._amount("be_mem", 200.0 * _MIB, _MIB, quantity.value)

    def _percent(self, key: str) -> int:
        given = self.arguments.thresholds.get(key)
        found = get_int(given)
        if given is not None and (found is None or not 0 <= found <= 100):
            self.warn(f"thresholds.{key} is {given!r}, it must be a whole number from 0 to 100; 80 stays in force")
        return 80 if found is None or not 0 <= found <= 100 else found

    def _number(self, key: str, default: float, least: float, most: float) -> float:
        given = self.arguments.estimator.get(key)
        found = get_float(given)
        if given is not None and (found is None or not least <= found <= most):
            self.warn(f"estimator.{key} is {given!r}, it must be a number from {least} to {most}; {default} stays")
        return default if found is None or not least <= found <= most else found

    def _amount(self, key: str, default: float, unit: float, read: Any) -> float:
        given = self.arguments.estimator.get(key)
        number = get_int(given)
        if number is not None and number >= 0:
            return number * unit
        try:
            found = default if given is None else float(read(given))
        except (ValueError, TypeError):
            found = -1.0
        if found < 0:
            self.warn(f"estimator.{key} is {given!r}, it must be an amount of 0 or more; the default stays in force")
        return found if found >= 0 else default

    def on_session_open(self, session: Session) -> None:
        self._session = session
        count = len(session.table)
        self._fresh: NDArray[np.bool_] = np.zeros(count, dtype=bool)
        self._measured: Floats = np.zeros((2, count))
        for name, usage in session.cluster.usage.items():
            node = session.table.index.get(name)
            if node is not None and usage.is_fresh(session.now):
                self._fresh[node] = True
                self._measured[:, node] = (usage.cpu, usage.memory)
        self._capacities: Floats = _capacities(session)
        self._shadow = ShadowLoad()
        self._limits: dict[int, tuple[float, float]] = {}
        interval = _interval(session.configuration.metrics)
        for name, tasks in session.cluster.on_node.items():
            node = session.table.index.get(name)
            if node is not None:
                for task in tasks.values():
                    if is_unmeasured(task.status, task.pod.status.start_time, session.now, interval):
                        self._add(task, node)
        self.scores: Floats = np.array([self._score(node) for node in range(count)], dtype=np.float64)
        """The score of each node: higher for a lower load; 0 for a node without a measurement."""
        session.add_filters(_UsageFilter(self))
        session.add_scores(_UsageScore(self))
        session.add_event_handler(self._allocate, self._deallocate)

    def _allocate(self, task: Task, node: int) -> None:
        self._add(task, node)
        self.scores[node] = self._score(node)

    def _deallocate(self, task: Task, node: int) -> None:
        self._shadow.remove(task.key)
        self.scores[node] = self._score(node)

    def _add(self, task: Task, node: int) -> None:
        """Count the estimated usage of a pod."""
        now = weighted(*self._used(node), self.cpu_weight, self.memory_weight)
        factor = risk(now, self.risk_threshold, self.risk_factor)
        if task.best_effort:
            cpu, memory = (estimate_best_effort(amount, factor) for amount in (self.be_cpu, self.be_memory))
        else:
            limits = self._limits_of(task)
            requests = (task.request.milli_cpu, task.request.memory)
            cpu, memory = (
                estimate(request, limit, self.request_ratio, self.burst_ratio, factor)
                for request, limit in zip(requests, limits, strict=True)
            )
        self._shadow.add(task.key, Estimate(node, cpu, memory))

    def _limits_of(self, task: Task) -> tuple[float, float]:
        key = task.spec_class.id
        if key not in self._limits:
            limits = pod_limit(task.pod)
            self._limits[key] = (limits.milli_cpu, limits.memory)
        return self._limits[key]

    def _used(self, node: int) -> tuple[float, float]:
        """The used parts of the node's cpu and memory, measured and estimated."""
        cpu, memory = self._measured[0].item(node), self._measured[1].item(node)
        return (
            composite(cpu, self._shadow.cpu.get(node, 0.0), self._capacities[0].item(node)),
            composite(memory, self._shadow.memory.get(node, 0.0), self._capacities[1].item(node)),
        )

    def codes(self) -> NDArray[np.int8]:
        """For all nodes: 0, or the number of the threshold that is exceeded."""
        over_cpu = self._measured[0] > self.thresholds[0]
        over_memory = self._measured[1] > self.thresholds[1]
        return np.where(self._fresh, np.where(over_cpu, 1, np.where(over_memory, 2, 0)), 0).astype(np.int8)

    def _score(self, node: int) -> float:
        if not self._fresh[node]:
            return 0.0
        cpu, memory = self._used(node)
        return node_score(cpu, memory, self.cpu_weight, self.memory_weight, self.weight)


def node_score(cpu: float, memory: float, cpu_weight: float, memory_weight: float, weight: float) -> float:
    """The score of a node with these used parts of cpu and memory."""
    return weighted(1 - cpu, 1 - memory, cpu_weight, memory_weight) * 100 * weight


def is_unmeasured(status: int, start_time: str | None, now: float, interval: float) -> bool:
    """Whether a pod on a node is so new that no measurement includes its usage."""
    if status in (st.ALLOCATED, st.BINDING, st.BOUND):
        return True
    return status == st.RUNNING and (not start_time or now - _seconds(start_time) < interval)


@lru_cache(maxsize=65536)
def _seconds(start_time: str) -> float:
    try:
        return parse_time(start_time)
    except ValueError:
        return 0.0


def _interval(metrics: Mapping[str, str]) -> float:
    """Seconds between two measurements, from the section `metrics` of the configuration."""
    try:
        return parse_duration(metrics.get("interval", "")) or _INTERVAL
    except ValueError:
        return _INTERVAL


def _capacities(session: Session) -> Floats:
    """Milli-cpu and bytes of every node: its capacity and what is oversubscribed, not its allocatable amounts."""
    found = np.zeros((2, len(session.table)))
    for i, node in enumerate(session.table.objects):
        capacity = node.status.capacity or {}
        try:
            found[0, i] = quantity.milli_value(capacity.get(CPU, 0))
            found[1, i] = quantity.value(capacity.get(MEMORY, 0))
        except ValueError:
            pass
        found[:, i] += oversubscribed(node)
    return found


class _UsageFilter:
    """Reject nodes whose load is too high."""

    name = "usage"
    scope: Literal[Scope.LOCAL] = LOCAL

    def __init__(self, plugin: Usage) -> None:
        self.reasons = [
            Reason("the CPU load of the node exceeds the upper limit.", FitCode.UNRESOLVABLE),
            Reason("the memory load of the node exceeds the upper limit.", FitCode.UNRESOLVABLE),
        ]
        self._codes = plugin.codes()

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        return self._codes[numbers.nodes] if isinstance(numbers, SomeNodes) else self._codes

    def filter_node(self, task: Task, node: int) -> int:
        return self._codes.item(node)


class _UsageScore:
    """Prefer nodes with a lower load."""

    name = "usage"
    scope: Literal[Scope.LOCAL] = LOCAL
    batch = False

    def __init__(self, plugin: Usage) -> None:
        self._scores = plugin.scores

    def applies(self, task: Task) -> bool:
        return True

    def score(self, task: Task, numbers: Numbers) -> Floats:
        found: Floats = self._scores[numbers.nodes] if isinstance(numbers, SomeNodes) else self._scores.copy()
        return found

    def score_node(self, task: Task, node: int) -> float:
        return self._scores.item(node)
