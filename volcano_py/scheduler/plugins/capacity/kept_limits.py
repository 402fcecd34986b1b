"""The limits of a tree of queues, kept until a spec of a queue or the capacity changes. Volcano computes them in each
session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource


class LimitsOfQueue(NamedTuple):
    """The amounts of one queue that do not depend on jobs. Sessions read them only."""

    guarantee: Resource
    deserved: Resource
    capability: Resource
    real_capability: Resource
    admits: Resource
    deserves: list[str] | None
    """The names of the deserved resources."""


@dataclass
class KeptLimits:
    """State between sessions: the limits by queue, and what they were computed from."""

    source: Any = None
    of: dict[str, LimitsOfQueue] = field(default_factory=dict)


def source_of(session: Session) -> Any:
    """What the limits depend on. Specs that are the same objects as before are not compared field by field."""
    return (
        [queue.name for queue in session.queues.values()],
        [queue.object.spec for queue in session.queues.values()],
        session.admissible.clone(),
        list(session.total.scalars or ()),
        bool(len(session.table)),
        session.deviations,
    )
