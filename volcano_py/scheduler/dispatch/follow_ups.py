"""The Events that follow successful writes. Volcano: the recorder of the cache; kube-scheduler: that of its binding
cycle, with DynamicResources."""

from __future__ import annotations

from volcano_py.scheduler.dispatch.pre_bind.barriers import StepWrite
from volcano_py.scheduler.model.jobs.group_names import reference
from volcano_py.scheduler.model.jobs.pre_bind import AwaitDevices
from volcano_py.scheduler.model.plan import Bind, Event, Evict, Operation, PodCondition


def follow_ups(op: Operation | StepWrite) -> list[Operation]:
    """The Events of a successful write; the texts are Volcano's, those of profiles kube-scheduler's."""
    match op:
        case StepWrite(bind=bind, index=index, undo=False) if _begins_to_wait(bind, index):
            text = f"waiting for binding conditions for device on node {bind.node}"
            return [Event("Pod", bind.namespace, bind.name, bind.uid, "Normal", "BindingConditionsPending", text)]
        case Bind():
            text = f"Successfully assigned {op.namespace}/{op.name} to {op.node}"
            return [Event("Pod", op.namespace, op.name, op.uid, "Normal", "Scheduled", text)]
        case Evict():
            pod = ("Pod", op.namespace, op.name, op.uid)
            if op.event:
                return [Event(*pod, "Normal", "Preempted", op.event, op.evictor)]
            text = f"Pod is evicted, because of {op.reason}"
            events: list[Operation] = [Event(*pod, "Warning", "Evict", text, op.evictor)]
            kind, key = reference(op.group)
            namespace, _, name = key.partition("/")
            if name and op.has_group:
                events.append(Event(kind, namespace, name, "", "Normal", "Evict", op.reason))
            return events
        case PodCondition() if op.reason != "SchedulerError":
            return [Event("Pod", op.namespace, op.name, op.uid, "Warning", "FailedScheduling", op.message)]
    return []


def _begins_to_wait(bind: Bind, done: int) -> bool:
    """Whether the bind waits for devices after this step, and has not waited for others before."""
    following = bind.steps[done + 1 : done + 2]
    return isinstance(next(iter(following), None), AwaitDevices) and not isinstance(bind.steps[done], AwaitDevices)
