"""Queues with the amounts that they deserve, may hold and hold: a flat list, or a tree below `root`.

Volcano: capacity's queue attributes.
"""

from __future__ import annotations

from collections.abc import Iterator

from volcano_py.api import scheduling as api
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import (
    INFINITY,
    MAX,
    MAX_INT,
    Resource,
    exceeded_part,
    maximum,
    share,
)
from volcano_py.scheduler.plugins.capacity.kept_limits import KeptLimits, LimitsOfQueue, source_of
from volcano_py.scheduler.plugins.queue_shares.demand import demands_of
from volcano_py.scheduler.plugins.queue_shares.guarantee import guarantee_of
from volcano_py.scheduler.plugins.queue_shares.inqueue import gated_deducted, inqueue_resource


class QueueNode:
    """One queue in one session. The sums of an inner queue include all queues below it."""

    __slots__ = (
        "admits",
        "allocated",
        "branch",
        "capability",
        "children",
        "deserved",
        "deserves",
        "elastic",
        "guarantee",
        "held",
        "inqueue",
        "name",
        "order",
        "path",
        "queue",
        "real_capability",
        "request",
        "share",
    )

    guarantee: Resource
    deserved: Resource
    capability: Resource
    real_capability: Resource
    """The limit of what it may hold."""
    admits: Resource
    """The limit for admission. In a tree this is the capability of the specs, whatever the cluster has, so that a
    job that is larger than the cluster blocks no other job."""
    deserves: list[str] | None
    """The names of the deserved resources, which are constant once the shares are computed."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.name = queue.name
        self.path: list[QueueNode] = []
        """The queues from root down to the parent."""
        self.branch: list[QueueNode] = [self]
        """The same with the queue itself."""
        self.children: list[QueueNode] = []
        self.allocated = Resource()
        self.held = Resource()
        """What allocate keeps for pending tasks for which others were evicted."""
        self.request = Resource()
        self.elastic = Resource()
        self.inqueue = Resource()
        self.share = 0.0
        self.order = (0.0, False)
        """(share, whether the queue deserves nothing): the queue with the lower value comes first."""

    def state(self, guarantee: Resource) -> None:
        """Set the amounts that its spec states."""
        self.guarantee = guarantee
        self.deserved = self.queue.deserved.clone() if self.queue.deserved else Resource()
        self.capability = self.queue.capability.clone() if self.queue.capability else Resource()
        self.real_capability = Resource()
        self.admits = Resource()
        self.deserves = None

    @property
    def limits(self) -> LimitsOfQueue:
        """What the queue may hold, whatever its jobs are."""
        return LimitsOfQueue(
            self.guarantee, self.deserved, self.capability, self.real_capability, self.admits, self.deserves
        )

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def update_share(self) -> None:
        """Set the share: the largest part that the queue holds of any resource it deserves; 1 if it deserves none."""
        if self.deserves is None:
            self.deserves = [] if self.deserved.is_empty() else self.deserved.names()
        if self.deserves:
            self.share = max([0.0, *(share(self.allocated[d], self.deserved[d]) for d in self.deserves)])
        else:
            self.share = 1.0
        self.order = (self.share, not self.deserves)


class QueueTree:
    """All queues by name; `problem` is the reason why the hierarchy is invalid, "" if it is valid."""

    def __init__(self) -> None:
        self.nodes: dict[str, QueueNode] = {}
        self.problem = ""

    def upwards(self, node: QueueNode) -> Iterator[QueueNode]:
        """The queue, its parent, and so on up to root."""
        return reversed(node.branch)

    def ancestors(self, node: QueueNode, levels: int) -> list[QueueNode]:
        """The nearest ancestors, at most `levels` of them, without root."""
        return [q for q in reversed(node.path) if q.name != ROOT_QUEUE][:levels]

    def common_level(self, a: QueueNode, b: QueueNode) -> int:
        """The number of ancestors, from root down, that two queues have in common."""
        level = 0
        for i, (x, y) in enumerate(zip(a.path, b.path, strict=False)):
            if x is not y:
                break
            level = i
        return level

    def below_common(self, a: QueueNode, b: QueueNode) -> tuple[QueueNode, QueueNode]:
        """The ancestors of each queue just below the last common ancestor; siblings themselves."""
        left, right = a.branch, b.branch
        for i in range(min(len(left), len(right))):  # called for each comparison of two queues; zip takes twice as long
            x, y = left[i], right[i]
            if x is not y:
                return x, y
        return a, b


def flat(session: Session) -> QueueTree:
    """The queues that have a job, without hierarchy."""
    found = QueueTree()
    guaranteed = Resource()
    for queue in session.queues.values():
        guaranteed.add(guarantee_of(session, queue))
    free = exceeded_part(session.admissible, guaranteed)
    for name in demands_of(session.cluster).queues:
        if name not in session.queues:
            continue
        q = found.nodes[name] = QueueNode(session.queues[name])
        q.state(guarantee_of(session, q.queue))
        q.real_capability = q.admits = free.clone().add(q.guarantee)
        if q.queue.capability is not None:
            if q.capability.milli_cpu <= 0:
                q.capability.milli_cpu = MAX
            if q.capability.memory <= 0:
                q.capability.memory = MAX
            q.real_capability.min_dimension(q.capability, INFINITY)
        q.deserved.min_dimension(q.real_capability, INFINITY)
        q.deserved = maximum(q.deserved, q.guarantee)
    _add_demand(session, found)
    return found


def tree(session: Session) -> QueueTree:
    """All queues below `root`. `problem` describes an invalid hierarchy."""
    found = QueueTree()
    found.nodes = {name: QueueNode(queue) for name, queue in session.queues.items()}
    found.problem = _link(session, found)
    if found.problem:
        for q in found.nodes.values():
            q.state(guarantee_of(session, q.queue))
        return found
    kept, source = session.cluster.keep(KeptLimits), source_of(session)
    if kept.source != source:
        _limit(session, found)
    else:
        _restore(session, found, kept.of)
    _add_demand(session, found)
    if kept.source != source:
        kept.source, kept.of = source, {name: q.limits for name, q in found.nodes.items()}
    return found


def _restore(session: Session, found: QueueTree, kept: dict[str, LimitsOfQueue]) -> None:
    """Use the limits of the last session."""
    for name, q in found.nodes.items():
        q.guarantee, q.deserved, q.capability, q.real_capability, q.admits, q.deserves = kept[name]
    if session.cluster.check_states:
        _limit(session, found)
        for name, q in found.nodes.items():
            if q.limits[:-1] != kept[name][:-1]:
                raise AssertionError(f"queue {name}: the kept limits {kept[name]} differ from {q.limits}")


def _limit(session: Session, found: QueueTree) -> None:
    """Compute the limits of all queues, from root down."""
    for q in found.nodes.values():
        q.state(guarantee_of(session, q.queue))
    root = found.nodes[ROOT_QUEUE]
    if root.capability.is_empty():  # also if it limits only `pods`
        root.capability = Resource.infinite()
        for name in session.total.scalars or ():
            root.capability[name] = MAX_INT
    root.real_capability = root.capability.clone()
    root.admits = root.real_capability.clone()
    if session.deviations.usable_capacity and len(session.table):
        # A resource that no node has yet stays unlimited, so that an autoscaler can add nodes for the jobs that request
        # it.
        root.real_capability.min_dimension(session.admissible, INFINITY)
    if session.deviations.unset_parents:
        _sum_up(root)
    highest_first = [root]
    for q in highest_first:
        _hand_down(q)
        highest_first += q.children


def _link(session: Session, found: QueueTree) -> str:
    """Set parents and paths; returns why the hierarchy is invalid."""
    partial = session.deviations.partial_hierarchy
    if not partial:
        if ROOT_QUEUE not in found.nodes:
            return "the queue root does not exist; create it"
        if session.queue_faults:
            return "queue {}: {}".format(*min(session.queue_faults.items()))
    if ROOT_QUEUE not in found.nodes:
        found.nodes[ROOT_QUEUE] = QueueNode(Queue(api.Queue(metadata=ObjectMeta(name=ROOT_QUEUE))))
    root = found.nodes[ROOT_QUEUE]
    for q in found.nodes.values():
        if q is not root:
            found.nodes[session.queue_parents[q.name]].children.append(q)
    highest_first = [root]
    for q in highest_first:
        for child in q.children:
            child.path = q.branch
            child.branch = [*q.branch, child]
        highest_first += q.children
    used = [name for name in demands_of(session.cluster).queues if name in found.nodes]
    if all(found.nodes[name].is_leaf for name in used):
        return ""
    for job in session.jobs.values():
        if not found.nodes[job.queue].is_leaf:
            text = f"queue {job.queue}, which has queues below it; move it to a leaf queue"
            if not partial:
                return f"job {job.uid} is in {text}"
            session.unusable_queues[job.queue] = f"the job is in {text}"
    return ""


def _sum_up(root: QueueNode) -> None:
    """Let a queue without `deserved` deserve the sum of its children."""
    highest_first = [root]
    for q in highest_first:
        highest_first += q.children
    for q in reversed(highest_first):
        if q.children and q.deserved.is_empty():
            for child in q.children:
                q.deserved.add(maximum(child.deserved, child.guarantee))


def _hand_down(parent: QueueNode) -> None:
    """Set the limits of the queues just below a queue."""
    guaranteed, deserved = Resource(), Resource()
    for q in parent.children:
        q.deserved = maximum(q.deserved, q.guarantee)
        if q.capability.milli_cpu <= 0:
            q.capability.milli_cpu = parent.capability.milli_cpu
        if q.capability.memory <= 0:
            q.capability.memory = parent.capability.memory
        for name, amount in (parent.capability.scalars or {}).items():
            if name not in (q.capability.scalars or {}):
                q.capability[name] = amount
        guaranteed.add(q.guarantee)
        deserved.add(q.deserved)
    if parent.name == ROOT_QUEUE:
        parent.guarantee, parent.deserved = guaranteed.clone(), deserved
    if not parent.children:
        return
    free, admits = exceeded_part(parent.real_capability, guaranteed), exceeded_part(parent.admits, guaranteed)
    for q in parent.children:
        q.real_capability = free.clone().add(q.guarantee)
        q.admits = admits.clone().add(q.guarantee)
        for most in (q.real_capability, q.admits):
            most.min_dimension(q.capability, INFINITY)


def _add_demand(session: Session, found: QueueTree) -> None:
    """Add what jobs hold and request to their queue and to all its ancestors."""
    for name, demand in demands_of(session.cluster).queues.items():
        node = found.nodes.get(name)
        if node is None:
            continue
        elastic = demand.elastic
        may_give = bool(elastic.milli_cpu or elastic.memory or elastic.scalars)
        for q in node.branch:
            q.allocated.add(demand.allocated)
            q.request.add(demand.request)
            if may_give:
                q.elastic.add(elastic)
    for job in session.jobs.active():
        if job.min_resources is None:
            continue
        if job.claims_minimum or (job.phase == "Running" and job.allocated_num >= job.min_available):
            amount = gated_deducted(job, inqueue_resource(job))
            for q in found.upwards(found.nodes[job.queue]):
                q.inqueue.add(amount)
    for q in found.nodes.values():
        q.update_share()
