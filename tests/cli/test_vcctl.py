"""vcctl against a sandbox: what each command does, seen through the API, and what it prints."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Vcctl
from tests.e2e.cluster import bound, cluster, job, phase_of, until
from volcano_py.api.kinds import JOB, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

COLUMNS = ("Creation", "Phase", "JobType", "Replicas", "Min", "Pending", "Running", "Succeeded", "Failed", "Unknown")
WIDTHS = (15, 12, 12, 12, 6, 10, 10, 12, 10, 12)
JOB_HEADER = "".join(map(str.ljust, COLUMNS, WIDTHS)) + "RetryCount"


async def reaches(client: Client, name: str, phase: str) -> None:
    async def reached() -> bool:
        return await phase_of(client, name) == phase

    await until(reached, f"{name} is not {phase}")


async def test_jobs(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, nodes=2, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        assert await vcctl("job", "list") == (0, "No resources found\n")

        size = ("-m", "2", "-r", "3", "-R", "cpu=500m,memory=64Mi", "-L", "cpu=1,memory=128Mi")
        assert await vcctl("job", "run", "-N", "typed", "-i", "nginx", *size) == (0, "run job typed successfully\n")
        made = (await client.get(JOB, "typed", "default"))["spec"]
        (task,) = made["tasks"]
        (container,) = task["template"]["spec"]["containers"]
        assert (made["minAvailable"], made["schedulerName"], task["replicas"]) == (2, "volcano", 3)
        assert task["template"]["metadata"]["labels"] == {"job.volcano.sh": "typed"}
        assert task["template"]["spec"]["restartPolicy"] == "Never"
        assert (container["name"], container["image"], container["imagePullPolicy"]) == (
            "typed",
            "nginx",
            "IfNotPresent",
        )
        assert container["resources"] == {
            "requests": {"cpu": "500m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "128Mi"},
        }

        file = tmp_path / "filed.yaml"
        file.write_text(yaml.safe_dump(job("filed", 2, "500m", seconds=600)))
        assert await vcctl("job", "run", "-f", str(file)) == (0, "run job filed successfully\n")
        await reaches(client, "filed", "Running")

        code, out = await vcctl("job", "list")
        header, *rows = out.splitlines()
        assert code == 0 and header == "Name    " + JOB_HEADER
        assert len(rows) == 2 and {len(row) for row in rows} == {len(header)}
        filed = next(row for row in rows if row.startswith("filed"))
        assert re.fullmatch(
            r"filed   \d{4}-\d\d-\d\d     Running     Batch       2           2     0 {9}2 {9}0 .*", filed
        )
        assert filed.split()[2:] == ["Running", "Batch", "2", "2", "0", "2", "0", "0", "0", "0"]
        assert (await vcctl("job", "list", "--selector", "fil"))[1].splitlines()[1:] == [filed]
        assert await vcctl("job", "list", "-q", "other") == (0, "No resources found\n")
        assert await vcctl("job", "list", "-n", "other") == (0, "No resources found\n")
        code, out = await vcctl("job", "list", "--all-namespaces")
        assert out.splitlines()[0] == "Namespace   Name    " + JOB_HEADER
        assert [row.split()[:2] for row in out.splitlines()[1:]] == [["default", "filed"], ["default", "typed"]]

        code, out = await vcctl("pod", "list", "-j", "filed")
        header, *rows = out.splitlines()
        assert header.split() == ["Name", "Ready", "Status", "Restart", "Age"] and len(header) == len(rows[0])
        assert [row.split()[:4] for row in rows] == [[f"filed-main-{i}", "1/1", "Running", "0"] for i in range(2)]
        code, out = await vcctl("pod", "list", "-q", "default", "--all-namespaces")
        assert out.splitlines()[0].startswith("Namespace") and len(out.splitlines()) >= 3
        code, out = await vcctl("pod", "list", "-j", "filed", "-q", "other")
        assert (code, out) == (255, "Failed to list pod: the input vcjob filed does not match the queue other\n")

        code, out = await vcctl("job", "view", "-N", "filed")
        assert code == 0
        for line in (
            "Name:       \tfiled",
            "  Min Available:     \t2",
            "    Name:\tmain",
            "            sleep",
            "              Cpu:   \t500m",
            "  Running:      \t2",
            "    Phase:\tRunning",
        ):
            assert line in out.splitlines(), out
        assert "Events:" in out

        assert await vcctl("job", "suspend", "-N", "filed") == (0, "")
        await reaches(client, "filed", "Aborted")
        assert await vcctl("job", "resume", "-N", "filed") == (0, "")
        await reaches(client, "filed", "Running")
        assert await bound(client, "filed") == 2

        assert await vcctl("job", "delete", "-N", "typed") == (0, "delete job typed successfully\n")
        missing = 'jobs.batch.volcano.sh "typed" not found'
        for verb in ("view", "delete", "suspend", "resume"):

            async def rejected(verb: str = verb) -> bool:
                return await vcctl("job", verb, "-N", "typed") == (255, f"Failed to {verb} job: {missing}\n")

            await until(rejected, f"{verb} of a job that is gone is not rejected")
        code, out = await vcctl("job", "run", "-N", "filed")
        assert (code, out) == (255, 'Failed to run job: jobs.batch.volcano.sh "filed" already exists\n')
        code, out = await vcctl("job", "run", "-N", "odd", "-R", "cpu=lots")
        assert code == 255 and out.startswith("Failed to run job: ") and "lots" in out and len(out.splitlines()) == 1


async def test_queues(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)

        async def state(wanted: str) -> None:
            async def reached() -> bool:
                return str((await client.get(QUEUE, "lab")).get("status", {}).get("state")) == wanted

            await until(reached, f"the queue is not {wanted}")

        assert await vcctl("queue", "create", "-n", "lab", "-w", "3") == (0, "")
        await state("Open")
        await client.create(JOB, job("work", 2, "1", seconds=600, queue="lab"), "default")
        await reaches(client, "work", "Running")

        async def counted() -> bool:
            return "Running" in (await vcctl("job", "list", "-q", "lab"))[1]

        await until(counted, "the job is not listed as running")
        header = "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed"
        row = "lab                      3       Open    root    0       0       1       0       0       "

        async def updated() -> bool:
            return await vcctl("queue", "get", "-n", "lab") == (0, f"{header}\n{row}\n")

        await until(updated, f"the queue's counters follow its PodGroups, but not to {row!r}")
        code, out = await vcctl("queue", "list")
        assert code == 0 and out.splitlines()[0] == header and row in out.splitlines()
        assert [line.split()[0] for line in out.splitlines()[1:]] == ["default", "lab", "root"]

        assert await vcctl("queue", "operate", "-n", "lab", "-a", "update", "-w", "5") == (0, "")
        assert (await client.get(QUEUE, "lab"))["spec"]["weight"] == 5
        assert await vcctl("queue", "operate", "-n", "lab", "-a", "close") == (0, "")
        await state("Closing")  # until its last PodGroup is gone
        assert await vcctl("job", "delete", "-N", "work") == (0, "delete job work successfully\n")
        await state("Closed")
        code, out = await vcctl("job", "run", "-f", str(_file(tmp_path, job("late", 1, "1", queue="lab"))))
        assert code == 255 and "can only submit job to queue with state `Open`" in out
        assert await vcctl("queue", "operate", "-n", "lab", "-a", "open") == (0, "")
        await state("Open")
        assert await vcctl("queue", "operate", "-n", "lab", "-a", "close") == (0, "")
        await state("Closed")
        assert await vcctl("queue", "delete", "-n", "lab") == (0, "")
        code, out = await vcctl("queue", "get", "-n", "lab")
        assert (code, out) == (255, 'Failed to get queue: queues.scheduling.volcano.sh "lab" not found\n')


def _file(folder: Path, manifest: dict[str, object]) -> Path:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(manifest))
    return file


async def test_colour_only_on_terminals(tmp_path: Path) -> None:
    async with Sandbox(1, components=(), path=tmp_path / "kubeconfig") as sandbox:
        command = [sys.executable, "-m", "volcano_py.cli.vcctl", "queue", "list"]
        environment = {**os.environ, "KUBECONFIG": sandbox.kubeconfig, "TERM": "xterm", "COLUMNS": "200"}
        piped = await asyncio.to_thread(subprocess.run, command, capture_output=True, env=environment, timeout=60)
        assert b"default" in piped.stdout and b"\x1b[" not in piped.stdout

        ours, theirs = pty.openpty()
        shown = await asyncio.to_thread(subprocess.run, command, stdout=theirs, env=environment, timeout=60)
        os.close(theirs)
        text = os.read(ours, 65536)
        os.close(ours)
        assert shown.returncode == 0 and b"\x1b[32mOpen" in text
        plain = re.sub(rb"\x1b\[\d+m", b"", text).replace(b"\r\n", b"\n")
        expected = [line.rstrip() for line in piped.stdout.splitlines()]
        assert plain.splitlines() == expected, "colour must not move the columns"


HEAVY = ("numpy", "kubernetes", "kopf", "requests", "rich", "jsonschema_rs")


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("volcano_py.cli.main", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl_job", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl_queue", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl_pod", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl_jobflow", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcctl_cronjob", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vsub", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vjobs", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vqueues", ("aiohttp", *HEAVY)),
        ("volcano_py.cli.vcancel", ("aiohttp", *HEAVY)),
        ("volcano_py.scheduler.runtime.command", ("aiohttp", *HEAVY)),
    ],
)
def test_the_command_line_answers_at_once(module: str, without: tuple[str, ...]) -> None:
    """0.3 s of CPU at the most, of three tries: the machine may be busy."""
    program = (
        "import sys, time; begun = time.process_time(); import " + module + "; "
        f"print(time.process_time() - begun, *(m for m in {without!r} if m in sys.modules))"
    )
    spent = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        seconds, *loaded = out.split()
        assert loaded == []
        spent.append(float(seconds))
        if spent[-1] < 0.3:
            return
    assert min(spent) < 0.6, f"{module} takes {min(spent):.2f} s to import"
