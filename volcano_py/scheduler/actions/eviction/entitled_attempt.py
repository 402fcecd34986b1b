"""One search for evictions that make the members of an entitled gang fit. Not in Volcano.

If there are few victims, all sets of units are tried, the cheapest first. Otherwise members are placed one after the
other: first with pods above the minimum of their jobs, then with whole jobs; units that are not needed stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.eviction.commit_evictions import undo_needless
from volcano_py.scheduler.actions.eviction.placed_tasks import PermittedVictims, PlacedTasks
from volcano_py.scheduler.actions.eviction.victims.bundles import requests
from volcano_py.scheduler.actions.eviction.victims.cheapest_units import cheapest
from volcano_py.scheduler.actions.eviction.victims.free_capacity import free_capacity_for
from volcano_py.scheduler.actions.eviction.victims.short_resources import short_resources
from volcano_py.scheduler.actions.eviction.victims.unit_plans import Members, applied, placement, without_needless
from volcano_py.scheduler.actions.eviction.victims.units import Unit, above_minimum, on_nodes, units_of
from volcano_py.scheduler.actions.eviction.will_start import will_start
from volcano_py.scheduler.framework.extension_points.queues import Loan
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.victim_order import victims_queue
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.node_rank import by_name
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

Bools = NDArray[np.bool_]
FEW_VICTIMS = 24
"""Up to this number of pods in other queues, all sets of units are tried."""
FEW_MEMBERS = 8
MOST_NODES = 50
"""How many nodes are compared for a member for which whole jobs are evicted."""


class EntitledAttempt:
    """The search for evictions that make some members of a gang fit into a domain."""

    def __init__(
        self, session: Session, job: SessionJob, tasks: list[Task], domain: str, permitted: PermittedVictims
    ) -> None:
        self._session = session
        self._job = job
        self._queue = session.queues[job.queue]
        self._tasks = tasks
        self._outside = None if domain == ROOT else ~session.topology.mask(domain)
        self._members = Members(job, tasks, self._outside, "reclaim")
        self._permitted = permitted
        self._placed = session.shared(PlacedTasks, lambda: PlacedTasks(session))
        self._rest = requests(tasks)
        """What the members request that are not placed yet."""
        self._short: frozenset[str] = frozenset()
        self.listed = 0
        """How many units were listed."""
        self.below = 0.0
        """How much further below what they deserve the cheapest plan leaves the lenders."""

    def plan(self, may_list_units: bool) -> Statement | None:
        """Evictions and nominations, applied to the session; None, without changes, if there are none.
        `may_list_units`: whether whole jobs are compared, which visits all pods of the lenders."""
        session = self._session
        if self._fits():
            return None  # it needs no evictions: allocate places it
        self._short = short_resources(session, self._tasks, self._outside)
        if not self._lending():
            return None
        count = int(np.count_nonzero(self._permitted.among(self._placed)))
        if count == 0:
            return None
        if count <= FEW_VICTIMS and len(self._tasks) <= FEW_MEMBERS:
            cheap = cheapest(session, self._units, self.price, self._fits)
            if cheap is not None:
                self.below, units = cheap
                return applied(session, units, self._members)
        found = self._with_pods_above_minimums()
        return self._with_units() if found is None and may_list_units else found

    # ---- questions --------------------------------------------------------------------------------------

    def price(self, unit: Unit) -> float | None:
        """The price of evicting a unit now; None: it must not be evicted."""
        session = self._session
        lender = session.queues[unit.job.queue]
        request = unit.tasks[0].request if len(unit.tasks) == 1 else unit.request
        price = session.limits.lends(Loan(self._queue, self._rest, self._short, lender, request))
        if price is None or len(session.victims.unprotected(list(unit.tasks))) < len(unit.tasks):
            return None
        return price

    def _lending(self) -> list[str]:
        """The queues that lend some amount of one of the short resources."""
        session = self._session
        least = []
        for name in sorted(self._short):
            unit = requests(())
            unit[name] = 1.0
            least.append(unit)
        return [
            queue.name
            for queue in session.queues.values()
            if queue.name != self._queue.name
            and queue.reclaimable
            and any(
                session.limits.lends(Loan(self._queue, self._rest, self._short, queue, unit)) is not None
                for unit in least
            )
        ]

    def _units(self) -> list[Unit]:
        """All units that lending queues hold at the moment, in the order of least loss."""
        session = self._session
        found = []
        for uid in self._placed.jobs_in(self._lending()):
            found += units_of(session, session.jobs[uid], self._permitted.includes)
        self.listed += len(found)
        victims = list({t.slot: t for unit in found for t in unit.tasks}.values())
        allowed = session.victims.also_reclaimable(self._tasks[0], victims)
        order = victims_queue(session, [t for t in victims if t.slot in allowed], self._tasks[0])
        rank = {order.pop().slot: i for i in range(len(order))}
        found = [unit for unit in found if all(t.slot in rank for t in unit.tasks)]
        return sorted(found, key=lambda u: (len(u.tasks), max(rank[t.slot] for t in u.tasks)))

    def _fits(self) -> bool:
        statement = placement(self._session, self._members)
        if statement is not None:
            statement.discard()
        return statement is not None

    # ---- plans ------------------------------------------------------------------------------------------

    def _with_pods_above_minimums(self) -> Statement | None:
        """Member by member, evict single pods that their jobs do not require."""
        session = self._session
        statement = Statement(session, self._job.uid)
        for task in self._tasks:
            if session.rules.pre_predicate(task) is not None or not self._free_for(statement, task):
                statement.discard()
                self._rest = requests(self._tasks)
                return None
            self._rest.sub_unchecked(task.request)
        undo_needless(session, statement)
        if not statement.evictions or not will_start(session, self._job):
            statement.discard()
            return None
        return statement

    def _free_for(self, statement: Statement, task: Task) -> bool:
        session = self._session
        rules = session.placement
        if rules.accepted(task).any() and session.limits.allocatable(
            self._queue, task
        ):  # in most cases no node accepts it
            node = rules.best(task, without=self._outside)
            if node is not None:
                return statement.pipeline(task, node, evicted=True) is None
        mask = rules.resolvable(task) & self._placed.freeable(task, self._permitted)
        if self._outside is not None:
            mask = mask & ~self._outside
        in_order = by_name(session.cluster)
        nodes = in_order[mask[in_order]]
        if rules.shard is not None:
            nodes = nodes[np.argsort(~rules.shard[nodes], kind="stable")]

        def victims(node: int) -> list[Task] | None:
            candidates = self._permitted.on_node(session, node)
            allowed = session.victims.also_reclaimable(task, candidates)
            return [v for v in candidates if v.slot in allowed]

        def may(victim: Task) -> bool:
            job = session.jobs[victim.job]
            return above_minimum(session, job, victim) and self.price(Unit(job, (victim,), False)) is not None

        def fits(node: int) -> bool:
            return self._has_capacity(task, node) and rules.accepts(task, node)

        return free_capacity_for(session, statement, task, map(int, nodes), victims, fits, "reclaim", may)

    def _has_capacity(self, task: Task, node: int) -> bool:
        """Whether a node and the limits of the queue have capacity for a task, now or later."""
        return self._session.fits_without(task, node, ()) and self._session.limits.allocatable(self._queue, task)

    def _with_units(self) -> Statement | None:
        """Member by member, evict whole jobs, too: on the node where that is cheapest."""
        session = self._session
        statement = Statement(session, self._job.uid)
        for task in self._tasks:
            if session.rules.pre_predicate(task) is not None:
                statement.discard()
                return None
            may_hold = session.limits.allocatable(self._queue, task)
            node = session.placement.best(task, without=self._outside) if may_hold else None
            if node is None:
                node = self._evict_units_for(statement, task)
            if node is None or statement.pipeline(task, node, evicted=True) is not None:
                statement.discard()
                return None
            self._rest.sub_unchecked(task.request)
        return without_needless(session, statement, self._members)

    def _evict_units_for(self, statement: Statement, task: Task) -> int | None:
        """Evict the cheapest units on one node so that a task fits there; returns the node."""
        session = self._session
        by_node: dict[int, list[Unit]] = {}
        for unit in self._units():
            for node in on_nodes(session, unit):
                by_node.setdefault(node, []).append(unit)
        mask = session.placement.resolvable(task)
        best: tuple[tuple[float, int], int, list[Unit]] | None = None
        for node in sorted((n for n in by_node if mask[n]), key=lambda n: session.table.names[n])[:MOST_NODES]:
            if self._outside is not None and self._outside[node]:
                continue
            found = self._cheapest_on(task, node, by_node[node])
            if found is not None and (best is None or found[0] < best[0]):
                best = (*found[:1], node, found[1])
        if best is None:
            return None
        for unit in best[2]:
            for victim in unit.tasks:
                statement.evict(victim, "reclaim")
        return best[1]

    def _cheapest_on(self, task: Task, node: int, units: list[Unit]) -> tuple[tuple[float, int], list[Unit]] | None:
        """The cheapest unit on one node that is enough for a task, or the units in turn, the cheapest first: their
        price and number of pods, and the units; the session is unchanged."""
        ranked = sorted((price, len(u.tasks), i) for i, u in enumerate(units) if (price := self.price(u)) is not None)
        in_order = [units[i] for *_, i in ranked]
        for start in (*([unit] for unit in in_order), in_order):
            found = self._evicted_in_turn(task, node, start)
            if found is not None:
                return found
        return None

    def _evicted_in_turn(self, task: Task, node: int, units: list[Unit]) -> tuple[tuple[float, int], list[Unit]] | None:
        session = self._session
        trial = Statement(session, self._job.uid)
        chosen: list[Unit] = []
        total, fits = 0.0, False
        for unit in units:
            tasks = tuple(t for t in unit.tasks if session.status(t) != st.RELEASING)
            if not tasks or not (unit.whole or above_minimum(session, unit.job, tasks[0])):
                continue
            left = unit._replace(tasks=tasks)
            price = self.price(left)
            if price is None:
                continue
            for victim in tasks:
                trial.evict(victim, "reclaim")
            chosen.append(left)
            total += price
            fits = self._has_capacity(task, node) and session.placement.accepts(task, node)
            if fits:
                break
        trial.discard()
        return ((total, sum(len(u.tasks) for u in chosen)), chosen) if fits else None
