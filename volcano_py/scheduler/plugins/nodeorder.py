"""nodeorder: kube-scheduler's scores. Volcano: plugin nodeorder."""

from __future__ import annotations

from typing import Any

from msgspec import field

from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.noderules.allocation import BalancedAllocation, LeastAllocated, MostAllocated
from volcano_py.scheduler.noderules.image_locality import ImageLocalityRule
from volcano_py.scheduler.noderules.inter_pod_affinity import InterPodPreference
from volcano_py.scheduler.noderules.node_affinity import PreferredNodeAffinity
from volcano_py.scheduler.noderules.taints import TaintPreference
from volcano_py.scheduler.noderules.topology_spread import SpreadPreference


class NodeOrder(Plugin):
    """See `Arguments`."""

    name = "nodeorder"

    class Arguments(PluginArguments):
        """The weight of each score; 0 disables it."""

        least_requested: int = field(default=1, name="leastrequested.weight")
        most_requested: int = field(default=0, name="mostrequested.weight")
        balanced_resource: int = field(default=1, name="balancedresource.weight")
        node_affinity: int = field(default=2, name="nodeaffinity.weight")
        pod_affinity: int = field(default=2, name="podaffinity.weight")
        taint_toleration: int = field(default=3, name="tainttoleration.weight")
        image_locality: int = field(default=1, name="imagelocality.weight")
        pod_topology_spread: int = field(default=2, name="podtopologyspread.weight")

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        a = self.arguments
        scores: list[tuple[int, type[Any]]] = [
            (a.image_locality, ImageLocalityRule),
            (a.least_requested, LeastAllocated),
            (a.most_requested, MostAllocated),
            (a.balanced_resource, BalancedAllocation),
            (a.node_affinity, PreferredNodeAffinity),
            (a.pod_affinity, InterPodPreference),
            (a.taint_toleration, TaintPreference),
            (a.pod_topology_spread, SpreadPreference),
        ]
        session.add_scores(*(score(session, weight) for weight, score in scores if weight))
