"""The methods of a session with which plugins register callbacks: those of all groups of extension points. Volcano: the
Add… methods of Session."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec

from volcano_py.scheduler.framework.extension_points.binding import Binding
from volcano_py.scheduler.framework.extension_points.events import Events
from volcano_py.scheduler.framework.extension_points.hyper_nodes import NetworkDomains
from volcano_py.scheduler.framework.extension_points.jobs import JobStates
from volcano_py.scheduler.framework.extension_points.nodes import NodeRules
from volcano_py.scheduler.framework.extension_points.orders import Orders
from volcano_py.scheduler.framework.extension_points.queues import QueueLimits
from volcano_py.scheduler.framework.extension_points.victims import VictimSelection

P = ParamSpec("P")


def _of(part: str, method: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[PluginFace, P], None]:
    """The method of a part, called through the session."""

    def register(self: PluginFace, /, *args: P.args, **kwargs: P.kwargs) -> None:
        method(getattr(self, part), *args, **kwargs)

    update_wrapper(register, method)
    return register


class PluginFace:
    """What `on_session_open` calls. Each method is documented in the group of its extension point."""

    add_job_order = _of("orders", Orders.add_job_order)
    add_queue_order = _of("orders", Orders.add_queue_order)
    add_victim_queue_order = _of("orders", Orders.add_victim_queue_order)
    add_task_order = _of("orders", Orders.add_task_order)
    add_sub_job_order = _of("orders", Orders.add_sub_job_order)

    add_job_valid = _of("states", JobStates.add_job_valid)
    add_job_ready = _of("states", JobStates.add_job_ready)
    add_job_pipelined = _of("states", JobStates.add_job_pipelined)
    add_sub_job_ready = _of("states", JobStates.add_sub_job_ready)
    add_sub_job_pipelined = _of("states", JobStates.add_sub_job_pipelined)
    add_job_starving = _of("states", JobStates.add_job_starving)
    add_job_enqueueable = _of("states", JobStates.add_job_enqueueable)
    add_job_enqueued = _of("states", JobStates.add_job_enqueued)

    add_overused = _of("limits", QueueLimits.add_overused)
    add_allocatable = _of("limits", QueueLimits.add_allocatable)
    add_simulate_allocatable = _of("limits", QueueLimits.add_simulate_allocatable)
    add_preemptive = _of("limits", QueueLimits.add_preemptive)
    add_entitled = _of("limits", QueueLimits.add_entitled)
    add_lends = _of("limits", QueueLimits.add_lends)

    add_pre_predicate = _of("rules", NodeRules.add_pre_predicate)
    add_predicate = _of("rules", NodeRules.add_predicate)
    add_filters = _of("rules", NodeRules.add_filters)
    add_node_order = _of("rules", NodeRules.add_node_order)
    add_scores = _of("rules", NodeRules.add_scores)

    add_preemptable = _of("victims", VictimSelection.add_preemptable)
    add_reclaimable = _of("victims", VictimSelection.add_reclaimable)
    add_unified_evictable = _of("victims", VictimSelection.add_unified_evictable)
    add_outranked = _of("victims", VictimSelection.add_outranked)
    add_victim_tasks = _of("victims", VictimSelection.add_victim_tasks)

    add_hyper_node_order = _of("network", NetworkDomains.add_hyper_node_order)
    add_job_gradient = _of("network", NetworkDomains.add_job_gradient)
    add_sub_job_gradient = _of("network", NetworkDomains.add_sub_job_gradient)

    add_pre_bind = _of("binding", Binding.add_pre_bind)
    add_event_handler = _of("events", Events.add_event_handler)
