"""`volcano-py migrate check` against a live cluster."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from volcano_py.migrate.image import DEFAULT_IMAGE
from volcano_py.sandbox.cluster import Sandbox


async def check(kubeconfig: str, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "volcano_py.cli.main", "migrate", "check", "-k", kubeconfig, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_a_live_cluster_is_read_and_not_changed(tmp_path: Path) -> None:
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig", audit=tmp_path / "audit.log") as sandbox:
        code, out = await check(sandbox.kubeconfig)
        assert code == 1 and f"image {DEFAULT_IMAGE} is not on the node, and names no registry to pull it from" in out
        code, out = await check(sandbox.kubeconfig, "-o", "json", "--image", "registry.example/volcano-py:1")
        found = json.loads(out)
        assert code == 0 and [row["weight"] for row in found] == ["changes", "note"]
        assert "volcano-scheduler-configmap" in found[0]["what"]
        await asyncio.sleep(0.5)
        verbs = {json.loads(line)["verb"] for line in (tmp_path / "audit.log").read_text().splitlines()}
        assert verbs <= {"get", "list"}


async def test_what_blocks_is_the_exit_code(tmp_path: Path) -> None:
    async with Sandbox(nodes=0, crds=False, first_queues=False, path=tmp_path / "kubeconfig") as sandbox:
        code, out = await check(sandbox.kubeconfig)
        assert code == 0 and out.startswith("note:    11 CRDs are not installed")
