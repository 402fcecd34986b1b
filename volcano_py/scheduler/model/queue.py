"""Queue: a share of the cluster, with its amounts parsed. Volcano: QueueInfo."""

from __future__ import annotations

from volcano_py.api import scheduling as api
from volcano_py.api.core import ResourceList
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.resource import Resource


class Queue:
    """The fields of a Queue object. Amounts are None where the object does not set them."""

    __slots__ = (
        "capability",
        "created",
        "deserved",
        "guarantee",
        "name",
        "object",
        "parent",
        "priority",
        "reclaimable",
        "state",
        "weight",
    )

    def __init__(self, queue: api.Queue) -> None:
        """Raises ValueError for an invalid amount."""
        spec = queue.spec
        self.object = queue
        self.name = queue.metadata.name
        created = queue.metadata.creation_timestamp
        self.created = parse_time(created) if created else 0.0
        self.weight = spec.weight
        self.priority = spec.priority
        self.parent = spec.parent
        self.reclaimable = spec.reclaimable is not False
        self.state = queue.status.state
        self.capability = _amount(spec.capability, "spec.capability")
        self.deserved = _amount(spec.deserved, "spec.deserved")
        self.guarantee = _amount(spec.guarantee.resource if spec.guarantee else None, "spec.guarantee.resource")


def _amount(amounts: ResourceList | None, where: str) -> Resource | None:
    if not amounts:
        return None
    try:
        return Resource.parse(amounts)
    except ValueError as e:
        raise ValueError(f"{where}.{e}") from None
