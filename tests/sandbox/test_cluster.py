"""Starting, stopping, and saying what is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests import waiting
from tests.sandbox.clients import http
from volcano_py.sandbox import shapes
from volcano_py.sandbox.cluster import Sandbox, SandboxError


async def test_a_cluster_is_up_quickly() -> None:
    began = time.process_time()  # unlike wall-clock time it does not depend on what else the machine does
    async with Sandbox(nodes=20) as sandbox, http(sandbox) as api:
        nodes = await api.ok("GET", "/api/v1/nodes")
        took = time.process_time() - began
        assert len(nodes["items"]) == 20
        queues = await api.ok("GET", "/apis/scheduling.volcano.sh/v1beta1/queues")
        assert [item["metadata"]["name"] for item in queues["items"]] == ["default", "root"]
    assert took < 1.5


async def test_the_kubeconfig_is_private_and_right() -> None:
    async with Sandbox(nodes=0) as sandbox:
        path = Path(sandbox.kubeconfig)
        assert path.stat().st_mode & 0o777 == 0o600
        document = yaml.safe_load(path.read_text())
        assert document["clusters"][0]["cluster"]["server"] == sandbox.url
        assert document["users"][0]["user"]["token"] == sandbox.token
    assert not path.exists()


async def test_a_used_port_is_reported_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SandboxError, match="--port"):
            async with Sandbox(nodes=0, port=port):
                pass


async def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(SandboxError, match="--kubeconfig"):
        async with Sandbox(nodes=0, path=blocked / "kubeconfig"):
            pass


def test_shapes_are_read_or_rejected() -> None:
    shape = shapes.parse("cpu=0.5, memory=1024Mi,nvidia.com/gpu=8")
    assert shape.capacity == {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "8", "pods": "110"}
    for text in ("cpu", "cpu=lots", ""):
        with pytest.raises(ValueError, match="cpu=32,memory=256Gi"):
            shapes.parse(text)
    names = [node["metadata"]["name"] for node in shapes.numbered(11, [shape])]
    assert names[0] == "node-00" and names[-1] == "node-10"


async def _command(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "volcano_py.cli.main",
        "sandbox",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ},
    )


async def _finished(*arguments: str) -> tuple[int, str, str]:
    process = await _command(*arguments)
    out, err = await waiting.within(process.communicate(), f"{arguments} has not ended")
    return process.returncode or 0, out.decode(), err.decode()


async def test_up_status_and_down(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    where = ("--kubeconfig", str(path))
    code, _, err = await _finished("status", *where)
    assert code == 1 and "no sandbox is running" in err and err.count("\n") == 1
    up = await _command("up", "--nodes", "2", "--components", "none", *where)
    assert up.stdout is not None
    first = (await waiting.within(up.stdout.readline(), "the sandbox is not up")).decode()
    assert "The sandbox is up: https://127.0.0.1:" in first and "2 nodes" in first
    try:
        code, out, _ = await _finished("status", *where)
        assert code == 0 and "up at https://127.0.0.1:" in out
        code, _, err = await _finished("up", "--components", "none", *where)
        assert code == 1 and "already running" in err and err.count("\n") == 1
        code, out, _ = await _finished("kubeconfig", *where)
        assert code == 0 and "current-context" in out
        code, out, _ = await _finished("down", *where)
        assert code == 0 and "down" in out
        assert await waiting.within(up.wait(), "the sandbox has not ended") == 0
    finally:
        if up.returncode is None:
            up.send_signal(signal.SIGKILL)
            await up.wait()


async def test_up_explains_a_wrong_shape(tmp_path: Path) -> None:
    code, _, err = await _finished("up", "--node-shape", "nonsense", "--kubeconfig", str(tmp_path / "k"))
    assert code == 1 and "resource=amount" in err and "Traceback" not in err
