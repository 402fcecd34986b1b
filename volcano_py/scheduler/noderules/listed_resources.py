"""The resources that have an entry in Volcano's idle amounts of a node. Some rules treat a missing entry differently
from an amount of 0."""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource_names import CPU, MEMORY


def listed_resources(session: Session, node: int) -> set[str]:
    """The names of these resources, without those of which the node has idle amounts.

    A node that lists only cpu and memory has no entries for the resources that its pods list.
    """
    have = {*(session.table.objects[node].status.allocatable or ())}
    if have <= {CPU, MEMORY}:
        return have
    here = session.cluster.on_node.get(session.table.names[node], {}).values()
    return have.union(*(task.spec_class.idle_wishes for task in here))
