"""A consistent list of each kind that decides capacity, which a new leader has before its first cycle. Volcano: none.

A watch may be behind, and nothing shows by how much: a standby that decides at once binds pods to capacity that the
leader before it has given away. A new leader reads the newest version of each kind from the API server. It waits for a
moment until its watch has returned that version, and otherwise lists the kind again: the watch of a kind that does not
change reaches no newer version without a bookmark.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from volcano_py.kube import Backoff, Informer, KubeError
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS

log = logging.getLogger(__name__)

CAPACITY = (
    "Queue",
    "Node",
    "PodGroup",
    *NATIVE_KINDS,
    "ResourceQuota",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "CSINode",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "ResourceSlice",
    "ResourceClaim",
    "DeviceTaintRule",
    "PodDisruptionBudget",
    "Numatopology",
    "HyperNode",
    "Pod",
)
"""The kinds that decide capacity, and what may be evicted for it."""
GRACE = 0.5
"""Seconds in which a watch may reach the newest version."""
REPORT_AFTER = 5.0
"""Seconds after which lists that are not there yet are reported."""


class Takeover:
    """Makes the model current each time this process begins to lead. `on_ready()` is called when cycles may run.

    With `exclusive`, no other process writes plans (there is no election): the first lists are current enough.
    """

    def __init__(
        self,
        informers: Mapping[str, Informer[Any]],
        plurals: Mapping[str, str],
        on_ready: Callable[[], None],
        exclusive: bool = False,
    ) -> None:
        self.ready = exclusive
        """Whether the model is current since this process leads."""
        self.missing: tuple[str, ...] = ()
        """The kinds that are not current yet."""
        self._informers = informers
        self._plurals = plurals
        self._on_ready = on_ready
        self.exclusive = exclusive
        self._begun = asyncio.Event()
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """This process leads from now on."""
        if not self.exclusive:
            self.end()
            self._begun.set()

    def end(self) -> None:
        """This process no longer leads."""
        self.ready = self.exclusive
        self._begun.clear()
        self._ended.set()

    async def run(self) -> None:
        """Make the model current after each `begin`, until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            self._ended = ended = asyncio.Event()
            current = asyncio.create_task(self._make_current(), name="lists of a new leader")
            end = asyncio.create_task(ended.wait(), name="end of leadership")
            try:
                await asyncio.wait((current, end), return_when=asyncio.FIRST_COMPLETED)
                if not ended.is_set():
                    current.result()
                    self.ready = True
                    self._on_ready()
            finally:
                for task in (current, end):
                    task.cancel()
                await asyncio.gather(current, end, return_exceptions=True)
                self.missing = ()

    async def _make_current(self) -> None:
        informers = {self._plurals[kind]: self._informers[kind] for kind in CAPACITY if kind in self._informers}
        self.missing = tuple(informers)
        reads = [asyncio.create_task(self._current(plural, informer)) for plural, informer in informers.items()]
        try:
            _, pending = await asyncio.wait(reads, timeout=REPORT_AFTER)
            if pending:
                log.warning(
                    "leading, but no cycle runs yet: waiting for current lists of %s from the API server",
                    ", ".join(self.missing),
                )
                await asyncio.wait(pending)
            for read in reads:
                read.result()
            if pending:
                log.info("all lists are current; cycles run")
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)

    async def _current(self, plural: str, informer: Informer[Any]) -> None:
        backoff, reported = Backoff(0.2, 5.0), ""
        while True:
            try:
                await informer.catch_up(GRACE)
            except KubeError as error:
                if str(error) != reported:
                    reported = str(error)
                    log.warning("%s cannot be listed, so no cycle runs yet: %s; retrying", plural, error)
                await asyncio.sleep(backoff.next())
            else:
                self.missing = tuple(other for other in self.missing if other != plural)
                return
