"""Calls without an adapter, each with the reason.

`COVERED`: the rule is ours, too, but the call cannot be made with the data. The test that covers it is named, and
`LIMIT` says how much of an area may be listed so.
"""

from __future__ import annotations

LIMIT = 0.05

COVERED: dict[str, str] = {
    "api.JobInfo.FitError": "tests/scheduler/explain/test_messages.py (the data lacks what statements had in mind)",
    "api.JobInfo.TaskSchedulingReason": "tests/scheduler/explain/test_messages.py (the same)",
    "api.NewFitError": "tests/scheduler/explain/test_messages.py (refusals are counted, one node's has no text here)",
    "api.NewFitErrWithStatus": "tests/scheduler/explain/test_messages.py (the same)",
    "api.FitError.Error": "tests/scheduler/explain/test_messages.py (the same)",
}
"""Function → the test that covers its rule."""

LACKING: dict[str, str] = {
    "util.GetPredicatedNodeByShard": "the sharding mode, an option of the process",
    "util.NewPredicateHelper": "the predicate; only the constructor is recorded in a form that can be called",
    "framework.GenerateNodeMapAndSlice": "the images of the nodes",
}
"""Function → what decides the answer and is not in the data."""

NOT_BUILT: dict[str, str] = {
    "api.HyperNode": "network topology",
    "api.NewHyperNodeInfo": "network topology",
    "api.GetMembers": "network topology",
    "api.cloneNetworkTopology": "network topology",
    "api.JobInfo.IsHardTopologyMode": "network topology",
    "framework.convertSoftToHardTopology": "network topology",
    "networktopologyaware.": "network topology",
    "util.FindHyperNodeForNode": "network topology",
    "util.FindJobTaskNumOfHyperNode": "network topology",
    "util.GetRealNodesByHyperNode": "network topology",
    "util.SelectBestHyperNodeAndScore": "network topology",
    "api.SubJobInfo": "sub-jobs",
    "api.NewSubJobInfo": "sub-jobs",
    "api.getSubJob": "sub-jobs",
    "utils.": "actions gangpreempt and gangreclaim",
    "api.NumatopoInfo": "NUMA topology",
    "api.NodeInfo.RefreshNumaSchedulerInfoByCrd": "NUMA topology",
    "api.PodMeta": "NUMA topology",
    "cpumanager.": "NUMA topology",
    "numaaware.": "NUMA topology",
    "policy.": "NUMA topology",
    "deviceshare.": "shared devices",
    "gpushare.": "shared devices",
    "hami.": "shared devices",
    "nodelock.": "shared devices",
    "vgpu.": "shared devices",
    "api.JobInfo.GetMinDRAResources": "dynamic resource allocation",
    "api.Saturating": "dynamic resource allocation",
    "capacity.": "dynamic resource allocation",
    "predicates.defaultDynamicResourcesArgs": "dynamic resource allocation",
    "predicates.setUpDynamicResourcesArgs": "dynamic resource allocation",
    "predicates.defaultVolumeBindingArgs": "volume binding",
    "predicates.setUpVolumeBindingArgs": "volume binding",
    "api.GetPodResourceLimit": "plugin usage",
    "usage.": "plugin usage",
    "extender.": "plugin extender",
    "tasktopology.": "plugin task-topology",
    "cache.RemoveVolcanoSchGate": "removal of the queue-allocation gate",
    "util.CalculateNumOfFeasibleNodesToFind": "sampling of nodes (all are looked at)",
    "util.SelectBestNodes": "the agent scheduler",
    "util.GetMinInt": "no rule of its own (Python's min)",
    "nodescore.": "no rule of its own (wraps kube-scheduler's plugin objects; here scores are node rules)",
}
"""How a function's name begins → the part of the scheduler that it belongs to and that is not there."""


def belongs_to(function: str) -> str | None:
    """The part that is not built, for a function that belongs to one."""
    return next((part for start, part in NOT_BUILT.items() if function.startswith(start)), None)
