"""kill -9 of scheduler, dispatcher and controller-manager, again and again, while jobs come in.

Every pod event is kept from the first one on: that journal must show each pod bound once and for ever, no node
over-allocated at any time, and at the end no gang bound in part.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.e2e.cluster import cluster, job, until
from tests.e2e.journal import api_agrees, journal
from volcano_py.api.kinds import JOB
from volcano_py.sandbox.cluster import Sandbox

MEMBERS, KILLS = 20, 20
PER_ROUND = 5
IN_FLIGHT = 100
"""So many pods, at least, are submitted and not yet bound whenever a process is killed."""
NODES, CPUS = 80, 64
"""Room for 256 gangs of pods of 1 cpu."""


async def _dispatcher(sandbox: Sandbox) -> int:
    """The scheduler's child process; a scheduler that has just started gets the time to have one."""

    async def child() -> int | None:
        assert sandbox.components is not None
        process = sandbox.components.processes["scheduler"]
        if process.returncode is not None:
            await sandbox.components.start(["scheduler"])
            return None
        found = [c for p in Path(f"/proc/{process.pid}/task").glob("*/children") for c in p.read_text().split()]
        return int(found[0]) if found else None

    return int(await until(child, "the scheduler has no dispatcher"))


async def _victim(sandbox: Sandbox, what: str) -> int:
    """The process to kill."""
    assert sandbox.components is not None
    return await _dispatcher(sandbox) if what == "dispatcher" else sandbox.components.processes[what].pid


async def _restart(sandbox: Sandbox, what: str) -> None:
    """Start again what nobody else restarts: the scheduler looks after its dispatcher."""
    assert sandbox.components is not None
    if what != "dispatcher":
        await sandbox.components.processes[what].wait()
        await sandbox.components.start([what])


@pytest.mark.slow
async def test_nothing_is_bound_twice_and_no_gang_in_part(tmp_path: Path) -> None:
    random = Random(20)
    async with (
        cluster(tmp_path, nodes=NODES, shape=f"cpu={CPUS},memory=256Gi") as (sandbox, client),
        journal(client, CPUS) as kept,
    ):
        gangs = 0
        in_flight: list[int] = []
        killed: Counter[str] = Counter()

        async def submit(count: int) -> None:
            nonlocal gangs
            names = [f"gang-{i}" for i in range(gangs, gangs + count)]
            await asyncio.gather(*(client.create(JOB, job(n, MEMBERS, "1", seconds=3600), "default") for n in names))
            gangs += count

        for _ in range(KILLS):
            await submit(PER_ROUND)
            await asyncio.sleep(random.uniform(0.1, 1.3))
            what = random.choice(("scheduler", "dispatcher", "controller-manager"))
            victim = await _victim(sandbox, what)
            while (open_ := gangs * MEMBERS - len(kept.node_of)) < IN_FLIGHT:
                await submit(-(-(IN_FLIGHT - open_) // MEMBERS))
            in_flight.append(open_)
            os.kill(victim, signal.SIGKILL)
            await _restart(sandbox, what)
            killed[what] += 1

        async def all_bound() -> bool:
            process = sandbox.components.processes["scheduler"] if sandbox.components else None
            if process is not None and process.returncode is not None and sandbox.components is not None:
                await sandbox.components.start(["scheduler"])
            return len(kept.node_of) >= gangs * MEMBERS

        await until(all_bound, f"only {len(kept.node_of)} pods are bound", 120)
        await asyncio.sleep(1)
        print(
            f"\nkilled {dict(killed)}; operations in flight at a kill: {min(in_flight)} to {max(in_flight)}; "
            f"{kept.events} events, {len(kept.node_of)} pods bound"
        )
        assert sum(killed.values()) == KILLS
        assert len(in_flight) == KILLS and min(in_flight) >= IN_FLIGHT
        assert kept.wrong == []
        assert len(kept.name_of) == gangs * MEMBERS
        assert {kept.bound_of(f"gang-{i}") for i in range(gangs)} == {MEMBERS}
        assert max(kept.on_node.values()) <= CPUS
        await api_agrees(client, kept)
