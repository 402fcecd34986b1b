"""The guarantee of a queue, also of an inconsistent Queue object (deviation capability-first).

Admission denies a guarantee above the capability; a Queue that was created earlier, or without webhooks, may have one.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY


def guarantee_of(session: Session, queue: Queue) -> Resource:
    """What is guaranteed to a queue: at most its capability."""
    found = queue.guarantee.clone() if queue.guarantee is not None else Resource()
    if session.deviations.capability_first:
        for name in excess(queue):
            assert queue.capability is not None
            found[name] = queue.capability[name]
    return found


def excess(queue: Queue) -> list[str]:
    """The resources whose guarantee is above the queue's capability."""
    if queue.guarantee is None or queue.capability is None:
        return []
    may = queue.capability
    limited = [n for n in queue.guarantee.keys() if (may[n] > 0 if n in (CPU, MEMORY) else n in may)]
    return [n for n in limited if queue.guarantee[n] - may[n] >= EPS]
