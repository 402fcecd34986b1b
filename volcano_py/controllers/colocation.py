"""Writes the matching ColocationConfiguration to pods. Volcano: colocation-config-controller.

The newest configuration of the namespace whose selector matches applies; the agent on the node reads the annotations.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from volcano_py.api import names
from volcano_py.api.config import ColocationConfiguration
from volcano_py.api.core import Pod
from volcano_py.api.kinds import COLOCATIONCONFIGURATION, POD
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import matches
from volcano_py.controllers.instructions import Emit, Instruction, Patch
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.workqueue import WorkQueue

DELAY_SECONDS = 1.0
"""Delay after a change, to process several changes together."""
RESET = "{}"
"""Value for the agent that reverts its settings."""


def find(pod: Pod, configurations: Iterable[ColocationConfiguration]) -> ColocationConfiguration | None:
    """The configuration of a pod: the newest that selects it; of equally new ones, the first by name."""
    metadata = pod.metadata
    fitting = [
        one
        for one in sorted(configurations, key=lambda one: one.metadata.name)
        if one.metadata.namespace == metadata.namespace and matches(one.spec.selector, metadata.labels)
    ]
    return max(fitting, key=lambda one: one.metadata.creation_timestamp or "", default=None)


def reconcile(pod: Pod, configuration: ColocationConfiguration | None) -> list[Instruction]:
    """Patch the annotations of a pod if they differ."""
    annotations = pod.metadata.annotations or {}
    name, config = annotations.get(names.COLOCATION_CONFIG_NAME), annotations.get(names.COLOCATION_CONFIG)
    if configuration is not None:
        wanted = (configuration.metadata.name, written(configuration))
        return [] if (name, config) == wanted else [_annotate(pod, *wanted)]
    if name is None and config in (None, RESET):
        return []
    return [_annotate(pod, None, RESET)]


def written(configuration: ColocationConfiguration) -> str:
    """The annotation for the agent: the spec without its selector."""
    qos = configuration.spec.memory_qos
    if qos is None:
        return RESET
    ratios = {"highRatio": qos.high_ratio, "lowRatio": qos.low_ratio, "minRatio": qos.min_ratio}
    given = {name: ratio for name, ratio in ratios.items() if ratio or name == "highRatio"}
    return orjson.dumps({"memoryQos": given}).decode()


def _annotate(pod: Pod, name: str | None, config: str) -> Patch:
    annotations = {names.COLOCATION_CONFIG_NAME: name, names.COLOCATION_CONFIG: config}
    same_one = {"uid": pod.metadata.uid} if pod.metadata.uid else {}
    body = {"metadata": {**same_one, "annotations": annotations}}
    return Patch(POD, pod.metadata.namespace, pod.metadata.name, body, missing_ok=True)


class ColocationController:
    name = "colocation-config-controller"
    workers = 1

    def __init__(self, cluster: Cluster) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._executor = cluster.executor
        self._pods: Mirror[Pod] = cluster.mirror(POD)
        self._configurations: Mirror[ColocationConfiguration] = cluster.mirror(COLOCATIONCONFIGURATION)
        self._pods.on(add=self._pod_added, update=self._pod_updated)
        self._configurations.on(add=self._changed, update=lambda old, new: self._changed(new), delete=self._changed)

    async def process(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        if not name:
            for one in self._pods.all():
                if one.metadata.namespace == namespace:
                    self.queue.add(one.key)
        pod = self._pods.get(key)
        if pod is not None and pod.metadata.deletion_timestamp is None:
            await self._executor.carry_out(reconcile(pod, self._find(pod)), pod)
        self.queue.forget(key)

    def _find(self, pod: Pod) -> ColocationConfiguration | None:
        usable = []
        for one in self._configurations.all():
            selector = one.spec.selector
            try:
                for requirement in (selector.match_expressions or ()) if selector else ():
                    matches(LabelSelector(match_expressions=[requirement]), {})
            except ValueError as error:
                self._executor.record(one, Emit("Warning", "InvalidSelector", f"spec.selector: {error}", once=True))
            else:
                usable.append(one)
        return find(pod, usable)

    def _pod_added(self, pod: Pod) -> None:
        """Without any configuration only pods that had one are processed."""
        if self._configurations.all() or names.COLOCATION_CONFIG_NAME in (pod.metadata.annotations or {}):
            self.queue.add_after(pod.key, DELAY_SECONDS)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._pod_added(new)

    def _changed(self, configuration: ColocationConfiguration) -> None:
        """Enqueue all pods of the namespace."""
        self.queue.add_after(f"{configuration.metadata.namespace}/", DELAY_SECONDS)
