"""What a release publishes, as far as it runs without docker, a registry and PyPI."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from charts import krew
from charts.version import PLACES, found, notes, problems, set_version
from tests import helm, kubectl
from volcano_py import __version__
from volcano_py.cli.completion import PROGRAMS
from volcano_py.doctor.installation import SUPPORTED
from volcano_py.migrate.findings import OLDEST
from volcano_py.sandbox.cluster import Sandbox

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())


def test_the_constraints_name_a_version_of_each_package_and_no_address() -> None:
    """The public CI installs these versions (PIP_CONSTRAINT), so that a run can be repeated."""
    pinned: dict[str, str] = {}
    for line in (ROOT / "packaging/constraints.txt").read_text().splitlines():
        name, version = re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line).groups()  # type: ignore[union-attr]
        pinned[canonicalize_name(name)] = version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    of_tests = ("dra", "sandbox", "fast", "otel", "dashboard", "docs", "dashboard-dev", "dev")
    wanted = project["dependencies"] + [r for extra in of_tests for r in project["optional-dependencies"][extra]]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name != "volcano-py":
            assert requirement.specifier.contains(pinned[name]), f"{requirement}: run make constraints"


def test_all_files_name_one_version(tmp_path: Path) -> None:
    assert problems() == []
    for name in (*PLACES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    set_version("7.8.9", "2030-01-02", tmp_path)
    assert {one for named in found(tmp_path).values() for one in named} == {"7.8.9"}
    changes = (tmp_path / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 7.8.9 - 2030-01-02\n" in changes and problems(tmp_path) == []
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text())
    assert problems(tmp_path) and all(text.startswith("README.md names ") for text in problems(tmp_path))
    for version in ("7.8.9", "next"):
        with pytest.raises(ValueError, match=r"7\.8\.9|MAJOR"):
            set_version(version, "2030-01-02", tmp_path)


def test_the_release_notes_are_those_of_the_version() -> None:
    text = notes(__version__)
    assert text.startswith("- ") and "## Unreleased" not in text
    with pytest.raises(ValueError, match=r"no section 9\.9\.9"):
        notes("9.9.9")


def test_the_support_window_is_that_of_the_programs() -> None:
    versions = re.findall(r"^\| Kubernetes (\d+)\.(\d+) \|", (ROOT / "docs/releases.md").read_text(), re.MULTILINE)
    tested = [(int(major), int(minor)) for major, minor in versions]
    assert max(tested) == SUPPORTED[1] and min(tested) >= SUPPORTED[0] == OLDEST
    chart = yaml.safe_load((ROOT / "charts/volcano/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={SUPPORTED[0][0]}.{SUPPORTED[0][1]}.0-0"


def test_the_workflow_publishes_nothing_before_the_check() -> None:
    jobs = WORKFLOW["jobs"]
    assert {name for name, job in jobs.items() if "needs" not in job} == {"check"}
    text = (ROOT / ".github/workflows/release.yaml").read_text()
    for part in (
        "attestations: true",
        "sbom: true",
        "linux/amd64,linux/arm64",
        "cosign sign",
        "cosign attest",
        "helm push",
    ):
        assert part in text
    assert WORKFLOW["permissions"] == {"contents": "read"}
    modules = re.findall(r"python -m (charts\.\w+)", text)
    assert modules and all((ROOT / f"{name.replace('.', '/')}.py").exists() for name in modules)
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z0-9-]+)", text)) <= targets
    for command in re.findall(r"sed -i .*?\n.*?\n", text):
        assert "charts/volcano/values.yaml" in command


@pytest.mark.skipif(helm.find() is None, reason="NOT RUN: no helm; python -m tests.kubectl installs it")
def test_the_published_chart_installs_the_published_image(tmp_path: Path) -> None:
    """The step of the workflow up to the push, with its own commands."""
    [script] = [step["run"] for step in WORKFLOW["jobs"]["chart"]["steps"] if "helm package" in step.get("run", "")]
    lines = script.split("helm push")[0].splitlines()
    chosen = "\n".join(line for line in lines if "login" not in line)
    shutil.copytree(ROOT / "charts", tmp_path / "charts")
    program = helm.find()
    assert program is not None
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "REGISTRY": "ghcr.io", "OWNER": "acme"}
    subprocess.run(["bash", "-euc", chosen], cwd=tmp_path, env=env, check=True, capture_output=True)
    [package] = (tmp_path / "dist").glob("volcano-*.tgz")
    assert package.name == f"volcano-{__version__}.tgz"
    rendered = subprocess.run(
        [program, "template", "v", str(package)], env=env, check=True, capture_output=True, text=True
    )
    images = set(re.findall(r"image: \"?([^\s\"]+)", rendered.stdout))
    assert images == {f"ghcr.io/acme/volcano-py:{__version__}"}


@pytest.mark.skipif(helm.find() is None, reason="NOT RUN: no helm; python -m tests.kubectl installs it")
@pytest.mark.parametrize("page", ["README.md", "docs/installation.md", "docs/migration.md"])
def test_the_pages_install_the_image_that_they_build(page: str, tmp_path: Path) -> None:
    """`helm install` and `upgrade` of a page, as `helm template`, use the image of its `docker build`."""
    text = (ROOT / page).read_text()
    program = helm.find()
    assert program is not None
    commands = re.findall(
        r"^helm (?:install|upgrade) (volcano charts/volcano(?:.*\\\n)*.*image\.tag.*)$", text, re.MULTILINE
    )
    assert commands
    built = set(re.findall(r"docker build -t (\S+)", (ROOT / "docs/installation.md").read_text()))
    (tmp_path / "values.yaml").write_text("{}")
    for command in commands:
        words = command.replace("\\\n", " ").replace("charts/volcano", str(ROOT / "charts/volcano")).split()
        words = [word for word in words if word != "--create-namespace"]
        done = subprocess.run([program, "template", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert set(re.findall(r"image: \"?([^\s\"]+)", done.stdout)) == built


@pytest.mark.slow
def test_the_distributions_are_complete(tmp_path: Path) -> None:
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    [sdist] = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
        [entry_points] = [archive.read(name).decode() for name in files if name.endswith("entry_points.txt")]
        [metadata] = [archive.read(name).decode() for name in files if name.endswith(".dist-info/METADATA")]
    for name in ("client/aio.py", "doctor/facts.py", "data/conf/volcano-scheduler.conf"):
        assert f"volcano_py/{name}" in files
    assert len([name for name in files if name.startswith("volcano_py/data/crds/")]) == len(
        [path for path in (ROOT / "crds").iterdir() if path.is_file()]
    )
    for program in (*PROGRAMS, "kubectl-volcano", "kubectl_complete-volcano"):
        assert f"{program} = " in entry_points
    assert f"Version: {__version__}" in metadata and "Provides-Extra: sandbox" in metadata
    with tarfile.open(sdist) as source:
        names = source.getnames()
        assert any(name.endswith("/crds/batch.volcano.sh_jobs.yaml") for name in names)


def plugin(folder: Path, version: str = __version__) -> Path:
    """The plugin as krew installs it."""
    with tarfile.open(fileobj=io.BytesIO(krew.archive(version))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "kubectl-volcano"


def test_the_manifest_for_krew(tmp_path: Path) -> None:
    krew.main(tmp_path)
    manifest = yaml.safe_load((tmp_path / "volcano.yaml").read_text())
    content = (tmp_path / "kubectl-volcano.tar").read_bytes()
    [platform] = manifest["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["spec"]["version"] == f"v{__version__}" and len(manifest["spec"]["shortDescription"]) <= 50
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert {one["from"] for one in platform["files"]} == set(archive.getnames())
    assert krew.archive(__version__) == content


def test_the_plugin_finds_vcctl_or_uv_or_names_what_to_install(tmp_path: Path) -> None:
    script = plugin(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(script), "job", "list"], env={"PATH": str(tools)}, capture_output=True, text=True
        )

    done = run()
    assert done.returncode == 1 and f"pip install volcano-py=={__version__}" in done.stderr
    for name in ("pipx", "uvx", "vcctl"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tools / name).chmod(0o755)
        done = run()
        assert done.stdout.startswith(f"{name} ") and done.stdout.rstrip().endswith("job list")
        assert name == "vcctl" or f"volcano-py=={__version__}" in done.stdout


async def test_kubectl_runs_the_plugin_and_completes_it(tmp_path: Path) -> None:
    program = kubectl.find()
    assert program is not None, "no kubectl: run python -m tests.kubectl"
    plugin(tmp_path)
    for name, module in (("vcctl", "vcctl"), ("kubectl_complete-volcano", "kubectl_complete")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m volcano_py.cli.{module} "$@"\n')
        (tmp_path / name).chmod(0o755)
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig") as sandbox:
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": sandbox.kubeconfig}

        async def run(*words: str) -> str:
            process = await asyncio.create_subprocess_exec(program, *words, env=env, stdout=asyncio.subprocess.PIPE)
            out, _ = await process.communicate()
            return out.decode()

        assert "queue default" in await run("volcano", "explain", "queue", "default")
        offered = await run("__complete", "volcano", "job", "r")
    assert [line.split("\t")[0] for line in offered.splitlines()] == ["resume", "run", ":4"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    for program in PROGRAMS:
        command = [sys.executable, "-m", "volcano_py.cli.main", "completion", shell, "--program", program]
        done = subprocess.run(command, capture_output=True, text=True) if program == "vcctl" else None
        if done is not None:
            assert done.returncode == 0 and "_VCCTL_COMPLETE" in done.stdout
            if shell == "bash":
                subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)
