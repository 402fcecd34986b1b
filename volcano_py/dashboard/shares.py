"""Reading what queues and owners have used, while the page of shares is open."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from volcano_py.cli.fairshare_order import Line, lines
from volcano_py.cli.stored_usage import STORED_IN, stored_usage
from volcano_py.kube.errors import ApiError, KubeError
from volcano_py.kube.remedies import for_denied

if TYPE_CHECKING:
    from volcano_py.kube.client import Client
    from volcano_py.scheduler.plugins.fairshare.usage import UsageDocument

PAUSE = 10.0
"""Seconds between two reads, however many viewers there are; the scheduler writes once a minute."""


class SharePage(NamedTuple):
    """The page. `at`: the time of the usage, in seconds since the epoch."""

    rows: tuple[Line, ...]
    at: float
    half_life: float


class Usage:
    """The stored usage, read while pages ask for it."""

    def __init__(self, client: Client) -> None:
        self.problem = ""
        """Why there is none, in one sentence; empty when there is."""
        self._client = client
        self._document: UsageDocument | None = None
        self._read = -PAUSE

    async def refresh(self) -> None:
        """Read it, unless it was read recently."""
        now = time.monotonic()
        if now - self._read < PAUSE:
            return
        self._read = now
        namespace, _, name = STORED_IN.partition("/")
        try:
            self._document, self.problem = await stored_usage(self._client, namespace, name), ""
        except ApiError as error:
            self.problem = f"The stored usage cannot be read: {error}{for_denied(str(error))}."
        except (KubeError, OSError, TimeoutError, ValueError) as error:
            self.problem = f"There is no usage to show: {error}."

    def page(self, queues: Iterable[dict[str, Any]]) -> SharePage | None:
        """What is known; None: nothing was read yet."""
        document = self._document
        return None if document is None else share_page(document, queues)


def share_page(document: UsageDocument, queues: Iterable[dict[str, Any]]) -> SharePage:
    """The order that follows from a usage."""
    return SharePage(tuple(lines(document, queues)), document.at, document.half_life)
