"""Names that do not exist are errors, and kinds have the names of kubectl."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.cli.conftest import Vcctl
from volcano_py.api.kinds import VOLCANO
from volcano_py.cli.main import main as volcano_py
from volcano_py.cli.vcctl import COMMANDS, NAMES
from volcano_py.sandbox import terminal
from volcano_py.sandbox.cluster import Sandbox


async def test_names_that_do_not_exist(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig") as sandbox:
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        for arguments, text in (
            ("top jobs -n nosuch", "Failed to top: namespace 'nosuch' does not exist"),
            ("top -r foo", "Failed to top: no node and no queue has the resource 'foo'; resources are cpu, "),
            ("top -r foo --once", "no node and no queue has the resource 'foo'"),
            ("queue tree -r cpu,foo", "Failed to tree queue: no node and no queue has the resource 'foo'"),
        ):
            code, out = await vcctl(*arguments.split())
            assert code == 255 and text in " ".join(out.split()), out
        for arguments in ("top jobs -n default", "top -r cpu", "queue tree -r memory"):
            code, out = await vcctl(*arguments.split())
            assert code == 0, out
        for kind, text in (
            ("vcjob", "Job x"),
            ("vcjobs", "Job x"),
            ("jobs.batch.volcano.sh", "Job x"),
            ("pg", "PodGroup x"),
            ("po", "Pod x"),
            ("queues", "Queue x"),
        ):
            code, out = await vcctl("explain", kind, "x")
            assert code == 1 and f"{text} does not exist" in " ".join(out.split()), out
        for kind in ("deployment", "jobs.batch"):
            code, out = await vcctl("explain", kind, "x")
            assert code == 2 and "is not one of 'job', 'podgroup', 'pod', 'queue'" in out


async def test_kinds_have_the_names_of_kubectl(tmp_path: Path, vcctl: Vcctl, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, others in NAMES.items():
        own = {other for rt in VOLCANO if rt.plural == f"{kind}s" for other in (rt.plural, *rt.short_names)}
        assert own <= {*others, f"{kind}s"}, "the short names of the CRD"
        for other in others:
            assert await vcctl(other, "--help") == await vcctl(kind, "--help")
    async with Sandbox(nodes=1, path=tmp_path / "kubeconfig") as sandbox:
        monkeypatch.setenv("KUBECONFIG", sandbox.kubeconfig)
        for kind in ("job", "jobflow", "jobtemplate", "cronjob", "podgroup", "pod"):
            assert (await vcctl(kind, "list", "-A"))[0] == 0, kind
        code, out = await vcctl("explain", "q", "default", "-o", "yaml")
        assert code == 0 and yaml.safe_load(out)["subject"] == "queue default"
    assert next(iter(COMMANDS)) == "explain"


@pytest.mark.parametrize("command", [("sandbox", "up"), ("demo",)])
def test_without_the_extra_the_sandbox_names_it(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        return None if name in ("jsonschema_rs", "cel_expr_python") else SimpleNamespace()

    monkeypatch.setattr(terminal, "find_spec", find)
    result = CliRunner().invoke(volcano_py, command)
    words = " ".join(result.output.split())
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "packages jsonschema_rs, cel_expr_python are not installed" in words
    assert "pip install 'volcano-py[sandbox]'" in words


def test_the_packages_of_the_extra_exist() -> None:
    assert all(importlib.util.find_spec(name) for name in terminal._PACKAGES)
