"""Leadership follows the Lease, in any state of the election."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.faults.scheduling import until
from volcano_py.kube.leader import LeaderElection
from volcano_py.scheduler.dispatch.leadership import Leadership, Stuck
from volcano_py.scheduler.dispatch.messages import DispatcherSettings

QUICK = DispatcherSettings(lease_duration=0.3, renew_deadline=0.2, retry_period=0.1)


class Election:
    """A fake election: it holds the Lease as the test sets it, and reports nothing."""

    observed_holder = "another"

    def __init__(self, holds: bool) -> None:
        self.held = holds

    def holds(self) -> bool:
        return self.held


@contextlib.asynccontextmanager
async def following(leadership: Leadership) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(leadership.follow())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_leadership_ends_and_begins_with_the_lease() -> None:
    seen: list[bool] = []
    leadership = Leadership(DispatcherSettings(), seen.append)
    election: Any = Election(True)
    leadership._election = election
    async with following(leadership):
        await until(lambda: seen == [True] and leadership.holds(), "it does not begin")
        election.held = False
        assert not leadership.holds(), "a write checks the Lease itself"
        await until(lambda: seen == [True, False], "it does not end")
        election.held = True
        await until(lambda: seen == [True, False, True], "it does not begin again")
    assert leadership.holder == "another"


async def test_an_election_without_requests_is_stuck() -> None:
    leadership = Leadership(QUICK, lambda leading: None)
    async with following(leadership) as task:
        for _ in range(40):
            leadership.attempting()
            await asyncio.sleep(0.03)
        assert leadership.problem() == "" and not task.done()
        await until(lambda: leadership.problem(), "no problem is reported")
        assert "no attempt to acquire or renew the Lease" in leadership.problem()
        with pytest.raises(Stuck):
            await task


async def test_without_election_it_leads_from_the_start() -> None:
    seen: list[bool] = []
    leadership = Leadership(DispatcherSettings(leader_elect=False), seen.append)
    unused: Any = None
    running = asyncio.create_task(leadership.run(unused))
    async with following(leadership):
        await until(leadership.holds, "it does not lead")
    assert seen == [True] and leadership.problem() == "" and not running.done()
    running.cancel()
    await asyncio.wait([running])


async def test_each_campaign_has_the_same_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identities: list[str] = []

    async def lose(self: LeaderElection) -> None:
        identities.append(self.identity)
        await asyncio.sleep(0)

    monkeypatch.setattr(LeaderElection, "run", lose)
    unused: Any = None
    running = asyncio.create_task(Leadership(QUICK, lambda leading: None).run(unused))
    await until(lambda: len(identities) > 2, "it does not campaign again")
    running.cancel()
    await asyncio.wait([running])
    assert len(set(identities)) == 1
