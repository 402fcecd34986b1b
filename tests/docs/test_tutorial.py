"""The tutorial for plugin authors: its code is type-checked and run as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLUSTER = """
{kind: Node, metadata: {name: busy}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{kind: Node, metadata: {name: free}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{kind: Node, metadata: {name: red, labels: {team: red}}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
kind: Pod
metadata: {name: old}
spec: {nodeName: busy, schedulerName: other, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
status: {phase: Running}
---
{kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""


@pytest.fixture
def tutorial(tmp_path: Path) -> Path:
    """The named blocks as files."""
    for name, text in BLOCK.findall((ROOT / "docs" / "plugin-authors.md").read_text()):
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_passes_strict_type_checks(tutorial: Path) -> None:
    run(tutorial, "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), *map(str, tutorial.glob("*.py")))


def test_its_tests_pass(tutorial: Path) -> None:
    assert "3 passed" in run(tutorial, "pytest", "-p", "no:cacheprovider", "test_fewest_pods.py")


def test_simulate_runs_it(tutorial: Path) -> None:
    (tutorial / "plugins").mkdir()
    for name in ("fewest_pods.py", "teams.py", "tally.py", "launch.py"):
        (tutorial / name).rename(tutorial / "plugins" / name)
    (tutorial / "cluster.yaml").write_text(CLUSTER)
    command = ["simulate", "run", "--plugins-dir", "plugins", "--conf", "my.conf", "cluster.yaml"]
    printed = run(tutorial, "volcano_py.cli.main", *command)
    assert re.search(r"default/new\s.*free|new.*free", printed), printed


def test_simulate_runs_the_action_that_allocates(tutorial: Path) -> None:
    (tutorial / "plugins").mkdir()
    (tutorial / "launch.py").rename(tutorial / "plugins" / "launch.py")
    (tutorial / "cluster.yaml").write_text(CLUSTER)
    (tutorial / "my.conf").write_text(
        '{actions: "enqueue, launch", tiers: [{plugins: [{name: gang}, {name: predicates}]}]}'
    )
    command = ["simulate", "run", "--plugins-dir", "plugins", "--conf", "my.conf", "cluster.yaml"]
    printed = run(tutorial, "volcano_py.cli.main", *command)
    assert re.search(r"default/new\s.*free|new.*free", printed), printed
