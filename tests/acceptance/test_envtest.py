"""`make e2e-envtest` with stand-ins for kube-apiserver and etcd: messages, start and end of all parts."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests import waiting
from tests.acceptance.envtest import PARTS, Missing, assets

ROOT = Path(__file__).parents[2]


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_the_variable_the_remedy_is_printed() -> None:
    with pytest.raises(Missing, match=r"KUBEBUILDER_ASSETS is not set: .* etcd and kube-apiserver; .*setup-envtest"):
        assets({})


def test_missing_programs_are_named(tmp_path: Path) -> None:
    program(tmp_path / "etcd", "true")
    (tmp_path / "kube-apiserver").touch()  # not executable
    with pytest.raises(Missing, match=f"{tmp_path}, which has no executable kube-apiserver; .*setup-envtest"):
        assets({"KUBEBUILDER_ASSETS": str(tmp_path)})


def test_the_suite_has_every_module_but_this_one_once() -> None:
    """This module starts a control plane of its own, on the same ports."""
    modules = {path.name for path in (ROOT / "tests" / "acceptance").glob("test_*.py")}
    run: list[str] = []
    for part in PARTS:
        ignored = {text.rpartition("/")[2] for text in part.tests if text.startswith("--ignore=")}
        given = [text for text in part.tests if not text.startswith("--")]
        whole = any(not text.endswith(".py") for text in given)
        run += (modules - ignored) if whole else [text.rpartition("/")[2] for text in given]
    assert sorted(run) == sorted(modules - {"test_envtest.py"})


async def envtest(folder: Path, *arguments: str) -> tuple[int, str]:
    """(exit code, output) of the command with the programs of a folder."""
    environment = {key: value for key, value in os.environ.items() if key not in ("CLUSTER", "HOLLOW")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.acceptance.envtest", *arguments),
        env={**environment, "KUBEBUILDER_ASSETS": str(folder)},
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await waiting.within(process.communicate(), "envtest does not end", 3)
    return process.returncode or 0, out.decode()


@pytest.mark.slow
async def test_the_end_of_the_log_says_why_a_program_ended(tmp_path: Path) -> None:
    program(tmp_path / "etcd", "exec sleep 600")
    program(tmp_path / "kube-apiserver", "echo unknown flag: --bind-address >&2; exit 1")
    code, out = await envtest(tmp_path)
    assert code == 1 and out == "e2e-envtest: kube-apiserver has ended: unknown flag: --bind-address\n"


@pytest.mark.slow
async def test_cases_run_on_stand_ins(tmp_path: Path) -> None:
    program(tmp_path / "etcd", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    program(tmp_path / "kube-apiserver", f'exec {sys.executable} -m tests.acceptance.stand_in "$@"')
    chosen = (
        "plain_pod or deleted_job or (test_scheduling and minimum and fills) or (test_admission and queue and default)"
        " or (test_native and test_a_gang)"
    )
    code, out = await envtest(tmp_path, "-p", "no:cacheprovider", "-k", chosen)
    assert code == 0, out
    assert "kube-apiserver v1.36" in out and " passed" in out
    assert "with the gates of groups runs at" in out and out.rstrip().rpartition("\n")[2].startswith("1 passed")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
