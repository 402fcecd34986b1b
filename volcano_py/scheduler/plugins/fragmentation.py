"""fragmentation: prefer the node where placing a pod makes the fewest free GPUs useless for the pods of the cluster.
Not in Volcano.

It is the fragmentation gradient descent of Weng et al. (USENIX ATC 2023). The loss of a node is the free GPU on it that
a pod cannot use, as the mean over the shapes of GPU pods, by how often each occurs. A pod for which the node has too
little of anything loses all of its free GPU; one that fits loses the rest of a card that is too small for it. The score
is the loss before, minus the loss after. The free GPU of a node counts as whole cards and the rest of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_SHAPES = 24
"""The most frequent shapes of pods that count."""
Shape = tuple[float, float, float]
"""cpu, memory, GPU."""


class Fragmentation(Plugin):
    """See `Arguments`."""

    name = "fragmentation"

    class Arguments(PluginArguments):
        weight: int = 10
        """The weight of the score: a card that becomes useless counts ten times this."""
        gpu: str = "nvidia.com/gpu"
        """The resource of GPUs."""
        card: int = msgspec.field(default=1)
        """How much of the resource is one card; more than 1 if pods request parts of a card."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.weight = read.weight
        if not 0 <= self.weight <= 1_000_000:
            self.warn(f"argument weight is {self.weight}, and must be from 0 to 1000000; 10 is used")
            self.weight = 10
        self.card = read.card
        if self.card < 1:
            self.warn(f"argument card is {self.card}, and must be at least 1; 1 is used")
            self.card = 1

    def on_session_open(self, session: Session) -> None:
        gpu = self.arguments.gpu
        if not session.total[gpu]:
            if gpu != type(self.arguments)().gpu and len(session.table):
                self.warn(f"argument gpu is {gpu}, which is a resource of no node; use the name that nodes have")
            return
        if not self.weight:
            return
        shapes = _mix(session.cluster, gpu)
        if shapes:
            card = Resource.parse({gpu: str(self.card)})[gpu]
            session.add_scores(_Gradient(session, gpu, card, shapes, 10.0 * self.weight))


@dataclass
class _Counts:
    """How often each shape of GPU pods occurs in the cluster, and by job what is counted of it."""

    total: Counter[Shape] = field(default_factory=Counter)
    of_job: dict[str, Counter[Shape]] = field(default_factory=dict)


def _mix(cluster: Cluster, gpu: str) -> list[tuple[Shape, float]]:
    """The most frequent shapes of GPU pods with their shares, of all jobs of the cluster that have not ended."""

    def apply(state: _Counts, cluster: Cluster, changed: set[str]) -> None:
        for uid in changed:
            state.total.subtract(state.of_job.pop(uid, Counter()))
            job = cluster.jobs.get(uid)
            shapes = Counter(
                (task.request[CPU], task.request[MEMORY], task.request[gpu])
                for task in (job.tasks.values() if job is not None else ())
                if task.request[gpu] >= EPS
            )
            if shapes:
                state.of_job[uid] = shapes
                state.total.update(shapes)

    def build(cluster: Cluster) -> _Counts:
        state = _Counts()
        apply(state, cluster, set(cluster.jobs))
        return state

    total = state_of(cluster, "fragmentation", gpu, build, apply).total
    frequent = sorted(((-count, shape) for shape, count in total.items() if count > 0))[:_SHAPES]
    counted = -sum(count for count, _ in frequent)
    return [(shape, -count / counted) for count, shape in frequent]


class _Gradient:
    """The loss of a node before the task, minus the loss after it."""

    name = "fragmentation"
    scope: Literal[Scope.LOCAL] = LOCAL
    in_runs = True
    batch = False

    def __init__(
        self, session: Session, gpu: str, card: float, shapes: list[tuple[Shape, float]], weight: float
    ) -> None:
        self._numbers = session.numbers
        self._rows = [session.table.rows[name] for name in (CPU, MEMORY, gpu)]
        self._gpu = gpu
        self._card = card
        self._shapes = shapes
        self._weight = weight / card

    def applies(self, task: Task) -> bool:
        return True

    def score(self, task: Task, numbers: Numbers) -> Floats:
        cpu, memory, gpu = (numbers.idle[row] for row in self._rows)
        request = task.request
        after = self._loss(cpu - request[CPU], memory - request[MEMORY], gpu - request[self._gpu])
        return (self._loss(cpu, memory, gpu) - after) * self._weight

    def score_node(self, task: Task, node: int) -> float:
        here = SomeNodes(self._numbers, np.array([node], dtype=np.intp))
        return float(self.score(task, here)[0])

    def _loss(self, cpu: Floats, memory: Floats, gpu: Floats) -> Floats:
        """The free GPU that the shapes cannot use, as the mean."""
        free = np.maximum(gpu, 0.0)
        rest = free % self._card
        whole = free - rest
        lost = np.zeros_like(free)
        for (cpu_of, memory_of, gpu_of), share in self._shapes:
            fits = (cpu >= cpu_of - EPS) & (memory >= memory_of - EPS)
            if gpu_of >= self._card - EPS:
                fits &= whole >= gpu_of - EPS
            else:
                fits &= (whole > 0) | (rest >= gpu_of - EPS)
            too_small = np.where(rest < min(gpu_of, self._card) - EPS, rest, 0.0)
            lost += share * np.where(fits, too_small, free)
        return lost
