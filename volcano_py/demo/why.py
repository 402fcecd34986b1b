"""Why the gang of the demo waits, and what would help: the answer of `vcctl explain`, in a process of its own, because
it reads the whole cluster and runs cycles over it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from msgspec import Struct

AFTER = 1.5
"""Seconds for which a job waits before it is explained."""


class Why(Struct):
    """The reason why a job waited, and the first change that lets it start."""

    job: str
    reason: str
    suggestion: str

    def lines(self) -> list[str]:
        """As text."""
        text = [f"why {self.job} waits: {self.reason}"]
        return [*text, f"what would help: {self.suggestion}"] if self.suggestion else text


async def explain(kubeconfig: Path, job: str) -> Why | None:
    """The answer about a job; None if it does not wait any more."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "volcano_py.cli.vcctl", "explain", "job", job, "-o", "json"),
        *("--kubeconfig", str(kubeconfig)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = json.loads(out)
        blockers, helps = answer["blockers"], answer["unblock"]
    except (ValueError, KeyError):
        return None
    if answer.get("state") != "pending" or not blockers:
        return None
    # to add nodes is the plainest change
    texts = sorted((one["text"] for one in helps), key=lambda text: not text.startswith("add "))
    return Why(job, blockers[0]["sentence"], texts[0] if texts else "")
