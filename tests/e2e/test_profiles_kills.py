"""Gangs of the session and pods of two profiles at once, while scheduler, dispatcher and controllers are killed.

The journal of all pod events must show each pod bound once and for ever and no node over-allocated at any time; at the
end everything is bound and no gang in part. Between two kills, pods of both kinds are bound.
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
from tests.e2e.test_kills import _restart, _victim
from tests.e2e.test_profiles import CONFIG, pod
from volcano_py.api.kinds import JOB, POD

NODES, CPUS = 200, 22
"""Room for 4,400 pods of 1 cpu."""
ROUNDS, GANGS, MEMBERS, PODS = 10, 20, 5, 300
"""Gangs and pods that each round creates; in each round a process is killed."""


@pytest.mark.slow
async def test_nothing_is_bound_twice_or_in_part_and_both_kinds_make_progress(tmp_path: Path) -> None:
    random = Random(15)
    async with (
        cluster(tmp_path, nodes=NODES, shape=f"cpu={CPUS},memory=256Gi", scheduler=(f"--config={CONFIG}",)) as (
            sandbox,
            client,
        ),
        journal(client, CPUS) as kept,
    ):
        killed: Counter[str] = Counter()
        progress = [(0, 0)]

        def bound() -> tuple[int, int]:
            """(members of gangs, pods of profiles)"""
            single = sum(kept.name_of[uid].startswith("pod-") for uid in kept.node_of)
            return len(kept.node_of) - single, single

        for i in range(ROUNDS):
            pods = [pod(f"pod-{i}-{j}", random.choice(("spread", "packed")), "1") for j in range(PODS)]
            gangs = [job(f"gang-{i}-{j}", MEMBERS, "1", seconds=3600) for j in range(GANGS)]
            await asyncio.gather(
                *(client.create(POD, p, "default") for p in pods), *(client.create(JOB, g, "default") for g in gangs)
            )
            before, asked = progress[-1], ((i + 1) * GANGS * MEMBERS, (i + 1) * PODS)

            async def both_grow(before: tuple[int, int] = before, asked: tuple[int, int] = asked) -> bool:
                return all(now > was or now == all_ for now, was, all_ in zip(bound(), before, asked, strict=True))

            await until(both_grow, f"since the last kill only one kind of workload is bound: {before}, {bound()}")
            await asyncio.sleep(random.uniform(0.0, 0.3))
            progress.append(bound())
            what = random.choice(("scheduler", "dispatcher", "controller-manager"))
            os.kill(await _victim(sandbox, what), signal.SIGKILL)
            await _restart(sandbox, what)
            killed[what] += 1

        async def all_bound() -> bool:
            process = sandbox.components.processes["scheduler"] if sandbox.components else None
            if process is not None and process.returncode is not None and sandbox.components is not None:
                await sandbox.components.start(["scheduler"])
            return bound() == (ROUNDS * GANGS * MEMBERS, ROUNDS * PODS)

        await until(all_bound, f"bound are {bound()} (members of gangs, pods)", 120)
        await asyncio.sleep(1)
        print(f"\nkilled {dict(killed)}; bound at each kill: {progress[1:]}; {kept.events} events")
        assert sum(killed.values()) == ROUNDS
        assert kept.wrong == []
        assert {kept.bound_of(f"gang-{i}-{j}") for i in range(ROUNDS) for j in range(GANGS)} == {MEMBERS}
        assert max(kept.on_node.values()) <= CPUS
        await api_agrees(client, kept)
