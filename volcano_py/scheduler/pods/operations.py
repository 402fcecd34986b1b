"""Decisions of the profiles as operations of a plan, which the dispatcher carries out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.profiles.decisions import (
    SCHEDULER_ERROR,
    BindPod,
    Decision,
    EvictPod,
    Fail,
    Nominate,
    ReportEvent,
)
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

EVICTION = "preemption"
"""The reason of evictions."""


def operations(decisions: Sequence[Decision], model: Cluster) -> Iterator[plan.Operation]:
    """What has to be written. A condition is repeated only when its text changes."""
    for decision in decisions:
        match decision:
            case BindPod(pod, node, steps):
                yield plan.Bind(pod.namespace, pod.name, _uid(pod), node, "", steps=steps)
            case EvictPod(victim, preemptor):
                task = model.tasks.get(victim.key)
                if task is not None:
                    text = f"Preempted by pod {_uid(preemptor)} on node {task.node}"
                    yield plan.Evict(victim.namespace, victim.name, _uid(victim), task.job, EVICTION, event=text)
            case Nominate(pod, node):
                yield plan.Nomination(pod.namespace, pod.name, _uid(pod), node)
            case Fail(pod, message, reason):
                if model.reported.conditions.get(pod.key) != (reason, message):
                    yield plan.PodCondition(pod.namespace, pod.name, _uid(pod), reason, message)
                    if reason == SCHEDULER_ERROR:  # the dispatcher adds the Event to other conditions only
                        yield _event(pod, "Warning", "FailedScheduling", message)
            case ReportEvent(pod, type_, reason, message):
                yield _event(pod, type_, reason, message)


def _event(pod: PodInfo, type_: str, reason: str, message: str) -> plan.Event:
    return plan.Event("Pod", pod.namespace, pod.name, _uid(pod), type_, reason, message)


def _uid(pod: PodInfo) -> str:
    return pod.pod.metadata.uid
