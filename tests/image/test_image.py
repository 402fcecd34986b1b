"""The Dockerfile's steps without docker: a wheel in an empty environment, an unprivileged user, read-only code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from volcano_py.cli.main import main
from volcano_py.cli.vcctl import main as vcctl

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
IMAGE_LIMIT = 200_000_000
BASE = 60_000_000
"""Bytes of the base image, distroless with Python, generously."""
USER = 65532
PROGRAMS = (
    "volcano-py scheduler",
    "volcano-py controller-manager",
    "volcano-py hypernode-controller",
    "volcano-py webhook-manager",
    "volcano-py config policies",
    "volcano-py simulate run",
    "vcctl job list",
    "vsub",
    "vqueues",
    "kubectl-volcano explain",
    "volcano-py doctor",
)


def dependencies(of: Distribution) -> dict[str, Distribution]:
    """What pip installs for a distribution, as it is in this environment."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[Distribution, frozenset[str]]] = [(of, frozenset())]
    while waiting:
        current, wanted = waiting.pop()
        for text in current.requires or ():
            requirement = Requirement(text)
            applies = [{"extra": extra} for extra in wanted] or [{"extra": ""}]
            if requirement.marker is not None and not any(requirement.marker.evaluate(row) for row in applies):
                continue
            key = requirement.name.lower()
            if key not in found:
                found[key] = distribution(requirement.name)
                waiting.append((found[key], frozenset(requirement.extras)))
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The final stage's /opt/volcano, in a fresh root directory."""
    root = tmp_path_factory.mktemp("root")
    source = root / "src"
    source.mkdir()
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in copied.split():
            path = ROOT / name
            (shutil.copytree if path.is_dir() else shutil.copy)(path, source / name)
    opt = root / "opt" / "volcano"
    subprocess.run([sys.executable, "-m", "venv", str(opt)], check=True)
    build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", str(root)]
    subprocess.run([sys.executable, "-m", *build, str(source)], check=True)
    [wheel] = root.glob("*.whl")
    pip = [str(opt / "bin" / "pip"), "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    [target] = (opt / "lib").glob("python*/site-packages")
    [ours] = Distribution.discover(name="volcano-py", path=[str(target)])
    for one in dependencies(ours).values():
        for file in one.files or ():
            if not file.parts[0].startswith("..") and file.suffix != ".pyc":
                path = target / file
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), path)
    [clean] = re.findall(r"^RUN (/opt/volcano/bin/pip uninstall(?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    subprocess.run(["sh", "-ec", clean.replace("/opt/volcano", str(opt))], check=True)
    for folder in (root, *root.parents):
        if folder.is_relative_to(tmp_path_factory.getbasetemp().parent):
            folder.chmod(0o755)
    return opt


def run(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the image as its user, with nothing of this environment."""
    return subprocess.run(
        [str(image / "bin" / command[0]), *command[1:]],
        env={"PATH": str(image / "bin"), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        user=USER if os.getuid() == 0 and _readable_by_others() else None,
    )


def _readable_by_others() -> bool:
    """Whether another user may run this Python, as it may that of the base image."""
    paths = [Path(os.path.realpath(sys.executable)), *Path(os.path.realpath(sys.executable)).parents]
    return all(path.stat().st_mode & 0o001 for path in paths)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_start(image: Path, program: str) -> None:
    done = run(image, *program.split(), "--help")
    assert done.returncode == 0, done.stderr


def test_every_module_of_the_programs_can_be_imported(image: Path) -> None:
    """The sandbox and what stands on it, and the pages of the dashboard, need more packages than the image has."""
    code = (
        "import importlib, pkgutil, volcano_py\n"
        "left_out = ('volcano_py.sandbox', 'volcano_py.demo', 'volcano_py.cli.demo', 'volcano_py.cli.main', "
        "'volcano_py.dashboard.ui', 'volcano_py.scheduler.framework.kernels.compiled')\n"
        "for found in pkgutil.walk_packages(volcano_py.__path__, 'volcano_py.'):\n"
        "    if not found.name.startswith(left_out) and not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = run(image, "python", "-c", code)
    assert done.returncode == 0, done.stderr


def test_every_command_works_or_names_its_extra(image: Path) -> None:
    """The wheel alone: what needs an extra reports the command that installs it."""
    for program, group in (("volcano-py", main), ("vcctl", vcctl)):
        for name in group.commands:
            done = run(image, program, name, "--help")
            assert done.returncode == 0, (program, name, done.stderr)
    for command, extra in (
        (("volcano-py", "demo"), "sandbox"),
        (("volcano-py", "sandbox", "up", "--kubeconfig", "/tmp/nosuch-folder/x"), "sandbox"),
        (("volcano-py", "dashboard"), "dashboard"),
        (("python", "-c", "from volcano_py.client import sandbox; sandbox().start()"), "sandbox"),
    ):
        done = run(image, *command)
        printed = " ".join((done.stdout + done.stderr).split())
        assert done.returncode != 0 and f"pip install 'volcano-py[{extra}]'" in printed, printed


def test_the_client_works_without_an_extra(image: Path) -> None:
    code = (
        "from volcano_py.client import Client, Task, job, to_yaml\n"
        "print(to_yaml(job('x', Task(name='t', image='i'))))\n"
        "Client('/nosuch')\n"
    )
    done = run(image, "python", "-c", code)
    assert "kind: Job" in done.stdout and "ConfigurationError: client: kubeconfig /nosuch does not exist" in done.stderr


def test_the_code_is_read_only_and_small(image: Path) -> None:
    files = [path for path in image.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if path.stat().st_mode & 0o222]
    assert BASE + sum(path.stat().st_size for path in files) < IMAGE_LIMIT
    assert not shutil.which("pip", path=str(image / "bin")), "no build tools in the image"


def test_the_final_stage_is_unprivileged_and_has_no_shell() -> None:
    final = DOCKERFILE.rsplit("\nFROM ", 1)[1]
    assert final.startswith("gcr.io/distroless/") and f"USER {USER}:{USER}" in final and "RUN " not in final
