"""The example of a plugin of one's own works as its README says: from a folder, and installed as a package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "launch"
CLUSTER = """
{kind: Node, metadata: {name: busy}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{kind: Node, metadata: {name: free}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
kind: Pod
metadata: {name: old}
spec: {nodeName: busy, schedulerName: other, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
status: {phase: Running}
---
{kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""
CONF = """
actions: "enqueue, allocate, tally"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: launch, arguments: {launch.weight: 3}}]}]
"""


def _simulate(tmp_path: Path, *flags: str, path: str = "") -> str:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "my.conf").write_text(CONF)
    command = [sys.executable, "-m", "volcano_py.cli.main", "simulate", "run", *flags]
    done = subprocess.run(
        [*command, "--conf", str(tmp_path / "my.conf"), str(tmp_path / "cluster.yaml")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_own_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "."],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_from_a_folder(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "launch.py").write_bytes((EXAMPLE / "launch.py").read_bytes())
    out = _simulate(tmp_path, "--plugins-dir", str(plugins))
    assert "default/new" in out and "free" in out


def test_installed_as_a_package(tmp_path: Path) -> None:
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--target", str(target), str(EXAMPLE)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the build backend is not installed here: {done.stderr.strip().splitlines()[-1]}")
    assert "free" in _simulate(tmp_path, path=str(target))
