"""The end of a run, without faults: what fits is bound, the model equals a fresh one, a restart changes nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.dst.run import Run


class Quiet:
    """The checks after the faults."""

    def __init__(self, run: Run) -> None:
        self.run = run

    async def check(self) -> None:
        run = self.run
        run.note("the faults stop")
        run.faults.active = False
        for replica in run.replicas:
            replica.heal()
        for stream in run.network.streams:
            stream.hasten()
        await run.cluster.calm()
        await asyncio.sleep(60)
