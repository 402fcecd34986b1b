"""Schemas of the kinds that steer scheduling: PodGroup, Queue, HyperNode, NodeShard and others."""

from __future__ import annotations

from kinds_batch import network_topology
from schema import (
    DNS_SUBDOMAIN,
    Schema,
    atomic_list,
    boolean,
    condition,
    enum,
    int32,
    int64,
    integer,
    label_selector,
    list_of,
    map_of,
    resource_list,
    string,
    struct,
    subdomain,
    time,
)


def podgroup() -> Schema:
    sub_group = struct(
        "Gangs within the gang.",
        labelSelector=label_selector("The pods this policy is for."),
        matchLabelKeys=atomic_list(string(), "Pods with equal values of these labels form a sub-group."),
        minSubGroups=int32("Sub-groups the gang needs.", default=0),
        name=string("The policy's name.", maxLength=253),
        networkTopology=network_topology("How close together the pods of one sub-group are placed."),
        subGroupSize=int32("Pods in a sub-group.", minimum=1, default=1),
    )
    spec = struct(
        "What the gang needs.",
        minMember=int32("Pods that must be able to run together."),
        minResources=resource_list("Resources that must be there before pods are made."),
        minTaskMember=map_of(int32(minimum=None), "Pods the gang needs of each task."),
        networkTopology=network_topology("How close together the pods of the gang are placed."),
        priorityClassName=string("PriorityClass of the gang.", maxLength=253),
        queue=subdomain("The queue of the gang.", default="default"),
        subGroupPolicy=list_of(sub_group, "Gangs within the gang."),
    )
    status = struct(
        "Where the gang stands.",
        conditions=list_of(
            struct(
                "What was found when it was last looked at.",
                lastTransitionTime=time(),
                message=string(),
                reason=string(),
                status=string("True, False or Unknown."),
                transitionID=string("The scheduling session that found it."),
                type=string("Unschedulable or Scheduled."),
            )
        ),
        failed=int32("Failed pods."),
        phase=enum("The phase.", "Pending", "Running", "Unknown", "Inqueue", "Completed"),
        running=int32("Running pods."),
        succeeded=int32("Succeeded pods."),
    )
    return struct("Pods that are scheduled together.", spec=spec, status=status)


def queue() -> Schema:
    def node_groups(description: str) -> Schema:
        return struct(
            description,
            preferredDuringSchedulingIgnoredDuringExecution=list_of(string(), "Should."),
            requiredDuringSchedulingIgnoredDuringExecution=list_of(string(), "Must."),
        )

    cluster = struct(
        "Another cluster that jobs may be forwarded to.",
        capacity=resource_list("What it has."),
        name=string("Its name."),
        weight=int32("Its share.", minimum=None),
    )
    spec = struct(
        "The share of the cluster that jobs of this queue get.",
        affinity=struct(
            "Groups of nodes (node label volcano.sh/nodegroup-name) for pods of this queue.",
            nodeGroupAffinity=node_groups("Groups to use."),
            nodeGroupAntiAffinity=node_groups("Groups to avoid."),
        ),
        capability=resource_list("The most that the queue may use."),
        dequeueStrategy=enum(
            "What if the first job does not fit: wait (fifo), or look further (traverse).",
            "fifo",
            "traverse",
            default="traverse",
        ),
        deserved=resource_list("What the queue can get back from others."),
        extendClusters=list_of(cluster, "Other clusters."),
        guarantee=struct("What is kept for the queue.", resource=resource_list("Resources.")),
        parent=subdomain("The queue this one belongs to."),
        priority=int32("Higher ones come first, and are reclaimed from last."),
        reclaimable=boolean("Whether other queues may reclaim what this one uses beyond its share."),
        type=string("For people.", maxLength=253),
        weight=int32("The share, in relation to other queues.", minimum=1, maximum=65535, default=1),
    )
    phases = {
        phase: int32(f"PodGroups in phase {phase.capitalize()}.")
        for phase in ("completed", "inqueue", "pending", "running", "unknown")
    }
    status = struct(
        "Where the queue stands.",
        allocated=resource_list("What its pods use."),
        conditions=list_of(condition()),
        reservation=struct("What is being kept free.", nodes=list_of(string()), resource=resource_list("Resources.")),
        state=enum("Whether it takes jobs.", "Open", "Closed", "Closing", "Unknown"),
        **phases,
    )
    return struct("Jobs that share resources.", spec=spec, status=status)


def hypernode() -> Schema:
    name = string("The name.", minLength=1, maxLength=253, pattern=DNS_SUBDOMAIN)
    selector = struct(
        "Which ones; exactly one way to choose.",
        rules=(
            (
                "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
                "Either ExactMatch or RegexMatch or LabelMatch must be specified",
            ),
            (
                "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
                "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
            ),
        ),
        exactMatch=struct("The one with this name.", required=("name",), name=name),
        labelMatch=label_selector("Nodes with these labels."),
        regexMatch=struct(
            "Those whose name matches.",
            required=("pattern",),
            pattern=string("A regular expression.", minLength=1),
        ),
    )
    member = struct(
        "Nodes or HyperNodes that belong to this one.",
        required=("type",),
        selector=selector,
        type=enum("What the members are.", "Node", "HyperNode"),
    )
    spec = struct(
        "What belongs to it.",
        required=("tier",),
        members=list_of(member, "Its members.", minItems=1),
        tier=integer("Its level; the lower, the closer together."),
        tierName=string("The name of its level.", maxLength=253),
    )
    status = struct(
        "What was found.",
        conditions=list_of(condition()),
        nodeCount=int64("Nodes in it, directly or through members."),
    )
    return struct("A performance domain of the network.", spec=spec, status=status)


def numatopology() -> Schema:
    allocation = struct(
        "What a container has.",
        allocations=map_of(string(), "Cpuset or quantity of each resource."),
        name=string("The container."),
    )
    pod = struct(
        "What a pod has.",
        containerAllocations=list_of(allocation),
        name=string(),
        namespace=string(),
        uid=string(),
    )
    spec = struct(
        "The layout of the node.",
        cpuDetail=map_of(
            struct("Where a CPU is.", core=integer(), numa=integer(), socket=integer()), "CPUs by number."
        ),
        numares=map_of(
            struct(
                "A resource of the node.",
                allocatable=string("Cpuset or list of counts."),
                capacity=integer(minimum=None),
            ),
            "Resources by name.",
        ),
        podAllocations=list_of(pod, "What pods have."),
        policies=map_of(string(), "Policies of the kubelet (CPUManagerPolicy, TopologyManagerPolicy)."),
        resReserved=map_of(string(), "What is reserved of each resource."),
    )
    return struct("The NUMA layout of the node with the same name.", spec=spec)


def nodeshard() -> Schema:
    return struct(
        "The nodes of one scheduler.",
        required=("spec",),
        spec=struct(
            "What it should have.",
            required=("nodesDesired",),
            nodesDesired=list_of(string(), "Names of nodes."),
        ),
        status=struct(
            "What it has.",
            lastUpdateTime=time(),
            nodesInUse=list_of(string(), "Nodes it uses."),
            nodesToAdd=list_of(string(), "Nodes it has still to get."),
            nodesToRemove=list_of(string(), "Nodes it has still to give up."),
        ),
    )


def colocationconfiguration() -> Schema:
    def percentage(description: str, default: int) -> Schema:
        return integer(description, maximum=100, default=default)

    conditions = list_of(condition())
    conditions["x-kubernetes-list-map-keys"] = ["type"]
    conditions["x-kubernetes-list-type"] = "map"
    return struct(
        "Memory quality of service of selected pods.",
        required=("spec",),
        spec=struct(
            "For which pods, and what.",
            memoryQos=struct(
                "Percentages of the pod's memory.",
                highRatio=percentage("Of the limit: throttled above.", 100),
                lowRatio=percentage("Of the request: protected as far as possible.", 0),
                minRatio=percentage("Of the request: protected.", 0),
            ),
            selector=label_selector("The pods; none without a selector, all with an empty one."),
        ),
        status=struct("What was done.", conditions=conditions),
    )
