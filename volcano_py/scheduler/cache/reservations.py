"""The Reservations of the cluster: watched, and their statuses written, while the plugin advance-reservation is
configured. Not in Volcano.

The decision core decides the statuses (`framework.advance.window_status`); the leader writes those that differ, at most
once a second. Without the plugin nothing is watched, and the CRD need not be installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from volcano_py.api.kinds import RESERVATION
from volcano_py.api.reservation import Reservation, ReservationStatus
from volcano_py.kube import Client, Forbidden, Informer, KubeError, NotFound
from volcano_py.kube.remedies import remedy
from volcano_py.kube.supervise import run_all
from volcano_py.scheduler.framework.advance.advance_book import KeptWindows
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.model.cluster import Cluster

log = logging.getLogger(__name__)

PLUGIN = "advance-reservation"
PAUSE = 1.0
"""Seconds between two checks whether a status is to be written or the configuration has changed."""
LONGEST_LIST = 10.0
"""Seconds that the first cycle waits for the first list."""


class ReservationObjects:
    """Keeps the model's Reservations and the statuses of their objects."""

    def __init__(
        self,
        client: Client,
        model: Callable[[], Cluster],
        configuration: Callable[[], Configuration],
        on_change: Callable[[], None],
        may_write: Callable[[], bool],
        pause: float = PAUSE,
    ) -> None:
        self.first_read = asyncio.Event()
        """Set when the first cycle may run."""
        self._client, self._model, self._configuration = client, model, configuration
        self._on_change, self._may_write, self._pause = on_change, may_write, pause
        self._store: dict[str, Reservation] = {}
        self._reported = ""

    @property
    def wanted(self) -> bool:
        """Whether the plugin is configured."""
        return any(option.name == PLUGIN for tier in self._configuration().tiers for option in tier)

    async def run(self) -> None:
        """Watch and write until cancelled. Raises the error that ended the watch."""
        while True:
            while not self.wanted:
                self.first_read.set()
                await asyncio.sleep(self._pause)
            informer: Informer[Reservation] = Informer(self._client, RESERVATION, Reservation, optional=True)
            informer.on(self._put, lambda old, new: self._put(new), self._removed)
            self._store = informer.store
            parts = {"informer reservations": informer.run(), "reservation statuses": self._write_statuses(informer)}
            with contextlib.suppress(_NotWanted):
                await run_all(parts)
            for name in list(self._model().others.get(RESERVATION.kind, {})):
                self._model().remove(RESERVATION.kind, "", name)
            self._on_change()

    def _put(self, found: Reservation) -> None:
        objects = self._model().others.get(RESERVATION.kind, {})
        known = objects.get(found.metadata.name)
        if known is not None and (known.metadata.uid, known.spec) == (found.metadata.uid, found.spec):
            # Only its status has changed, which causes no cycle. A model that is built again reads the nodes from it.
            objects[found.metadata.name] = found
            return
        self._model().upsert(RESERVATION.kind, found)
        self._on_change()

    def _removed(self, last: Reservation) -> None:
        self._model().remove(RESERVATION.kind, "", last.metadata.name)
        self._on_change()

    async def _write_statuses(self, informer: Informer[Reservation]) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(informer.synced.wait(), LONGEST_LIST)
        self.first_read.set()
        if isinstance(informer.error, NotFound | Forbidden):
            what = remedy(informer.error, RESERVATION, ("list", "watch"), None)
            text = f"plugin {PLUGIN} reserves nothing, Reservations cannot be read: {informer.error}"
            log.warning("%s%s", text, f"; {what}" if what else "")
        while self.wanted:
            if self._may_write():
                statuses = self._model().keep(KeptWindows).statuses
                for name, status in list(statuses.items()):
                    found = informer.store.get(name)
                    if found is not None and found.status != status:
                        await self._write(found, status)
            await asyncio.sleep(self._pause)
        raise _NotWanted

    async def _write(self, found: Reservation, status: ReservationStatus) -> None:
        name = found.metadata.name
        # null removes what the new status does not have
        body: dict[str, Any] = dict.fromkeys(msgspec.to_builtins(found.status)) | msgspec.to_builtins(status)
        patch = {"metadata": {"uid": found.metadata.uid}, "status": body}
        try:
            await self._client.patch(RESERVATION, name, patch, subresource="status")
        except NotFound:
            return  # it was deleted
        except KubeError as error:
            what = remedy(error, RESERVATION, ("patch",), None)
            text = f"the status of Reservation {name} cannot be written: {error}{what and f'; {what}'}"
            if text != self._reported:
                log.warning("%s", text)
            self._reported = text


class _NotWanted(Exception):
    """The plugin is no longer configured."""
