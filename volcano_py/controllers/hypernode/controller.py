"""Runs the node counting, and the discovery of HyperNodes."""

from __future__ import annotations

import base64
import logging
import time

from volcano_py.api.core import ConfigMap, Node
from volcano_py.api.kinds import CONFIGMAP, HYPERNODE, NODE, SECRET
from volcano_py.api.meta import format_time
from volcano_py.api.topology import HyperNode
from volcano_py.controllers.admission import problems_of_hypernode
from volcano_py.controllers.hypernode import adopt, count, labels, ufm
from volcano_py.controllers.hypernode.config import Source, parse, where
from volcano_py.controllers.hypernode.labels import Manifest
from volcano_py.controllers.instructions import Emit
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.errors import Conflict, NotFound
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

RECOUNT_SECONDS = 1.0
"""Seconds in which node changes are collected before counts are updated."""
REDISCOVER_SECONDS = 0.05
SOURCES = (labels.SOURCE, ufm.SOURCE)

CONFIG_KEY = "config"
RECOUNT_KEY = "nodes"
_STATUS, _SOURCE = "status/", "source/"


class HyperNodeController:
    name = "hyperNode-controller"
    workers = 2
    """A request to UFM can block one worker for half a minute."""

    def __init__(self, cluster: Cluster, *, place: tuple[str, str] | None = None) -> None:
        """`place`: namespace and name of the ConfigMap with the configuration."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._cluster = cluster
        self._place = place or where()
        self._sources: dict[str, Source] = {}
        self._types: dict[str, list[str]] = {}
        self._watched: frozenset[str] = frozenset()
        self._hypernodes: Mirror[HyperNode] = cluster.mirror(HYPERNODE)
        self._nodes: Mirror[Node] = cluster.mirror(NODE)
        self._configmap: Mirror[ConfigMap] = cluster.mirror_one(CONFIGMAP, *self._place)
        self._hypernodes.on(
            add=self._hypernode_added,
            update=lambda old, new: self.queue.add(_STATUS + new.metadata.name),
            delete=lambda one: self._hypernode_deleted(),
        )
        self._nodes.on(
            add=lambda node: self._node_changed({}, node.metadata.labels or {}),
            update=lambda old, new: self._node_updated(old.metadata.labels or {}, new.metadata.labels or {}),
            delete=lambda node: self._node_changed(node.metadata.labels or {}, {}),
        )
        self._configmap.on(
            add=lambda one: self.queue.add(CONFIG_KEY),
            update=lambda old, new: self.queue.add(CONFIG_KEY),
            delete=lambda one: self.queue.add(CONFIG_KEY),
        )

    def _hypernode_added(self, hypernode: HyperNode) -> None:
        self.queue.add(_STATUS + hypernode.metadata.name)
        self.queue.add_after(RECOUNT_KEY, RECOUNT_SECONDS)  # others may have it as a member

    def _hypernode_deleted(self) -> None:
        self._rediscover()
        self.queue.add_after(RECOUNT_KEY, RECOUNT_SECONDS)

    async def process(self, key: str) -> None:
        try:
            await self._process(key)
        except Conflict:
            self.queue.add_after_conflict(key)
            return
        self.queue.forget(key)

    async def _process(self, key: str) -> None:
        if key == CONFIG_KEY:
            self._configure()
        elif key == RECOUNT_KEY:
            for one in self._hypernodes.all():
                if count.follows_nodes(one) or self._unknown(one) != count.reported_unknown(one):
                    self.queue.add(_STATUS + one.metadata.name)
        elif key.startswith(_SOURCE):
            await self._discover(self._sources.get(key.removeprefix(_SOURCE)))
        else:
            await self._count(key.removeprefix(_STATUS))

    # -- counting

    async def _count(self, name: str) -> None:
        hypernode = self._hypernodes.get(name)
        if hypernode is None:
            return
        now = format_time(time.time())
        problems, unknown = problems_of_hypernode(hypernode), self._unknown(hypernode)
        instructions = count.reconcile(hypernode, self._labels(), problems, now, unknown)
        await self._cluster.executor.carry_out(instructions, hypernode)

    def _unknown(self, hypernode: HyperNode) -> str:
        return count.unknown_members(hypernode, self._nodes, self._hypernodes)

    def _labels(self) -> dict[str, dict[str, str]]:
        return {node.metadata.name: node.metadata.labels or {} for node in self._nodes.all()}

    def _node_updated(self, old: dict[str, str], new: dict[str, str]) -> None:
        if old != new:
            self._node_changed(old, new)

    def _node_changed(self, old: dict[str, str], new: dict[str, str]) -> None:
        self.queue.add_after(RECOUNT_KEY, RECOUNT_SECONDS)
        if any(old.get(label) != new.get(label) for label in self._watched):
            self._rediscover()

    # -- discovery

    def _rediscover(self) -> None:
        if labels.SOURCE in self._sources:
            self.queue.add_after(_SOURCE + labels.SOURCE, REDISCOVER_SECONDS)

    def _configure(self) -> None:
        """Read the configuration and restart all its sources; if it is invalid, the previous sources continue."""
        configmap = self._configmap.get("/".join(self._place))
        try:
            given = parse(configmap.data) if configmap is not None else []
        except ValueError as error:
            self._report_problem(configmap, f"{error}; the previous configuration stays active")
            return
        self._sources = {source.name: source for source in given if source.enabled}
        self._types, self._watched = {}, frozenset()
        for source in self._sources.values():
            if source.name not in SOURCES:
                self._report_problem(configmap, f"source {source.name!r} is unknown: use {' or '.join(SOURCES)}")
                continue
            if source.name == labels.SOURCE:
                self._read_types(configmap, source)
            self.queue.add(_SOURCE + source.name)

    def _read_types(self, configmap: ConfigMap | None, source: Source) -> None:
        try:
            self._types, problems = labels.parse_types(source.config)
        except ValueError as error:
            problems = [str(error)]
        for problem in problems:
            self._report_problem(configmap, f"source {source.name}: {problem}")
        self._watched = labels.labels_used(self._types)

    async def _discover(self, source: Source | None) -> None:
        if source is None:
            return
        found = self._from_labels() if source.name == labels.SOURCE else await self._from_ufm(source)
        if found is None or self._sources.get(source.name) is not source:
            return  # nothing was discovered, or the configuration has changed
        existing = self._hypernodes.all()
        configmap = self._configmap.get("/".join(self._place))
        for name in adopt.in_the_way(source.name, found, existing):
            self._report_problem(configmap, f"source {source.name}: HyperNode {name} has another owner: rename it")
        if configmap is None:
            return
        await self._cluster.executor.carry_out(adopt.reconcile(source.name, found, existing), configmap)

    def _from_labels(self) -> list[Manifest] | None:
        return labels.discover(self._types, self._labels(), self._hypernodes.all()) if self._types else None

    async def _from_ufm(self, source: Source) -> list[Manifest] | None:
        self.queue.add_after(_SOURCE + source.name, source.period)
        try:
            ufm.endpoint(source)
            user, password = ufm.login(await self._secret(source))
            return ufm.discover(await ufm.fetch(source, user, password))
        except (ValueError, ufm.UfmError) as error:
            self._report_problem(self._configmap.get("/".join(self._place)), f"source {source.name}: {error}")
            return None

    async def _secret(self, source: Source) -> dict[str, str] | None:
        if not source.secret_name:
            return None
        namespace = source.secret_namespace or self._place[0]
        try:
            secret = await self._cluster.client.get(SECRET, source.secret_name, namespace)
        except NotFound:
            return None
        return {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}

    def _report_problem(self, configmap: ConfigMap | None, message: str) -> None:
        """Report a problem of the configuration in the log, and on the ConfigMap."""
        log.warning("ConfigMap %s: %s", "/".join(self._place), message)
        if configmap is not None:
            self._cluster.executor.record(configmap, Emit("Warning", "TopologyDiscovery", message, once=True))
