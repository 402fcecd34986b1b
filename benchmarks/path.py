"""The path of one more pod through a busy cluster, from its events to the plan: the files and functions that it calls,
and how often."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import click

import volcano_py
from benchmarks.churn import busy, measure

ROOT = Path(volcano_py.__file__).parent


class Calls:
    """The calls of functions of the package in a step; a generator counts each time it continues."""

    def __init__(self) -> None:
        self.of: Counter[CodeType] = Counter()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Forget the calls of the step before, and count those of this one."""
        self.of.clear()
        sys.setprofile(self._count)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            self.of[frame.f_code] += 1

    def by_file(self) -> dict[str, int]:
        """The number of calls, by file in the order of the first one."""
        found: Counter[str] = Counter()
        for code, count in self.of.items():
            found[str(Path(code.co_filename).relative_to(ROOT))] += count
        return dict(found)


@click.command()
@click.option("--nodes", default=100, show_default=True)
@click.option("--gangs", default=20, show_default=True, help="Gangs of 10 pods that run.")
@click.option("--steps", default=30, show_default=True, help="Pods that come one after the other; the last one counts.")
@click.option("--files", is_flag=True, help="Print the files in the order of their first call.")
def path(nodes: int, gangs: int, steps: int, files: bool) -> None:
    """The path of one more pod: files and calls."""
    calls = Calls()
    measure(busy(nodes, gangs, 10), steps, calls.counted)
    found = calls.by_file()
    if files:
        for name, count in found.items():
            print(f"{count:6}  {name}")
    print(
        f"one more pod on {nodes} nodes with {gangs} gangs: {len(found)} files, {len(calls.of)} functions, "
        f"{sum(found.values())} calls"
    )
