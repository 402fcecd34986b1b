"""Reading the scheduler's metrics: from an address that is given, else through the API server's proxy for Services."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp

from volcano_py.dashboard.cycles import History, MetricsError, read
from volcano_py.kube.errors import ApiError, KubeError
from volcano_py.kube.remedies import for_denied

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

SERVICE = "/api/v1/namespaces/volcano-system/services/volcano-scheduler-service:8080/proxy/metrics"
"""Where the chart has the scheduler's metrics."""
PAUSE = 5.0
"""Seconds between two samples, however many viewers there are."""
_TIMEOUT = 5.0
"""Seconds for one response."""


class Endpoint:
    """Samples of the metrics, taken while pages ask for them. `address`: a URL, empty for the Service of the chart."""

    def __init__(self, client: Client, address: str = "") -> None:
        self.history = History()
        self.problem = ""
        """Why there is no newer sample, in one sentence; empty when there is."""
        self._client = client
        self._address = address
        self._taken = 0.0

    async def refresh(self) -> None:
        """Take a sample unless there is a recent one."""
        now = time.monotonic()
        if now - self._taken < PAUSE:
            return
        self._taken = now
        try:
            self.history.add(read(await self._text(), time.time()))
            self.problem = ""
        except ApiError as error:
            grant = for_denied(str(error))
            self.problem = (
                f"The Service of the scheduler's metrics cannot be read: {error}{grant}. Or give the address of the "
                "scheduler's /metrics with --metrics; the scheduler serves it with --enable-metrics."
            )
        except (KubeError, OSError, aiohttp.ClientError, TimeoutError, MetricsError, ValueError) as error:
            where = self._address or "the Service volcano-scheduler-service"
            text = str(error) or type(error).__name__
            self.problem = f"The scheduler's metrics cannot be read at {where}: {text}. Check --metrics."

    async def _text(self) -> str:
        if not self._address:
            return (await self._client.raw("GET", SERVICE)).decode("utf-8", "replace")
        async with (
            asyncio.timeout(_TIMEOUT),
            aiohttp.ClientSession() as session,
            session.get(self._address) as answer,
        ):
            if answer.status != 200:
                raise MetricsError(f"it answered HTTP {answer.status}")
            return await answer.text()
