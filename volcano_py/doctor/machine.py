"""Checks of this machine: Python, packages, programs."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from volcano_py.doctor.finding import Finding

OLDEST_PYTHON = (3, 11)
EXTRAS = {
    "sandbox": ("jsonschema_rs", "`volcano-py demo` and `volcano-py sandbox`"),
    "dashboard": ("nicegui", "`volcano-py dashboard`"),
    "fast": ("numba", "compiled kernels of large sessions"),
}
"""Extra → one of its modules, and what needs it."""
_REQUIREMENT = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)\s*$")


def machine_findings(
    python: tuple[int, ...] = tuple(sys.version_info[:3]),
    installed: Callable[[str], str] = version,
    has_module: Callable[[str], bool] | None = None,
    which: Callable[[str], str | None] = shutil.which,
) -> Iterator[Finding]:
    """The problems of this machine. The parameters are replaced in tests."""
    if python[:2] < OLDEST_PYTHON:
        found, oldest = ".".join(map(str, python)), ".".join(map(str, OLDEST_PYTHON))
        yield Finding(
            "error", "python", f"Python is {found}", f"install Python {oldest} or later, and volcano-py in it"
        )
    yield from _packages(installed)
    present = has_module or _has_module
    for extra, (module, needed) in EXTRAS.items():
        if not present(module):
            remedy = f"if you need it: pip install 'volcano-py[{extra}]'"
            yield Finding("note", "extras", f"the extra [{extra}] is not installed; it is for {needed}", remedy)
    for program in ("kubectl", "helm"):
        if which(program) is None:
            remedy = f"install {program}, or put its folder into PATH"
            yield Finding("note", "programs", f"{program} is not in PATH", remedy)


def _packages(installed: Callable[[str], str]) -> Iterator[Finding]:
    try:
        wanted = requires("volcano-py") or []
    except PackageNotFoundError:
        yield Finding(
            "warning",
            "packages",
            "the package volcano-py is not installed; its requirements are not checked",
            "pip install volcano-py",
        )
        return
    for requirement in wanted:
        name, separator, _ = requirement.partition(";")
        match = _REQUIREMENT.match(name)
        if separator or match is None:
            continue  # of an extra
        remedy = f"pip install --upgrade '{name.strip()}'"
        try:
            found = installed(match[1])
        except PackageNotFoundError:
            yield Finding("error", "packages", f"package {match[1]} is not installed", remedy)
            continue
        if _numbers(found) < _numbers(match[2]):
            yield Finding("error", "packages", f"package {match[1]} is {found}, older than {match[2]}", remedy)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _has_module(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None
