"""Leadership of this dispatcher, according to the Lease. Volcano: leaderelection in cmd/scheduler/app.

The election acquires and renews the Lease; `follow` compares the reported leadership with the Lease a few times a
second, so that leadership ends when the Lease has expired, in any state of the election.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from volcano_py.kube import Client
from volcano_py.kube.leader import LeaderElection, default_identity
from volcano_py.scheduler.dispatch.messages import DispatcherSettings

STUCK = 3.0
"""Number of Lease durations without a request of the election after which it counts as stuck."""


class Stuck(Exception):
    """The election has made no request for too long."""


class Leadership:
    """`on_change(leading)` is called whenever leadership begins or ends."""

    def __init__(self, settings: DispatcherSettings, on_change: Callable[[bool], None]) -> None:
        self._settings = settings
        self._on_change = on_change
        self._election: LeaderElection | None = None
        self._reported = False
        self._attempts = 0
        self._silent = 0.0

    @property
    def holder(self) -> str:
        """The holder of the Lease, as it was last observed."""
        return self._election.observed_holder if self._election else ""

    def holds(self) -> bool:
        """Whether a write may begin now."""
        if not self._settings.leader_elect:
            return self._reported
        return self._election is not None and self._election.holds()

    def attempting(self) -> None:
        """The gate of the election's client: a request for the Lease begins."""
        self._attempts += 1

    def problem(self) -> str:
        """Why the election is unhealthy; empty when it is healthy, with any leader."""
        if self._silent < STUCK / 2 * self._settings.lease_duration:
            return ""
        return f"no attempt to acquire or renew the Lease for {self._silent:.0f} s"

    async def run(self, client: Client) -> None:
        """Take part in the election until cancelled, which releases the Lease."""
        settings = self._settings
        if not settings.leader_elect:
            self._report(True)
            await asyncio.Event().wait()
        # One identity per process: after an outage the Lease can be acquired again at once.
        identity = settings.identity or default_identity()
        while True:
            self._election = LeaderElection(
                client,
                settings.lease_namespace,
                settings.lease_name,
                identity,
                lease_duration=settings.lease_duration,
                renew_deadline=settings.renew_deadline,
                retry_period=settings.retry_period,
                on_started=lambda: self._report(True),
                on_lost=lambda: self._report(False),
            )
            await self._election.run()

    async def follow(self) -> None:
        """Compare with the Lease until cancelled. Raises Stuck when the election makes no requests."""
        settings = self._settings
        pause = min(0.5, settings.retry_period / 4)
        before = -1
        while settings.leader_elect:
            self._report(self.holds())
            # Only time of this event loop counts: while the process is stopped, the election cannot run.
            self._silent = 0.0 if self._attempts != before else self._silent + pause
            before = self._attempts
            if self._silent > STUCK * settings.lease_duration:
                raise Stuck(self.problem())
            await asyncio.sleep(pause)
        await asyncio.Event().wait()

    def _report(self, leading: bool) -> None:
        if leading != self._reported:
            self._reported = leading
            self._on_change(leading)
