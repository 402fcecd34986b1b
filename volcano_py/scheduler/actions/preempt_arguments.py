"""The arguments of preempt in the configuration of actions. Volcano: parseArguments of action preempt."""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.framework.plugin import ActionArguments


class PreemptArguments(ActionArguments):
    topology_aware: bool = field(default=False, name="enableTopologyAwarePreemption")
    """Try several nodes and use the one with the least important victims, instead of the first by score."""
    most_nodes: int = field(default=100, name="maxCandidateNodesAbsolute")
    """The search ends when this number of nodes can be made to fit."""
    least_nodes: int = field(default=1, name="minCandidateNodesAbsolute")
    percentage: int = field(default=10, name="minCandidateNodesPercentage")
    workers: int = field(default=16, name="topologyAwarePreemptWorkerNum")
    """These three are accepted for compatibility: all nodes are tried, one after another. Only if they select no node
    at all, none is tried (without the deviation fewest-victims)."""
    error_cache: bool = field(default=True, name="predicateErrorCacheEnable")
    """Without the deviation own-verdict: do not try a pod on a node that rejected another pod of its role."""

    def candidates(self, count: int) -> int:
        """The number of candidate nodes that Volcano searches before it selects one. `count`: all nodes."""
        return min(max(count * self.percentage // 100, self.least_nodes), self.most_nodes, count)
