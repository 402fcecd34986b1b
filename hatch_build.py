"""The build hook of the wheel: compiles the decision core with mypyc if VOLCANO_PY_COMPILE=1. Not in Volcano.

The modules in which a cycle spends its time (pyproject.toml lists them) become extension modules beside their Python
files, and Python imports the extension modules first. Without the variable the wheel is pure Python. mypyc runs in a
copy of the package, so that a build leaves nothing in the working tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH = "VOLCANO_PY_COMPILE"
PACKAGE = "volcano_py"
COMPILER = ["mypy>=2.0", "setuptools", "types-PyYAML"]


class CompiledCore(BuildHookInterface[Any]):
    """Adds the extension modules to the wheel, which is then for one platform and one version of Python."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The compiler, and all that the package imports: mypyc reads the types of both."""
        return [*self.metadata.core.dependencies, *COMPILER] if _is_on() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of the wheel are collected."""
        if not _is_on() or version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp())
        shutil.copytree(
            Path(self.root, PACKAGE), self._folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        _compile(self._folder, self.config["modules"], Path(self.root, "pyproject.toml"))
        for path in self._folder.rglob("*.so"):
            inside = path.relative_to(self._folder)
            if inside.parts[0] != "build":
                build_data["force_include"][str(path)] = str(inside)
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def _is_on() -> bool:
    return os.environ.get(SWITCH, "") not in ("", "0")


def _compile(folder: Path, modules: list[str], configuration: Path) -> None:
    """Compile modules of the package in a folder. Raises SystemExit with the compiler's output if that fails."""
    command = [sys.executable, "-m", "mypyc", "--config-file", str(configuration), *modules]
    levels = {"MYPYC_OPT_LEVEL": "3", "MYPYC_DEBUG_LEVEL": "0"}
    done = subprocess.run(
        command, cwd=folder, env={**levels, **os.environ}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if ": error: " in line] or done.stdout.splitlines()[-20:]
        shutil.rmtree(folder)
        sys.exit("\n".join([f"the decision core cannot be compiled; unset {SWITCH} for pure Python:", *lines]))
