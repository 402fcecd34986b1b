"""Editing the scheduler's configuration while it runs, and starting it with one that cannot be used."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import cluster, job, log_of, nodes_of, until
from tests.waiting import observe, within
from volcano_py.api.kinds import CONFIGMAP, EVENT, JOB
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

SYSTEM, CONFIGMAP_NAME = "volcano-system", "volcano-scheduler-configmap"

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


async def edit(client: Client, text: str) -> None:
    """Change the ConfigMap as `kubectl edit` does."""
    await client.patch(CONFIGMAP, CONFIGMAP_NAME, {"data": {"volcano-scheduler.conf": text}}, SYSTEM)


async def reported(client: Client, reason: str, text: str) -> None:
    """Wait for an Event on the ConfigMap."""

    async def there() -> bool:
        events = await client.list(EVENT, SYSTEM, field_selector=f"involvedObject.name={CONFIGMAP_NAME}")
        return any(event["reason"] == reason and text in event["message"] for event in events)

    await until(there, f"no Event {reason} says {text!r}")


async def test_the_configmap_is_watched_and_its_mistakes_are_events_on_it(tmp_path: Path) -> None:
    async with cluster(tmp_path, nodes=6) as (sandbox, client):

        async def leading() -> bool:
            return "leading: cycles may run" in log_of(sandbox, "scheduler")

        await until(leading, "the scheduler has not started")
        assert "volcano-scheduler.conf" in (await client.get(CONFIGMAP, CONFIGMAP_NAME, SYSTEM))["data"]
        await edit(client, PACK)
        await reported(client, "ConfigurationInForce", "actions enqueue, allocate")
        assert len(set(await place(client, "first", 2))) == 1, "packed"
        for i, (what, (text, says)) in enumerate(UNUSABLE.items()):
            await edit(client, text)
            await reported(client, "InvalidConfiguration", says)
            assert len(set(await place(client, f"meanwhile-{i}", 2))) == 1, what
        await edit(client, SPREAD.replace("nodeorder", "nodeoder") + "  - name: nodeorder\n")
        await reported(client, "ConfigurationWarning", "no plugin nodeoder, it is skipped; did you mean nodeorder?")
        assert len(set(await place(client, "spread", 4))) == 4, "spread over the nodes that are free"
        await client.delete(CONFIGMAP, CONFIGMAP_NAME, SYSTEM)
        await reported(client, "InvalidConfiguration", "it was deleted; create it again with the key")
        body = {"metadata": {"name": CONFIGMAP_NAME, "namespace": SYSTEM}, "data": {"volcano-scheduler.cnf": PACK}}
        await client.create(CONFIGMAP, body, SYSTEM)
        await reported(client, "InvalidConfiguration", "no key volcano-scheduler.conf; rename volcano-scheduler.cnf")
        await edit(client, PACK)
        await reported(client, "ConfigurationInForce", "actions enqueue, allocate")
        log = log_of(sandbox, "scheduler")
        assert log.count("alocate") == 1, "each mistake is one line of the log"


async def test_a_scheduler_without_a_valid_configuration_waits_and_reports_it(tmp_path: Path) -> None:
    async with (
        Sandbox(1, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        observe(sandbox)
        await edit(client, UNUSABLE["an unknown action"][0])
        for name, says in ((CONFIGMAP_NAME, b"did you mean allocate?"), ("nothing", b"not found; create it")):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "volcano_py.cli.main", "scheduler", "--kubeconfig", sandbox.kubeconfig),
                f"--scheduler-configmap={SYSTEM}/{name}",
                stderr=asyncio.subprocess.PIPE,
            )
            assert process.stderr is not None
            try:
                line = b""
                while b"nothing is scheduled until it is valid" not in line:
                    line = await within(process.stderr.readline(), "the scheduler does not report it")
                    assert line, "the scheduler has ended"
                assert says in line and process.returncode is None
            finally:
                process.terminate()
                await within(process.communicate(), "the scheduler has not ended")
        await reported(client, "InvalidConfiguration", "did you mean allocate?; nothing is scheduled until it is valid")


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
