"""The search for changes that would unblock a job: for each kind of change the smallest that works in a trial.

The kinds of change depend on the blockers. If a change is not sufficient, because there is another blocker after the
first, it is completed by changes for the next blockers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from volcano_py.api.core import Node
from volcano_py.scheduler.explain.explanation import explain
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.simulate.unblock import gangs, moves, nodes, pods, queues
from volcano_py.simulate.unblock.suggestion import Change, Suggestion
from volcano_py.simulate.unblock.trials import Trials

Changes = Callable[[Session, SessionJob, Cause], Iterator[Change]]

_CAPACITY: tuple[Changes, ...] = (nodes.free_capacity, nodes.wait_for_jobs)
_QUEUE: tuple[Changes, ...] = (queues.raise_limit, nodes.wait_for_jobs)
# moves are computed from the whole session, which is valid until the first trial, so they come first
_CHANGES: dict[str, tuple[Changes, ...]] = {
    "QueueNotOpen": (queues.open_queue,),
    "EnqueueQueueLimit": _QUEUE,
    "QueueLimit": _QUEUE,
    "QueueGuaranteesOfOthers": (queues.lower_guarantees, nodes.wait_for_jobs),
    "QueueOverused": (queues.raise_limit, queues.raise_weight, *_CAPACITY),
    "QueueShare": (queues.raise_weight, *_CAPACITY),
    "EnqueueClusterFull": (nodes.wait_for_jobs,),
    "EnqueueResourceQuota": (queues.raise_quota,),
    "SchedulingGated": (pods.remove_gates,),
    "GangTooLarge": (moves.move_pods, *_CAPACITY),
    "GangRejected": (pods.drop_affinity, pods.drop_spread, pods.drop_ports),
    "NodeSelector": (pods.drop_selector, pods.label_node),
    "NodeCordoned": (nodes.uncordon,),
    "NodeTaint": (pods.tolerate,),
    "NodeTooSmall": (pods.ask_for_less,),
    "NodeResources": (moves.move_pods, *_CAPACITY, pods.ask_for_less),
    "NodePodLimit": _CAPACITY,
    "NodePorts": (pods.drop_ports, nodes.wait_for_jobs),
    "PodAffinity": (pods.drop_affinity,),
    "PodTopologySpread": (pods.drop_spread,),
    "DevicesUnavailable": (nodes.wait_for_jobs,),
    "NumaTopology": (nodes.wait_for_jobs, pods.fewer_cpus),
    "VolumeLimit": (nodes.wait_for_jobs,),
    "TopologyDomainFull": (moves.move_pods, gangs.wider_domain, nodes.wait_for_jobs),
    "MovesPossible": (moves.move_pods,),
    "GroupDoesNotFit": _CAPACITY,
    "GroupDomainFull": (nodes.wait_for_jobs,),
    "TopologyNotReady": (gangs.wider_domain,),
    "Outranked": (queues.raise_priority,),
    "CapacityReserved": (nodes.wait_for_jobs,),
    "WaitsForRelease": (nodes.wait_for_jobs,),
    "VictimsRank": (queues.raise_priority,),
}
_FEWER_PODS = frozenset(
    (
        "GangTooLarge",
        "GangRejected",
        "NodeResources",
        "TopologyDomainFull",
        "LabelDomainFull",
        "QueueLimit",
        "QueueShare",
        "EnqueueQueueLimit",
        "EnqueueClusterFull",
        "EnqueueResourceQuota",
        "PodsMissing",
        "RolePodsMissing",
        "PodTopologySpread",
        "PodAffinity",
        "NodePorts",
        "QueueGuaranteesOfOthers",
    )
)
"""Blockers that a smaller gang may remove."""
_MORE_NODES = frozenset(
    (
        "NoNodes",
        "CapacityReserved",
        "GangTooLarge",
        "GangRejected",
        "NodeResources",
        "NodeTooSmall",
        "NodePodLimit",
        "NodePorts",
        "NodeSelector",
        "LabelDomainFull",
        "GroupDomainFull",
        "GroupDoesNotFit",
        "EnqueueClusterFull",
        "QueueOverused",
        "QueueShare",
        "PodAffinity",
        "PodTopologySpread",
        "NodeTaint",
        "NodeCordoned",
        "QueueGuaranteesOfOthers",
    )
)
"""Blockers that more nodes may remove."""
_SPARE_NODES = 3
"""More nodes than members are tried, because other pending jobs use some."""
_MOST_STEPS = 4
_MOST_TRIALS = 60
_MOST_WORK = 12_000
"""Tasks that all trials together try to place: with 10,000 waiting jobs, one or two changes are tried."""


def is_over(trials: Trials) -> bool:
    """Whether no more changes are tried."""
    return trials.count > _MOST_TRIALS or trials.work > _MOST_WORK


def suggestions(trials: Trials, uid: str, first: list[Cause]) -> list[Suggestion]:
    """The smallest change of each kind after which a job starts. `first`: its current blockers."""
    found: dict[str, Suggestion] = {}
    done: list[Change] = []
    blockers = first
    for _ in range(_MOST_STEPS):
        only = done[0].kind if found and done else ""
        partial = _round(trials, uid, blockers, done, found, only)
        if partial is None or partial.kind in found or is_over(trials):
            break
        if done and partial.text == done[-1].text:
            break
        done.append(partial)
        with trials.changed([e for c in done for e in c.edits]):
            session = trials.session()
            blockers = explain(session, uid).blockers
    return list(found.values())


def _round(
    trials: Trials, uid: str, blockers: list[Cause], done: list[Change], found: dict[str, Suggestion], only: str
) -> Change | None:
    """Try the changes for some blockers on top of those that are done. Returns a change of the first blocker that is
    not sufficient alone, to continue with. `only`: the one relevant kind, if others were found."""
    partial: Change | None = None
    with trials.changed([e for c in done for e in c.edits]):
        session = trials.session()
        for number, cause in enumerate(blockers):
            for change in _changes(trials, session, uid, cause):
                if change.kind in found or not change.edits or (only and change.kind != only):
                    continue
                if trials.starts(uid, change.edits):
                    found[change.kind] = Suggestion([*done, change])
                elif number == 0 and partial is None:
                    partial = change
                if is_over(trials):
                    return partial
        for change in () if only or is_over(trials) else _sized(trials, session, uid, blockers):
            found.setdefault(change.kind, Suggestion([*done, change]))
    return partial


def _changes(trials: Trials, session: Session, uid: str, cause: Cause) -> Iterator[Change]:
    if cause.code == "QueueMissing":
        yield from queues.create_queue(
            session,
            uid,
            str(cause.fields["queue"]),
        )
    if cause.code == "PodGroupMissing":
        yield gangs.create_pod_group(uid)
    if cause.code in ("QueueMissing", "QueueNotOpen", "QueueUnusable"):
        yield from queues.move_to_queue(
            session,
            uid,
            str(cause.fields["queue"]),
        )
    job = session.jobs.get(uid)
    if job is not None:
        for changes in _CHANGES.get(cause.code, ()):
            for change in changes(session, job, cause):
                if job.model.native is None or all(e.kind != "PodGroup" for e in change.edits):
                    yield change  # the PodGroup of a native gang has other fields


def _sized(trials: Trials, session: Session, uid: str, blockers: list[Cause]) -> Iterator[Change]:
    """Changes with a number, for which the search finds the minimum: members of the gang, and nodes."""
    job = session.jobs.get(uid)
    codes = {c.code for c in blockers}
    if job is None or not blockers:
        return
    if job.min_available > 1 and job.model.native is None and codes & _FEWER_PODS:
        change = _largest_gang(trials, session, job)
        if change is not None:
            yield change
    if codes & _MORE_NODES and not is_over(trials):
        for shape in nodes.shapes(session, job):
            added = _fewest_nodes(trials, uid, shape, max(job.min_available, 1) + _SPARE_NODES)
            if added is not None:
                yield added
                return


def _largest_gang(trials: Trials, session: Session, job: SessionJob) -> Change | None:
    def works(size: int) -> Change | None:
        change = gangs.gang_of(session, job, size)
        return change if trials.starts(job.uid, change.edits) else None

    best = works(1)
    low, high = 1, job.min_available
    while best is not None and high - low > 1 and not is_over(trials):
        middle = (low + high) // 2
        change = works(middle)
        if change is None:
            high = middle
        else:
            low, best = middle, change
    return best


def _fewest_nodes(trials: Trials, uid: str, shape: Node, most: int) -> Change | None:
    def works(count: int) -> Change | None:
        change = nodes.add_nodes(shape, count)
        return change if trials.starts(uid, change.edits) else None

    low, high = 0, 1
    best = works(high)
    while best is None and high < most and not is_over(trials):
        low, high = high, min(high * 2, most)
        best = works(high)
    while best is not None and high - low > 1 and not is_over(trials):
        middle = (low + high) // 2
        change = works(middle)
        if change is None:
            low = middle
        else:
            high, best = middle, change
    return best
