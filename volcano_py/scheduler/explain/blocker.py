"""The first blocker of a job: the first of all reasons why it does not run, in the order of the scheduler's checks.
Not in Volcano.

A session's close computes it when the message about a job has changed; `explain.explanation` adds the other blockers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.explain.claimants import claimants
from volcano_py.scheduler.explain.gang_moves import moves_cause
from volcano_py.scheduler.explain.groups.group_trees import domain_cause, missing_groups
from volcano_py.scheduler.explain.nodes import node_causes
from volcano_py.scheduler.explain.pod_rules import affinity_text, ports_text, spread_text
from volcano_py.scheduler.explain.rejected_pods import rejection_of
from volcano_py.scheduler.explain.reserved_nodes import later_cause, reservation_cause
from volcano_py.scheduler.explain.topology import topology_cause
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.search.fit_errors import insufficient
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.reported import NOMINATION_SECONDS

_LACKING = insufficient("")
LASTING = frozenset(("NodeSelector", "NodeTooSmall", "VolumeUnavailable", "ClaimProblem", "LabelMissing"))
"""Reasons of nodes that do not change by waiting: they come before limits, which do."""
_RULES: dict[str, Callable[[Session, Task], str]] = {
    "InterPodAffinity": affinity_text,
    "PodTopologySpread": lambda session, task: f"topology spread {spread_text(session, task)}",
    "NodePorts": lambda session, task: ports_text(task),
}
"""Filters that the gang's own members may fail, with what they compare."""


def waits(session: Session, job: SessionJob) -> bool:
    """Whether less than the job's minimum is running, or some of its pods have no node."""
    counts = job.counts
    if job.pod_group.status.phase == "Completed" or counts[st.SUCCEEDED] == len(job.tasks) > 0:
        return False
    return bool(counts[st.PENDING] or counts[st.PIPELINED]) or job.ready_num < max(job.min_available, 1)


def causes(session: Session, job: SessionJob) -> list[Cause]:
    """The reasons why a job does not run, the first blocker first; empty if there are none."""
    if not waits(session, job):
        return []
    found = _of_plugins(session, job) + _of_queue(session, job)
    if job.is_pending() and "enqueue" in session.configuration.actions:
        admission = job.cause or (None if found else table.NOT_ADMITTED.because(detail=_note(session, job)))
        if admission is not None:
            found.append(_with_claimants(session, admission))
        nodes = _of_nodes(session, job)
        return _lasting(nodes) + found + _of_gang(session, job) + [c for c in nodes if c not in _lasting(nodes)]
    found += _of_gang(session, job)
    gated = _gates(session, job)
    if gated is not None:
        return [*found, gated]
    if job.has_topology and not session.topology_is_ready:
        found.append(table.TOPOLOGY_NOT_READY.because())
    limit = _limit(session, job)
    nodes = _of_nodes(session, job)
    reserved = reservation_cause(session, job)
    if reserved is not None and not _lasting(nodes):
        nodes.insert(0, reserved)
    elif nodes and not _lasting(nodes) and (later := later_cause(session, job)) is not None:
        nodes.append(later)
    moves = moves_cause(session, job)
    if moves is not None:
        found.append(moves)
    if limit is not None and nodes and (_is_whole_cluster(session, limit) or _lasting(nodes)):
        nodes.append(limit)  # without other queues the share is the whole cluster: its nodes are full
    elif limit is not None:
        found.append(limit)
    if job.counts[st.PIPELINED] and not found:
        found.append(_releasing(session, job))
    if not found and not nodes:
        found.append(_no_visible_cause(session, job))
    return found + nodes


def _limit(session: Session, job: SessionJob) -> Cause | None:
    """The limit of the job's queue that the job exceeds."""
    if job.cause is not None:
        return _for_the_gang(session, job, job.cause)
    return None if job.fit_errors else session.queue_causes.get(job.queue)


def _lasting(nodes: list[Cause]) -> list[Cause]:
    """The first of the reasons of nodes, if it excludes all nodes for as long as neither the pod nor the nodes
    change."""
    return nodes[:1] if nodes and nodes[0].code in LASTING else []


def _is_whole_cluster(session: Session, limit: Cause) -> bool:
    """Whether a limit of a queue, or its share, is all that the cluster has."""
    resource = str(limit.fields.get("resource", ""))
    if limit.code not in ("QueueShare", "QueueOverused", "QueueLimit") or not resource:
        return False
    return float(limit.fields["limit"]) >= session.total[resource] - 1


def _with_claimants(session: Session, admission: Cause) -> Cause:
    if admission.code != table.ENQUEUE_CLUSTER.code:
        return admission
    named = claimants(session, str(admission.fields["resource"]))
    return Cause(admission.code, {**admission.fields, "claimants": named})


def first_cause(session: Session, job: SessionJob) -> Cause | None:
    """The first blocker; None if the job does not wait."""
    return next(iter(causes(session, job)), None)


def _of_plugins(session: Session, job: SessionJob) -> list[Cause]:
    """Faults that concern the whole session, the job or its pods."""
    for fault in session.callbacks.faults:
        if fault.point == "on_session_open" or fault.subject in (job.uid, job.queue) or fault.subject in job.tasks:
            return [table.PLUGIN_FAULT.because(plugin=fault.plugin, point=fault.point, error=fault.text)]
    return []


def _of_queue(session: Session, job: SessionJob) -> list[Cause]:
    queue = session.queues[job.queue]
    if job.queue in session.unusable_queues:
        return [table.QUEUE_UNUSABLE.because(queue=job.queue, problem=session.unusable_queues[job.queue])]
    if queue.state != "Open":
        return [table.QUEUE_CLOSED.because(queue=job.queue, state=queue.state or "not opened yet")]
    problem = failed_create(job)
    return [table.FAILED_CREATE.because(problem=problem)] if problem else []


def failed_create(job: SessionJob) -> str:
    """Why the API server rejects the job's pods."""
    return rejection_of(job.pod_group)


def _note(session: Session, job: SessionJob) -> str:
    notes = [e.message for e in session.notes.get(("PodGroup", job.uid), ()) if e.type == "Normal"]
    return notes[0] if notes else "a plugin rejects it without a reason"


def _of_gang(session: Session, job: SessionJob) -> list[Cause]:
    """Missing members of the gang."""
    roles = job.roles(session.statuses)
    if job.task_min_available and job.min_available >= job.task_min_total:
        for role, need in job.task_min_available.items():
            counts = roles.get(role, [0] * 10)
            have = sum(counts) - counts[st.RELEASING] - counts[st.FAILED] - counts[st.UNKNOWN]
            if have < need:
                return [table.ROLE_INCOMPLETE.because(role=role, have=have, need=need)]
    if job.model.tree is not None:
        incomplete = missing_groups(job, job.model.tree)
        if incomplete is not None:
            return [incomplete]
    elif not job.check_sub_jobs(lambda _: True):
        for gid, need in job.min_sub_jobs.items():
            have = sum(sub.gid == gid for sub in job.sub_jobs.values())
            if have < need:
                return [table.SUB_GROUPS_INCOMPLETE.because(policy=gid.rpartition("/")[2], have=have, need=need)]
    if job.valid_num < max(job.min_available, 1):
        return [table.PODS_MISSING.because(have=job.valid_num, need=max(job.min_available, 1))]
    invalid = session.states.job_valid(job)
    return [table.REJECTED.because(detail=invalid.message)] if invalid is not None else []


def _gates(session: Session, job: SessionJob) -> Cause | None:
    """Scheduling gates of other controllers, if the gang is too small without the gated pods."""
    gated = [t for t in session.pending(job) if t.sched_gated and not t.only_queue_gate]
    free = job.counts[st.PENDING] - len(gated)
    if not gated or (free and job.ready_num + free >= job.min_available):
        return None
    gates = Counter(g.name for t in gated for g in t.pod.spec.scheduling_gates or ())
    return table.GATED.because(gate=max(gates, key=lambda g: (gates[g], g)), pods=len(gated))


def missing_tasks(session: Session, job: SessionJob) -> list[Task]:
    """The pending tasks that the job needs for its minimum, or one if it has its minimum."""
    pending = sorted((t for t in session.pending(job) if not t.best_effort), key=session.orders.task_key)
    return pending[: max(job.min_available - job.ready_num - job.counts[st.PIPELINED], 1)]


def _for_the_gang(session: Session, job: SessionJob, cause: Cause) -> Cause:
    """A limit that one task exceeds, as the missing amount of all tasks of the minimum."""
    fields = dict(cause.fields)
    if "missing" not in fields or cause.code.startswith("Enqueue"):
        return cause
    resource = str(fields["resource"])
    tried = job.last_transaction or {}
    was_placed = [job.tasks[k] for k, last in tried.items() if k in job.tasks and last[0] != st.PENDING]
    placed = sum(t.request[resource] for t in was_placed)
    fields["held"] = float(fields["held"]) - placed
    fields["requested"] = sum(t.request[resource] for t in missing_tasks(session, job)) or fields["requested"]
    fields["missing"] = float(fields["held"]) + float(fields["requested"]) - float(fields["limit"])
    return Cause(cause.code, fields)


def _releasing(session: Session, job: SessionJob) -> Cause:
    waiting = [t for t in job.tasks.values() if session.status(t) == st.PIPELINED]
    at = session.node_of(waiting[0])
    node = "-" if at is None else session.table.names[at]
    return table.WAITS_FOR_RELEASE.because(pods=len(waiting), node=node)


def _of_nodes(session: Session, job: SessionJob) -> list[Cause]:
    """Why nodes, domains and the size of the gang prevent the job from running."""
    pending = [t for t in session.pending(job) if not t.sched_gated]
    if not pending:
        return []
    rejected = [t for t in pending if t.key in job.fit_errors]
    task = min(rejected or pending, key=lambda t: (session.orders.task_key(t), t.key))
    problem = session.rules.pre_predicate(task)
    if problem is not None:
        return [_of_claims(task, problem)]
    alone = node_causes(session, task)
    if alone:
        return alone
    if job.is_pending() and not rejected:
        return []
    reserved = _reserved(session, task)
    if reserved is not None:
        return [reserved]
    if job.has_hard_topology:
        tree = job.model.tree
        domain = topology_cause(session, job, task) if tree is None else domain_cause(session, job, tree)
        if domain is not None:
            return [domain]
    return _of_gang_size(session, job, task)


def _of_gang_size(session: Session, job: SessionJob, task: Task) -> list[Cause]:
    """Each task fits alone, but not all tasks of the minimum fit at the same time."""
    limit = job.cause
    rule, rejected = "", 0
    if task.key in job.fit_errors:
        counts = job.fit_errors[task.key].counts
        lacking = {text.removeprefix(_LACKING): n for text, n in counts.items() if text.startswith(_LACKING)}
        resource = max(lacking, key=lambda r: (lacking[r], r), default="a node")
        rules = {text: n for text, n in counts.items() if not text.startswith(_LACKING)}
        first = max(rules, key=lambda text: (rules[text], text), default="")
        if first and rules[first] > max(lacking.values(), default=0):
            rule, rejected = (_rule_text(session, task, first), rules[first])
    elif limit is not None and _is_whole_cluster(session, limit):
        resource = str(limit.fields["resource"])
    else:
        return []
    if job.model.tree is not None:  # its groups were tried one after the other
        placed = job.last_transaction or {}
        waiting = sorted((t for t in session.pending(job) if t.key not in placed), key=lambda t: t.key)
        task = task if task.key in job.fit_errors or not waiting else waiting[0]
        group = task.pod.spec.scheduling_group
        assert group is not None, "the pods of a tree have a group"
        why = f"lacks {resource}" if not rule else f"is rejected by {rule} on {rejected} of {len(session.table)} nodes"
        return [table.GROUP_SHORT.because(group=group.pod_group_name, role=task.name, why=why)]
    tried = job.last_transaction or {}
    placeable = job.ready_num + sum(last[0] != st.PENDING for last in tried.values())
    need = max(job.min_available, job.ready_num + 1)
    if placeable >= need:
        return []
    if rule:
        fields = {"rejected": rejected, "nodes": len(session.table), "placeable": placeable, "need": need}
        return [table.GANG_REJECTED.because(role=task.role or task.name, rule=rule, **fields)]
    return [table.GANG_SHORT.because(role=task.role or task.name, resource=resource, placeable=placeable, need=need)]


def _rule_text(session: Session, task: Task, reason: str) -> str:
    """What a filter compares, by one of its reasons; the reason itself for the filters of plugins."""
    for _, f in session.placement.filters:
        if f.name in _RULES and any(reason == r.text for r in f.reasons):
            return _RULES[f.name](session, task)
    return reason


def _of_claims(task: Task, problem: str) -> Cause:
    plugin, _, text = problem.partition(" pre-predicates failed ")
    if plugin == "plugin NodeAffinity":
        return table.REJECTED.because(detail=text)
    return table.CLAIM_PROBLEM.because(pod=task.key, problem=text or problem)


def _reserved(session: Session, task: Task) -> Cause | None:
    """A node that would accept the task if its capacity were not reserved for pods of another job."""
    nominations = session.cluster.nominations
    accepted = session.placement.accepted(task) if nominations.at else None
    for node, keys in sorted(nominations.at.items()):
        column = session.table.index.get(node)
        others = [k for k in keys if (t := session.cluster.tasks.get(k)) is not None and t.job != task.job]
        if others and accepted is not None and column is not None and accepted[column]:
            since = nominations.since.get(others[0], session.now)
            left = max(NOMINATION_SECONDS - (session.now - since), 0.0)
            holder = session.cluster.tasks[others[0]].job or others[0]
            return table.RESERVED.because(node=node, job=holder, seconds=int(left))
    return None


def _no_visible_cause(session: Session, job: SessionJob) -> Cause:
    pending = session.pending(job)
    if pending and all(t.best_effort for t in pending) and "backfill" not in session.configuration.actions:
        return table.NO_BACKFILL.because()
    if session.work.exhausted or not job.job_fit_errors:
        return table.NOT_TRIED.because()
    return table.REJECTED.because(detail=job.job_fit_errors)
