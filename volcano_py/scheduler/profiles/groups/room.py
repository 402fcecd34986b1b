"""Room: how many pods of a group the nodes of a placement can run at most, by the amounts of NodeResourcesFit.

Kubernetes has no such step: it tries the pods of the group in every placement. A placement with less room than the
group needs cannot be feasible, whatever the other filters decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.groups.placements import Nodes
from volcano_py.scheduler.profiles.groups.tree import GroupId, Tree
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.rules.arrays import Ints


def rooms(
    columns: Columns, found: Sequence[Nodes], pods: Sequence[PodInfo], profiles: Mapping[str, Profile]
) -> list[int]:
    """For each placement, an upper bound of the pods that fit on its nodes. Each pod counts with the least that any of
    them requests."""
    places: Ints | None = None
    for resource, amount in _least_requests(pods, profiles).items():
        if resource == "pods":
            here = columns.allocatable(resource) - columns.pods
        else:
            here = (columns.allocatable(resource) - columns.requested(resource)) // amount
        places = here if places is None else np.minimum(places, here)
    if places is None:
        return [len(pods)] * len(found)
    fitting = np.maximum(places, 0).tolist()
    return [sum(fitting[columns.index[name]] for name in nodes) for nodes in found]


def _least_requests(pods: Sequence[PodInfo], profiles: Mapping[str, Profile]) -> dict[str, int]:
    """What each of the pods requests at least, of the resources that the filters of its profile count."""
    least: dict[str, int] | None = None
    for pod in pods:
        wanted = profiles[pod.pod.spec.scheduler_name].counted_requests(pod)
        if least is None:
            least = dict(wanted)
            continue
        for name in [n for n, amount in least.items() if amount > wanted.get(n, 0)]:
            least[name] = wanted.get(name, 0)
            if not least[name]:
                del least[name]
    return least or {}


def missing(tree: Tree, at: GroupId, waits: Callable[[GroupId], bool]) -> int:
    """The number of waiting pods without which a group does not have its minimum. `waits`: whether pods of a group
    wait."""
    if not at.composite:
        return max(tree.least(at) - sum(1 for _ in tree.on_nodes(at)), 0)
    lacks = [(missing(tree, child, waits), waits(child)) for child in tree.children(at)]
    more = tree.least(at) - sum(not lack for lack, _ in lacks)
    return sum(sorted(lack for lack, waiting in lacks if lack and waiting)[: max(more, 0)])
