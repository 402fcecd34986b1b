"""The version in all files that name it: `python -m charts.version` checks, `python -m charts.version 0.3.0` sets it.

Setting it also gives the section Unreleased of CHANGELOG.md the version and the date (docs/releases.md).
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES: dict[str, Sequence[str]] = {
    "pyproject.toml": (r'(?m)^(version = ")([^"]+)(")',),
    "volcano_py/__init__.py": (r'(__version__ = ")([^"]+)(")',),
    "charts/volcano/Chart.yaml": (r"(?m)^(version: )(\S+)()$", r'(?m)^(appVersion: ")([^"]+)(")'),
    "README.md": (r"(volcano-py:)(\d+\.\d+\.\d+)()", r"(image\.tag=)(\d+\.\d+\.\d+)()"),
    "docs/installation.md": (r"(volcano-py:)(\d+\.\d+\.\d+)()", r"(image\.tag=)(\d+\.\d+\.\d+)()"),
    "docs/migration.md": (r"(volcano-py:)(\d+\.\d+\.\d+)()", r"(image\.tag=)(\d+\.\d+\.\d+)()"),
}
"""File → patterns whose second group is the version."""
UNRELEASED = "## Unreleased\n"
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def found(root: Path = ROOT) -> dict[str, list[str]]:
    """The versions that each file names."""
    return {
        name: [match[2] for pattern in patterns for match in re.finditer(pattern, (root / name).read_text())]
        for name, patterns in PLACES.items()
    }


def problems(root: Path = ROOT) -> list[str]:
    """Files that name no version, or another one than pyproject.toml."""
    versions = found(root)
    [wanted] = versions["pyproject.toml"]
    wrong = [f"{name} names no version" for name, named in versions.items() if not named]
    for name, named in versions.items():
        wrong += [f"{name} names {one}, pyproject.toml {wanted}" for one in named if one != wanted]
    if f"\n## {wanted} " not in (root / "CHANGELOG.md").read_text():
        wrong.append(f"CHANGELOG.md has no section {wanted}")
    return wrong


def set_version(version: str, day: str, root: Path = ROOT) -> None:
    """Write a version everywhere. Raises ValueError."""
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version; write MAJOR.MINOR.PATCH")
    changes = (root / "CHANGELOG.md").read_text()
    if f"\n## {version} " in changes:
        raise ValueError(f"CHANGELOG.md has a section {version} already")
    head, mark, rest = changes.partition(UNRELEASED)
    if not mark:
        raise ValueError("CHANGELOG.md has no section Unreleased")
    (root / "CHANGELOG.md").write_text(f"{head}{UNRELEASED}\n## {version} - {day}\n{rest}")
    for name, patterns in PLACES.items():
        text = (root / name).read_text()
        for pattern in patterns:
            text = re.sub(pattern, rf"\g<1>{version}\g<3>", text)
        (root / name).write_text(text)


def notes(version: str, root: Path = ROOT) -> str:
    """The section of CHANGELOG.md about a version: the release notes. Raises ValueError."""
    text = (root / "CHANGELOG.md").read_text()
    match = re.search(rf"(?ms)^## {re.escape(version)} [^\n]*\n(.*?)(?=^## |\Z)", text)
    if match is None:
        raise ValueError(f"CHANGELOG.md has no section {version}")
    return match[1].strip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    if arguments[:1] == ["--notes"]:
        print(notes(arguments[1]), end="")
        return 0
    if arguments:
        set_version(arguments[0], datetime.date.today().isoformat())
    wrong = problems()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        sys.exit(f"error: {error}")
