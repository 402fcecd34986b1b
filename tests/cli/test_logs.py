"""`vcctl job logs` on a cluster whose pods run as processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import waiting
from tests.cli.conftest import Vcctl, line_of, started
from tests.e2e.cluster import job, phase_of, until
from volcano_py.api.kinds import JOB
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="pods have addresses of their own on Linux's loopback network alone"
)


async def test_logs(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Sandbox(
            1,
            node_shapes=[parse("cpu=4,memory=8Gi")],
            components=("scheduler", "controller-manager"),
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            run_commands=True,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        code, out = await vcctl("job", "logs", "-N", "talk")
        assert (code, out) == (255, 'Failed to get the logs of the job: jobs.batch.volcano.sh "talk" not found\n')
        talk = job("talk", 2, "1")
        talk["spec"]["plugins"] = {"env": []}
        (task,) = talk["spec"]["tasks"]
        stop = tmp_path / "stop"
        script = f"echo first; echo $VC_TASK_INDEX of two; while [ ! -e {stop} ]; do sleep 0.1; done; echo last"
        task["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", script]
        await client.create(JOB, talk, "default")

        async with started("vcctl", "job", "logs", "-N", "talk", "-f") as process:
            first = [await line_of(process) for _ in range(4)]
            assert sorted(first) == [
                "[talk-main-0] 0 of two\n",
                "[talk-main-0] first\n",
                "[talk-main-1] 1 of two\n",
                "[talk-main-1] first\n",
            ]
            assert await vcctl("job", "logs", "-N", "talk", "--index", "1") == (0, "first\n1 of two\n")
            stop.touch()
            last = sorted([await line_of(process) for _ in range(2)])
            assert last == ["[talk-main-0] last\n", "[talk-main-1] last\n"]
            assert await waiting.within(process.wait(), "the follower does not end with the job") == 0

        async def completed() -> bool:
            return await phase_of(client, "talk") == "Completed"

        await until(completed, "the job has not completed")
        _, out = await vcctl("job", "logs", "-N", "talk")
        lines = [f"[talk-main-{i}] {text}" for i in range(2) for text in ("first", f"{i} of two", "last")]
        assert out.splitlines() == lines, "pod by pod"
        assert (await vcctl("job", "logs", "-N", "talk", "--tail", "1", "--no-prefix"))[1] == "last\nlast\n"
        _, out = await vcctl("job", "logs", "-N", "talk", "--index", "0", "--timestamps", "--prefix", "--since", "1h")
        assert [line.split()[0] for line in out.splitlines()] == ["[talk-main-0]"] * 3
        assert "T" in out.split()[1] and out.split()[1].endswith("Z")
        code, out = await vcctl("job", "logs", "-N", "talk", "--task", "other")
        assert code == 255 and "is Completed and no pods match" in out
        code, out = await vcctl("job", "logs", "-N", "talk", "-c", "no")
        assert code == 0 and "talk-main-0: container no is not valid for pod talk-main-0" in out

        again = job("again", 1, "1")
        pod = again["spec"]["tasks"][0]["template"]["spec"]
        once = tmp_path / "once"
        pod["restartPolicy"] = "OnFailure"
        followed = tmp_path / "followed"
        wait = f"until [ -e {followed} ]; do sleep 0.05; done"
        script = f"echo one; {wait}; [ -e {once} ] || {{ touch {once}; exit 1; }}; echo two"
        pod["containers"][0]["command"] = ["sh", "-c", script]
        await client.create(JOB, again, "default")
        async with started("vcctl", "job", "logs", "-N", "again", "-f", "--no-prefix") as process:
            assert await line_of(process) == "one\n"
            followed.touch()
            assert [await line_of(process) for _ in range(2)] == ["one\n", "two\n"], "the second run, too"
            assert await waiting.within(process.wait(), "the follower does not end with the job") == 0
