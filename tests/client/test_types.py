"""The client is typed: a program of a user passes mypy --strict against the package, and a wrong call does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import volcano_py

RIGHT = """
from collections.abc import Iterator

from volcano_py.client import Client, Explanation, Job, LogLine, Task, job, task


@task(cpus=2, gpus=1)
def train(rate: float, *, steps: int = 1) -> float:
    return rate * steps


def main(client: Client) -> Job:
    made: Task = train(0.1, steps=3)
    value: float = train.local(0.1)
    why: Explanation = client.explain(client.submit(job("a", made)))
    lines: Iterator[LogLine] = client.logs("a", follow=True)
    print(value, why.verdict, *(line.text for line in lines))
    return client.wait("a", timeout=3)
"""
WRONG = """
from volcano_py.client import Client, task


@task()
def train(rate: float) -> None: ...


def main(client: Client) -> None:
    train("fast")
    client.wait("a", seconds=3)
    client.submit("a")
"""


def checked(folder: Path, text: str) -> str:
    (folder / "program.py").write_text(text)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(root / ".mypy_cache"), "program.py"]
    env = {**os.environ, "MYPYPATH": str(root)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True).stdout


def test_a_program_of_a_user(tmp_path: Path) -> None:
    assert (Path(volcano_py.__file__).parent / "py.typed").exists()
    assert "Success" in (found := checked(tmp_path, RIGHT)), found
    found = checked(tmp_path, WRONG)
    assert found.count("error:") == 3, found
