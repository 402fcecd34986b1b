"""The demo, and its outcome read back through the API."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import group_phase, phase_of, pods_of
from volcano_py.api.kinds import EVENT, POD, QUEUE
from volcano_py.demo.story import story
from volcano_py.kube.client import Client


@pytest.mark.parametrize(
    "seed", [11, pytest.param(0, marks=pytest.mark.slow), pytest.param(12, marks=pytest.mark.slow)]
)
async def test_every_gang_of_the_story_ran_whole(tmp_path: Path, seed: int) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "volcano_py.cli.main"]
    demo = await asyncio.create_subprocess_exec(
        *command,
        *("demo", "--keep", "--no-dashboard", "--seed", str(seed), "--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await demo.communicate()
    text = out.decode()
    try:
        assert demo.returncode == 0, text
        assert re.search(r"why \w+ waits: .*\d", text) and "what would help: add " in text, "a reason and a suggestion"
        assert "Try next" in text and len(re.findall("│    vcctl ", text)) == 3
        assert "Summary" in text and "\x1b[" not in text, "no colours where there is no terminal"
        told = story(seed)
        async with Client.from_kubeconfig(str(kubeconfig)) as client:
            assert {q["metadata"]["name"] for q in told.queues} <= {
                q["metadata"]["name"] for q in await client.list(QUEUE)
            }
            for step in told.steps:
                assert step.name in text
                assert await phase_of(client, step.name) == "Completed"
                assert await group_phase(client, step.name) == "", "the group of a finished job is gone"
                pods = await pods_of(client, step.name)
                assert len(pods) == step.members
                assert all(p["spec"].get("nodeName") and p["status"]["phase"] == "Succeeded" for p in pods)
            scheduled = [e for e in await client.list(EVENT, "default") if e.get("reason") == "Scheduled"]
            named = [e["involvedObject"]["name"] for e in scheduled if e["involvedObject"]["kind"] == "Pod"]
            assert sorted(named) == sorted(p["metadata"]["name"] for p in await client.list(POD, "default"))
    finally:
        down = await asyncio.create_subprocess_exec(*command, "sandbox", "down", "--kubeconfig", str(kubeconfig))
        await down.wait()
