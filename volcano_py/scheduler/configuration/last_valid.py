"""The last valid configuration, in a second ConfigMap that a restart reads. Volcano: no part, it ends with an error.

Without it, an invalid document ends a scheduler that is restarted, for example because its node is drained, long after
the running one has reported the mistake. The user's own ConfigMap or file is not touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable
from typing import Any

from volcano_py.api.core import ConfigMap
from volcano_py.api.kinds import CONFIGMAP
from volcano_py.kube import AlreadyExists, Backoff, Client, KubeError, NotFound
from volcano_py.kube.remedies import remedy

log = logging.getLogger(__name__)

KEY = "volcano-scheduler.conf"
LONGEST_READ = 5.0
"""Seconds in which it must be read at a start."""
HASH, SOURCE = "volcano-py/configuration-hash", "volcano-py/configuration-source"
"""Annotations: the SHA-256 of the document, and where it is from."""


class LastValid:
    """The ConfigMap `namespace/name`, for the document of `source`."""

    def __init__(self, namespace: str, name: str, source: str) -> None:
        self.namespace, self.name = namespace, name
        self.may_write: Callable[[], bool] = lambda: True
        """Whether this process leads; the others write nothing."""
        self._source = source
        self._wanted = ""
        self._changed = asyncio.Event()

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"

    def put(self, text: str) -> None:
        """Keep this document from now on; `run` writes it."""
        self._wanted = text
        self._changed.set()

    async def read(self, client: Client) -> ConfigMap | None:
        """The ConfigMap if its document is the one that was kept for this source; None, with a log line, otherwise."""
        try:
            async with asyncio.timeout(LONGEST_READ):
                found: ConfigMap = await client.get(CONFIGMAP, self.name, self.namespace, type=ConfigMap)
        except TimeoutError:
            log.warning("%s with the last valid configuration cannot be read within %.0f s", self, LONGEST_READ)
            return None
        except NotFound:
            log.info("%s does not exist: no valid configuration has been in force yet", self)
            return None
        except KubeError as error:
            what = remedy(error, CONFIGMAP, ("get",), self.namespace)
            log.warning("%s with the last valid configuration cannot be read: %s%s", self, error, what and f"; {what}")
            return None
        annotations = found.metadata.annotations or {}
        if not found.data:  # as the chart creates it
            log.info("%s is empty: no valid configuration has been in force yet", self)
            return None
        if annotations.get(SOURCE) != self._source:
            log.warning("%s is of %s, not of %s, and is not used", self, annotations.get(SOURCE), self._source)
            return None
        if annotations.get(HASH) != _hash(document(found)):
            log.warning("%s was changed by another client (annotation %s) and is not used", self, HASH)
            return None
        return found

    async def run(self, client: Client) -> None:
        """Write each new document while this process leads, until cancelled."""
        backoff, reported = Backoff(1.0, 60.0), ""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while not self.may_write():
                await asyncio.sleep(1.0)
            try:
                await self._write(client, self._wanted)
            except KubeError as error:
                if str(error) != reported:
                    reported = str(error)
                    what = remedy(error, CONFIGMAP, ("get", "create", "patch"), self.namespace)
                    text = f"{error}{what and f'; {what}'}; a restart would not find the configuration"
                    log.warning("%s cannot be written, retrying: %s", self, text)
                self._changed.set()
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()

    async def _write(self, client: Client, text: str) -> None:
        annotations = {HASH: _hash(text), SOURCE: self._source}
        body: dict[str, Any] = {"metadata": {"annotations": annotations}, "data": {KEY: text}}
        try:
            found: ConfigMap = await client.get(CONFIGMAP, self.name, self.namespace, type=ConfigMap)
        except NotFound:
            named = {"namespace": self.namespace, "name": self.name}
            with contextlib.suppress(AlreadyExists):
                await client.create(CONFIGMAP, {**body, "metadata": {**named, **body["metadata"]}}, self.namespace)
                return
        else:
            kept = found.metadata.annotations or {}
            if document(found) == text and all(kept.get(key) == value for key, value in annotations.items()):
                return
        await client.patch(CONFIGMAP, self.name, body, self.namespace)


def document(found: ConfigMap) -> str:
    """The kept document."""
    return (found.data or {}).get(KEY, "")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
