"""The metrics of vGPUs, computed when they are read. Volcano: devices/nvidia/vgpu/metrics.go.

They show the books as the last session left them: pods on nodes, and what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from volcano_py.scheduler.plugins.deviceshare.ledger import DeviceBooks
from volcano_py.scheduler.plugins.deviceshare.vgpu import Vgpu, VgpuCards

_CARD, _POD = ("devID", "NodeName"), ("devID", "NodeName", "podName")


class DeviceMetrics(Collector):
    """`books` gives the current books."""

    def __init__(self, books: Callable[[], DeviceBooks]) -> None:
        self._books = books

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One series for each card, and for each pod on it."""
        number = _family("vgpu_device_shared_number", "Pods' shares of a vGPU's card", _CARD)
        memory = _family("vgpu_device_allocated_memory", "Memory of a card that pods hold, MiB", _CARD)
        cores = _family("vgpu_device_allocated_cores", "Cores of a card that pods hold", _CARD)
        limit = _family("vgpu_device_memory_limit", "Memory of a card, MiB", _CARD)
        of_pod = _family("vgpu_device_memory_allocation_for_a_certain_pod", "Memory that a pod holds, MiB", _POD)
        cores_of_pod = _family("vgpu_device_core_allocation_for_a_certain_pod", "Cores that a pod holds", _POD)
        books = self._books().of.get(Vgpu.name)
        for node, cards in list(books.cards.items()) if books is not None else ():
            for card in cards.cards if isinstance(cards, VgpuCards) else ():
                labels = (card.announced.uuid, node)
                number.add_metric(labels, card.number)
                memory.add_metric(labels, card.memory)
                cores.add_metric(labels, card.cores)
                limit.add_metric(labels, card.announced.memory)
                for pod, held in card.pods.items():
                    name = pod.partition("/")[2]
                    of_pod.add_metric((*labels, name), held.memory)
                    cores_of_pod.add_metric((*labels, name), held.cores)
        yield from (number, memory, cores, limit, of_pod, cores_of_pod)


def _family(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"volcano_{name}", text, labels=labels)
