"""The tools that do one thing each, and what waiting shows, against a sandbox with our components."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.conftest import Tool, Vcctl
from tests.e2e.cluster import bound, cluster, job, phase_of, pods_of
from volcano_py.api.kinds import JOB, QUEUE


async def test_each_does_its_thing(
    tmp_path: Path, tool: Tool, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "python:3.12")
        assert await tool("vjobs") == (0, "No resources found\n", "")

        ran = await tool("vsub", "-n", "one", "-r", "2", "-m", "2", "-c", "sleep '600'", "--wait=Running")
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
        _, out, _ = await tool("vqueues", "-n", "default")
        assert out.splitlines()[1].split() == ["default", "1", "Open", "0", "0", "1", "0"], "the PodGroups are counted"
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


async def test_waiting_ends_with_what_became_of_it(
    tmp_path: Path, vcctl: Vcctl, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        code, out, err = await tool("vsub", "-n", "good", "-c", "sleep 1", "--wait")
        assert (code, out) == (0, "run job good successfully\n")
        assert [line.split(": ")[1] for line in err.splitlines()][-1] == "Completed, 1 of 1 succeeded"

        code, out, _ = await tool("vsub", "-n", "bad", "-c", "sh -c 'exit 3'", "--wait")
        assert code == 255
        assert "Failed to: job default/bad is Failed" in out and "see `vcctl job view -n default -N bad`" in out

        code, out, err = await tool("vsub", "-n", "wide", "-R", "cpu=64", "-L", "cpu=64", "--wait", "--timeout", "3s")
        assert code == 255 and "is still Pending" in out and "after 3s; give more with --timeout" in out
        assert "resource in cluster is overused: overused cpu" in out, "the reason of the scheduler is told"

        async def resumed() -> None:
            await asyncio.sleep(1)
            await client.delete(JOB, "wide", "default")

        gone, _ = await asyncio.gather(vcctl("job", "suspend", "-N", "wide", "--wait"), resumed())
        assert gone[0] in (0, 255)  # Aborted before it was deleted, or not

        assert (await vcctl("queue", "create", "-n", "lab", "--wait"))[0] == 0
        assert (await client.get(QUEUE, "lab"))["status"]["state"] == "Open"
        await client.create(JOB, job("work", 1, "1", seconds=600, queue="lab"), "default")
        code, out = await vcctl("queue", "operate", "-n", "lab", "-a", "close", "--wait", "--timeout", "2s")
        assert code == 255 and "queue lab is still Closing, 1 PodGroups left after 2s" in out
        assert (await vcctl("job", "delete", "-N", "work", "--wait"))[0] == 0
        code, out = await vcctl("queue", "operate", "-n", "lab", "-a", "close", "--wait", "--timeout", "20s")
        assert code == 0 and (await client.get(QUEUE, "lab"))["status"]["state"] == "Closed"
        assert (await vcctl("queue", "delete", "-n", "lab", "--wait", "--timeout", "20s"))[0] == 0
        code, out = await vcctl("queue", "operate", "-n", "default", "-a", "open", "--timeout", "soon")
        assert code == 2 and "invalid duration 'soon'" in out
