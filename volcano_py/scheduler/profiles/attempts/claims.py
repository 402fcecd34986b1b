"""Claims: the demands of pods for volumes and devices, and what is reserved for them. Kubernetes: the assume caches of
VolumeBinding and DynamicResources.

A reservation is an entry of the model's ledger (`model.claims.storage`, `model.claims.resource_claims`), which the
session uses as well: neither assigns what the other has reserved. An entry belongs to the binding cycle until the
binding is written, and then to that operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from volcano_py.scheduler.model.claims.demand import NONE, PodClaimDemand
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.model.jobs.pre_bind import PreBindStep
from volcano_py.scheduler.model.nodes.node_table import arrays_kept, drop_oldest
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.rules.devices.device_choice import DeviceChoice
from volcano_py.scheduler.rules.volumes.volume_book import VolumeBook

T = TypeVar("T")


class Claims:
    """See the module. Entries are by pod and by the plugin that created them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.devices = DeviceChoice(model)
        self._kept: dict[tuple[str, int], Any] = {}
        self._kept_of = -1
        """The generation of the nodes for which `_kept` was computed."""
        self._book: VolumeBook | None = None
        self._book_of = (-1, -1)
        self._reserved: dict[str, dict[str, Bind]] = {}
        self._to_write: dict[str, list[str]] = {}
        """The plugins whose entries are to be written."""
        self._written: dict[str, Bind] = {}

    def demand(self, pod: PodInfo) -> PodClaimDemand:
        """The current demand of a pod's claims."""
        if not pod.claims:
            return NONE
        self._model.claims.settle()
        task = self._model.tasks.get(pod.key)
        return task.claims if task is not None else NONE

    @property
    def volumes(self) -> VolumeBook:
        """The volumes and nodes that waiting claims can get now."""
        generations = self._model.claims.storage.volumes_generation, self._model.nodes.generation
        if self._book is None or self._book_of != generations:
            self._book, self._book_of = VolumeBook(self._model), generations
        return self._book

    def kept(self, pod: PodInfo, plugin: str, make: Callable[[], T]) -> T:
        """A value that depends on the class of a pod and the Node objects only; kept until nodes change."""
        nodes = self._model.nodes
        if self._kept_of != nodes.generation:
            self._kept, self._kept_of = {}, nodes.generation
        key = (plugin, self._model.tasks[pod.key].spec_class.id)
        if key not in self._kept:
            drop_oldest(self._kept, arrays_kept(len(nodes)))
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    # ---- reserving --------------------------------------------------------------------------------------

    def reserve(self, pod: PodInfo, plugin: str, node: str, steps: Sequence[PreBindStep]) -> None:
        """Count steps as done, so that their volumes or devices are assigned to the pod only."""
        entry = Bind(pod.namespace, pod.name, pod.pod.metadata.uid, node, "", steps=tuple(steps))
        self._reserved.setdefault(entry.uid, {})[plugin] = entry
        self._model.reserve(entry)

    def reserved(self, pod: PodInfo) -> list[PreBindStep]:
        """What is reserved for a pod and is not being written."""
        return [s for entry in self._reserved.get(pod.pod.metadata.uid, {}).values() for s in entry.steps]

    def release(self, pod: PodInfo, plugin: str) -> None:
        """Release what a plugin has reserved for a pod, unless it is being written."""
        entries = self._reserved.get(pod.pod.metadata.uid, {})
        entry = entries.pop(plugin, None)
        if entry is not None:
            self._model.release(entry)
        if not entries:
            self._reserved.pop(pod.pod.metadata.uid, None)
            self._to_write.pop(pod.pod.metadata.uid, None)

    def write(self, pod: PodInfo, plugin: str) -> None:
        """Mark what a plugin has reserved to be written before the pod is bound."""
        entry = self._reserved.get(pod.pod.metadata.uid, {}).get(plugin)
        if entry is not None:
            self._to_write.setdefault(entry.uid, []).append(plugin)

    def has_steps(self, pod: PodInfo) -> bool:
        """Whether a write must precede the binding of a pod."""
        return pod.pod.metadata.uid in self._to_write

    # ---- the binding ------------------------------------------------------------------------------------

    def hand_over(self, pod: PodInfo, node: str) -> tuple[PreBindStep, ...]:
        """The writes before a pod is bound, in this order; its entries now belong to the operation."""
        uid = pod.pod.metadata.uid
        entries = self._reserved.pop(uid, {})
        steps = tuple(step for plugin in self._to_write.pop(uid, ()) for step in entries.pop(plugin).steps)
        for entry in entries.values():
            self._model.release(entry)
        if steps:
            self._written[uid] = Bind(pod.namespace, pod.name, uid, node, "", steps=steps)
        return steps

    def settle(self, uid: str, *, written: bool) -> None:
        """The operation of a pod with this UID has ended."""
        entry = self._written.pop(uid, None)
        if entry is not None and not written:
            self._model.release(entry)
