"""The commands that every kind has: from a file to the table, the object, and away again; forms, labels, --watch."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Tool, Vcctl, line_of, started
from tests.e2e.cluster import job
from volcano_py.api.kinds import CRONJOB, HYPERNODE, JOB, JOBFLOW, JOBTEMPLATE, POD, PODGROUP, QUEUE
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """An API server alone, which KUBECONFIG names."""
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        yield client


def spec() -> Manifest:
    return dict(job("x", 2, "1")["spec"])


TEMPLATE = {"apiVersion": JOBTEMPLATE.api_version, "kind": "JobTemplate", "metadata": {"name": "t"}, "spec": spec()}
FLOWS = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
FLOW = {"apiVersion": JOBFLOW.api_version, "kind": "JobFlow", "metadata": {"name": "f"}, "spec": {"flows": FLOWS}}
CRON = {
    "apiVersion": CRONJOB.api_version,
    "kind": "CronJob",
    "metadata": {"name": "c"},
    "spec": {"schedule": "*/5 * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": spec()}},
}
MEMBERS = [
    {"type": "Node", "selector": {"exactMatch": {"name": "node-0"}}},
    {"type": "Node", "selector": {"regexMatch": {"pattern": "gpu-.*"}}},
    {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r1"}}}},
]
HYPER = {
    "apiVersion": HYPERNODE.api_version,
    "kind": "HyperNode",
    "metadata": {"name": "s0"},
    "spec": {"tier": 1, "members": MEMBERS},
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(*objects: Manifest) -> str:
        path = tmp_path / "objects.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    return written


def cells(out: str) -> list[list[str]]:
    """The words of each line; the lines are of the same length, or the table is not aligned."""
    assert len({len(line) for line in out.splitlines()}) == 1, out
    return [line.split() for line in out.splitlines()]


@pytest.mark.parametrize(
    ("word", "obj", "row", "wide"),
    [
        ("jobflow", FLOW, ["f", "default", "0s"], ["0/2", "<none>", "<none>", "retain"]),
        ("jobtemplate", TEMPLATE, ["t", "default"], ["default", "main", "2", "0", "0s"]),
        (
            "cronjob",
            CRON,
            ["c", "default", "*/5", "*", "*", "*", "*", "false", "0", "<none>", "0s"],
            ["Etc/UTC", "Allow", "<none>"],
        ),
        ("hypernode", HYPER, ["s0", "1", "<none>", "0", "0s"], ["node-0,~gpu-.*,{rack=r1}"]),
    ],
)
async def test_from_a_file_and_back(
    client: Client, vcctl: Vcctl, write: Any, word: str, obj: Manifest, row: list[str], wide: list[str]
) -> None:
    name, kind = obj["metadata"]["name"], obj["kind"]
    where = name if word == "hypernode" else f"default/{name}"
    file = write(obj)
    assert await vcctl(word, "list") == (0, "No resources found\n")
    assert await vcctl(word, "create", "-f", file) == (0, f"Created {kind}: {where}\n")
    code, out = await vcctl(word, "create", "-f", file)
    assert out.startswith(f"Failed to create {kind}: ") and "already exists" in out
    assert code == (0 if word in ("jobflow", "jobtemplate") else 255), "Volcano's own end with 0"

    code, out = await vcctl(word, "list")
    assert code == 0 and _aged(cells(out)[1]) == row
    code, one = await vcctl(word, "get", "-N", name)
    assert code == 0 and cells(one)[0] == cells(out)[0] and _aged(cells(one)[1]) == row
    _, out = await vcctl(word, "list", "-o", "wide")
    assert _aged(cells(out)[1]) == row + wide
    group = obj["apiVersion"].split("/")[0]
    assert await vcctl(word, "list", "-o", "name") == (0, f"{word}.{group}/{name}\n")
    listed = json.loads((await vcctl(word, "list", "-o", "json"))[1])
    assert (listed["kind"], [o["metadata"]["name"] for o in listed["items"]]) == ("List", [name])
    got = yaml.safe_load((await vcctl(word, "get", "-N", name, "-o", "yaml"))[1])
    assert got["kind"] == kind and got == listed["items"][0]

    _, described = await vcctl(word, "describe", "-N", name)
    text = yaml.safe_load(described)
    assert text["spec"] == got["spec"] and "status" in text and "managedFields" not in text["metadata"]
    _, described = await vcctl(word, "describe", "-o", "json")
    assert list(json.loads(described)) == ["kind", "apiVersion", "metadata", "spec", "status"]

    assert await vcctl(word, "delete", "-N", name) == (0, f"Deleted {kind}: {where}\n")
    code, out = await vcctl(word, "delete", "-N", name)
    assert code == 255 and out.startswith(f"Failed to delete {word}: ") and out.endswith("not found\n")
    assert (await vcctl(word, "create", "-f", file))[0] == 0
    assert await vcctl(word, "delete", "-f", file) == (0, f"Deleted {kind}: {where}\n")
    assert await vcctl(word, "describe") == (0, "No resources found\n")


def _aged(row: list[str]) -> list[str]:
    """A row in which an age of some seconds is one of none."""
    return ["0s" if word[:-1].isdigit() and word.endswith("s") else word for word in row]


async def test_mistakes_of_files(client: Client, vcctl: Vcctl, write: Any, tmp_path: Path) -> None:
    unnamed = "Failed to create jobflow: a file must be specified; use -f\n"
    assert await vcctl("jobflow", "create") == (255, unnamed)
    code, out = await vcctl("jobflow", "create", "-f", write(TEMPLATE))
    assert code == 255 and "contains a JobTemplate, must contain JobFlows (flow.volcano.sh/v1alpha1)" in out
    code, out = await vcctl("jobflow", "create", "-f", str(tmp_path / "none.yaml"))
    assert code == 255 and "give files that exist" in out
    circle = {**FLOW, "spec": {"flows": [{"name": "a", "dependsOn": {"targets": ["a"]}}]}}
    code, out = await vcctl("jobflow", "create", "-f", write(circle, FLOW))
    rejected, created = out.splitlines()
    assert code == 0 and rejected.startswith("Failed to create JobFlow: ") and created == "Created JobFlow: default/f"
    assert await vcctl("jobflow", "delete") == (
        255,
        "Failed to delete jobflow: jobflow name must be specified; use -N NAME or -f FILE\n",
    )
    code, out = await vcctl("jobflow", "describe", "-o", "xml")
    assert (code, out) == (255, "Failed to describe jobflow: unsupported format xml; use yaml or json\n")


async def test_several_in_other_namespaces(client: Client, vcctl: Vcctl, write: Any) -> None:
    await client.create(_namespace_type(), {"metadata": {"name": "lab"}})
    other = {**FLOW, "metadata": {"name": "longer-name", "namespace": "lab"}}
    assert (await vcctl("jobflow", "create", "-f", write(FLOW, other)))[1].splitlines() == [
        "Created JobFlow: default/f",
        "Created JobFlow: lab/longer-name",
    ]
    _, out = await vcctl("jobflow", "list", "--all-namespaces")
    assert [row[:2] for row in cells(out)[1:]] == [["f", "default"], ["longer-name", "lab"]]
    assert out.splitlines()[0].startswith("Name           Namespace    Phase    Age")
    _, out = await vcctl("jobflow", "list", "-n", "lab")
    assert [row[0] for row in cells(out)[1:]] == ["longer-name"]
    await client.create(JOBFLOW, {**FLOW, "metadata": {"name": "g"}}, "default")
    _, out = await vcctl("jobflow", "describe")
    first, second = out.split("\n\n\n")
    assert yaml.safe_load(first)["metadata"]["name"] == "f" and yaml.safe_load(second)["metadata"]["name"] == "g"


def _namespace_type() -> Any:
    from volcano_py.api.kinds import NAMESPACE

    return NAMESPACE


async def test_a_cronjob_is_suspended_and_resumed(client: Client, vcctl: Vcctl, write: Any) -> None:
    await vcctl("cronjob", "create", "-f", write(CRON))
    assert await vcctl("cronjob", "suspend", "-N", "c") == (0, "Suspended CronJob: default/c\n")
    assert (await client.get(CRONJOB, "c", "default"))["spec"]["suspend"] is True
    assert "true" in (await vcctl("cronjob", "list"))[1]
    assert await vcctl("cronjob", "resume", "-N", "c") == (0, "Resumed CronJob: default/c\n")
    assert (await client.get(CRONJOB, "c", "default"))["spec"]["suspend"] is False
    code, out = await vcctl("cronjob", "resume", "-N", "no")
    assert code == 255 and out == 'Failed to resume cronjob: cronjobs.batch.volcano.sh "no" not found\n'


async def test_podgroups_show_why_they_wait(client: Client, vcctl: Vcctl) -> None:
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/1 nodes fit"}
    group = {
        "metadata": {"name": "g", "labels": {"team": "red"}},
        "spec": {"minMember": 3, "queue": "default"},
        "status": {"phase": "Inqueue", "conditions": [condition]},
    }
    await client.create(PODGROUP, group, "default")
    _, out = await vcctl("podgroup", "list", "-o", "wide")
    assert cells(out)[1][:6] == ["g", "default", "Inqueue", "default", "3", "0"]
    assert cells(out)[1][7:] == ["<none>", "0", "0", "<none>", "0/1", "nodes", "fit"]
    assert (await vcctl("podgroup", "list", "-l", "team=blue"))[1] == "No resources found\n"


async def test_selectors(client: Client, vcctl: Vcctl, tool: Tool) -> None:
    for name, labels in (("red-1", {"team": "red"}), ("red-2", {"team": "red", "x": "y"}), ("blue", {"team": "blue"})):
        await client.create(JOB, {**job(name, 1, "1"), "metadata": {"name": name, "labels": labels}}, "default")

    async def listed(*arguments: str) -> list[str]:
        code, out = await vcctl("job", "list", "-o", "name", *arguments)
        assert code == 0
        return [line.removeprefix("job.batch.volcano.sh/") for line in out.splitlines()]

    assert await listed("--selector", "red") == ["red-1", "red-2"], "a part of the name, as in Volcano"
    assert await listed("--selector", "ed-2") == ["red-2"]
    assert await listed("--selector", "team=blue") == ["blue"]
    assert await listed("--selector", "team!=red") == ["blue"]
    assert await listed("--selector", "team in (red,blue),!x") == ["blue", "red-1"]
    assert await listed("--selector", "team notin (red)") == ["blue"]
    assert await listed("-l", "x") == ["red-2"]
    assert await listed("-l", "team=red", "--selector", "1") == ["red-1"]
    assert await listed("-l", "team=red", "--selector", "x=y") == ["red-2"]
    code, out = await vcctl("job", "list", "-l", "team in red")
    assert code == 255 and out.startswith("Failed to list job: ") and len(out.splitlines()) == 1
    header, row = (await tool("vjobs", "--selector", "blue"))[1].splitlines()
    assert header.startswith("Name    Creation") and row.startswith("blue    "), "as wide as with all rows"
    assert (await tool("vjobs", "--selector", "none-such"))[1] == f"{header}\n"
    assert (await tool("vjobs", "-l", "team=blue", "-o", "name"))[1] == "job.batch.volcano.sh/blue\n"
    assert (await tool("vqueues", "-l", "no=such"))[1] == "No resources found\n"
    await client.patch(QUEUE, "default", {"metadata": {"labels": {"a": "b"}}})
    assert (await vcctl("queue", "list", "-l", "a=b", "-o", "name"))[1] == "queue.scheduling.volcano.sh/default\n"


async def test_wide_tables_stay_aligned(client: Client, vcctl: Vcctl) -> None:
    await client.create(JOB, job("a", 1, "1"), "default")
    _, out = await vcctl("job", "list", "-o", "wide", "--all-namespaces")
    header, row = cells(out)
    assert header[-4:] == ["Queue", "Scheduler", "PriorityClass", "Age"]
    assert row[:2] == ["default", "a"] and row[-4:-1] == ["default", "volcano", "<none>"]
    queue = {"metadata": {"name": "q"}, "spec": {"capability": {"cpu": "4", "memory": "8Gi"}, "deserved": {"cpu": 2}}}
    await client.create(QUEUE, queue)
    _, out = await vcctl("queue", "get", "-n", "q", "-o", "wide")
    assert cells(out)[1][-6:] == ["true", "0", "<none>", "cpu=2", "cpu=4,memory=8Gi", "<none>"]
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
    pod["metadata"] = {"name": "p", "labels": {"volcano.sh/job-name": "a", "volcano.sh/task-spec": "main"}}
    await client.create(POD, pod, "default")
    _, out = await vcctl("pod", "list", "-j", "a", "-o", "wide")
    assert cells(out)[1][-3:] == ["<none>", "n1", "main"]


async def test_a_watched_list_prints_each_change(client: Client) -> None:
    await client.create(JOB, job("a", 1, "1"), "default")
    async with started("vcctl", "job", "list", "--watch") as process:
        assert (await line_of(process)).startswith("Name")
        first = await line_of(process)
        assert first.split()[0] == "a"
        status = {"status": {"state": {"phase": "Running"}, "running": 1}}
        await client.patch(JOB, "a", status, "default", subresource="status")
        await client.create(JOB, job("b", 1, "1"), "default")
        running, second = await line_of(process), await line_of(process)
        assert running.split()[2] == "Running" and second.split()[0] == "b"
        assert running.index("Running") == first.index("Batch") - len("Phase       ")
        await client.delete(JOB, "b", "default")
        assert (await line_of(process)).split()[-1] == "deleted"
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130


async def test_a_watched_queue_follows_its_podgroups(client: Client) -> None:
    async with started("vqueues", "--watch", "-n", "default") as process:
        header = (await line_of(process)).split()
        assert header == ["Name", "Weight", "State", "Inqueue", "Pending", "Running", "Unknown"]
        assert (await line_of(process)).split() == ["default", "1", "Open", "0", "0", "0", "0"]
        group = {"metadata": {"name": "g"}, "spec": {"minMember": 1}, "status": {"phase": "Inqueue"}}
        await client.create(PODGROUP, group, "default")
        assert (await line_of(process)).split() == ["default", "1", "Open", "1", "0", "0", "0"]


async def test_a_watch_as_json_is_one_document_after_another(client: Client) -> None:
    await client.create(JOBTEMPLATE, TEMPLATE, "default")
    async with started("vcctl", "jobtemplate", "list", "-w", "-o", "json") as process:
        text = ""
        while "}\n" not in (line := await line_of(process)) or line != "}\n":
            text += line
        assert json.loads(text + line)["metadata"]["name"] == "t"
