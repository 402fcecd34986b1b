"""The tree of queues: its shape, its sums, its bars; and the command on a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Vcctl
from volcano_py.api.kinds import CONFIGMAP, NODE, PODGROUP, QUEUE
from volcano_py.cli.bars import bar, measured
from volcano_py.cli.queue_shares import KEY, NAME, NAMESPACE
from volcano_py.cli.queue_table import count
from volcano_py.cli.queue_tree import Branch, amounts, find, grow
from volcano_py.cli.queue_tree_table import text, tree_table
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]
TOTAL = amounts({"cpu": "16", "memory": "64Gi"})


def queue(name: str, parent: str = "", allocated: Manifest | None = None, **spec: Any) -> Manifest:
    if parent:
        spec["parent"] = parent
    status = {"state": "Open", "allocated": allocated or {}}
    return {"metadata": {"name": name}, "spec": {"weight": 1, **spec}, "status": status}


def group(queue: str, phase: str, cpu: str = "1") -> Manifest:
    return {"spec": {"queue": queue, "minResources": {"cpu": cpu}}, "status": {"phase": phase}}


QUEUES = [
    queue("root", allocated={"cpu": "6"}),
    queue("research", "root", allocated={"cpu": "4"}, weight=3),
    queue("vision", "research", allocated={"cpu": "4"}, deserved={"cpu": "6"}, capability={"cpu": "8"}),
    queue("speech", "research", weight=2),
    queue("web", allocated={"cpu": "2", "memory": "8Gi"}, guarantee={"resource": {"cpu": "1"}}),
]
GROUPS = [group("speech", "Inqueue", "2"), group("speech", "Pending"), group("vision", "Running", "4")]


def grown() -> list[Branch]:
    return grow(QUEUES, GROUPS, TOTAL, count(GROUPS, QUEUES))


def test_the_shape_and_the_sums() -> None:
    (root,) = grown()
    assert [b.name for b in root.children] == ["research", "web"], "a queue without a parent is below root"
    research = root.children[0]
    assert [b.name for b in research.children] == ["speech", "vision"]
    assert root.inqueue == research.inqueue == {"cpu": 2}, "what is let in below counts above"
    assert root.groups == {"Inqueue": 1, "Pending": 1, "Running": 1}
    assert root.by_weight == TOTAL and research.by_weight["cpu"] == 12
    speech, vision = research.children
    assert speech.by_weight["cpu"] == 8 and vision.deserved == {"cpu": 6}
    assert find([root], "speech") == speech and find([root], "no") is None


def test_what_is_held_below_counts_where_the_status_of_inner_queues_is_empty() -> None:
    (root,) = grow([queue("root"), queue("a", "root"), queue("b", "a", allocated={"cpu": "2"})], [], TOTAL, {})
    assert root.allocated == root.children[0].allocated == {"cpu": 2}


def test_queues_that_do_not_lead_to_root_are_shown() -> None:
    odd = [queue("root"), queue("lost", "nowhere"), queue("x", "y"), queue("y", "x"), queue("z", "y")]
    trees = grow(odd, [], TOTAL, {})
    assert [b.name for b in trees] == ["root", "lost", "x"]
    assert [b.name for b in trees[2].children] == ["y"] and [b.name for b in trees[2].children[0].children] == ["z"]


def test_the_table() -> None:
    table = tree_table(grown(), ("cpu", "memory"), TOTAL, 16, blocks=True)
    rows = [list(row) for row in table.rows]
    assert [row[0] for row in rows] == [
        "root",
        "│",
        "├─ research",
        "│  │",
        "│  ├─ speech",
        "│  │",
        "│  └─ vision",
        "│",
        "└─ web",
        "",
    ]
    assert rows[0][1:6] == ["Open", 1, "cpu", "██████▒▒░░░░░░░┃", "6"]
    assert rows[6][4:10] == ["████░┃░░░░░░░░░░", "4", "0", "6", "-", "8"]
    assert rows[4][4:8] == ["▒▒░░░░░┃░░░░░░░░", "0", "2", "~8"]
    assert rows[9][3:6] == ["memory", "██░┃░░░░░░░░░░░░", "8Gi"]
    assert rows[8][8] == "1" and rows[0][10:] == [1, 1, 1] and rows[1][10:] == ["", "", ""]
    plain = tree_table(grown(), ("cpu",), TOTAL, 16, blocks=False)
    assert [row[0] for row in plain.rows] == ["root", "|- research", "|  |- speech", "|  `- vision", "`- web"]
    assert plain.rows[0][4] == "[######++.......|]"
    "".join(str(cell) for row in plain.rows for cell in row).encode("ascii")


@pytest.mark.parametrize(
    ("part", "more", "mark", "whole", "drawn"),
    [
        ("0", "0", None, "0", "[........]"),
        ("8", "0", None, "8", "[########]"),
        ("9", "9", "20", "8", "[#######|]"),
        ("1/1000", "1/1000", None, "8", "[#+......]"),
        ("8", "1", None, "8", "[########]"),
        ("0", "4", "0", "8", "[|+++....]"),
    ],
)
def test_bars_at_their_ends(part: str, more: str, mark: str | None, whole: str, drawn: str) -> None:
    given = None if mark is None else Fraction(mark)
    assert measured(Fraction(part), Fraction(more), given, Fraction(whole), 8, blocks=False) == drawn


def test_bars_of_progress() -> None:
    assert bar(1, 2, 4, blocks=False) == "[##..]"
    assert bar(1, 16, 2, blocks=True) == "▏░"
    assert bar(5, 4, 2, blocks=True) == "██"
    assert bar(0, 0, 2, blocks=True) == "░░"


def test_amounts_are_short() -> None:
    assert text(Fraction(3, 2), "cpu") == "1.5" and text(Fraction(2**36), "memory") == "64Gi"
    assert text(Fraction(0), "memory") == "0" and amounts({"cpu": "odd", "memory": 1}) == {"memory": 1}


async def test_the_command(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "16", "memory": "64Gi"}}}
        await client.create(NODE, node)
        await client.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"weight": 3, "deserved": {"cpu": "12"}}})
        let_in = {
            "metadata": {"name": "g"},
            "spec": {"queue": "default", "minMember": 1, "minResources": {"cpu": "4"}},
            "status": {"phase": "Inqueue"},
        }
        await client.create(PODGROUP, let_in, "default")
        code, out = await vcctl("queue", "tree")
        header, root, default, lab, empty, signs, *note = out.splitlines()
        assert note[1].startswith("No action of the configuration reclaims"), "as in the built-in configuration"
        assert code == 0 and empty == "" and signs.endswith("deserved (~ by weight, when all queues have demand)")
        assert header.split()[:4] == ["Queue", "State", "Weight", "Resource"]
        assert len({len(line) for line in (header, root, default, lab)}) == 1, "the columns are aligned"
        assert default.split()[-8:] == ["0", "4", "~4", "-", "-", "1", "0", "0"]
        assert lab.split()[:2] == ["└─", "lab"] and "~" not in lab

        (tree,) = json.loads((await vcctl("queue", "tree", "-o", "json"))[1])["queues"]
        assert tree["name"] == "root" and tree["inqueue"] == {"cpu": "4"}
        assert tree["deservedByWeight"] == {"cpu": "16", "memory": "64Gi", "pods": "110"}
        assert [child["name"] for child in tree["children"]] == ["default", "lab"]
        assert tree["children"][1]["deserved"] == {"cpu": "12"}
        code, out = await vcctl("queue", "tree", "-n", "lab", "-r", "cpu,memory")
        assert code == 0 and [line.split()[0] for line in out.splitlines()[1:3]] == ["lab", "memory"]
        assert await vcctl("queue", "tree", "-n", "no") == (
            255,
            "Failed to tree queue: queue 'no' does not exist; see `vcctl queue list`\n",
        )
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        command = [sys.executable, "-m", "volcano_py.cli.vcctl", "queue", "tree"]
        plain = await asyncio.to_thread(subprocess.run, command, capture_output=True, env=environment, timeout=60)
        assert plain.returncode == 0 and b"`- lab" in plain.stdout and b"[+++++" in plain.stdout


@pytest.mark.parametrize(("actions", "noted"), [("enqueue, allocate", True), ("allocate, reclaim", False)])
async def test_deserved_amounts_without_reclaim_are_reported(
    actions: str, noted: bool, tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        Sandbox(0, components=(), controllers=None, path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        data = {KEY: f"actions: '{actions}'"}
        try:
            await client.create(CONFIGMAP, {"metadata": {"name": NAME}, "data": data}, NAMESPACE)
        except AlreadyExists:
            await client.patch(CONFIGMAP, NAME, {"data": data}, NAMESPACE)
        code, out = await vcctl("queue", "tree")
        assert code == 0 and "reclaim" not in out, "no queue has deserved amounts"
        await client.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"deserved": {"cpu": "12"}}})
        code, out = await vcctl("queue", "tree")
        assert code == 0 and ("add reclaim to the actions" in " ".join(out.split())) is noted


def test_pods_that_need_no_group_are_counted_by_the_status_of_their_queue() -> None:
    groups = [{"spec": {"queue": "q"}, "status": {"phase": phase}} for phase in ("Running", "Running", "Pending")]
    queues = [
        {"metadata": {"name": "q"}, "status": {"running": 5, "pending": 0, "inqueue": 1}},
        {"metadata": {"name": "new"}},
    ]
    found = count(groups, queues)
    assert {phase: n for phase, n in found["q"].items() if n} == {"Running": 5, "Pending": 1, "Inqueue": 1}
    assert not any(found["new"].values())
