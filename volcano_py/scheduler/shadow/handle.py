"""A dispatcher's handle without a dispatcher: no Lease, no process, and plans go nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import DispatcherSettings, Revoke
from volcano_py.scheduler.model.plan import Event, Operation

log = logging.getLogger(__name__)


class SilentHandle(DispatcherHandle):
    """Cycles may always run; nothing is written. Events about objects that cannot be used become log lines."""

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings, lambda operation, result: None, lambda leading: None)
        self.leading = True

    @property
    def credits(self) -> int:
        """Never used up."""
        return 1

    def emit(self, operations: Sequence[Operation]) -> None:
        """Log Events; everything else is discarded."""
        for event in operations:
            if isinstance(event, Event):
                log.warning("%s %s/%s: %s", event.kind, event.namespace, event.name, event.message)

    def revoke(self, what: Revoke) -> None:
        """Nothing waits."""

    def beat(self) -> None:
        """There is no process."""

    async def run(self) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()
