"""Changes of capacity: more nodes, the end of pods, uncordoned nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np

from volcano_py.api.core import Node, NodeSpec, NodeStatus
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.explain.blocker import missing_tasks
from volcano_py.scheduler.explain.reasons import amount_text
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.demand import NONE
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import ATTACHABLE_PREFIX, PODS
from volcano_py.simulate.unblock.suggestion import Change
from volcano_py.simulate.unblock.trials import Edit

replace = msgspec.structs.replace
_HOSTNAME = "kubernetes.io/hostname"
_SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical."""


def shapes(session: Session, job: SessionJob) -> list[Node]:
    """One node of each shape in the cluster, at most three, beginning with those that an empty pod of the job fits; if
    none fits, also a node for the job."""
    pending = missing_tasks(session, job)
    if not pending:
        return []
    task = min(pending, key=lambda t: t.key not in job.fit_errors)
    view = session.placement.view(task)
    fits = np.logical_and.reduce(view.vector[view.rows, None] - session.numbers.allocatable[view.rows] < EPS)
    found: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], Node] = {}
    for column in np.flatnonzero(fits).tolist():
        node = session.table.objects[column]
        shape = _shape(node)
        found[shape] += 1
        example.setdefault(shape, node)
    usual = [example[shape] for shape, _ in sorted(found.items(), key=lambda s: (-s[1], s[0]))[:3]]
    return [*(replace(n, spec=NodeSpec(taints=n.spec.taints)) for n in usual), _node_for(task)]


def _shape(node: Node) -> tuple[str, ...]:
    labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != _HOSTNAME}
    amounts = {k: str(v) for k, v in (node.status.allocatable or {}).items()}
    taints = [f"{t.key}={t.value}:{t.effect}" for t in node.spec.taints or ()]
    return (*sorted(f"{k}={v}" for k, v in {**labels, **amounts}.items()), *sorted(taints))


def _node_for(task: Task) -> Node:
    request = Resource()
    request.add(task.request)
    requested = {k: v for k, v in request.quantities().items() if not k.startswith(ATTACHABLE_PREFIX)}
    amounts: dict[str, str | int | float] = {**requested, PODS: "110"}
    labels = dict(task.pod.spec.node_selector or {})
    return Node(
        metadata=ObjectMeta(name="made-for-the-job", labels=labels),
        status=NodeStatus(allocatable=amounts, capacity=amounts),
    )


def add_nodes(shape: Node, count: int) -> Change:
    """Add nodes like one."""
    edits = []
    for i in range(count):
        name = f"new-{shape.metadata.name}-{i}"
        labels = {**(shape.metadata.labels or {}), _HOSTNAME: name}
        metadata = ObjectMeta(name=name, labels=labels, annotations=shape.metadata.annotations)
        edits.append(Edit("Node", "", name, replace(shape, metadata=metadata)))
    amounts = Resource.parse(shape.status.allocatable).as_dict().items()
    have = ", ".join(f"{amount_text(name, amount)} {name}" for name, amount in amounts if amount and name != PODS)
    like = "" if shape.metadata.name == "made-for-the-job" else f" like {shape.metadata.name}"
    nodes = "1 node" if count == 1 else f"{count} nodes"
    given = "" if like else ", ".join(f"{k}={v}" for k, v in sorted((shape.metadata.labels or {}).items()))
    return Change("add-nodes", f"add {nodes}{like} ({have}){f' with {given}' if given else ''}", edits)


def wait_for_jobs(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Wait for the end of one running job, beginning with the smallest that holds enough; or for pods that are being
    deleted.

    If the cause has no resource, jobs come first that hold what the job requests: devices, claims, volumes.
    """
    releasing = [t for t in session.cluster.tasks.values() if t.status == st.RELEASING]
    if releasing:
        edits = [*(Edit("Pod", t.namespace, t.name) for t in releasing), *_released_claims(session, releasing)]
        pods = (
            "1 pod that is being deleted has"
            if len(releasing) == 1
            else f"{len(releasing)} pods that are being deleted have"
        )
        yield Change("wait-for-release", f"wait until {pods} ended", edits)
    for other in _in_order(session, job, cause)[:6]:
        ended = list(_holding(other))
        edits = [*(Edit("Pod", t.namespace, t.name) for t in ended), *_released_claims(session, ended)]
        if not other.shadow:
            edits.append(Edit("PodGroup", other.namespace, other.name))
        yield Change("wait-for-job", f"wait until job {_name(other)} has ended", edits)


def _name(job: Job) -> str:
    """The name of the Job that owns the PodGroup, or the PodGroup's own name."""
    owner = None if job.pod_group is None else job.pod_group.metadata.controller
    return job.uid if owner is None or owner.kind != "Job" else f"{job.namespace}/{owner.name}"


def _in_order(session: Session, job: SessionJob, cause: Cause) -> list[Job]:
    """Running jobs whose end may help, in the order of the trials."""
    running = [j for j in session.cluster.jobs.values() if j.uid != job.uid and any(_holding(j))]
    resource = cause.fields.get("resource")
    if resource is None:
        wanted = {name for t in missing_tasks(session, job) for name in (t.request.scalars or ())}
        claims = any(t.spec_class.claims is not NONE for t in missing_tasks(session, job))

        def shared(other: Job) -> int:
            held = {name for t in _holding(other) for name in (t.request.scalars or ())}
            return len(wanted & held) + (claims and any(t.spec_class.claims is not NONE for t in _holding(other)))

        return sorted(running, key=lambda j: (-shared(j), j.queue != job.queue, j.uid))
    name, missing = str(resource), float(cause.fields.get("missing", 0.0))
    enough = [j for j in running if 0 < j.allocated[name] >= missing]
    return sorted(enough, key=lambda j: (j.queue != job.queue, j.allocated[name], j.uid))


def _released_claims(session: Session, ended: list[Task]) -> list[Edit]:
    """The ResourceClaims without an allocation that only these pods have reserved, as the controller leaves them."""
    uids = {t.uid for t in ended}
    edits = []
    for claim in session.cluster.others.get("ResourceClaim", {}).values():
        users = claim.status.reserved_for or ()
        if users and all(user.uid in uids for user in users):
            released = replace(claim, status=replace(claim.status, allocation=None, reserved_for=None))
            edits.append(Edit("ResourceClaim", claim.metadata.namespace, claim.metadata.name, released))
    return edits


def _holding(job: Job) -> Iterator[Task]:
    """The tasks of a job that hold capacity."""
    return (t for t in job.tasks.values() if t.takes_capacity)


def uncordon(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """Uncordon nodes, one by one and then all."""
    cordoned = sorted((n for n in session.table.objects if n.spec.unschedulable), key=lambda n: n.metadata.name)
    for some in [*([n] for n in cordoned[:3]), cordoned]:
        opened = [replace(n, spec=replace(n.spec, unschedulable=False)) for n in some]
        edits = [Edit("Node", "", n.metadata.name, n) for n in opened]
        text = ", ".join(n.metadata.name for n in some[:3])
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        yield Change("uncordon", f"uncordon {text}{more}", edits)


def free_capacity(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """End pods so that the job's missing pods fit, on the nodes that lack the least."""
    todo = missing_tasks(session, job)
    if not todo or not len(session.table):
        return
    placement, n = session.placement, session.numbers
    soon = n.idle + n.releasing - n.pipelined
    freed: dict[int, Counter[str]] = {}
    ended: dict[str, Task] = {}
    for task in todo:
        view = placement.view(task)
        rows = view.rows
        need = view.vector[rows]
        accepted = placement.accepted(task, check_capacity=False)
        accepted &= np.logical_and.reduce(need[:, None] - n.allocatable[rows] < EPS)
        missing = np.maximum(need[:, None] - soon[rows], 0.0)
        part = (missing / np.maximum(need[:, None], 1.0)).max(axis=0, initial=0.0)
        order = sorted(np.flatnonzero(accepted).tolist(), key=lambda c: (part[c], session.table.names[c]))
        for column in order[:20]:
            lacking = {r: float(m) for r, m in zip(rows, missing[:, column], strict=True) if m >= EPS}
            victims = _to_end(session, job, column, lacking, ended) if lacking else []
            if victims is None:
                continue
            names = list(session.table.rows)
            for victim in victims:
                ended[victim.key] = victim
                soon[:, column] += victim.spec_class.vector(session.table)
            soon[rows, column] -= need
            for row, amount in lacking.items():
                freed.setdefault(column, Counter())[names[row]] += int(amount)
            break
        else:
            return
    if not ended:
        return
    amounts = [", ".join(f"{amount_text(r, a)} {r}" for r, a in sorted(c.items())) for c in freed.values()]
    where = [session.table.names[column] for column in freed]
    if len(where) == 1:
        what = f"free {amounts[0]} on node {where[0]}"
    elif len(set(amounts)) == 1:
        some = ", ".join(where[:3]) + (", …" if len(where) > 3 else "")
        what = f"free {amounts[0]} on each of {len(where)} nodes ({some})"
    else:
        what = "free " + "; ".join(f"{a} on {w}" for a, w in zip(amounts[:4], where[:4], strict=False))
        what += "; …" if len(where) > 4 else ""
    victims = list(ended.values())
    named = ", ".join(t.key for t in victims[:2]) + (f" and {len(victims) - 2} more" if len(victims) > 2 else "")
    edits = [Edit("Pod", t.namespace, t.name) for t in victims]
    yield Change("free-capacity", f"{what}: {named} would have to end", edits)


def _belongs_to_the_node(task: Task) -> bool:
    """Whether the node or the cluster depends on a pod, or its controller would start it there again."""
    owner = task.pod.metadata.controller
    critical = (task.pod.spec.priority or 0) >= _SYSTEM_CRITICAL
    return critical or task.namespace == "kube-system" or (owner is not None and owner.kind in ("DaemonSet", "Node"))


def _to_end(
    session: Session, job: SessionJob, column: int, lacking: dict[int, float], ended: dict[str, Task]
) -> list[Task] | None:
    """The smallest number of the least important pods on a node whose end is sufficient; None if all are not enough."""
    here = [t for t in session.on_node(column) if t.job != job.uid and t.key not in ended]
    here = [t for t in here if not _belongs_to_the_node(t) and t.status != st.RELEASING]
    left = dict(lacking)
    chosen: list[Task] = []
    for task in sorted(here, key=lambda t: (t.priority, -t.created, t.key)):
        vector = task.spec_class.vector(session.table)
        if all(amount < EPS for amount in left.values()):
            break
        if any(vector[row] > 0 for row, amount in left.items() if amount >= EPS):
            chosen.append(task)
            left = {row: amount - float(vector[row]) for row, amount in left.items()}
    if any(amount >= EPS for amount in left.values()):
        return None
    for task in list(chosen):
        vector = task.spec_class.vector(session.table)
        if all(left[row] + float(vector[row]) < EPS for row in left):
            chosen.remove(task)
            left = {row: amount + float(vector[row]) for row, amount in left.items()}
    return chosen
