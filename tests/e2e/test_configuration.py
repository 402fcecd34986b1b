"""Editing the scheduler's configuration while it runs, and starting it with one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.cluster import cluster, job, log_of, nodes_of, until
from volcano_py.api.kinds import JOB
from volcano_py.kube.client import Client

HEAD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
PACK = HEAD + "  - name: binpack\n    arguments:\n      binpack.weight: 10\n"
SPREAD = HEAD + "  - name: nodeorder\n"

UNUSABLE = {
    "not YAML": ("actions: [", "line 1, column 11: not valid YAML"),
    "an unknown action": (
        PACK.replace("allocate", "alocate"),
        'actions: failed to find Action "alocate"; did you mean allocate?',
    ),
    "two owners of shares": (
        HEAD + "  - name: drf\n    enableHierarchy: true\n  - name: proportion\n",
        "tiers[0]: proportion and drf with hierarchy enabled conflicts; remove proportion from this tier",
    ),
}


async def place(client: Client, name: str, pods: int) -> list[str]:
    """Submit a job of small pods; the nodes they come to."""
    await client.create(JOB, job(name, pods, "500m", seconds=600), "default")

    async def all_bound() -> list[str]:
        nodes = await nodes_of(client, name)
        return nodes if len(nodes) == pods and all(nodes) else []

    found: list[str] = await until(all_bound, f"{name} is not bound")
    return found


@pytest.mark.slow
async def test_a_typo_leaves_the_old_one_in_force_and_its_correction_is_in_force_from_the_next_cycle(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(PACK)
    async with cluster(tmp_path, nodes=6, scheduler=(f"--scheduler-conf={conf}",)) as (sandbox, client):

        async def told(text: str) -> None:
            async def is_told() -> bool:
                return text in log_of(sandbox, "scheduler")

            await until(is_told, f"{text!r} is not logged")

        first = await place(client, "first", 2)
        assert len(set(first)) == 1, "packed"
        for i, (what, (text, says)) in enumerate(UNUSABLE.items()):
            conf.write_text(text)
            await told(f"{conf}: {says}")
            lines = [line for line in log_of(sandbox, "scheduler").splitlines() if says in line]
            assert len(lines) == 1 and lines[0].endswith("the configuration in force is kept"), what
            # 4 pods fit a node: with the old configuration these come to one that is in use
            assert len(set(await place(client, f"meanwhile-{i}", 2))) == 1, what
        conf.write_text(SPREAD)
        await told("a new configuration is in force")
        assert len(set(await place(client, "spread", 4))) == 4, "spread over the nodes that are free"


async def test_without_strictness_a_bad_file_at_the_start_leaves_the_default_in_force_until_it_is_mended(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(UNUSABLE["an unknown action"][0])
    flags = (f"--scheduler-conf={conf}", "--strict-config=false")
    async with cluster(tmp_path, nodes=2, scheduler=flags) as (sandbox, client):
        assert len(set(await place(client, "default", 2))) == 2
        (line,) = [text for text in log_of(sandbox, "scheduler").splitlines() if "alocate" in text]
        assert line.endswith("the built-in configuration is in force") and str(conf) in line
        conf.write_text(PACK)

        async def in_force() -> bool:
            return "a new configuration is in force" in log_of(sandbox, "scheduler")

        await until(in_force, "the mended file is not in force")
        assert len(set(await place(client, "packed", 2))) == 1


async def test_what_is_only_odd_is_a_warning_and_work_goes_on(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(
        PACK + '      binpack.wieght: 5\n      binpack.cpu: "five"\n    enableNodeOdrer: true\n'
        "  - name: nodeoder\n  - name: overcommit\n    arguments: {overcommit-factor: [1]}\naction: x\n"
    )
    async with cluster(tmp_path, nodes=2, scheduler=(f"--scheduler-conf={conf}",)) as (sandbox, client):
        assert len(set(await place(client, "job", 2))) == 1, "the rest of the configuration is in force"
        log = log_of(sandbox, "scheduler")
        for warning in (
            "action: unknown key, ignored; did you mean actions?",
            "(binpack): enableNodeOdrer: unknown key, ignored; did you mean enableNodeOrder?",
            "no plugin nodeoder, it is skipped; did you mean nodeorder?",
            "binpack: argument binpack.wieght is unknown and ignored; did you mean binpack.weight?",
            "binpack: argument binpack.cpu is 'five', it must be a whole number; the default stays in force",
            "overcommit: argument overcommit-factor is [1], it must be a number; the default stays in force",
        ):
            lines = [line for line in log.splitlines() if warning in line]
            assert len(lines) == 1 and "WARNING" in lines[0], warning
