"""The schema of Reservation: nodes that are kept for a time."""

from __future__ import annotations

from schema import Schema, enum, int32, label_selector, list_of, map_of, resource_list, string, struct, subdomain, time

DURATION = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"


def reservation() -> Schema:
    owner = struct(
        "Pods to which all fields apply that are set.",
        rules=(
            (
                "has(self.queue) || has(self.namespace) || has(self.owner) || has(self.labelSelector)",
                "set queue, namespace, owner or labelSelector; leave out owners if no one may use the nodes",
            ),
        ),
        queue=subdomain("Jobs of this queue, or of a queue below it.", minLength=1),
        namespace=string("Pods in this namespace.", minLength=1, maxLength=63),
        owner=string("Jobs of this owner (volcano.sh/owner, or else the namespace).", minLength=1, maxLength=253),
        labelSelector=label_selector("Pods with these labels."),
    )
    spec = struct(
        "Which nodes, when, and who may use them.",
        required=("startTime",),
        rules=(
            ("has(self.endTime) != has(self.duration)", "set either duration or endTime"),
            ("!has(self.endTime) || self.endTime > self.startTime", "endTime must be after startTime"),
            (
                "!has(self.endTime) || self.endTime - self.startTime <= duration('8784h')",
                "it must not last longer than 366 days (8784h)",
            ),
            (
                "!has(self.duration) || duration(self.duration) > duration('0s') && "
                "duration(self.duration) <= duration('8784h')",
                "duration must be above 0s and at most 366 days (8784h)",
            ),
            (
                "has(self.nodes) || has(self.nodeSelector) || has(self.nodeCount) || has(self.resources)",
                "name nodes: set nodes, nodeSelector, nodeCount or resources",
            ),
        ),
        startTime=time("When it starts."),
        endTime=time("When it ends."),
        duration=string("How long it lasts, such as 90m or 36h.", maxLength=64, pattern=DURATION),
        nodes=list_of(subdomain(minLength=1), "Names of nodes.", minItems=1, maxItems=5000),
        nodeSelector=label_selector("Nodes with these labels."),
        nodeCount=int32("How many of the nodes; all of them if neither this nor resources is set.", minimum=1),
        resources=resource_list("As many of the nodes as have these amounts together."),
        owners=list_of(owner, "Who may use the nodes; no one if there are none.", maxItems=100),
    )
    status = struct(
        "What the scheduler has found.",
        phase=enum("The phase.", "Pending", "Active", "Ended", "Invalid"),
        startTime=time("When it starts."),
        endTime=time("When it ends."),
        nodes=list_of(string(), "Its nodes."),
        nodeCount=int32("How many these are."),
        used=map_of(string(), "What the pods that may use the nodes request there."),
        message=string("What is wrong, or prevents a use."),
    )
    return struct(
        "Nodes that are kept for some jobs, or for no one, for a time.", required=("spec",), spec=spec, status=status
    )
