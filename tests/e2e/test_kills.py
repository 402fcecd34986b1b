"""kill -9 of scheduler, dispatcher and controller-manager, again and again, while jobs come in.

Every pod event is kept from the first one on: that journal must show each pod bound once and for ever, no node
over-allocated at any time, and at the
end no gang bound in part.
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

GANGS, MEMBERS, KILLS = 100, 20, 20
NODES, CPUS = 50, 48
"""Room for 2,400 pods of 1 cpu."""


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


async def _kill(sandbox: Sandbox, what: str) -> None:
    """Kill one process; those that nobody else restarts are restarted at once."""
    components = sandbox.components
    assert components is not None
    if what == "dispatcher":
        os.kill(await _dispatcher(sandbox), signal.SIGKILL)
        return
    process = components.processes[what]
    if process.returncode is None:
        process.kill()
        await process.wait()
    await components.start([what])


@pytest.mark.slow
async def test_nothing_is_bound_twice_and_no_gang_in_part(tmp_path: Path) -> None:
    random = Random(20)
    async with (
        cluster(tmp_path, nodes=NODES, shape=f"cpu={CPUS},memory=256Gi") as (sandbox, client),
        journal(client, CPUS) as kept,
    ):
        in_flight: list[int] = []
        killed: Counter[str] = Counter()
        per_round = GANGS // KILLS
        for round_ in range(KILLS):
            for i in range(per_round):
                name = f"gang-{round_ * per_round + i}"
                await client.create(JOB, job(name, MEMBERS, "1", seconds=3600), "default")
            await asyncio.sleep(random.uniform(0.1, 1.3))
            submitted = (round_ + 1) * per_round * MEMBERS
            in_flight.append(submitted - len(kept.node_of))
            what = random.choice(("scheduler", "dispatcher", "controller-manager"))
            await _kill(sandbox, what)
            killed[what] += 1

        async def all_bound() -> bool:
            process = sandbox.components.processes["scheduler"] if sandbox.components else None
            if process is not None and process.returncode is not None and sandbox.components is not None:
                await sandbox.components.start(["scheduler"])
            return len(kept.node_of) >= GANGS * MEMBERS

        await until(all_bound, f"only {len(kept.node_of)} pods are bound", 90)
        await asyncio.sleep(1)
        print(
            f"\nkilled {dict(killed)}; operations in flight at a kill: {min(in_flight)} to {max(in_flight)}; "
            f"{kept.events} events, {len(kept.node_of)} pods bound"
        )
        assert sum(killed.values()) == KILLS
        assert sorted(in_flight)[KILLS // 4] >= 100
        assert kept.wrong == []
        assert len(kept.name_of) == GANGS * MEMBERS
        assert {kept.bound_of(f"gang-{i}") for i in range(GANGS)} == {MEMBERS}
        assert max(kept.on_node.values()) <= CPUS
        await api_agrees(client, kept)
