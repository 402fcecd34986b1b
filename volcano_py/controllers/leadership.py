"""Leadership of a controller process: its Lease, and the check before each write.

client-go's leaderelection as Volcano's controllers use it, but stricter: the election has a separate client, and a
write is only sent while this process certainly holds the Lease.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from volcano_py.controllers.executor import NotLeading
from volcano_py.controllers.metrics import REQUESTS
from volcano_py.controllers.options import Options
from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.health import Progress
from volcano_py.kube.leader import LeaderElection

STUCK = 3.0
"""Lease durations without a request of the election, after which it counts as stuck."""


class Leadership:
    """`run` campaigns; `holds` and `gate` check whether this process leads. Without an election it always leads."""

    def __init__(self, options: Options, credentials: Credentials, user_agent: str) -> None:
        self.began = asyncio.Event()
        """Set when this process becomes the leader."""
        self.idle = asyncio.Event()
        """Cleared while work that needs the Lease is in progress: the Lease is only released afterwards."""
        self.idle.set()
        self._attempts = Progress(STUCK * options.leader_elect_lease_duration)
        self._client: Client | None = None
        self._election: LeaderElection | None = None
        if not options.leader_elect:
            return
        # Neither throttled nor retried: a renewal must not wait behind the writes of a large Job, and the election
        # itself retries a failed one before the deadline.
        self._client = Client(
            credentials,
            timeout=options.leader_elect_renew_deadline / 2,
            retries=0,
            gate=self._attempts.working,
            user_agent=user_agent,
            requests=REQUESTS,
        )
        self._election = LeaderElection(
            self._client,
            options.leader_elect_resource_namespace,
            options.leader_elect_resource_name,
            lease_duration=options.leader_elect_lease_duration,
            renew_deadline=options.leader_elect_renew_deadline,
            retry_period=options.leader_elect_retry_period,
            on_started=self.began.set,
        )

    @property
    def client(self) -> AbstractAsyncContextManager[object]:
        """The connection of the election; open it around `run`."""
        return self._client or _Nothing()

    @property
    def holder(self) -> str:
        """The observed leader; empty without an election."""
        return self._election.observed_holder if self._election else ""

    def holds(self) -> bool:
        """Whether this process certainly leads now."""
        return self._election is None or self._election.holds()

    def gate(self) -> None:
        """The check of the client that writes. Raises NotLeading."""
        if not self.holds():
            raise NotLeading("the Lease may have expired")

    def check(self) -> str:
        """The check for /healthz: the election sends requests, or is disabled."""
        return self._attempts.check()

    async def run(self) -> None:
        """Campaign until cancelled; then release the Lease once work is idle. Raises NotLeading if it is lost."""
        if self._election is None:
            self.began.set()
            await asyncio.Event().wait()
            return
        self._attempts.working()
        campaign = asyncio.create_task(self._election.run(), name="leader election")
        try:
            await asyncio.shield(campaign)
        except asyncio.CancelledError:
            await self.idle.wait()
            raise
        except BaseException:
            # Writes may be in progress: the Lease is not released, it expires.
            self._election.leader = False
            raise
        finally:
            campaign.cancel()
            await asyncio.gather(campaign, return_exceptions=True)
        raise NotLeading("leadership was lost")


class _Nothing(AbstractAsyncContextManager[object]):
    """No connection."""

    async def __aexit__(self, *exc: object) -> None:
        return None
