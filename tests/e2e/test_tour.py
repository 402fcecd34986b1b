"""The README's tour, line by line, on a cluster as the README starts it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import cluster
from volcano_py.sandbox.cluster import Sandbox

ROOT = Path(__file__).parents[2]
STEPS = re.findall(r"^```sh tour\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


async def shell(sandbox: Sandbox, home: Path, script: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-ec",
        script,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=home,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KUBECONFIG": sandbox.kubeconfig,
            "KUBECACHEDIR": str(home / "cache"),
            "HOME": str(home),
        },
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode or 0, out.decode()


@pytest.mark.slow
async def test_every_line_of_the_tour_runs_and_shows_what_it_promises(tmp_path: Path) -> None:
    assert len(STEPS) >= 6, "the README has lost its tour"
    shown = ""
    async with cluster(tmp_path, nodes=4, shape="cpu=4,memory=16Gi") as (sandbox, _):
        for step in STEPS:
            code, out = await shell(sandbox, tmp_path, step)
            assert code == 0, f"{step}\n{out}"
            shown += out
    for promised in ("node-", "small", "large", "hello", "Running", "huge", "Unschedulable"):
        assert promised in shown, f"the tour no longer shows {promised!r}:\n{shown}"
