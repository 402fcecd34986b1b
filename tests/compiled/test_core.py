"""The decision core that mypyc compiles decides as the Python files do: the same tests pass with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from volcano_py.scheduler.framework.kernels import core_is_compiled

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SUITES = (
    "tests/scenarios",
    "tests/scheduler/actions",
    "tests/scheduler/framework",
    "tests/scheduler/model",
    "tests/scheduler/plugins",
    "tests/reference",
    "tests/simulate",
    "tests/stories",
)
READ_BY_TESTS = ("tests", "conf", "crds", "docs", "examples", "pyproject.toml")
PROBE = """
import importlib, sys
from volcano_py.scheduler.framework.kernels import core_is_compiled
assert core_is_compiled()
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""


def modules() -> list[str]:
    """The names of the modules that the build hook compiles."""
    hooks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    paths: list[str] = hooks["custom"]["modules"]
    return [path.removesuffix(".py").replace("/", ".") for path in paths]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with its compiled core, and the tests beside it; not optimized, which takes a third of the time."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("compiled")
    pip = ["pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    environment = {**os.environ, "VOLCANO_PY_COMPILE": "1", "MYPYC_OPT_LEVEL": "0"}
    subprocess.run([sys.executable, "-m", *pip, "--target", str(folder), str(ROOT)], check=True, env=environment)
    for name in READ_BY_TESTS:
        path = ROOT / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / name)
    return folder


def test_every_module_is_compiled(core: Path) -> None:
    files = subprocess.check_output([sys.executable, "-c", PROBE, *modules()], cwd=core, text=True).split()
    assert len(files) == len(modules())
    assert [file for file in files if not file.startswith(str(core)) or not file.endswith(".so")] == []


def test_the_core_passes_the_tests_of_the_python_files(core: Path) -> None:
    pytests = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not interpreted", "-p", "no:cacheprovider"]
    done = subprocess.run([*pytests, *SUITES], cwd=core, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5_000:]


def test_the_working_tree_stays_as_it_was(core: Path) -> None:
    assert list((ROOT / "volcano_py").rglob("*.so")) == []
    assert not core_is_compiled()
