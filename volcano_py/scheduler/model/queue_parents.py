"""The hierarchy of queues, also where spec.parent is invalid.

Admission denies a parent that does not exist and a cycle. Queues that were created earlier, or without webhooks, may
have them. Volcano: capacity's buildHierarchicalQueueAttrs, which in this case schedules nothing in the whole cluster
(see the deviation partial-hierarchy).
"""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.scheduler.model.queue import Queue


def parents_of(queues: Mapping[str, Queue]) -> tuple[dict[str, str], dict[str, str]]:
    """The parent of every queue except root, and by queue the fault of its spec.parent. Every queue is below root: one
    whose parent does not exist is directly below root, as is the first of a cycle in the order of names."""
    return usable_parents({name: q.parent for name, q in queues.items()})


def usable_parents(stated: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The same from the value of spec.parent by queue; empty: root."""
    parents = {name: parent or ROOT_QUEUE for name, parent in stated.items() if name != ROOT_QUEUE}
    faults: dict[str, str] = {}
    for name, parent in parents.items():
        if parent not in parents and parent != ROOT_QUEUE:
            faults[name] = f"spec.parent: queue {parent} does not exist; create it or change the field"
            parents[name] = ROOT_QUEUE
    for circle in _circles(parents):
        first = min(circle)
        way = " → ".join(circle[circle.index(first) :] + circle[: circle.index(first)])
        faults[first] = f"spec.parent: the queue is its own ancestor ({way}); change the field"
        parents[first] = ROOT_QUEUE
    return parents, faults


def path_of(queue: str, parents: Mapping[str, str]) -> list[str]:
    """A queue and those above it, up to the root. `parents`: the first result of `parents_of`."""
    found = [queue]
    while parent := parents.get(found[-1], ""):
        found.append(parent)
    return found


def _circles(parents: Mapping[str, str]) -> list[list[str]]:
    """The cycles, each as its queues from child to parent."""
    found: list[list[str]] = []
    done: set[str] = {ROOT_QUEUE}
    for name in parents:
        way: list[str] = []
        on_way: dict[str, int] = {}
        while name not in done and name not in on_way:
            on_way[name] = len(way)
            way.append(name)
            name = parents[name]
        if name in on_way:
            found.append(way[on_way[name] :])
        done.update(way)
    return found
