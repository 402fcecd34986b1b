"""The instructions for one request of one Job. Pure: no clock, no I/O."""

from __future__ import annotations

from volcano_py.api import bus
from volcano_py.controllers.instructions import Emit, Instruction
from volcano_py.controllers.job.kill import Target, kill
from volcano_py.controllers.job.observed import Observed
from volcano_py.controllers.job.request import Decision, Request
from volcano_py.controllers.job.state import Operation, transition, uncounted
from volcano_py.controllers.job.sync import sync

TARGETS = {
    bus.RESTART_TASK: lambda request: Target(task=request.task),
    bus.RESTART_POD: lambda request: Target(task=request.task, pod=request.pod),
    bus.RESTART_PARTITION: lambda request: Target(task=request.task, partition=request.partition),
}


def reconcile(seen: Observed, request: Request, decision: Decision) -> list[Instruction]:
    """The instructions that execute `decision` on the Job. Raises Unready."""
    job = seen.job
    step = transition(job.status.state.phase, decision.action)
    if not decision.counts:
        step = uncounted(step)
    events: list[Instruction] = []
    if decision.action != bus.SYNC_JOB:
        events = [Emit("Normal", "ExecuteAction", f"Start to execute action {decision.action}")]
    because = (request.event, request.message) if request.message else None
    if because:
        events.insert(0, Emit("Warning", *because))
    match step.operation:
        case Operation.SYNC:
            return events + sync(seen, step.rule)
        case Operation.KILL:
            return events + kill(seen, step.retain, step.rule, counts=decision.counts, because=because)
        case Operation.KILL_TARGET:
            target = TARGETS[decision.action](request)
            if decision.action == bus.RESTART_PARTITION and not target.partition:
                return _no_partition(seen, request)
            return events + kill(seen, step.retain, step.rule, target)


def _no_partition(seen: Observed, request: Request) -> list[Instruction]:
    """Without partitions there is nothing to restart; the request is handled as without a policy."""
    which = f"task {request.task}" if request.task else "the job"
    remedy = "set partitionPolicy, or use another action"
    message = f"{bus.RESTART_PARTITION} of {which} does nothing: it is not divided into partitions; {remedy}"
    event = Emit("Warning", "ExecuteAction", message, once=True)
    return [event, *reconcile(seen, request, Decision(bus.SYNC_JOB))]
