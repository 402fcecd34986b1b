"""Examples with programs of their own: the shell block of README.md runs up to its first `kubectl apply`, then the
manifest goes through its steps.

The commands are those of README.md, except for the kubeconfig and the ports: a copy of the folder gets free ones.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_examples import EXAMPLES, PROGRAMS, STATED, Cluster, Step, end, steps_of, take, until
from volcano_py.sandbox.volcano import free_port

PORT = re.compile(r"\b8\d{3}\b")
"""The ports that these examples use."""


def commands_of(readme: str) -> list[str]:
    """The lines of README.md's shell block before the first `kubectl apply`, without `export`."""
    block = re.search(r"^```sh\n(.*?)^kubectl apply", readme, re.DOTALL | re.MULTILINE)
    assert block is not None, "README.md has no shell block that applies a manifest"
    lines = block[1].replace("\\\n", "").splitlines()
    return [line for line in lines if not line.startswith("export ")]


def queries(address: str) -> int:
    """How many queries the sandbox has answered as Prometheus."""
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        return int(answer.read().split()[-1])


def manifest_of(name: str) -> Path:
    """The one manifest of a folder that states steps."""
    (path,) = (path for path in STATED.values() if path.parent == EXAMPLES / name)
    return path


@contextlib.contextmanager
def started(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Everything that README.md starts, until the default queue is open."""
    with contextlib.ExitStack() as stack:
        for line in commands_of((folder / "README.md").read_text()):
            line = line.replace(f"examples/{folder.name}/", f"{folder}/")
            if not line.endswith("&"):
                take(cluster, Step(line), folder)
                continue
            program, *arguments = shlex.split(line.removesuffix("&"))
            if program == "python":
                process = cluster.start_program([sys.executable, "-u", *arguments], "program")
            else:
                assert program == "volcano-py", f"README.md starts {program}"
                process = cluster.start(*arguments)
            stack.callback(end, process)
            if arguments[0] == "sandbox":
                until(cluster.serves, process)
        until(cluster.has_open_queue, process)
        if folder.name == "usage":
            # The third measurement of a node begins after the first ones of all nodes have been used.
            address = re.search(r"http://[0-9.:]+", (folder / "scheduler.conf").read_text())
            assert address is not None
            until(lambda: queries(address[0]) >= 3 * 3 * 2, process)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_reaches_its_end(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    ports: dict[str, str] = {}
    for path in folder.iterdir():
        text = path.read_text()
        for port in PORT.findall(text):
            ports.setdefault(port, str(free_port()))
        path.write_text(PORT.sub(lambda found: ports[found[0]], text))
    manifest = folder / manifest_of(name).name
    cluster = Cluster(tmp_path)
    with started(cluster, folder):
        code, out = cluster.run(f"kubectl apply -f {manifest.name}", folder)
        assert code == 0, out
        for step in steps_of(manifest):
            take(cluster, step, folder)
