"""docs/security.md: each row names tests that exist; the public workflow does what the page states."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"]


def rows() -> dict[str, str]:
    """Threat to the cell with its tests, of all tables that have one."""
    found: dict[str, str] = {}
    for table in re.findall(r"^\| Threat \| Limit \| Test \|\n\|---\|---\|---\|\n((?:\|.*\|\n)+)", PAGE, re.MULTILINE):
        for line in table.splitlines():
            threat, _, tests = (cell.strip() for cell in line.strip("|").split(" | "))
            found[threat] = tests
    return found


def exists(named: str) -> bool:
    """Whether a test, a scenario or a file of tests of this name exists."""
    path, _, name = named.partition("::")
    path, _, scenario = path.partition(": ")
    file = ROOT / path
    if not file.is_file():
        return False
    if scenario:
        return any(one["name"] == scenario for one in yaml.safe_load(file.read_text()))
    functions = [
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return name in functions if name else bool(functions)


def test_the_page_has_rows() -> None:
    assert len(rows()) > 30
    assert PAGE.count("| Threat | Limit | Test |") == 5


@pytest.mark.parametrize("threat", rows())
def test_each_row_names_tests_that_exist(threat: str) -> None:
    named = re.findall(r"`([^`]+)`", rows()[threat])
    assert named and [one for one in named if not exists(one)] == []


def test_a_test_that_does_not_exist_is_found() -> None:
    assert not exists("tests/docs/test_security.py::test_of_nothing")
    assert not exists("tests/docs/nothing.py") and not exists("tests/scenarios/security.yaml: nothing")


def test_the_workflow_audits_dependencies_and_writes_an_sbom() -> None:
    steps = [step for job in JOBS.values() for step in job["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert re.search(r"pip-audit .*--strict", commands)
    assert "cyclonedx-py environment" in commands
    uploads = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert "sbom.cdx.json" in uploads


def test_the_policy_leads_to_the_page() -> None:
    assert "docs/security.md" in (ROOT / "SECURITY.md").read_text()
