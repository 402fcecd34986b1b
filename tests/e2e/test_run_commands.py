"""Jobs of real processes: the examples, from kubectl apply to their logs; and none is left when the sandbox dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests import waiting
from tests.e2e.cluster import kubectl, phase_of, pods_of, until
from volcano_py.api.kinds import POD
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

EXAMPLES = Path(__file__).parents[2] / "examples" / "processes"
SLEEPS = ("600", "601", "602")
SCRIPT = "sleep 600 & (setsid sleep 601 &) ; sleep 602"
"""A child, one that leaves its session and its parents, and the first process."""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="pods have addresses of their own on Linux's loopback network alone"
)


@pytest.mark.slow
async def test_a_parameter_server_with_workers_completes_and_a_failing_job_tells_why(tmp_path: Path) -> None:
    async with (
        Sandbox(
            2,
            node_shapes=[parse("cpu=4,memory=8Gi")],
            components=("scheduler", "controller-manager"),
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            run_commands=True,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):

        async def told(*arguments: str) -> str:
            code, out, err = await kubectl(sandbox, tmp_path, *arguments)
            assert code == 0, err
            return out

        await told("apply", "-f", str(EXAMPLES / "parameter-server.yaml"), "-f", str(EXAMPLES / "failing.yaml"))

        async def completed() -> bool:
            return await phase_of(client, "parameter-server") == "Completed"

        await until(completed, "the parameter server has not finished")
        server = await told("logs", "parameter-server-server-0")
        addresses = {p["metadata"]["name"]: p["status"]["podIP"] for p in await pods_of(client, "parameter-server")}
        assert len(set(addresses.values())) == 3
        assert f"listening on {addresses['parameter-server-server-0']} 2222" in server
        for index in range(2):
            worker = f"parameter-server-worker-{index}"
            assert f"a worker has come from {addresses[worker]}" in server
            assert f"worker {index} is done" in await told("logs", worker)
        assert "slope 3.00 intercept 1.00" in server

        async def failed() -> bool:
            return await phase_of(client, "failing") == "Failed"

        await until(failed, "the failing job has not failed")
        (pod,) = await pods_of(client, "failing")
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert pod["status"]["phase"] == "Failed"
        assert (ended["exitCode"], ended["reason"]) == (7, "Error")
        assert ended["message"] == "the data set is missing\n"
        log = await told("logs", "failing-main-0")
        assert log == "reading measurements.csv\nmeasurements.csv: no such file\n"
        assert await told("logs", "failing-main-0", "--tail=1") == "measurements.csv: no such file\n"


def alive(folder: Path) -> list[int]:
    """Processes that run in a folder or below and sleep as the script says."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(folder) in os.readlink(entry / "cwd"):
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                if any(mark in words for mark in SLEEPS):
                    found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_no_process_is_left_when_the_sandbox_dies(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "kubeconfig"
    arguments = ("sandbox", "up", "--nodes", "1", "--components", "none", "--run-commands", "--kubeconfig", str(path))
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "volcano_py.cli.main", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        await waiting.within(server.stdout.readline(), "the sandbox is not up")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {
                "nodeName": "node-0",
                "containers": [{"name": "c", "image": "x", "command": ["sh", "-c", SCRIPT]}],
            },
        }
        async with Client.from_kubeconfig(str(path)) as client:
            await client.create(POD, pod, "default")

        async def all_there() -> bool:
            return len(alive(tmp_path)) == 3

        await until(all_there, "the pod's processes do not run")
        server.send_signal(number)

        async def none_left() -> bool:
            return not alive(tmp_path)

        await until(none_left, "processes are left")
        await waiting.within(server.wait(), "the sandbox has not ended")
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
        for pid in alive(tmp_path):
            os.kill(pid, signal.SIGKILL)
