"""The rounds of the cache audit. Volcano: none.

A round lists every watched kind page by page and compares it with the cache. A difference is usually an event in
flight, so the watch has a moment to deliver it. What is then still different is a doubt: the nodes that it concerns
are held, binds that wait for them are withdrawn, and the kind is listed again by its informer, which corrects the store
and the model in the order of the watch. Then the nodes are released. The sums of the model, and what it has assumed,
are compared once in a round as well.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from volcano_py.kube import Informer, KubeError
from volcano_py.kube.errors import Forbidden, NotFound
from volcano_py.scheduler.cache.audit import listed, modelled
from volcano_py.scheduler.cache.audit.drift import Drift, of_objects
from volcano_py.scheduler.cache.audit.listed import Doubt
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.takeover import CAPACITY
from volcano_py.scheduler.model import verification
from volcano_py.scheduler.model.plan import Bind, Evict

log = logging.getLogger(__name__)

IN_FLIGHT = 2.0
"""Seconds in which the watch may deliver an event before a difference is a doubt."""
PACE = 0.25
"""Least seconds between two requests: at most 240 in a minute."""
FULL_PAGE, METADATA_PAGE = 500, 1000
"""Objects of one request."""
SLICE = 500
"""Objects that are compared without giving way to events."""
MAX_REPORTED = 20
"""Differences of one kind and round that are reported one by one; all are counted."""
_OF_NODE = ("Node", "CSINode", "Numatopology")
"""Kinds whose objects have the name of the node that they concern."""


class Live(Protocol):
    """What the audit needs of the running scheduler."""

    def pending(self) -> Collection[str]:
        """UIDs of pods with a bind or an eviction whose result is not known."""
        ...

    def withdraw(self, nodes: Collection[str] | None, why: str) -> None:
        """Withdraw binds that wait for these nodes, or for any node."""
        ...

    def drifted(self, drift: Drift, reported: bool) -> None:
        """A difference was found and corrected. `reported`: by log line and Event, not only counted."""
        ...


class Audit:
    """`run` lasts until it is cancelled. `period`: seconds from the start of a round to that of the next one."""

    def __init__(
        self,
        cache: Cache,
        live: Live,
        period: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        pages: tuple[int, int] = (FULL_PAGE, METADATA_PAGE),
    ) -> None:
        self.rounds = 0
        """Rounds that have ended."""
        self.seconds = 0.0
        """Duration of the last round."""
        self.ended = 0.0
        """When the last round ended, by `clock`."""
        self.requests = 0
        self.bytes = 0
        """Requests, and the size of their responses, so far."""
        self.unread: tuple[str, ...] = ()
        """Kinds that could not be listed in the last round."""
        self._cache = cache
        self._live = live
        self._period = period
        self._clock = clock
        self._sleep = sleep
        self._pages = pages
        self._counts: dict[str, int] = {}
        self._page_of_objects: dict[str, int] = {}
        """By kind: which of its pages has whole objects in this round."""

    async def run(self) -> None:
        """Run rounds until cancelled."""
        await self._cache.ready.wait()
        while True:
            begun = self._clock()
            await self._sleep(self._period / 2 if not self.rounds else 0.0)
            await self.round()
            await self._sleep(max(1.0, self._period - (self._clock() - begun)))

    async def round(self) -> None:
        """Compare everything once."""
        begun = self._clock()
        unread = []
        for kind, informer in list(self._cache.informers.items()):
            if informer.missing or not informer.synced.is_set():
                continue
            self._counts.clear()
            try:
                doubts = await self._doubts_of_list(kind, informer)
            except (NotFound, Forbidden):
                continue  # an optional kind; the informer reports others
            except KubeError as error:
                log.debug("cache audit: %s cannot be listed: %s", self._cache.plurals[kind], error)
                unread.append(self._cache.plurals[kind])
                continue
            if doubts:
                await self._settle(kind, informer, doubts)
            await self._compare_with_model(kind, informer)
        self._counts.clear()
        await self._compare_sums()
        await self._compare_assumed()
        self.unread = tuple(unread)
        self.rounds += 1
        self.ended = self._clock()
        self.seconds = self.ended - begun

    # ---- the API server against the store --------------------------------------------------------------------

    async def _doubts_of_list(self, kind: str, informer: Informer[Any]) -> list[Doubt]:
        """Differences that the watch has not explained within IN_FLIGHT."""
        doubts: list[Doubt] = []
        keys: set[str] = set()
        number, token, version = 0, "", ""
        wanted = self._page_of_objects.get(kind, 0)
        while number == 0 or token:
            await self._sleep(PACE)
            whole = number == wanted
            body = await informer.page(self._pages[0 if whole else 1], token, "" if whole else listed.METADATA)
            self.requests += 1
            self.bytes += len(body)
            page = listed.objects_of(body, informer) if whole else listed.metadata_of(body)
            doubts += listed.compare(informer, page)
            keys.update(seen.key for seen in page.seen)
            token, version = page.token, page.version
            number += 1
        self._page_of_objects[kind] = wanted + 1 if wanted + 1 < number else 0
        doubts += listed.absent(informer, keys, version)
        return await self._unexplained(informer, doubts)

    async def _unexplained(self, informer: Informer[Any], doubts: list[Doubt]) -> list[Doubt]:
        deadline = self._clock() + IN_FLIGHT
        doubts = [doubt for doubt in doubts if not listed.is_over(informer, doubt)]
        while doubts and self._clock() < deadline:
            await self._sleep(IN_FLIGHT / 20)
            doubts = [doubt for doubt in doubts if not listed.is_over(informer, doubt)]
        return doubts

    async def _settle(self, kind: str, informer: Informer[Any], doubts: list[Doubt]) -> None:
        """Hold the nodes that are concerned, list the kind again, and report what has changed by that."""
        before = {doubt.key: informer.store.get(doubt.key) for doubt in doubts}
        held = self._hold(kind, doubts)
        try:
            await informer.list_again([doubt.key for doubt in doubts])
        finally:
            if held:
                self._release()
        for doubt in doubts:
            kept, found = before[doubt.key], informer.store.get(doubt.key)
            if kept is found or (kept is not None and found is not None and kept == found):
                continue  # the list has shown that the cache was right
            self._report(of_objects(kind, doubt.key, doubt.form, kept, found))

    def _hold(self, kind: str, doubts: Iterable[Doubt]) -> bool:
        """Hold the nodes whose capacity these objects decide."""
        if kind not in CAPACITY:
            return False
        why: dict[str, str] = {}
        everywhere = ""
        for doubt in doubts:
            text = f"{kind} {doubt.key}"
            node = _node_of(kind, doubt)
            if node:
                why.setdefault(node, text)
            elif node is None:
                everywhere = everywhere or text
        if not why and not everywhere:
            return False
        self._cache.model.hold(why, everywhere)
        subject = everywhere or next(iter(why.values()))
        self._live.withdraw(None if everywhere else why, f"the cache audit verifies {subject}")
        self._cache.changed()
        return True

    def _release(self) -> None:
        model = self._cache.model
        nodes = list(model.nodes.index) if model.held.all_nodes else list(model.held.why)
        model.hold({})
        if self._cache.follower is not None:
            for name in nodes:
                i = model.nodes.index.get(name)
                if i is not None:
                    self._cache.follower.released(model.nodes.objects[i])
        self._cache.changed()

    # ---- the store against the model -------------------------------------------------------------------------

    async def _compare_with_model(self, kind: str, informer: Informer[Any]) -> None:
        for keys in _slices([*informer.store]):
            for key in keys:
                stored = informer.store.get(key)
                if stored is not None:
                    self._compare_object(kind, key, stored)
            await self._sleep(0)
        for keys in _slices([*modelled.keys_of(self._cache.model, kind)]):
            for key in keys:
                if key not in informer.store:
                    self._compare_object(kind, key, None)
            await self._sleep(0)

    def _compare_object(self, kind: str, key: str, stored: Any) -> None:
        if (kind, key) in self._cache.quarantine:
            return
        expected = stored if stored is not None and self._cache.accepts(kind, stored) else None
        model = self._cache.model
        if modelled.agrees(model, kind, key, expected):
            return
        known = modelled.object_of(model, kind, key)
        self._cache.put_again(kind, key)
        self._report(of_objects(kind, key, "model", known, expected))

    # ---- the model against itself ----------------------------------------------------------------------------

    async def _compare_sums(self) -> None:
        model = self._cache.model

        def members(uid: str) -> int:
            return len(model.jobs[uid].tasks) if uid in model.jobs else 0

        for some in _slices(list(model.nodes.names), lambda name: len(model.on_node.get(name, ()))):
            await self._correct(verification.of_nodes(model, some))
        for some in _slices(list(model.jobs), members):
            await self._correct(verification.of_jobs(model, some))
        for some in _slices(list(model.tasks)):
            await self._correct(verification.of_tasks(model, some))

    async def _correct(self, differences: Iterator[verification.StateDifference]) -> None:
        for found in list(differences):
            verification.correct(self._cache.model, found)
            self._report_sum(found)
            self._cache.changed()
        await self._sleep(0)

    def _report_sum(self, found: verification.StateDifference) -> None:
        kind = {"node": "Node", "job": "PodGroup", "pod": "Pod"}[found.kind]
        known = modelled.object_of(self._cache.model, kind, found.name)
        uid = known.metadata.uid if known is not None else ""
        self._report(Drift(kind, found.name, uid, "sum", found.field, str(found.kept), str(found.expected)))

    async def _compare_assumed(self) -> None:
        """Read the pods of binds and evictions that the model counts and that nothing writes."""
        candidates = dict(self._abandoned())
        if not candidates:
            return
        await self._sleep(IN_FLIGHT)
        for key, (uid, what) in dict(self._abandoned()).items():
            if candidates.get(key) != (uid, what):
                continue
            task = self._cache.model.tasks[key]
            drift = Drift("Pod", key, uid, "assumed", what, f"to node {task.node}", "the pod as it is read now")
            op: Bind | Evict = Bind(task.namespace, task.name, uid, task.node, task.job)
            if what == "eviction":
                op = Evict(task.namespace, task.name, uid, task.job, "cache-audit")
            # A pod that has what the model assumes is no drift: only its watch event is late.
            self._cache.resync.add(op, partial(self._report, drift))

    def _abandoned(self) -> Iterator[tuple[str, tuple[str, str]]]:
        suspects = [(key, task) for key, task in self._cache.model.tasks.items() if modelled.assumed(task)]
        if not suspects:
            return
        pending = self._live.pending()
        for key, task in suspects:
            if task.uid not in pending and not self._cache.waits_for(key, task.uid):
                yield key, (task.uid, modelled.assumed(task))

    def _report(self, drift: Drift) -> None:
        count = self._counts[drift.kind] = self._counts.get(drift.kind, 0) + 1
        if count == MAX_REPORTED + 1:
            log.warning("cache audit: more objects of kind %s have drifted; they are corrected and counted", drift.kind)
        self._live.drifted(drift, count <= MAX_REPORTED)


def _node_of(kind: str, doubt: Doubt) -> str | None:
    """The node whose capacity an object decides; empty: of no node; None: it may be any."""
    if kind in _OF_NODE:
        return doubt.key
    if kind != "Pod":
        return None
    if doubt.stored is not None and doubt.stored.spec.node_name:
        return str(doubt.stored.spec.node_name)  # a pod does not move
    if doubt.seen is None:
        return ""
    return None if doubt.seen.obj is None else str(doubt.seen.obj.spec.node_name)


def _slices(names: list[str], weigh: Callable[[str], int] = lambda name: 0) -> Iterator[list[str]]:
    """Parts of the names with about SLICE pods each."""
    part: list[str] = []
    weight = 0
    for name in names:
        part.append(name)
        weight += 1 + weigh(name)
        if weight >= SLICE:
            yield part
            part, weight = [], 0
    if part:
        yield part
