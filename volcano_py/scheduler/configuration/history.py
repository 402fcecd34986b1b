"""The stored history of decisions: one ConfigMap with what plugins keep over restarts. Not in Volcano.

It is read before the first cycle and when this process becomes the leader, and written by the leader at most once in
`INTERVAL`. Values that a user has changed by hand count from the next read on; what the leader has replaces changes
that were made while it runs. A document that cannot be read is reported once, and everything starts empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube import AlreadyExists, Client, KubeError, NotFound
from volcano_py.kube.remedies import remedy
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.reservations.history import History

log = logging.getLogger(__name__)

KEY = "history.json"
VERSION = 1
INTERVAL = 60.0
"""Seconds between two writes."""
LONGEST_READ = 5.0
LONGEST_LAST_WRITE = 3.0
"""Seconds in which the last document is written when the process ends."""
PLUGINS = frozenset({"fairshare", "reservation"})


class HistoryMap:
    """The ConfigMap `namespace/name`."""

    def __init__(
        self,
        namespace: str,
        name: str,
        kept: Callable[[], History],
        configuration: Callable[[], Configuration],
        leading: Callable[[], bool],
    ) -> None:
        self.namespace, self.name = namespace, name
        self.first_read = asyncio.Event()
        """Set when the first cycle may run."""
        self._kept, self._configuration, self._leading = kept, configuration, leading
        self._written = ""
        self._reported = ""

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"

    @property
    def wanted(self) -> bool:
        """Whether a configured plugin keeps something."""
        return any(option.name in PLUGINS for tier in self._configuration().tiers for option in tier)

    async def run(self, client: Client, pause: float = 1.0, interval: float = INTERVAL) -> None:
        """Read and write until cancelled."""
        led, due = self._leading(), 0.0
        read: History | None = None
        try:
            while True:
                kept = self._kept()  # another one after the model was built again
                if self.wanted and (read is not kept or (self._leading() and not led)):
                    kept.put(await self.read(client))
                    read = kept
                self.first_read.set()
                led = self._leading()
                await asyncio.sleep(pause)
                due += pause
                if led and due >= interval:
                    due = 0.0
                    await self.write(client)
        finally:
            if self._leading():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LONGEST_LAST_WRITE):
                        await self.write(client)

    async def read(self, client: Client) -> dict[str, Any]:
        """The stored parts by plugin; none if there are none or they cannot be read."""
        try:
            async with asyncio.timeout(LONGEST_READ):
                found: ConfigMap = await client.get(CONFIGMAP, self.name, self.namespace, type=ConfigMap)
        except TimeoutError:
            self._report(f"{self} cannot be read within {LONGEST_READ:.0f} s; decisions start without a history")
            return {}
        except NotFound:
            log.info("%s does not exist: decisions start without a history", self)
            return {}
        except KubeError as error:
            what = remedy(error, CONFIGMAP, ("get",), self.namespace)
            self._report(f"{self} cannot be read: {error}{what and f'; {what}'}; decisions start without a history")
            return {}
        text = (found.data or {}).get(KEY, "")
        if not text:  # as the chart creates it
            return {}
        try:
            return parts_of(text)
        except ValueError as error:
            self._report(f"{self}, key {KEY}: {error}; decisions start without a history, and it is written again")
            return {}

    async def write(self, client: Client) -> None:
        """Store what the plugins have, if it differs from what was written last."""
        states = self._kept().states
        if not states or not self.wanted:
            return
        parts = {name: states[name].document() for name in sorted(states)}
        text = json.dumps({"version": VERSION, "parts": parts}, separators=(",", ":"))
        if text == self._written:
            return
        body: dict[str, Any] = {"data": {KEY: text}}
        try:
            await self._put(client, body)
        except KubeError as error:
            what = remedy(error, CONFIGMAP, ("create", "patch"), self.namespace)
            self._report(f"{self} cannot be written: {error}{what and f'; {what}'}; a restart would start without it")
        else:
            self._written, self._reported = text, ""

    async def _put(self, client: Client, body: dict[str, Any]) -> None:
        try:
            await client.patch(CONFIGMAP, self.name, body, self.namespace)
        except NotFound:
            metadata = {"metadata": {"namespace": self.namespace, "name": self.name}}
            with contextlib.suppress(AlreadyExists):  # the next write patches it
                await client.create(CONFIGMAP, {**body, **metadata}, self.namespace)

    def _report(self, text: str) -> None:
        if text != self._reported:
            log.warning("%s", text)
        self._reported = text


def parts_of(text: str) -> dict[str, Any]:
    """The parts of a document by plugin. Raises ValueError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("parts"), dict):
        raise ValueError('it must be an object with the fields "version" and "parts"')
    if document.get("version") != VERSION:
        raise ValueError(f"its version is {document.get('version')!r}, and {VERSION} is known")
    found: dict[str, Any] = document["parts"]
    return found
