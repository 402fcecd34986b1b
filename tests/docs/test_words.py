"""docs/glossary.md lists words that are not used; here they are looked for in code, docs, examples and the chart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = re.compile(r"^Not used: (.+?)\.$", re.MULTILINE | re.DOTALL)
QUOTED = {
    "volcano_py/scheduler/profiles/attempts/group_cycle.py": "plugins asked to wait",
    "docs/deviations.md": "a job that fits only across domains waits, and says why",
}
"""Texts of kube-scheduler and names of scenarios that contain such a word, by file."""
FOLDERS = {
    "volcano_py": "*.py",
    "docs": "*.md",
    "examples": "*.*",
    "charts": "*.*",
    "benchmarks": "*.py",
    "tests/reference": "*.py",
    "tests/scheduler": "*.py",
}


def words() -> list[str]:
    """The words that the glossary excludes."""
    found = LISTED.search((ROOT / "docs" / "glossary.md").read_text())
    assert found is not None, "docs/glossary.md has no line that begins with `Not used: `"
    return [" ".join(word.split()) for word in found[1].split(",")]


def files() -> Iterator[Path]:
    for folder, pattern in FOLDERS.items():
        yield from sorted(p for p in (ROOT / folder).rglob(pattern) if p.suffix in (".py", ".md", ".yaml", ".tpl"))
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))


def test_the_words_that_the_glossary_excludes_are_not_used() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words()))})\b", re.IGNORECASE)
    found = []
    for path in files():
        name = str(path.relative_to(ROOT))
        if name == "docs/glossary.md":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := pattern.search(line.replace(QUOTED.get(name, "\0"), "")):
                found.append(f"{name}:{number}: {match[0]}")
    assert found == []


@pytest.mark.parametrize("name", QUOTED)
def test_every_exception_is_still_there(name: str) -> None:
    assert QUOTED[name] in (ROOT / name).read_text()
