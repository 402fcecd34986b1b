"""vcctl top: its rows, how it fits a terminal, its notes about forbidden kinds, and the command on a cluster."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests import waiting
from tests.cli.conftest import Tool, Vcctl
from tests.e2e.cluster import bound, cluster, job, until
from volcano_py.api.kinds import JOB, NAMESPACE, NODE, POD, PODGROUP, QUEUE, ROLE, ROLEBINDING
from volcano_py.cli import queue_table, queue_tree
from volcano_py.cli.bars import measured
from volcano_py.cli.top_facts import Facts, held_by, job_rows, node_rows, resources, sources
from volcano_py.cli.top_view import fair, plain, view
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]
BOTH = (80, 140)


def queue(name: str, parent: str = "", allocated: Manifest | None = None, **spec: Any) -> Manifest:
    spec |= {"parent": parent} if parent else {}
    status = {"state": "Open", "allocated": allocated or {}}
    return {"metadata": {"name": name}, "spec": {"weight": 1, **spec}, "status": status}


def group(name: str, phase: str, queue: str = "vision", waiting: str = "", **status: Any) -> Manifest:
    conditions = [{"type": "Waiting", "status": "True", "reason": "NodeResources", "message": waiting}]
    owner = {"kind": "Job", "name": name, "uid": "7f9c0d52-0000-4000-8000-000000000001"}
    return {
        "metadata": {
            "name": f"{name}-{owner['uid']}",
            "namespace": "lab",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [owner],
        },
        "spec": {"queue": queue, "minMember": 4, "minResources": {"cpu": "4"}},
        "status": {"phase": phase, "conditions": conditions if waiting else [], **status},
    }


def node(name: str, **allocatable: str) -> Manifest:
    have = {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "8", "pods": "110", **allocatable}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": have, "conditions": ready}}


def pod(name: str, node: str, phase: str = "Running", **requests: str) -> Manifest:
    container = {"name": "main", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": phase},
    }


QUEUES = [
    queue("root", allocated={"cpu": "24", "memory": "96Gi"}),
    queue("research", "root", {"cpu": "20", "memory": "64Gi"}, weight=3, guarantee={"resource": {"cpu": "30"}}),
    queue("vision", "research", {"cpu": "20", "memory": "64Gi"}, deserved={"cpu": "16"}, capability={"cpu": "48"}),
    queue("a-queue-with-quite-a-long-name", "research", weight=2),
    queue("web", allocated={"cpu": "4", "memory": "32Gi"}, guarantee={"resource": {"cpu": "8", "memory": "16Gi"}}),
]
WHY = "2 of 2 nodes have too little cpu free; the nearest, gpu-node-1, lacks 3 of 8 cpu for a pod of this role"
GROUPS = [
    group("train", "Running", running=4),
    group("evaluate", "Inqueue", waiting=WHY),
    group("sweep-of-learning-rates", "Pending", "a-queue-with-quite-a-long-name", "Queue vision holds 20 of 16 cpu"),
]
NODES = [node("gpu-node-1.cluster.example.com"), node("gpu-node-2")]
PODS = [
    pod("a", NODES[0]["metadata"]["name"], cpu="12500m", memory="60Gi", **{"nvidia.com/gpu": "6"}),
    pod("b", NODES[0]["metadata"]["name"], "Succeeded", cpu="20"),
    pod("c", "gpu-node-2", cpu="4", memory="8Gi"),
    pod("d", "", "Pending", cpu="4"),
]


def found(pods: list[Manifest] | None = PODS, notes: tuple[str, ...] = ()) -> Facts:
    total: queue_tree.Amounts = {}
    for one in NODES:
        queue_tree.add(total, queue_tree.amounts(one["status"]["allocatable"]))
    kept = None if pods is None else [held_by(one) for one in pods]
    trees = queue_tree.grow(QUEUES, GROUPS, total, queue_table.count(GROUPS, []))
    return Facts(trees, total, job_rows(GROUPS), node_rows(NODES, kept), notes)


def drawn(facts: Facts, width: int, *sections: str, height: int | None = None, blocks: bool = True) -> list[str]:
    out = io.StringIO()
    shown = sections or ("queues", "jobs", "nodes")
    Console(file=out, width=width, highlight=False).print(view(facts, shown, (), width, height, blocks))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_jobs_that_wait_come_first_with_the_reason_of_their_podgroup() -> None:
    rows = found().jobs
    assert [(row.name, row.phase) for row in rows] == [
        ("sweep-of-learning-rates", "Pending"),
        ("evaluate", "Inqueue"),
        ("train", "Running"),
    ]
    assert (rows[1].code, rows[1].why) == ("NodeResources", WHY)
    assert (rows[2].running, rows[2].least, rows[2].code) == (4, 4, "")


def test_the_reason_of_volcanos_scheduler_is_shown_where_there_is_no_other() -> None:
    condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/1 tasks"}
    (row,) = job_rows([group("g", "Inqueue", conditions=[condition])])
    assert (row.code, row.why) == ("", "0/1 tasks")


def test_a_podgroup_without_a_job_has_its_own_name() -> None:
    alone = group("g", "Running")
    alone["metadata"]["ownerReferences"] = []
    assert job_rows([alone])[0].name == alone["metadata"]["name"]


def test_nodes_hold_what_their_pods_request_that_have_not_ended() -> None:
    first, second = found().nodes
    assert first.used is not None and second.used is not None
    assert (first.pods, first.used["cpu"], first.used["nvidia.com/gpu"]) == (1, Fraction(25, 2), 6)
    assert (second.pods, second.used["cpu"], second.used["memory"]) == (1, 4, 8 * 2**30)
    assert resources(found()) == ["cpu", "memory", "nvidia.com/gpu"]


def test_nodes_whose_pods_may_not_be_listed() -> None:
    (row, _) = found(None).nodes
    assert row.pods is None and row.used is None
    assert any("?/32" in line for line in drawn(found(None), 140, "nodes"))


def test_a_node_that_takes_no_pods() -> None:
    cordoned = node("n")
    cordoned["spec"]["unschedulable"] = True
    cordoned["status"]["conditions"][0]["status"] = "Unknown"
    assert node_rows([cordoned], [])[0].state == "NotReady,NoSchedule"


@pytest.mark.parametrize("width", BOTH)
@pytest.mark.parametrize("blocks", [True, False])
def test_it_fits_the_terminal(width: int, blocks: bool) -> None:
    lines = drawn(found(), width, blocks=blocks)
    assert max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    for word in ("Queues", "Jobs", "Nodes", "vision", "evaluate", "2 of 2 nodes", "gpu-node-2", "4/4", "4/32"):
        assert word in text
    assert ("NodeResources" in text) == (width == 140)
    bars = [line for line in lines if ("█" if blocks else "#") in line]
    assert len(bars) >= 8, "queues and nodes have bars"
    if not blocks:
        text.replace("…", "").encode("ascii")


def test_the_columns_of_queues_have_all_numbers_at_80_columns() -> None:
    lines = drawn(found(), 80, "queues")
    (line,) = [line for line in lines if "vision" in line]
    assert line.split()[-5:] == ["20", "16", "-", "48", "1/1"]


def test_the_bar_of_a_queue() -> None:
    f = Fraction
    assert measured(f(2), f(1), f(8), f(16), 16, blocks=False, floor=f(5), limit=f(12)) == "[##+__..|....    ]"
    assert measured(f(6), f(0), None, f(16), 16, blocks=True, floor=f(5), limit=f(4)) == "██████          "


def test_the_rows_of_a_low_terminal_are_shared() -> None:
    assert fair([5, 5, 5], None) == [5, 5, 5]
    assert fair([2, 100, 50], 32) == [2, 15, 15]
    assert fair([2, 100, 3], 32) == [2, 27, 3]
    many = found()._replace(jobs=found().jobs * 100)
    lines = drawn(many, 80, height=40)
    assert len(lines) <= 40
    assert any(re.search(r"Jobs  300, 200 wait  \d+ rows more", line) for line in lines)


def test_notes_are_shown() -> None:
    assert drawn(found(notes=("you may not list nodes",)), 80)[0] == "note: you may not list nodes"


def test_plain_tables_have_every_row_and_no_bars() -> None:
    queues, jobs, nodes = plain(found(), ("queues", "jobs", "nodes"), ("cpu",))
    assert [row[0] for row in queues.rows] == ["root", "research", "a-queue-with-quite-a-long-name", "vision", "web"]
    assert list(queues.rows[3]) == ["vision", "Open", "cpu", "20", "16", "-", "48", 1, 1]
    assert list(jobs.rows[1])[1:6] == ["evaluate", "vision", "Inqueue", 0, 4] and jobs.rows[1][-1] == WHY
    assert list(nodes.rows[1]) == ["gpu-node-2", "Ready", 1, "4/32"]


def test_what_is_followed() -> None:
    def kinds(*sections: str, namespace: str = "") -> list[tuple[str, str | None, str]]:
        return [(s.rt.kind, s.namespace, s.otherwise) for s in sources(sections, namespace, "mine")]

    assert kinds("jobs") == [(PODGROUP.kind, None, "mine")]
    assert kinds("jobs", namespace="lab") == [(PODGROUP.kind, "lab", "")]
    assert kinds("nodes") == [(NODE.kind, None, ""), (POD.kind, None, "")]
    assert (PODGROUP.kind, None, "lab") in kinds("queues", "jobs", namespace="lab")
    assert kinds("queues")[0] == (QUEUE.kind, None, "")


async def test_the_command(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, nodes=1, shape="cpu=4,memory=8Gi") as (sandbox, client):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        await client.create(JOB, job("old", 1, "3", seconds=600))
        await until(lambda: bound(client, "old"), "old is not bound")
        await client.create(JOB, job("big", 1, "2", seconds=600))

        async def shown() -> list[list[str]]:
            code, out = await vcctl("top", "jobs", "-n", "default")
            assert code == 0
            rows = [line.split() for line in out.splitlines()[1:]]
            return rows if len(rows) == 2 and rows[0][7].startswith("Enqueue") and rows[1][4] == "1" else []

        big, old = await until(shown, "top does not show that big waits and old runs")
        assert big[1] == "big" and old[1:6] == ["old", "default", "Running", "1", "1"]
        code, out = await vcctl("top", "nodes")
        assert code == 0 and "3/4" in out and "█" not in out
        drawing = Drawing("--once", columns=80)
        assert await asyncio.to_thread(drawing.end) == 0
        drawing.close()
        once = drawing.text.decode()
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in once.splitlines()]
        assert max(map(len, lines)) <= 80
        assert next(line for line in lines if line.startswith("root")).split()[1] == "cpu"
        assert any("█" in line and " 3/4 " in line for line in lines)


async def test_what_may_not_be_listed_is_named_once(tmp_path: Path, tool: Tool) -> None:
    users = {"token-of-bob": User("bob", ("system:authenticated",))}
    async with Sandbox(nodes=1, components=(), path=tmp_path / "kubeconfig", users=users, rbac=True) as sandbox:
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:
            await client.create(NAMESPACE, {"metadata": {"name": "lab"}})
            for namespace in ("lab", "default"):
                spec = {"minMember": 1, "queue": "default"}
                await client.create(PODGROUP, {"metadata": {"name": f"in-{namespace}"}, "spec": spec}, namespace)
            about = "rbac.authorization.k8s.io"
            rules = [{"apiGroups": [PODGROUP.group], "resources": ["podgroups"], "verbs": ["list", "watch"]}]
            await client.create(ROLE, {"metadata": {"name": "jobs"}, "rules": rules}, "lab")
            binding = {
                "metadata": {"name": "jobs"},
                "roleRef": {"apiGroup": about, "kind": "Role", "name": "jobs"},
                "subjects": [{"apiGroup": about, "kind": "User", "name": "bob"}],
            }
            await client.create(ROLEBINDING, binding, "lab")
        config = {
            "current-context": "bob",
            "clusters": [{"name": "c", "cluster": {"server": sandbox.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "bob", "user": {"token": "token-of-bob"}}],
            "contexts": [{"name": "bob", "context": {"cluster": "c", "user": "bob", "namespace": "lab"}}],
        }
        (tmp_path / "bob").write_text(json.dumps(config))
        code, out, err = await tool("vcctl", "top", "-k", str(tmp_path / "bob"))
    assert code == 0 and "in-lab" in out and "in-default" not in out
    assert err.splitlines() == [
        "note: you may not list queues",
        "note: you may list podgroups of namespace lab only",
        "note: you may not list nodes",
        "note: you may not list pods",
    ]


async def test_without_a_cluster_it_ends_with_one_line(tmp_path: Path, vcctl: Vcctl) -> None:
    code, out = await vcctl("top", "-k", str(tmp_path / "nothing"))
    assert code == 255 and out.startswith("Failed to top: ") and out.count("\n") == 1
    code, out = await vcctl("top", "pods")
    assert code == 2 and "queues" in out


async def test_it_follows_changes_until_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        drawing = Drawing("nodes", "--interval", "0.2", columns=100)
        try:
            await drawing.until("Ctrl-C ends")
            assert b"added-later" not in drawing.text
            await client.create(NODE, node("added-later"))
            await drawing.until("added-later")
            assert await asyncio.to_thread(drawing.interrupt) == 0
        finally:
            drawing.close()
    assert b"Traceback" not in drawing.text


class Drawing:
    """`vcctl top` on a terminal of its own."""

    def __init__(self, *arguments: str, columns: int) -> None:
        self.text = b""
        self._terminal, slave = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm"}
        command = [sys.executable, "-m", "volcano_py.cli.vcctl", "top", *arguments]
        self._process = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, env=environment)
        os.close(slave)

    async def until(self, words: str) -> None:
        """Read until the terminal shows some words."""

        async def shown() -> bool:
            if select.select([self._terminal], [], [], 0)[0]:
                self.text += os.read(self._terminal, 65536)
            return words.encode() in self.text

        await waiting.until(shown, f"the terminal does not show {words!r}: {self.text!r}")

    def end(self) -> int:
        """Read until the program ends; its exit code."""
        try:
            while part := os.read(self._terminal, 65536):
                self.text += part
        except OSError:  # the terminal has no other side any more
            pass
        return self._process.wait(waiting.budget())

    def interrupt(self) -> int:
        """Type Ctrl-C; the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def close(self) -> None:
        """End it, however it stands."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)
