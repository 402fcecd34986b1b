"""The plan's operations, where the framework's users expect them (the model must know them first)."""

from volcano_py.scheduler.model.plan import (
    Bind,
    Emit,
    Event,
    Evict,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)

__all__ = ["Bind", "Emit", "Event", "Evict", "Operation", "PodCondition", "PodGroupStatus", "QueueStatus"]
