"""The cases: what is done to the leader of a program, and what has to be true afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from tests.ha.history import bound_twice, late
from tests.ha.replicas import CONTROLLERS, LEASES, SCHEDULER, Replica
from tests.ha.site import GANG, Site

Fault = Callable[[Site, Replica], AbstractAsyncContextManager[None]]
"""Does something to the leader; the end of the context repairs it."""


@dataclass(frozen=True)
class Row:
    """What was measured. Times in seconds after the fault; None: the leader did not change."""

    case: str
    program: str
    takeover: float | None
    works: float
    late: int
    """Writes of a replica that were received after another one had acquired the Lease."""
    bound_twice: int
    created_twice: int
    problems: tuple[str, ...]
    """Over-allocations, and pods that moved."""
    partial: int
    """Gangs that are bound in part at the end."""
    longest_partial: float
    jobs: int

    def violations(self) -> list[str]:
        """What must not be."""
        counts = {
            "late writes": self.late,
            "pods bound twice": self.bound_twice,
            "pods created twice": self.created_twice,
            "partial gangs": self.partial,
        }
        return [f"{count} {name}" for name, count in counts.items() if count] + list(self.problems)


@asynccontextmanager
async def killed(site: Site, leader: Replica) -> AsyncIterator[None]:
    await leader.kill()
    yield
    await leader.start()


@asynccontextmanager
async def decider_killed(site: Site, leader: Replica) -> AsyncIterator[None]:
    await leader.kill_parent()
    yield
    await leader.start()


@asynccontextmanager
async def dispatcher_killed(site: Site, leader: Replica) -> AsyncIterator[None]:
    leader.kill_children()
    yield


@asynccontextmanager
async def suspended(site: Site, leader: Replica) -> AsyncIterator[None]:
    leader.suspend()
    yield
    leader.resume()
    await asyncio.sleep(site.times.retry)  # what it does now counts
    if leader.program == CONTROLLERS:
        assert leader.process is not None
        await leader.process.wait()  # it ends, as it has lost its Lease
        await leader.start()


@asynccontextmanager
async def disconnected(site: Site, leader: Replica) -> AsyncIterator[None]:
    leader.network.lose()
    yield
    leader.network.restore()
    await asyncio.sleep(site.times.retry)
    if leader.program == CONTROLLERS:
        assert leader.process is not None
        await leader.process.wait()
        await leader.start()


@asynccontextmanager
async def disk_full(site: Site, leader: Replica) -> AsyncIterator[None]:
    leader.fill_disk(True)
    if leader.program == SCHEDULER:
        leader.dump()
    yield
    await asyncio.sleep(2 * site.times.retry)
    leader.fill_disk(False)
    assert leader.process is not None and leader.process.returncode is None, leader.log.read_text()[-2000:]


@asynccontextmanager
async def slow_server(site: Site, leader: Replica) -> AsyncIterator[None]:
    replicas = [one for program in (SCHEDULER, CONTROLLERS) for one in site.replicas[program]]
    for replica in replicas:
        replica.network.delay = 0.25
    yield
    await asyncio.sleep(2 * site.times.retry)
    for replica in replicas:
        replica.network.delay = 0.0


@asynccontextmanager
async def stopped(site: Site, leader: Replica) -> AsyncIterator[None]:
    await leader.stop()
    yield
    await leader.start()


@dataclass(frozen=True)
class Case:
    """`changes`: whether another process has to become the leader."""

    name: str
    program: str
    fault: Fault
    changes: bool = True


CASES: tuple[Case, ...] = (
    Case("kill -9 of both processes", SCHEDULER, killed),
    Case("kill -9 of the decider", SCHEDULER, decider_killed),
    Case("kill -9 of the dispatcher", SCHEDULER, dispatcher_killed),
    Case("SIGSTOP, and SIGCONT after the takeover", SCHEDULER, suspended),
    Case("network lost, and back after the takeover", SCHEDULER, disconnected),
    Case("SIGTERM", SCHEDULER, stopped),
    Case("disk full", SCHEDULER, disk_full, False),
    Case("API server 250 ms slower", SCHEDULER, slow_server, False),
    Case("kill -9", CONTROLLERS, killed),
    Case("SIGSTOP, and SIGCONT after the takeover", CONTROLLERS, suspended),
    Case("network lost, and back after the takeover", CONTROLLERS, disconnected),
    Case("SIGTERM", CONTROLLERS, stopped),
    Case("disk full", CONTROLLERS, disk_full, False),
)


async def run(site: Site, case: Case) -> Row:
    """One case, from replicas that all run to Jobs that are all Completed."""
    lease = LEASES[case.program]
    await site.begin()
    async with site.busy():
        leader = await site.leader(case.program)
        holder, at = site.leases.holder(lease), time.time()
        async with case.fault(site, leader):
            if case.changes:
                await site.until(
                    lambda: site.leases.takeover(lease, at, holder), f"{case.name}: no other one acquires {lease}"
                )
            after = (site.leases.takeover(lease, at, holder) or at) if case.changes else at
            works = await site.works(case.program, after)
        # a leader that is back is given a moment for what it must not do
        await asyncio.sleep(site.times.retry)
    await site.completed()
    return measured(site, case.name, case.program, _since(at, site.leases.takeover(lease, at, holder)), works - at)


def _since(at: float, then: float | None) -> float | None:
    return None if then is None else then - at


def measured(site: Site, name: str, program: str, takeover: float | None, works: float) -> Row:
    """The row of a case that has ended."""
    done = site.writes()
    names = [f"default/{name}-work-{i}" for name in site.jobs for i in range(GANG)]
    surplus = sum(site.pods.created.values()) - len(names)
    return Row(
        name,
        program,
        takeover,
        works,
        sum(len(late(done, LEASES[program], site.users(program))) for program in LEASES),
        len(bound_twice(done)),
        max(surplus, 0) + sum(times > 1 for times in site.pods.created.values()),
        tuple(site.pods.problems),
        len(site.pods.partial(GANG)),
        site.pods.longest_partial(GANG),
        len(site.jobs),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = "program|case|new leader|work again|late writes|bound twice|created twice|over-allocated, moved"
    head += "|partial gangs|longest partial|Jobs completed"
    lines = [f"| {head.replace('|', ' | ')} |", "|" + "---|" * (head.count("|") + 1)]
    for r in rows:
        takeover = "none" if r.takeover is None else f"{r.takeover:.2f} s"
        cells = [r.program, r.case, takeover, f"{r.works:.2f} s", r.late, r.bound_twice, r.created_twice]
        cells += [len(r.problems), r.partial, f"{1000 * r.longest_partial:.0f} ms", r.jobs]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)
