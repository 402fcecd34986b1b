"""The table of all extension points, with Volcano's name and the flag that enables each. Volcano: the fields of
Session, and the flags of PluginOption."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol


class Group(Enum):
    """The subject of an extension point: a section of the reference page, in this order."""

    ORDERS = "Orders"
    JOBS = "Jobs"
    QUEUES = "Queues"
    NODES = "Nodes"
    VICTIMS = "Victims"
    NETWORK = "Network"
    BINDING = "Binding"
    EVENTS = "Events"


ORDERS, JOBS, QUEUES, NODES, VICTIMS, NETWORK, BINDING, EVENTS = Group


class Point(NamedTuple):
    """`method` registers a callback. `volcano`: the method of Volcano's Session, "" where Volcano has none."""

    group: Group
    method: str
    flag: str | None
    volcano: str = ""


POINTS: dict[str, Point] = {
    "job_order": Point(ORDERS, "add_job_order", "enableJobOrder", "AddJobOrderFn"),
    "queue_order": Point(ORDERS, "add_queue_order", "enableQueueOrder", "AddQueueOrderFn"),
    "victim_queue_order": Point(ORDERS, "add_victim_queue_order", None, "AddVictimQueueOrderFn"),
    "task_order": Point(ORDERS, "add_task_order", "enableTaskOrder", "AddTaskOrderFn"),
    "sub_job_order": Point(ORDERS, "add_sub_job_order", "enabledSubJobOrder", "AddSubJobOrderFn"),
    "job_valid": Point(JOBS, "add_job_valid", None, "AddJobValidFn"),
    "job_ready": Point(JOBS, "add_job_ready", "enableJobReady", "AddJobReadyFn"),
    "job_pipelined": Point(JOBS, "add_job_pipelined", "enableJobPipelined", "AddJobPipelinedFn"),
    "sub_job_ready": Point(JOBS, "add_sub_job_ready", "enabledSubJobReady", "AddSubJobReadyFn"),
    "sub_job_pipelined": Point(JOBS, "add_sub_job_pipelined", "enabledSubJobPipelined", "AddSubJobPipelinedFn"),
    "job_starving": Point(JOBS, "add_job_starving", "enableJobStarving", "AddJobStarvingFns"),
    "job_enqueueable": Point(JOBS, "add_job_enqueueable", "enableJobEnqueued", "AddJobEnqueueableFn"),
    "job_enqueued": Point(JOBS, "add_job_enqueued", "enableJobEnqueued", "AddJobEnqueuedFn"),
    "overused": Point(QUEUES, "add_overused", "enabledOverused", "AddOverusedFn"),
    "allocatable": Point(QUEUES, "add_allocatable", "enabledAllocatable", "AddAllocatableFn"),
    "simulate_allocatable": Point(QUEUES, "add_simulate_allocatable", "enabledAllocatable", "AddSimulateAllocatableFn"),
    "preemptive": Point(QUEUES, "add_preemptive", "enablePreemptive", "AddPreemptiveFn"),
    "entitled": Point(QUEUES, "add_entitled", None),
    "lends": Point(QUEUES, "add_lends", "enableReclaimable"),
    "pre_predicate": Point(NODES, "add_pre_predicate", "enablePredicate", "AddPrePredicateFn"),
    "predicate": Point(NODES, "add_predicate", "enablePredicate", "AddPredicateFn"),
    "node_order": Point(NODES, "add_node_order", "enableNodeOrder", "AddNodeOrderFn, AddBatchNodeOrderFn"),
    "preemptable": Point(VICTIMS, "add_preemptable", "enablePreemptable", "AddPreemptableFn"),
    "reclaimable": Point(VICTIMS, "add_reclaimable", "enableReclaimable", "AddReclaimableFn"),
    "unified_evictable": Point(VICTIMS, "add_unified_evictable", None, "AddUnifiedEvictableFn"),
    "outranked": Point(VICTIMS, "add_outranked", "enablePreemptable"),
    "victim_tasks": Point(VICTIMS, "add_victim_tasks", "enabledVictim", "AddVictimTasksFns"),
    "hyper_node_order": Point(NETWORK, "add_hyper_node_order", "enabledHyperNodeOrder", "AddHyperNodeOrderFn"),
    "job_gradient": Point(NETWORK, "add_job_gradient", "enabledHyperNodeGradient", "AddHyperNodeGradientForJobFn"),
    "sub_job_gradient": Point(
        NETWORK, "add_sub_job_gradient", "enabledHyperNodeGradient", "AddHyperNodeGradientForSubJobFn"
    ),
    "pre_bind": Point(BINDING, "add_pre_bind", None, "RegisterBinder"),
    "event_handler": Point(EVENTS, "add_event_handler", None, "AddEventHandler"),
}
"""Name of the extension point → how it is registered and enabled."""
FLAGS_OF_POINTS = {name: point.flag for name, point in POINTS.items()}


class Comparable(Protocol):
    """A sort key: numbers, text, tuples of them."""

    def __lt__(self, other: Any, /) -> bool: ...
