"""The table of all reasons. Codes are stable: tools may depend on them. docs/reasons.md is generated from it.

Not in Volcano.
"""

from __future__ import annotations

from collections.abc import Callable

from volcano_py.scheduler.explain.reasons import FieldKind, Meaning, TableReason, meaning, pattern, sentence, shown
from volcano_py.scheduler.framework.cause import Cause

REASONS: dict[str, TableReason] = {}
"""By code, in the order in which the scheduler checks them."""

_KINDS = {"n": FieldKind.NAME, "x": FieldKind.EXAMPLE, "c": FieldKind.COUNT, "a": FieldKind.AMOUNT}


def _area(title: str) -> Callable[[str, str, str, str], TableReason]:
    """Adds the reasons of an area: code, sentence, fields and remedy. Fields are names with the first letter of their
    kind (n, x for an example, c, a), such as "queue:n held:a"."""

    def add(code: str, template: str, fields: str, remedy: str) -> TableReason:
        parsed = {name: _KINDS[kind] for name, _, kind in (f.partition(":") for f in fields.split())}
        REASONS[code] = TableReason(code, title, template, parsed, remedy)
        return REASONS[code]

    return add


def meaning_of(cause: Cause) -> Meaning:
    """The parts whose change causes a new report."""
    return meaning(REASONS[cause.code], cause)


def means_the_same(cause: Cause, code: str, text: str) -> bool:
    """Whether a previously written sentence, with its code, has the meaning of a cause."""
    return cause.code == code and pattern(REASONS[code], cause).fullmatch(text) is not None


def sentence_of(cause: Cause) -> str:
    """The cause in one sentence, with its numbers."""
    return sentence(REASONS[cause.code], cause)


def fields_of(cause: Cause) -> dict[str, str | int]:
    """The fields for display."""
    return shown(REASONS[cause.code], cause)


# ---- the scheduler and the objects ---------------------------------------------------------------------------

_objects = _area("Scheduler and objects")
SCHEDULER_NOT_RUNNING = _objects(
    "SchedulerNotRunning",
    "No scheduler is running: {holder} renewed the Lease {lease} {seconds} s ago.",
    "lease:n holder:x seconds:c",
    "Start the scheduler, or read its log.",
)
SCHEDULER_NOT_LEADING = _objects(
    "SchedulerNotLeading",
    "No scheduler is leading: the Lease {lease} has no holder.",
    "lease:n",
    "Start the scheduler, or check that it may write the Lease.",
)
WRONG_SCHEDULER = _objects(
    "WrongSchedulerName",
    "spec.schedulerName of the pods ({pods}) is {scheduler}, so the scheduler {responsible} ignores them.",
    "scheduler:n responsible:n pods:c",
    "Change spec.schedulerName of the job.",
)
QUARANTINED = _objects(
    "ObjectQuarantined",
    "{kind} {name} cannot be used and is ignored: {problem}.",
    "kind:n name:n problem:n",
    "Correct the field in the message.",
)
POD_GROUP_MISSING = _objects(
    "PodGroupMissing",
    "PodGroup {group} of {pods:pod|pods} does not exist.",
    "group:n pods:c",
    "Create the PodGroup, or start the controllers, which create those of Jobs and of bare pods.",
)
NATIVE_GROUP_UNUSABLE = _objects(
    "NativeGroupUnusable",
    "No cycle can try the {pods:pod|pods}: {problem}.",
    "problem:n pods:c",
    "Create the group that is missing, or correct the one that is named.",
)
JOB_SUSPENDED = _objects(
    "JobSuspended",
    "Job {job} is {phase}, so it has no pods.",
    "job:n phase:n",
    "Resume it with `vcctl job resume`.",
)
PLUGIN_FAULT = _objects(
    "PluginFault",
    "Plugin {plugin} failed in {point}: {error}.",
    "plugin:n point:n error:x",
    "Correct the plugin, or remove it from the configuration.",
)

FAILED_CREATE = _objects(
    "FailedCreate",
    "The pods cannot be created: {problem}.",
    "problem:x",
    "Correct the cause in the message; the controllers try again within a minute.",
)

# ---- the queue -----------------------------------------------------------------------------------------------

_queue = _area("Queue")
QUEUE_MISSING = _queue(
    "QueueMissing", "Queue {queue} does not exist.", "queue:n", "Create the queue, or set another one."
)
QUEUE_CLOSED = _queue(
    "QueueNotOpen",
    "Queue {queue} is {state}; only an Open queue gets pods.",
    "queue:n state:n",
    "Open it with `vcctl queue operate --action open`.",
)
QUEUE_UNUSABLE = _queue(
    "QueueUnusable",
    "Queue {queue} accepts no jobs: {problem}.",
    "queue:n problem:n",
    "Move the job to a leaf queue, or correct the hierarchy of the queues.",
)
_LIMIT = "queue:n path:n resource:n requested:a held:a limit:a missing:a"
_LIMITED = "the job needs {requested} {resource}, the queue holds {held} of {limit}: {missing} is missing"
OWNER_LIMIT = _queue(
    "OwnerLimit",
    "Owner {owner} holds {held} of the cluster and may hold {limit} while {other} waits, which has used less.",
    "owner:n held:x limit:x other:x",
    "Wait until the jobs of the other owner have started, or raise limit or weights of the plugin fairshare.",
)
ENQUEUE_LIMIT = _queue(
    "EnqueueQueueLimit",
    "Queue {queue} does not admit the job: it requests {requested} {resource}, {held} of {limit} is held or claimed: "
    "{missing} is missing.",
    _LIMIT,
    "Raise spec.capability of the queue, wait until its jobs end, or lower minResources.",
)
QUEUE_LIMIT = _queue(
    "QueueLimit",
    f"Queue {{queue}} is at its limit: {_LIMITED}.",
    _LIMIT,
    "Raise spec.capability of the queue, or wait until its jobs end.",
)
QUEUE_GUARANTEES = _queue(
    "QueueGuaranteesOfOthers",
    "Queue {queue} may hold only {limit} {resource}, because {guaranteed} is guaranteed to {others}: the job needs "
    "{requested}, {held} is held, {missing} is missing.",
    "queue:n path:n resource:n requested:a held:a limit:a missing:a guaranteed:a others:n",
    "Lower spec.guarantee of the other queues, or add nodes.",
)
QUEUE_OVERUSED = _queue(
    "QueueOverused",
    "Queue {queue} holds its share, so it gets nothing more: {held} of {limit} {resource} that it deserves, of {total} "
    "in the cluster.",
    "queue:n resource:n held:a limit:a total:a",
    "Raise the weight of the queue, wait until its jobs end, or add nodes.",
)

QUEUE_SHARE = _queue(
    "QueueShare",
    "Queue {queue} deserves {limit} {resource} of {total} in the cluster: the job needs {requested}, the queue holds "
    "{held}: {missing} is missing.",
    "queue:n resource:n requested:a held:a limit:a missing:a total:a",
    "Raise the weight of the queue, wait until its jobs end, or add nodes.",
)

# ---- admission -----------------------------------------------------------------------------------------------

_admission = _area("Admission")
ENQUEUE_CLUSTER = _admission(
    "EnqueueClusterFull",
    "The cluster admits no more jobs: the job requests {requested} {resource}, {held} of {limit} (overcommit-factor "
    "{factor} of {total}) is held or claimed{claimants}: {missing} is missing.",
    "resource:n requested:a held:a limit:a missing:a factor:x total:a claimants:x",
    "Wait until jobs end, add nodes, or raise overcommit-factor.",
)
ENQUEUE_QUOTA = _admission(
    "EnqueueResourceQuota",
    "ResourceQuota {quota} leaves too little {resource}: the job requests {requested}, {held} of {limit} is used: "
    "{missing} is missing.",
    "quota:n resource:n requested:a held:a limit:a missing:a",
    "Raise the quota, or delete objects that count in it.",
)
NOT_ADMITTED = _admission(
    "NotAdmitted",
    "The job is not admitted: {detail}.",
    "detail:n",
    "Read the documentation of the plugin in the message.",
)

# ---- the gang ------------------------------------------------------------------------------------------------

_gang = _area("Gang")
ROLE_INCOMPLETE = _gang(
    "RolePodsMissing",
    "Role {role} has {have} of the {need:pod|pods} that it needs at least.",
    "role:n have:c need:c",
    "Wait for the controller to create the pods, or lower minAvailable of the task.",
)
SUB_GROUPS_INCOMPLETE = _gang(
    "SubGroupsMissing",
    "Subgroups of policy {policy}: {have} of {need} {have:?exists|exist}.",
    "policy:n have:c need:c",
    "Create the missing pods with the labels of the policy, or lower minSubGroups.",
)
GROUPS_INCOMPLETE = _gang(
    "GroupsMissing",
    "{group} needs {need} of its child groups, {have} {have:?has|have} enough pods{first}.",
    "group:n have:c need:c first:x",
    "Create the missing pods or groups, or lower minCount or minGroupCount.",
)
PODS_MISSING = _gang(
    "PodsMissing",
    "The gang is not complete: {have} of {need:pod|pods} {have:?exists|exist}.",
    "have:c need:c",
    "Wait for the controller to create the pods, or lower minMember.",
)
GATED = _gang(
    "SchedulingGated",
    "{pods:pod|pods} {pods:?has|have} the scheduling gate {gate}.",
    "gate:n pods:c",
    "The controller that has set the gate must remove it.",
)
_AT_ONCE = "{placeable} of the {need:pod|pods} that the gang needs {placeable:?fits|fit} at the same time"
GANG_SHORT = _gang(
    "GangTooLarge",
    f"{_AT_ONCE}; {{role}} lacks {{resource}}.",
    "role:n resource:n placeable:c need:c",
    "Free capacity, add nodes, or lower minMember.",
)
GANG_REJECTED = _gang(
    "GangRejected",
    f"{_AT_ONCE}; {{role}} is rejected on {{rejected}} of {{nodes:node|nodes}} by {{rule}}.",
    "role:n rule:n placeable:c need:c rejected:c nodes:c",
    "Relax the rule, add nodes, or lower minMember.",
)

# ---- nodes ---------------------------------------------------------------------------------------------------

_nodes = _area("Nodes")
_REJECTED = "rejected:c nodes:c only:c"
NO_NODES = _nodes("NoNodes", "The cluster has no nodes for this scheduler.", "", "Add nodes.")


def _filter(code: str, what: str, remedy: str, extra: str = "") -> TableReason:
    """A filter: `what` completes "3 of 5 nodes …" and begins with its verb (`is|are`); `only`: how many nodes have no
    other reason."""
    verb, _, rest = what.partition(" ")
    template = f"{{rejected}} of {{nodes:node|nodes}} {{rejected:?{verb}}} {rest}."
    return _nodes(code, template, f"{extra} {_REJECTED}".strip(), remedy)


NOT_IN_SHARD = _filter("NotInShard", "is|are in the shard of another scheduler", "Change the NodeShard.")
NODE_SELECTOR = _filter(
    "NodeSelector",
    "does|do not match the pod's selector or node affinity ({selector})",
    "Change the selector, or label nodes.",
    "selector:n",
)
NODE_UNSCHEDULABLE = _filter("NodeCordoned", "is|are cordoned", "Run `kubectl uncordon`.")
NODE_TAINT = _filter(
    "NodeTaint", "has|have a taint that the pod does not tolerate ({taint})", "Add a toleration.", "taint:x"
)
NODE_TOO_SMALL = _filter(
    "NodeTooSmall",
    "is|are too small even when empty: the pod requests {requested} {resource}, the largest of these has {largest}",
    "Request less per pod, or add larger nodes.",
    "resource:n requested:a largest:a",
)
NODE_RESOURCES = _filter(
    "NodeResources",
    "has|have too little {resource} free: the pod requests {requested}, {node} comes closest with {free}: "
    "{missing} is missing",
    "Free capacity, add nodes, or request less.",
    "resource:n requested:a node:x free:a missing:a",
)
NODE_PODS = _filter("NodePodLimit", "holds|hold the maximum number of pods", "Delete pods, or add nodes.")
NODE_RESERVED = _filter(
    "NodeReserved",
    "is|are reserved for a job that has waited longer ({job}), and the pod may not end before that one starts",
    "Set volcano.sh/max-run-time to a shorter limit, or wait.",
    "job:x",
)
NODE_IN_RESERVATION = _filter(
    "NodeInReservation",
    "is|are kept by a Reservation into which the pod may run ({problem})",
    "Set volcano.sh/max-run-time to a limit that ends before it, wait for its end, or be permitted in spec.owners.",
    "problem:x",
)
JOB_RESERVED = _nodes(
    "Reserved",
    "{count:node is|nodes are} reserved for the job, such as {node}: it starts at {start} at the latest if "
    "what runs there ends within its limit; {ahead:job is|jobs are} ahead of it.",
    "count:c node:x start:x ahead:c",
    "Wait; a job that outlives its limit delays the start.",
)
HELD_LATER = _nodes(
    "HeldLater",
    "No nodes are held for the job yet: if it does not start before, they are from {since} on.",
    "since:x",
    "Wait; patience and hold-ratio of the plugin reservation decide from when on.",
)
HELD_AFTER_OTHERS = _nodes(
    "HeldAfterOthers",
    "Nodes are held for {count:job|jobs} at a time, and {ahead:job comes|jobs come} before this one.",
    "count:c ahead:c",
    "Wait, or raise reservations of the plugin reservation.",
)
NEVER_HELD = _nodes(
    "NoStartKnown",
    "Nodes cannot be held for the job: by the limits of what runs, there is no time at which it fits.",
    "",
    "Set volcano.sh/max-run-time for the jobs that run, or learn or default-run-time of the plugin reservation.",
)
MOVES_POSSIBLE = _nodes(
    "MovesPossible",
    "The job would start by moving {count:pod|pods} ({pods}); the plugin consolidate has dry-run.",
    "count:c pods:x",
    "Set dry-run of the plugin consolidate to false, or evict these pods.",
)
MOVES_MADE = _nodes(
    "MovesMade",
    "{count:pod is|pods are} moved so that the job starts ({pods}).",
    "count:c pods:x",
    "Wait until the pods have terminated.",
)
NODE_PORTS = _filter("NodePorts", "uses|use the host port already", "Use another host port, or none.")
POD_AFFINITY = _filter(
    "PodAffinity",
    "does|do not satisfy the pod's affinity or anti-affinity to other pods ({problem})",
    "Relax the affinity.",
    "problem:x",
)
TOPOLOGY_SPREAD = _filter(
    "PodTopologySpread",
    "would|would break the pod's topology spread constraints ({problem})",
    "Relax the constraint, or add nodes.",
    "problem:x",
)
VOLUME = _filter(
    "VolumeUnavailable",
    "cannot|cannot use the pod's volumes ({problem})",
    "Create the claim, its StorageClass or its volume.",
    "problem:n",
)
VOLUME_LIMIT = _filter(
    "VolumeLimit", "has|have the maximum number of volumes attached", "Delete pods with volumes, or add nodes."
)
DEVICES = _filter(
    "DevicesUnavailable",
    "has|have no free devices for the pod ({problem})",
    "Wait for devices, or change the claim.",
    "problem:n",
)
NUMA = _filter("NumaTopology", "cannot|cannot align the pod's CPUs ({problem})", "Relax the policy.", "problem:n")
PLUGIN_FILTER = _filter(
    "NodeFilter",
    "is|are rejected by plugin {plugin}: {problem}",
    "Read the documentation of the plugin.",
    "plugin:n problem:n",
)
CLAIM_PROBLEM = _nodes(
    "ClaimProblem",
    "A volume or a claim of pod {pod} cannot be used: {problem}.",
    "pod:x problem:n",
    "Create the missing object, or change the claim.",
)

# ---- network -------------------------------------------------------------------------------------------------

_network = _area("Network topology")
TOPOLOGY_SHORT = _network(
    "TopologyDomainFull",
    "No HyperNode of tier {tier} or below holds the gang: {domain} comes closest, "
    "{placeable} of {need:pod|pods} {placeable:?fits|fit}.",
    "tier:n domain:x placeable:c need:c",
    "Free capacity in one HyperNode, allow a higher tier, or use mode soft.",
)
UNKNOWN_TIER = _network(
    "UnknownTierName",
    "No HyperNode has the tier name {tier}; the tier names are: {known}.",
    "tier:n known:x",
    "Correct highestTierName of the job, or set spec.tierName of the HyperNodes.",
)
LABEL_DOMAIN_SHORT = _network(
    "LabelDomainFull",
    "No domain of the node label {label} holds the gang: {domain} comes closest, "
    "{placeable} of {need:pod|pods} {placeable:?fits|fit}.",
    "label:n domain:x placeable:c need:c",
    "Free capacity in one domain, label more nodes, or create the PodGroup without the topology constraint.",
)
GROUP_SHORT = _network(
    "GroupDoesNotFit",
    "Group {group} does not fit at the same time as the other groups that are needed; {role} {why}.",
    "group:n role:n why:x",
    "Add nodes, wait until pods end, or lower minCount or minGroupCount.",
)
GROUP_DOMAIN_SHORT = _network(
    "GroupDomainFull",
    "No domain of the node label {label} holds group {group}: {domain} comes closest, "
    "{placeable} of {need:pod|pods} {placeable:?fits|fit}.",
    "group:n label:n domain:x placeable:c need:c",
    "Free capacity in one domain, label more nodes, or create the group without the topology constraint.",
)
LABEL_MISSING = _network(
    "LabelMissing",
    "No node has the label {label}, by which the topology of the gang is defined.",
    "label:n",
    "Label the nodes, or create the PodGroup without the topology constraint.",
)
TOPOLOGY_NOT_READY = _network(
    "TopologyNotReady",
    "The HyperNodes are not usable yet, and the job has a network topology.",
    "",
    "Correct the HyperNodes that have an Event InvalidHyperNode.",
)

# ---- others come first ---------------------------------------------------------------------------------------

_priority = _area("Priority and eviction")
OUTRANKED = _priority(
    "Outranked",
    "The job is number {position} of {waiting} in queue {queue}; {ahead} of queue {other} comes first and uses the "
    "capacity.",
    "queue:n ahead:n other:n position:c waiting:c",
    "Wait, or raise the priority of the job.",
)
RESERVED = _priority(
    "CapacityReserved",
    "Capacity on node {node} is reserved for {job} for {seconds} s at most.",
    "node:x job:n seconds:c",
    "Wait until that job starts or its nomination ends.",
)
WAITS_FOR_RELEASE = _priority(
    "WaitsForRelease",
    "{pods:pod|pods} {pods:?fits|fit} as soon as pods on {node} have ended.",
    "pods:c node:x",
    "Wait until the deletion of these pods is complete.",
)
_VICTIMS = {
    "VictimsRank": ("none has a lower priority", "Raise the priority of the job."),
    "VictimsProtected": ("they are protected from eviction", "Wait, or allow their eviction."),
    "VictimsBudget": ("a PodDisruptionBudget protects them", "Wait, or change the budget."),
    "VictimsGang": ("their gangs would fall below their minimum", "Wait, or use gangpreempt and gangreclaim."),
    "VictimsWithinShare": ("their queues are within their share", "Wait, or change the shares of the queues."),
    "VictimsTooSmall": ("their eviction would not free enough on one node", "Wait, or request less in one pod."),
}
VICTIMS = {
    code: _priority(
        code, f"Evicting does not help: of {{pods:running pod|running pods}} in reach, {why}.", "pods:c", remedy
    )
    for code, (why, remedy) in _VICTIMS.items()
}
NEVER_PREEMPTS = _priority(
    "NeverPreempts",
    "The job's PriorityClass has preemptionPolicy Never, so no pod is evicted for it.",
    "",
    "Use another PriorityClass.",
)

# ---- the cycle -----------------------------------------------------------------------------------------------

_cycle = _area("Cycle")
NOT_TRIED = _cycle(
    "NotTriedYet",
    "No cycle has tried the job yet.",
    "",
    "Wait for the next cycle.",
)
NO_BACKFILL = _cycle(
    "NoBackfill",
    "The pods request no resources, and no action places such pods: backfill is not configured.",
    "",
    "Add backfill to the actions of the scheduler, or set requests.",
)
REJECTED = _cycle(
    "Rejected",
    "The job cannot be scheduled: {detail}.",
    "detail:n",
    "Read the message.",
)
