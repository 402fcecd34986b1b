"""Calls without an adapter, each with the reason.

`COVERED`: the project has the rule, too, but the call cannot be made with the data. The table contains the test that
covers it, and `LIMIT` is the maximum share of an area that may be listed so.
"""

from __future__ import annotations

LIMIT = 0.05

COVERED: dict[str, str] = {
    "api.JobInfo.FitError": "tests/scheduler/explain/test_messages.py (the data lacks what statements had in mind)",
    "api.JobInfo.TaskSchedulingReason": "tests/scheduler/explain/test_messages.py (the same)",
    "api.NumatopoInfo.DeepCopy": "tests/scenarios/numa-aware.yaml (here objects are not written, so none is copied)",
    "api.PodMeta.MarshalText": "tests/scenarios/numa-aware.yaml (a pod is known by its key, which is no text of Go)",
    "api.PodMeta.UnmarshalText": "tests/scenarios/numa-aware.yaml (the same)",
    "api.NewFitError": "tests/scheduler/explain/test_messages.py (refusals are counted, one node's has no text here)",
    "api.NewFitErrWithStatus": "tests/scheduler/explain/test_messages.py (the same)",
    "api.FitError.Error": "tests/scheduler/explain/test_messages.py (the same)",
    "api.HyperNodesInfo.Ready": "tests/scheduler/model/test_hyper_nodes.py (theirs is a flag that updates switch)",
    "api.HyperNodesInfo.GetLeafNodes": "tests/scheduler/model/test_hyper_nodes.py (the forest is built anew, whole)",
    "api.HyperNodesInfo.GetRegexOrLabelMatchLeafHyperNodes": "tests/scheduler/model/test_hyper_nodes.py (the same)",
}
"""Function → the test that covers its rule."""

LACKING: dict[str, str] = {
    "vgpu.MIGFactory.AddPod": "the memory factor, a setting of the process",
    "vgpu.MIGFactory.SubPod": "the memory factor, a setting of the process",
    "vgpu.MIGFactory.TryAddPod": "the memory factor, a setting of the process",
    "nodelock.UseClient": "nothing is answered; it sets the client of later calls",
    "nodelock.LockNode": "the node's annotations, which an earlier call has set",
    "cpumanager.NewProvider": "a constructor without arguments",
    "numaaware.New": "what is done with it; only the constructor is recorded in a form that can be called",
    "api.NodeInfo.RefreshNumaSchedulerInfoByCrd": "the Numatopology and the CPUs that were handed out",
    "nodescore.CalculatePluginScore": "the plugin, a fake of kube-scheduler's whose scores are made in Go",
    "nodescore.NodeInfosForCandidateNodes": "kube-scheduler's NodeInfo; here nodes are columns",
    "util.CalculateNumOfFeasibleNodesToFind": "the percentage, an option of the process; see test_sampling.py",
    "util.GetPredicatedNodeByShard": "the sharding mode, an option of the process",
    "util.NewPredicateHelper": "the predicate; only the constructor is recorded in a form that can be called",
    "api.SubJobInfo.IsReady": "the statuses of the tasks",
    "api.SubJobInfo.IsPipelined": "the statuses of the tasks",
    "api.SubJobInfo.getTaskHighestPriority": "the priorities of the tasks",
    "framework.GenerateNodeMapAndSlice": "the images of the nodes",
}
"""Function → the input of the result that is not in the data."""

NO_COUNTERPART: dict[str, str] = {
    "util.SelectBestNodes": "the agent scheduler, which is not part of this scheduler",
    "api.cloneNetworkTopology": "no rule of its own (a copy; here objects are not written)",
    "api.SubJobInfo.ConvertToHardTopology": "no rule of its own (see framework.convertSoftToHardTopology)",
    "util.SelectBestHyperNodeAndScore": "no rule of its own (the best of a map; ours tries in the order of scores)",
    "util.FindJobTaskNumOfHyperNode": "no rule of its own (a count; ours is kept up to date with placements)",
    "util.GetMinInt": "no rule of its own (Python's min)",
}
"""Prefix of a function's name → why the project has no such function."""


def without_counterpart(function: str) -> str | None:
    """Why a listed function has no counterpart."""
    return next((why for start, why in NO_COUNTERPART.items() if function.startswith(start)), None)
