"""What the parts of a session read of it: its data, without its extension points. See `Session`."""

from __future__ import annotations

from typing import Protocol

from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.deviations import Deviations
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.session_jobs import SessionJobs
from volcano_py.scheduler.framework.network.topology import HyperNodeTree
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers, NodeTable


class OpenSession(Protocol):
    """A session, as its parts see it."""

    cluster: Cluster
    configuration: Configuration
    deviations: Deviations
    callbacks: Callbacks
    table: NodeTable
    numbers: NodeNumbers
    statuses: bytearray
    topology: HyperNodeTree
    jobs: SessionJobs

    @property
    def topology_is_ready(self) -> bool: ...
    def status(self, task: Task) -> int: ...
    def node_of(self, task: Task) -> int | None: ...
    def pending(self, job: SessionJob) -> list[Task]: ...
    def on_node(self, node: int) -> list[Task]: ...
