"""Runs the assignment of nodes to schedulers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from volcano_py.api.core import ConfigMap, Node, Pod
from volcano_py.api.kinds import CONFIGMAP, NODE, NODESHARD, POD
from volcano_py.api.shard import NodeShard
from volcano_py.controllers.instructions import Emit
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster
from volcano_py.controllers.sharding.assign import assign
from volcano_py.controllers.sharding.config import (
    DEFAULT_PERIOD,
    Settings,
    parse,
    parse_flag,
    settings_of,
    text_of,
    with_defaults,
)
from volcano_py.controllers.sharding.policies import NodeView
from volcano_py.controllers.sharding.reconcile import reconcile
from volcano_py.controllers.sharding.usage import Rates, Usage
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

MOVED = 0.5
"""A change of the utilization above this value triggers an assignment before the next interval."""
SOON = 0.2
"""Seconds in which changes are collected."""
CONFIG_KEY, SYNC_KEY = "config", "sync"


def flag_settings(schedulers: Sequence[str], period: float, node_events: bool) -> Settings:
    """The settings of the flags. Raises ValueError."""
    return Settings(
        [with_defaults(parse_flag(text)) for text in schedulers], period if period > 0 else DEFAULT_PERIOD, node_events
    )


class ShardingController:
    name = "sharding-controller"
    workers = 1

    def __init__(
        self,
        cluster: Cluster,
        flags: Settings,
        *,
        place: tuple[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`flags` apply until the ConfigMap (`place`: namespace and name) exists and is valid."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._settings = flags
        self._flags = flags
        self._place = place
        self._clock = clock
        self._cluster = cluster
        self._usage = Usage()
        self._known: dict[str, Rates] = {}
        self._nodes: Mirror[Node] = cluster.mirror(NODE)
        self._pods: Mirror[Pod] = cluster.mirror(POD)
        self._shards: Mirror[NodeShard] = cluster.mirror(NODESHARD)
        self._configmap: Mirror[ConfigMap] | None = None
        node, pod = self._node_seen, self._pod_seen
        self._nodes.on(add=node, update=lambda old, new: node(new), delete=self._node_gone)
        self._pods.on(add=pod, update=lambda old, new: pod(new), delete=self._pod_gone)
        soon = self._soon
        self._shards.on(add=lambda _: soon(), update=lambda old, new: soon(), delete=lambda _: soon())
        if place is not None:
            self._configmap = cluster.mirror_one(CONFIGMAP, *place)
            self._configmap.on(
                add=lambda _: self.queue.add(CONFIG_KEY), update=lambda old, new: self.queue.add(CONFIG_KEY)
            )
        self.queue.add(CONFIG_KEY)

    async def process(self, key: str) -> None:
        if key == CONFIG_KEY:
            self._configure()
        await self._sync()
        self.queue.forget(key)
        self.queue.add_after(SYNC_KEY, self._settings.period)

    async def _sync(self) -> None:
        views = []
        for node in sorted(self._nodes.all(), key=lambda node: node.metadata.name):
            rates = self._known[node.metadata.name] = self._usage.rates(node)
            views.append(NodeView(node.metadata.name, node.metadata.labels or {}, rates.cpu, rates.memory))
        wanted = assign(self._settings.schedulers, views)
        shards = self._shards.all()
        instructions = reconcile(wanted, shards, self._clock())
        await self._cluster.executor.carry_out(instructions, shards[0] if shards else NodeShard())

    # -- configuration

    def _configure(self) -> None:
        """An invalid or deleted configuration keeps the current settings; an empty one activates the flags."""
        configmap = self._configmap.get("/".join(self._place)) if self._configmap and self._place else None
        if configmap is None:
            return
        text = text_of(configmap.data)
        if not text:
            self._settings = self._flags
            return
        try:
            self._settings = settings_of(parse(text), self._flags)
        except ValueError as error:
            message = f"{error}; the previous configuration stays active"
            log.warning("ConfigMap %s: %s", configmap.key, message)
            self._cluster.executor.record(configmap, Emit("Warning", "InvalidShardingConfig", message, once=True))

    # -- what happens in the cluster

    def _soon(self) -> None:
        self.queue.add_after(SYNC_KEY, SOON)

    def _node_seen(self, node: Node) -> None:
        if self._settings.node_events and self._moved(node):
            self._soon()

    def _node_gone(self, node: Node) -> None:
        self._known.pop(node.metadata.name, None)

    def _pod_seen(self, pod: Pod) -> None:
        self._pod_moved(self._usage.seen(pod))

    def _pod_gone(self, pod: Pod) -> None:
        self._pod_moved(self._usage.gone(pod))

    def _pod_moved(self, name: str) -> None:
        node = self._nodes.get(name) if name and self._settings.node_events else None
        if node is not None and self._moved(node):
            self._soon()

    def _moved(self, node: Node) -> bool:
        """Whether a node is new, or its utilization has changed much since the last assignment."""
        before, now = self._known.get(node.metadata.name), self._usage.rates(node)
        return before is None or abs(now.cpu - before.cpu) > MOVED or abs(now.memory - before.memory) > MOVED
