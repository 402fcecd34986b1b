"""What the parts of the model read and change of it. See `Cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from volcano_py.scheduler.model.changes import Changes
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.spec_class import SpecClasses
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.nodes.placed_pods import PlacedPods

T = TypeVar("T")


class ModelState(Protocol):
    """The model, as its parts see it."""

    nodes: NodeTable
    classes: SpecClasses
    tasks: dict[str, Task]
    placed: PlacedPods
    jobs: dict[str, Job]
    others: dict[str, dict[str, Any]]
    features: frozenset[str]
    default_queue: str
    job_changes: Changes
    node_changes: Changes

    def keep(self, kind: type[T]) -> T: ...
    def allocatable_changed(self, node: str) -> None: ...
    def set_group(self, uid: str, take: Callable[[Job], None]) -> None: ...
    def unset_group(self, uid: str) -> None: ...
    def move_tasks(self, tasks: Iterable[Task], uid: str) -> None: ...
