"""After a cycle that was ended half-way, the model is built again from new lists. Not in Volcano.

Meanwhile nothing is decided. Binds and evictions whose result is not known are assumed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.model.plan import Operation

log = logging.getLogger(__name__)


class Rebuild:
    """`pending()`: the binds and evictions without a result. `on_ready()` is called when cycles may run again."""

    def __init__(self, cache: Cache, pending: Callable[[], Iterable[Operation]], on_ready: Callable[[], None]) -> None:
        self.in_progress = False
        self.count = 0
        """Models that were built again so far."""
        self._cache = cache
        self._pending = pending
        self._on_ready = on_ready
        self._begun = asyncio.Event()

    def begin(self) -> None:
        """Build the model again soon; until then, nothing may be decided."""
        self.in_progress = True
        self._begun.set()

    async def run(self) -> None:
        """Build the model again after each `begin`, until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            known = [i for i in self._cache.informers.values() if i.connected or i.store]  # others may not exist
            await asyncio.gather(*(informer.list_again() for informer in known))
            self._cache.rebuild(self._pending())
            self.count += 1
            self.in_progress = False
            log.info("the model was built again from lists: %s; cycles run", self._cache.sizes())
            self._on_ready()
