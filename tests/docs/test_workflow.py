"""The public CI workflow runs targets that exist, and the envtest job the version that `make e2e-envtest` names."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.acceptance.envtest import REMEDY

ROOT = Path(__file__).resolve().parents[2]
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"]


def commands(job: str) -> str:
    return "\n".join(step.get("run", "") for step in JOBS[job]["steps"])


def test_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {name for job in JOBS for name in re.findall(r"\bmake ([a-z0-9-]+)", commands(job))}
    assert {"manifests", "e2e-kind", "e2e-envtest"} <= used <= targets


def test_envtest_has_the_programs_that_the_remedy_installs() -> None:
    version = re.search(r"use (\S+)", REMEDY)
    assert version and f"use {version[1]} " in commands("e2e-envtest")
    assert "setup-envtest@latest" in REMEDY and "setup-envtest@latest" in commands("e2e-envtest")
