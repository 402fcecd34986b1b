"""What a queue is guaranteed, also where its object contradicts itself (deviation capability-first).

Admission denies a guarantee above the capability; a queue from before it, or without webhooks, may have one.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY


def guarantee_of(session: Session, queue: Queue) -> Resource:
    """What is kept for a queue: no more than it may have."""
    found = queue.guarantee.clone() if queue.guarantee is not None else Resource()
    if session.deviations.capability_first:
        for name in excess(queue):
            assert queue.capability is not None
            found[name] = queue.capability[name]
    return found


def excess(queue: Queue) -> list[str]:
    """The resources of which a queue is guaranteed more than its capability."""
    if queue.guarantee is None or queue.capability is None:
        return []
    may = queue.capability
    limited = [n for n in queue.guarantee.keys() if (may[n] > 0 if n in (CPU, MEMORY) else n in may)]
    return [n for n in limited if queue.guarantee[n] - may[n] >= EPS]
