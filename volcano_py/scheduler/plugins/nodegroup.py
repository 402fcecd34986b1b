"""nodegroup: queues that use groups of nodes. Volcano: plugin nodegroup.

The label `volcano.sh/nodegroup-name` sets a node's group. A queue selects groups in `spec.affinity`, and can limit what
it uses of a group in its annotation `volcano.sh/nodegroup-resource-limits`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.api.scheduling import NodeGroupAffinity, QueueAffinity
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.status import IS_ALLOCATED
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS, Resource

_REASONS = [
    Reason("job not found in session", FitCode.ERROR),
    Reason("node group resource limit annotation invalid", FitCode.UNRESOLVABLE),
    Reason("node group label not found", FitCode.UNRESOLVABLE),
    Reason("node group affinity not specified", FitCode.UNRESOLVABLE),
    Reason("node does not satisfy the node group affinity", FitCode.UNRESOLVABLE),
    Reason("node group resource limit exceeded", FitCode.UNRESOLVABLE),
]
_NO_JOB, _BAD_LIMITS, _NO_LABEL, _NO_AFFINITY, _NOT_MINE, _OVER_LIMIT = range(1, 7)


class Groups:
    """The node groups that a queue's spec and annotation select."""

    def __init__(self, queue: Queue, affinity: QueueAffinity | None) -> None:
        towards = affinity.node_group_affinity if affinity else None
        anti_affinity = affinity.node_group_anti_affinity if affinity else None
        self.required = _names(towards, "required_during_scheduling_ignored_during_execution")
        self.preferred = _names(towards, "preferred_during_scheduling_ignored_during_execution")
        self.anti_required = set(_names(anti_affinity, "required_during_scheduling_ignored_during_execution"))
        self.anti_preferred = set(_names(anti_affinity, "preferred_during_scheduling_ignored_during_execution"))
        self.named = bool(self.required or self.preferred or self.anti_required or self.anti_preferred)
        self.limits: dict[str, dict[str, float]] | None = {}
        """Limits by group and resource, including limits of 0; None: the annotation is invalid."""
        text = (queue.object.metadata.annotations or {}).get(names.NODEGROUP_RESOURCE_LIMITS)
        if text:
            try:
                parsed = msgspec.json.decode(text.encode(), type=dict[str, dict[str, str | int | float]])
                self.limits = {group: _limits(amounts) for group, amounts in parsed.items()}
            except (msgspec.DecodeError, ValueError):
                self.limits = None

    def accepts(self, group: str) -> bool:
        if group in self.anti_preferred:
            return True
        return group not in self.anti_required and (group in self.required or group in self.preferred)


def _limits(amounts: dict[str, str | int | float]) -> dict[str, float]:
    """The limits in the units of Resource. Raises ValueError for an invalid quantity."""
    read = Resource.parse(amounts)
    return {name: read[name] for name in amounts}


def _names(affinity: NodeGroupAffinity | None, which: str) -> list[str]:
    return list(getattr(affinity, which) or ()) if affinity else []


class NodeGroup(Plugin):
    """See `Arguments`; with `enableHierarchy` a queue without affinity inherits that of its nearest ancestor."""

    name = "nodegroup"

    class Arguments(PluginArguments):
        strict: bool = True
        """Nodes without a group accept no pod; otherwise they accept pods of queues without affinity."""
        enablePreferredOrder: bool = False
        """Preferred groups that are listed earlier score higher."""

    arguments: Arguments

    def on_session_open(self, session: Session) -> None:
        inherits = session.enabled(self.name, "enableHierarchy")
        groups = {
            name: Groups(queue, _affinity(session, queue) if inherits else queue.object.spec.affinity)
            for name, queue in session.queues.items()
        }
        group_of = [(n.metadata.labels or {}).get(names.NODEGROUP_NAME) for n in session.table.objects]
        used: dict[tuple[str, str], Resource] = {}

        def moved(task: Task, node: int, sign: int) -> None:
            job = session.jobs.get(task.job)
            group = group_of[node]
            if job is None or group is None:
                return
            held = used.setdefault((job.queue, group), Resource())
            if sign > 0:
                held.add(task.request)
            else:
                held.sub_unchecked(task.request)

        for job in session.jobs.values():
            for task in job.tasks.values():
                node = session.table.index.get(task.node) if IS_ALLOCATED[session.status(task)] else None
                if node is not None:
                    moved(task, node, +1)
        session.add_filters(_Filter(session, groups, group_of, used, self.arguments.strict))
        session.add_scores(_Score(session, groups, group_of, self.arguments.enablePreferredOrder))
        session.add_event_handler(lambda t, n: moved(t, n, +1), lambda t, n: moved(t, n, -1))


def _affinity(session: Session, queue: Queue) -> QueueAffinity | None:
    seen: set[str] = set()
    at: Queue | None = queue
    while at is not None and at.name not in seen:
        if at.object.spec.affinity is not None:
            return at.object.spec.affinity
        seen.add(at.name)
        at = session.queues.get(at.parent or "root") if at.name != "root" else None
    return None


class _Filter:
    name = "nodegroup"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = _REASONS

    def __init__(
        self,
        session: Session,
        groups: dict[str, Groups],
        group_of: list[str | None],
        used: dict[tuple[str, str], Resource],
        strict: bool,
    ) -> None:
        self._session = session
        self._groups = groups
        self._group_of = group_of
        self._used = used
        self._strict = strict

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        job = self._session.jobs.get(task.job)
        if job is None:
            return np.full(len(self._group_of), _NO_JOB, dtype=np.int8)
        known: dict[str | None, int] = {}
        for group in set(self._group_of):
            known[group] = self._code(task, job.queue, group)
        return np.array([known[g] for g in self._group_of], dtype=np.int8)

    def _code(self, task: Task, queue: str, group: str | None) -> int:
        mine = self._groups[queue]
        if mine.limits is None:
            return _BAD_LIMITS
        if group is None:
            return 0 if not self._strict and not mine.named else _NO_LABEL
        if not mine.named:
            return _NO_AFFINITY
        if not mine.accepts(group):
            return _NOT_MINE
        held = self._used.get((queue, group)) or Resource()
        for name, limit in mine.limits.get(group, {}).items():
            if held[name] + task.request[name] - limit >= EPS:
                return _OVER_LIMIT
        return 0


class _Score:
    name = "nodegroup"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = False

    def __init__(self, session: Session, groups: dict[str, Groups], group_of: list[str | None], ordered: bool) -> None:
        self._session = session
        self._groups = groups
        self._group_of = group_of
        self._ordered = ordered

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        job = self._session.jobs.get(task.job)
        if job is None:
            return np.zeros(len(candidates))
        mine = self._groups[job.queue]
        return np.array([self._rate(mine, self._group_of[n]) for n in candidates.tolist()], dtype=np.float64)

    def _rate(self, mine: Groups, group: str | None) -> float:
        if group is None or not mine.named:
            return 0.0
        if group in mine.anti_preferred:
            return -1.0
        score = 100.0 if group in mine.required else 0.0
        if group in mine.preferred:
            count = len(mine.preferred)
            score += 50.0 * (count - mine.preferred.index(group)) / count if self._ordered else 50.0
        return score
