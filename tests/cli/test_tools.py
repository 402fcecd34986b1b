"""The tools that do one thing each, and what waiting shows, against a sandbox with our components."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, Vcctl
from tests.e2e.cluster import bound, cluster, job, phase_of, pods_of, until
from volcano_py.api.kinds import JOB, QUEUE
from volcano_py.cli.waiting import Progress, State
from volcano_py.kube.client import Client


async def test_each_does_its_thing(tmp_path: Path, tool: Tool, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "python:3.12")
        assert await tool("vjobs") == (0, "No resources found\n", "")

        size = ("-r", "2", "-m", "2", "-c", "sleep '600'")
        ran = await tool("vsub", "-n", "one", *size, "--wait=Running", "--timeout", "30s")
        assert ran[:2] == (0, "run job one successfully\n")
        assert ran[2].splitlines()[-1] == "job default/one: Running, 2 of 2 running"
        made = await client.get(JOB, "one", "default")
        (container,) = made["spec"]["tasks"][0]["template"]["spec"]["containers"]
        assert (container["image"], container["command"]) == ("python:3.12", ["sleep", "600"])
        assert container["resources"]["requests"] == {"cpu": "1000m", "memory": "100Mi"}
        assert made["spec"]["schedulerName"] == "volcano"

        _, out, _ = await tool("vjobs")
        assert out == (await vcctl("job", "list"))[1] and out.splitlines()[1].split()[0] == "one"
        _, out, _ = await tool("vjobs", "-n", "one")
        assert "Name:       \tone" in out and "Conditions:" not in out
        assert "Conditions:" in (await vcctl("job", "view", "-N", "one"))[1]

        async def running_groups() -> bool:
            _, out, _ = await tool("vqueues", "-n", "default")
            return out.splitlines()[1].split() == ["default", "1", "Open", "0", "0", "1", "0"]

        await until(running_groups, "the queue counts the job's PodGroup as running")
        assert (await tool("vqueues"))[1].splitlines()[0] == (
            "Name                     Weight  State   Inqueue Pending Running Unknown "
        )

        code, out, err = await tool("vsuspend", "-n", "one", "--wait", "--timeout", "30s")
        assert (code, out) == (0, "") and err.splitlines()[-1] == "job default/one: Aborted"
        assert await phase_of(client, "one") == "Aborted" and await bound(client, "one") == 0
        code, out, err = await tool("vresume", "-n", "one", "--wait", "--timeout", "30s")
        assert (code, out) == (0, "") and await bound(client, "one") == 2
        code, out, err = await tool("vcancel", "-n", "one", "--wait", "--timeout", "30s")
        assert (code, out) == (0, "cancel job one successfully\n") and err.splitlines()[-1] == "job default/one: gone"
        assert await pods_of(client, "one") == []

        missing = 'Failed to: jobs.batch.volcano.sh "one" not found\n'
        for program in ("vcancel", "vsuspend", "vresume"):
            assert await tool(program, "-n", "one") == (255, missing, "")
        assert await tool("vjobs", "-n", "one") == (255, missing, "")
        assert (await tool("vqueues", "-n", "no"))[:2] == (
            255,
            'Failed to: queues.scheduling.volcano.sh "no" not found\n',
        )


async def phase_of_some(client: Client, name: str) -> bool:
    """Whether a job is there and has a phase."""
    found = [j for j in await client.list(JOB, "default") if j["metadata"]["name"] == name]
    return any((j.get("status") or {}).get("state") for j in found)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal_and_a_line_per_change_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "51")
    shown = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress("job default/x")
        for state in (State("Pending"), State("Running, 1 of 2 running", 1, 2), State("Running, 1 of 2 running", 1, 2)):
            progress.show(state)
        progress.end()
        shown.append(stream.getvalue())
    drawn = shown[0].split("\r\x1b[K")[1:]
    assert len(drawn) == 3 and drawn[0] == "job default/x: Pending 0s"
    assert drawn[1] == "job default/x: Running, 1 of 2 ████████░░░░░░░░ 0s", "it is cut to fit"
    assert max(map(len, drawn)) <= 51 and shown[0].endswith("\n")
    assert shown[1] == "job default/x: Pending\njob default/x: Running, 1 of 2 running\n"


async def test_waiting_reports_how_the_job_ended(
    tmp_path: Path, vcctl: Vcctl, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        code, out, err = await tool("vsub", "-n", "good", "-c", "sleep 1", "--wait", "--timeout", "30s")
        assert (code, out) == (0, "run job good successfully\n")
        assert [line.split(": ")[1] for line in err.splitlines()][-1] == "Completed, 1 of 1 succeeded"

        code, out, err = await tool("vsub", "-n", "bad", "-c", "sh -c 'exit 3'", "--wait", "--timeout", "30s")
        assert code == 255
        assert "Failed to: job default/bad is Failed" in out and "see `vcctl job view -n default -N bad`" in out

        code, out, err = await tool("vsub", "-n", "wide", "-R", "cpu=64", "-L", "cpu=64", "--wait", "--timeout", "2s")
        assert code == 255 and "is still Pending" in out and "after 2s; increase --timeout" in out
        assert "the job requests 64 cpu, 0 of 4.8 (overcommit-factor 1.2 of 4) is held" in out, (
            "the output contains the reason of the scheduler"
        )

        async def deleted() -> None:
            await until(lambda: phase_of_some(client, "odd"), "the job is not there")
            await client.delete(JOB, "odd", "default")

        odd = ("-n", "odd", "-R", "cpu=64", "-L", "cpu=64", "--wait", "--timeout", "30s")
        ended, _ = await asyncio.gather(tool("vsub", *odd), deleted())
        assert ended[0] == 255 and "job default/odd was deleted" in ended[1]

        assert (await vcctl("queue", "create", "-n", "lab", "--wait", "--timeout", "20s"))[0] == 0
        assert (await client.get(QUEUE, "lab"))["status"]["state"] == "Open"
        await client.create(JOB, job("work", 1, "1", seconds=600, queue="lab"), "default")
        code, out = await vcctl("queue", "operate", "-n", "lab", "-a", "close", "--wait", "--timeout", "1s")
        assert code == 255 and "queue lab is still Closing, 1 PodGroups left after 1s" in out
        assert (await vcctl("job", "delete", "-N", "work", "--wait", "--timeout", "20s"))[0] == 0
        code, out = await vcctl("queue", "operate", "-n", "lab", "-a", "close", "--wait", "--timeout", "20s")
        assert code == 0 and (await client.get(QUEUE, "lab"))["status"]["state"] == "Closed"
        assert (await vcctl("queue", "delete", "-n", "lab", "--wait", "--timeout", "20s"))[0] == 0
        code, out = await vcctl("queue", "operate", "-n", "default", "-a", "open", "--timeout", "soon")
        assert code == 2 and "invalid duration 'soon'" in out
