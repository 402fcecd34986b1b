"""--dry-run: the objects that would be created, the problems of admission, and that nothing is created."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Tool
from tests.cli.test_kinds import CRON, FLOW, HYPER, TEMPLATE
from tests.e2e.cluster import job
from volcano_py.api.kinds import JOB, JOBFLOW, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        yield client


def file_of(folder: Path, *objects: Manifest) -> str:
    path = folder / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


@pytest.mark.parametrize("where", ["--dry-run", "--dry-run=server"])
async def test_a_job_with_its_defaults(client: Client, tool: Tool, where: str) -> None:
    code, out, err = await tool("vsub", "-n", "x", "-r", "2", where)
    made = yaml.safe_load(out)
    assert (code, err) == (0, "")
    assert made["kind"] == "Job" and made["spec"]["queue"] == "default" and made["spec"]["maxRetry"] == 3
    assert made["spec"]["tasks"][0]["name"] == "default0", "as admission fills it in"
    assert await client.list(JOB) == []


async def test_objects_that_admission_would_deny(client: Client, tool: Tool, tmp_path: Path) -> None:
    wrong = job("x", 2, "1", queue="no-such", minimum=3)
    wrong["spec"]["tasks"][0]["policies"] = [{"event": "Bogus", "action": "AbortJob"}]
    file = file_of(tmp_path, wrong)
    code, out, err = await tool("vcctl", "job", "run", "-f", file, "--dry-run")
    assert code == 255 and yaml.safe_load(out)["metadata"]["name"] == "x", "the object is printed all the same"
    problems = err.splitlines()
    assert len(problems) > 1 and all(line.startswith("Failed to run job: ") for line in problems)
    assert any("Bogus" in line for line in problems)
    code, out, _ = await tool("vcctl", "job", "run", "-f", file, "--dry-run=server")
    assert code == 255 and out.startswith("Failed to run job: ") and "Bogus" in out and len(out.splitlines()) == 1
    lost = file_of(tmp_path, job("x", 1, "1", queue="no-such"))
    _, _, err = await tool("vcctl", "job", "run", "-f", lost, "--dry-run", "-o", "name")
    assert "no-such" in err


async def test_without_a_cluster(tool: Tool, tmp_path: Path) -> None:
    missing = ("-k", str(tmp_path / "none"))
    code, out, err = await tool("vsub", "-n", "x", "--dry-run", "-o", "name", *missing)
    assert (code, out) == (0, "job.batch.volcano.sh/x\n")
    assert err.startswith("note: checks that need the cluster's queues are skipped: ") and "does not exist" in err
    code, _, err = await tool("vsub", "-n", "x", "-m", "2", "--dry-run", *missing)
    assert code == 255 and "minAvailable" in err.splitlines()[1]
    code, out, err = await tool("vcctl", "queue", "create", "-n", "q", "--dry-run", *missing)
    assert code == 0 and yaml.safe_load(out)["spec"]["reclaimable"] is True and err.startswith("note: ")
    code, out, err = await tool("vcctl", "jobflow", "create", "-f", file_of(tmp_path, FLOW), "--dry-run", *missing)
    assert (code, err) == (0, "") and yaml.safe_load(out)["metadata"]["name"] == "f", "it needs no queues"


async def test_queues_and_other_kinds(client: Client, tool: Tool, tmp_path: Path) -> None:
    code, out, _ = await tool("vcctl", "queue", "create", "-n", "q", "-S", "Odd", "--dry-run")
    assert code == 255 and yaml.safe_load(out)["spec"]["reclaimable"] is True
    code, out, _ = await tool("vcctl", "queue", "create", "-n", "q", "--dry-run=server", "-o", "name")
    assert (code, out) == (0, "queue.scheduling.volcano.sh/q\n")
    circle = {**FLOW, "metadata": {"name": "o"}, "spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["a"]}}]}}
    code, out, err = await tool("vcctl", "jobflow", "create", "-f", file_of(tmp_path, FLOW, circle), "--dry-run")
    assert code == 255 and [d["metadata"]["name"] for d in yaml.safe_load_all(out)] == ["f", "o"]
    assert len(err.splitlines()) == 1 and err.startswith("Failed to create jobflow: ")
    file = file_of(tmp_path, FLOW)
    assert (await tool("vcctl", "jobflow", "create", "-f", file, "--dry-run=server"))[0] == 0
    for word, obj in (("jobtemplate", TEMPLATE), ("hypernode", HYPER)):
        file = file_of(tmp_path, obj)
        assert (await tool("vcctl", word, "create", "-f", file, "--dry-run"))[0] == 0
    unclear = {**CRON, "spec": {**CRON["spec"], "schedule": "whenever"}}
    code, _, err = await tool("vcctl", "cronjob", "create", "-f", file_of(tmp_path, unclear), "--dry-run")
    assert code == 255 and "whenever" in err
    assert await client.list(JOBFLOW) == [] and len(await client.list(QUEUE)) == 2
