"""The pages: generated ones are up to date, links resolve, code blocks parse, every plugin and action has its page."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from volcano_py.scheduler.framework.deviations import DEVIATIONS
from volcano_py.scheduler.framework.extension_points.table import POINTS
from volcano_py.scheduler.run_once import REGISTRY

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_generated_pages_are_up_to_date() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            broken.append(target)
    assert not broken


def test_files_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 50
    assert not [name for name in named if not (ROOT / "volcano_py" / name).exists()]


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(BLOCK.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_site_shows_code_blocks_as_such(page: Path) -> None:
    # With a word after the language, the site's generator takes the block, and what follows, for ordinary text.
    assert not re.findall(r"^ *```\w*[ \t]+\S.*$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_parse(page: Path) -> None:
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python" and not text.startswith("session."):
            ast.parse(text)
        elif language == "yaml":
            list(yaml.safe_load_all(text))
        elif language == "json":
            json.loads(text)
        elif language in ("sh", "bash") and shutil.which("bash"):
            checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("kind", ["plugins", "actions"])
def test_each_plugin_and_action_has_a_page(kind: str) -> None:
    pages = {p.stem for p in (ROOT / "docs" / kind).glob("*.md")} - {"README"}
    assert pages == set(getattr(REGISTRY, kind))


def test_each_deviation_has_a_section() -> None:
    assert set(DEVIATIONS) <= set(HEADING.findall((ROOT / "docs" / "deviations.md").read_text()))


def test_every_extension_point_is_on_the_reference_page() -> None:
    page = (ROOT / "docs" / "extension-points.md").read_text()
    assert [p.method for p in POINTS.values() if f"### {p.method}\n" not in page] == []
