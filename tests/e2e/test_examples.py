"""Every example is applied with the real kubectl, goes through its steps, and reaches the end that it states.

An example is a YAML file below examples/ with lines `# then: COMMAND` and one `# ends: COMMAND` in the comment at its
top. `COMMAND => TEXT` must come to print the text; the others must end with 0. They are what a reader types.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests import waiting
from tests.kubectl import find as find_kubectl
from tests.sandbox.clients import Kubectl, http
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NODES, SHAPES = (
    4,
    (
        "cpu=4,memory=8Gi,gpu=2:A100:80Gi,nic=1:::later,vgpu=2:A100:40Gi",
        "numa=2:2:single-numa-node,memory=8Gi,gpu=2:A100:80Gi,nic=1:::later,vgpu=1:A30:24Gi:mig,vnpu=2:310P",
    ),
)
PROGRAM = (sys.executable, "-m", "volcano_py.cli.main")


class Step(NamedTuple):
    command: str
    says: str = ""


def steps_of(path: Path) -> list[Step]:
    """The steps that a file states, the last one its end; none for a file that is no example."""
    steps: list[Step] = []
    ends = 0
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        for mark in ("# then: ", "# ends: "):
            if line.startswith(mark):
                command, _, says = line.removeprefix(mark).partition(" => ")
                steps.append(Step(command, says))
                ends += mark == "# ends: "
    assert ends == (1 if steps else 0), f"{path}: states {ends} ends"
    return steps


PROGRAMS = ("usage", "extender", "queue-admission")
"""Folders whose README.md starts a cluster and programs of its own; `test_example_programs` goes through them."""
APART = {EXAMPLES / name for name in ("sticky-vm", "remote-plugin", "gang-permit", "airflow", "notebook", *PROGRAMS)}
"""Folders with a program or a scheduler configuration of their own; tests of their own go through them."""
STATED = {str(path.relative_to(EXAMPLES)): path for path in sorted(EXAMPLES.rglob("*.yaml")) if steps_of(path)}
"""Every manifest that states steps."""
FOUND = {name: path for name, path in STATED.items() if path.parent not in APART}
"""Those for the one cluster that examples/README.md starts."""


def applied_by_others() -> set[Path]:
    """Files that the steps of an example apply."""
    found = set()
    for path in FOUND.values():
        for step in steps_of(path):
            words = shlex.split(step.command)
            if words[:2] == ["kubectl", "apply"]:
                found.add(path.parent / words[words.index("-f") + 1])
    return found


FOLDERS = sorted({path.parent for path in FOUND.values()} - {EXAMPLES})


def jobs_of(folder: Path) -> set[str]:
    """The names of the Jobs in a folder's files."""
    documents = [d for path in folder.glob("*.yaml") for d in yaml.safe_load_all(path.read_text()) if d]
    return {d["metadata"]["name"] for d in documents if d["kind"] == "Job"}


def test_every_folder_has_manifests() -> None:
    folders = {path for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("*.*"))}
    assert folders == set(FOLDERS) | APART


def test_every_manifest_belongs_to_an_example() -> None:
    manifests = {
        path
        for path in EXAMPLES.rglob("*.yaml")
        if any(
            isinstance(document, dict) and "apiVersion" in document for document in yaml.safe_load_all(path.read_text())
        )
    }
    assert {m for m in manifests if APART.isdisjoint(m.parents)} == set(FOUND.values()) | applied_by_others()


def test_the_table_names_every_example() -> None:
    table = (EXAMPLES / "README.md").read_text()
    assert [name for name in STATED if f"({name})" not in table] == []


@pytest.mark.slow
async def test_every_folder_can_be_applied_as_a_whole(tmp_path: Path) -> None:
    """What files need is in files before them; nothing is rejected, and every Job gets its PodGroup."""
    async with (
        Sandbox(
            NODES,
            node_shapes=[parse(shape) for shape in SHAPES],
            components=("controller-manager",),
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
        ) as sandbox,
        http(sandbox) as api,
    ):
        kubectl = Kubectl(sandbox, tmp_path)
        for folder in [*FOLDERS, EXAMPLES / "gang-permit"]:
            for _ in range(3):  # whether a queue is open in time must not be luck
                code, out, errors = await kubectl.run("apply", "-f", f"{folder}/")
                assert code == 0, f"{folder.name}: {out}{errors}"
                await api.until(PODGROUPS, lambda found, jobs=jobs_of(folder): owners(found) == jobs)
                await waiting.until(lambda folder=folder: deleted(kubectl, folder), f"{folder.name} is not deleted")
                await api.until(PODGROUPS, lambda found: not found["items"])


async def deleted(kubectl: Kubectl, folder: Path) -> bool:
    """Delete what a folder has made; not at once, because a queue goes after its children and its jobs."""
    return (await kubectl.run("delete", "--ignore-not-found", "--wait", "-f", f"{folder}/"))[0] == 0


PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def owners(found: dict[str, Any]) -> set[str]:
    """The names of the Jobs that PodGroups of a list belong to."""
    return {owner["name"] for row in found["items"] for owner in row["metadata"].get("ownerReferences") or ()}


class Cluster:
    """A sandbox as a reader starts it, and his shell."""

    def __init__(self, folder: Path) -> None:
        kubectl = find_kubectl()
        assert kubectl, "no kubectl: install it, or make setup"
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(folder / "kubecache"),
            "PYTHONPATH": str(ROOT),
        }
        self.programs = {"kubectl": [kubectl], "vcctl": [sys.executable, "-m", "volcano_py.cli.vcctl"]}

    def run(self, command: str, where: Path) -> tuple[int, str]:
        """Exit code and output of a command as it stands in an example."""
        program, *arguments = shlex.split(command)
        ran = subprocess.run(
            [*self.programs[program], *arguments],
            cwd=where,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=waiting.budget(3),
        )
        return ran.returncode, ran.stdout

    def serves(self) -> bool:
        """Whether the API server answers."""
        return self.kubeconfig.exists() and self.run("kubectl get nodes", ROOT)[0] == 0

    def has_open_queue(self) -> bool:
        """Whether the queue `default` is open."""
        return "Open" in self.run("vcctl queue get -n default", ROOT)[1]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A component in the background."""
        return self.start_program([*PROGRAM, *arguments, "--kubeconfig", str(self.kubeconfig)], arguments[0])

    def start_program(self, command: list[str], name: str) -> subprocess.Popen[str]:
        """Any program in the background; what it prints is in NAME.log."""
        with (self.folder / f"{name}.log").open("w") as log:
            return subprocess.Popen(
                command,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """What examples/README.md tells a reader to start."""
    here = Cluster(tmp_path_factory.mktemp("examples"))
    shapes = [word for shape in SHAPES for word in ("--node-shape", shape)]
    up = ("up", "--nodes", str(NODES), *shapes, "--run-commands", "--components", "controller-manager")
    with contextlib.ExitStack() as stack:
        stack.callback(end, sandbox := here.start("sandbox", *up))
        until(here.serves, sandbox)
        conf = str(EXAMPLES / "scheduler.conf")
        profiles = str(EXAMPLES / "profiles" / "scheduler.conf")
        flags = ("--scheduler-conf", conf, "--config", profiles, "--leader-elect=false")
        stack.callback(end, scheduler := here.start("scheduler", *flags))
        until(here.has_open_queue, scheduler)
        yield here


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + waiting.budget()
    while not holds():
        assert process.poll() is None and time.monotonic() < deadline, f"{process.args} does not come up"
        time.sleep(0.2)


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(waiting.budget())
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pods have addresses of their own on Linux alone")
@pytest.mark.parametrize("name", FOUND)
def test_it_reaches_its_end(cluster: Cluster, name: str) -> None:
    path = FOUND[name]
    files = [path.name]
    try:
        code, out = cluster.run(f"kubectl apply -f {path.name}", path.parent)
        assert code == 0, out
        for step in steps_of(path):
            take(cluster, step, path.parent)
            words = shlex.split(step.command)
            if words[:2] == ["kubectl", "apply"]:
                files.append(words[words.index("-f") + 1])
    finally:
        for file in reversed(files):
            cluster.run(f"kubectl delete --ignore-not-found --wait -f {file}", path.parent)
        gone = Step("kubectl get pods", "No resources found")
        take(cluster, gone, ROOT)
        cluster.run("kubectl delete events --all", ROOT)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pods have addresses of their own on Linux alone")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_whole_folder_runs(cluster: Cluster, folder: Path) -> None:
    try:
        code, out = cluster.run(f"kubectl apply -f {folder}/", ROOT)
        assert code == 0, out
        for name in sorted(jobs_of(folder)):
            good = ("Failed",) if name == "failing" else ("Running", "Completed")
            phase = f"kubectl get vcjob/{name} -o jsonpath={{.status.state.phase}}"
            found = ""
            deadline = time.monotonic() + waiting.budget()
            while found not in good:
                assert time.monotonic() < deadline, f"{name} is {found!r} and not one of {good}"
                found = cluster.run(phase, ROOT)[1].strip()
    finally:
        take(cluster, Step(f"kubectl delete --ignore-not-found --wait -f {folder}/"), ROOT, retry=True)
        take(cluster, Step("kubectl get pods", "No resources found"), ROOT)
        cluster.run("kubectl delete events --all", ROOT)


def take(cluster: Cluster, step: Step, where: Path, retry: bool = False) -> None:
    deadline = time.monotonic() + waiting.budget()
    while True:
        code, out = cluster.run(step.command, where)
        words = " ".join(out.split())
        if not step.says and not (retry and code):
            assert code == 0, f"{step.command}: {words}"
            return
        if code == 0 and step.says in words:
            return
        assert time.monotonic() < deadline, f"{step.command} does not say {step.says!r}: {words}"
        time.sleep(0.3)
