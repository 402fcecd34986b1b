"""The victims of capacity: whose pods are evicted for a queue, and which queues lend. Volcano: the reclaimable
callbacks of the capacity plugin.

A queue keeps its guarantee, and loses only what it holds above the amounts it deserves.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.extension_points.queues import Loan
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.jobs.victim_order import victims_queue
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import ZERO, Resource, intersection
from volcano_py.scheduler.model.resource_names import PODS
from volcano_py.scheduler.plugins.capacity.queue_tree import QueueNode, QueueTree
from volcano_py.scheduler.plugins.queue_shares.lending import (
    is_above,
    keeps_guarantee,
    lends_any,
    price,
    stays_within,
)


class CapacityVictims:
    """The callbacks about victims in one session. `levels`: the number of ancestors that reclaim checks."""

    def __init__(self, session: Session, tree: QueueTree, levels: int) -> None:
        self._session = session
        self.tree = tree
        self._levels = levels
        self._named_by: dict[str, frozenset[str]] = {}
        """By parent: the resources of which its queues deserve some."""

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        if self.tree.problem:
            return []
        mine = self._session.jobs.get(reclaimer.job)
        own = self.tree.nodes.get(mine.queue) if mine is not None else None
        left: dict[str, Resource] = {}
        victims: list[Task] = []
        order = victims_queue(self._session, candidates, reclaimer)
        while order:
            v = order.pop()
            job = self._session.jobs.get(v.job)
            node = self.tree.nodes.get(job.queue) if job is not None else None
            if node is None or not intersection(v.request, reclaimer.request, ignore_pods=True):
                continue
            allocated = _rest_of(node, left)
            if not node.guarantee.less_equal(allocated.clone().sub_unchecked(v.request), ZERO):
                continue
            if not intersection(v.request, node.deserved):
                if own is not None and self._kin_without_claim(reclaimer, own, node):
                    continue
            elif not allocated.greater_partly_relevant(node.deserved, v.request)[0]:
                continue
            checked = self._ancestors_give(v, node, own, left)
            if checked is None:
                continue
            for name in (node.name, *checked):
                left[name].sub_unchecked(v.request)
            victims.append(v)
        return victims

    def _kin_without_claim(self, reclaimer: Task, own: QueueNode, other: QueueNode) -> bool:
        """Whether the queues have a common ancestor and the reclaimer requests no resource that its queue deserves."""
        if not self._levels:
            return False
        near = {q.name for q in self.tree.ancestors(own, self._levels)}
        kin = any(q.name in near for q in self.tree.ancestors(other, self._levels))
        return kin and not intersection(reclaimer.request, own.deserved)

    def _ancestors_give(
        self, victim: Task, node: QueueNode, own: QueueNode | None, left: dict[str, Resource]
    ) -> list[str] | None:
        """The ancestors that lose with the victim's queue; None: one of them must not."""
        if not self._levels:
            return []
        checked = []
        mine = self.tree.ancestors(own, self._levels) if own is not None else []
        for i, q in enumerate(self.tree.ancestors(node, self._levels)):
            if i < len(mine) and mine[i].name == q.name:
                continue
            allocated = _rest_of(q, left)
            claimed = intersection(victim.request, q.deserved)
            if claimed and not allocated.greater_partly_relevant(q.deserved, victim.request)[0]:
                return None
            checked.append(q.name)
        return checked

    def evictable(self, context: EvictionContext, candidates: list[Task]) -> list[Task]:
        if context.kind == "gangpreempt":
            return candidates
        if self.tree.problem:
            return []
        left: dict[str, Resource] = {}
        victims = []
        for v in candidates:
            job = self._session.jobs.get(v.job)
            node = self.tree.nodes.get(job.queue) if job is not None else None
            if node is None:
                continue
            allocated = _rest_of(node, left)
            if not node.guarantee.less_equal(allocated.clone().sub_unchecked(v.request), ZERO):
                continue
            immediate = not intersection(v.request, node.deserved)
            if immediate or allocated.greater_partly_relevant(node.deserved, v.request)[0]:
                allocated.sub_unchecked(v.request)
                victims.append(v)
        return victims

    def lends(self, loan: Loan) -> float | None:
        """See `QueueLimits.add_lends`. Queues are compared just below their last common ancestor."""
        mine, lender = self.tree.nodes.get(loan.queue.name), self.tree.nodes.get(loan.lender.name)
        if self.tree.problem or mine is None or lender is None:
            return None
        a, b = self.tree.below_common(mine, lender)
        named = self._named(a)
        if not stays_within(a, loan.requested, named):
            return None
        short = loan.short & named
        if not lends_any(b, loan.unit, short):
            return None
        below_common = lender.branch[lender.branch.index(b) :]
        if not all(keeps_guarantee(q, loan.unit) for q in below_common):
            return None
        for q in below_common[1:]:
            # Within the subtree of the lender, queues above their own share lend first.
            if not any(is_above(q, d) for d in short) and any(
                is_above(other, d) for other in q.path[-1].children for d in short
            ):
                return None
        return price(b, loan.unit, self._session.total)

    def _named(self, node: QueueNode) -> frozenset[str]:
        """The resources of which a queue on the level of this one deserves some."""
        parent = node.path[-1].name if node.path else ""
        found = self._named_by.get(parent)
        if found is None:
            if node.path:
                deserved = [q.deserved for q in node.path[-1].children]
            else:
                deserved = [q.deserved for q in self._session.queues.values() if q.deserved is not None]
                deserved += [q.deserved for q in self.tree.nodes.values()]
            found = frozenset(d for amounts in deserved for d in amounts.names() if amounts[d] > 0 and d != PODS)
            self._named_by[parent] = found
        return found


def _rest_of(q: QueueNode, left: dict[str, Resource]) -> Resource:
    """What a queue holds without the victims selected so far; `left` contains it by queue."""
    rest = left.get(q.name)
    if rest is None:
        rest = left[q.name] = q.allocated.clone()
    return rest
