"""`--wait`: go on only when an object has come where it should, tell what is seen meanwhile, and why it cannot."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volcano_py.api.duration import parse_duration
from volcano_py.cli.bars import bar, has_blocks
from volcano_py.cli.follow import Followed, Source, following

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_TICK = 0.5
"""Seconds between two drawings of the same state on a terminal."""
_BAR = 16


class NotReached(ValueError):
    """What was waited for does not come; the text says why, and what to do."""


class Look(NamedTuple):
    """What is seen of it: a text, how much of it is done, whether that is all, or why it never will be."""

    text: str
    done: int = 0
    total: int = 0
    reached: bool = False
    lost: str = ""


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A duration on the command line: 90s, 1h30m, or a bare number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            seconds = float(value) if str(value).isdigit() else parse_duration(str(value))
        except ValueError as e:
            self.fail(str(e), param, ctx)
        if seconds < 0:
            self.fail(f"{value} is negative; give 0 to wait for ever", param, ctx)
        return seconds


timeout_option: Callable[..., Any] = click.option(
    "--timeout", type=Seconds(), default=0.0, help="How long to wait, such as 90s or 10m; 0 for ever."
)


def wait_option(text: str) -> Callable[..., Any]:
    """Adds --wait and --timeout; `text` says what is waited for."""

    waits: Callable[..., Any] = click.option("--wait", is_flag=True, help=text)
    return lambda command: waits(timeout_option(command))


async def wait(
    client: Client, subject: str, sources: Sequence[Source], look: Callable[[Followed], Look], timeout: float = 0.0
) -> None:
    """Wait until `look` says that it is reached. `timeout`: seconds, 0 for ever. Raises NotReached, KubeError."""
    begun = time.monotonic()
    progress = Progress(subject)
    try:
        async with following(client, *sources) as followed:
            while True:
                seen = look(followed)
                progress.show(seen)
                if seen.reached:
                    return
                if seen.lost:
                    raise NotReached(f"{subject} {seen.lost}")
                left = begun + timeout - time.monotonic() if timeout else _TICK
                if left <= 0:
                    raise NotReached(f"{subject} is still {seen.text} after {timeout:g}s; give more with --timeout")
                await followed.next(min(_TICK, left))
    finally:
        progress.end()


class Progress:
    """The state of a wait on standard error: one line drawn anew on a terminal, elsewhere a line for each news."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._begun = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._blocks = has_blocks(sys.stderr)
        self._last = ""

    def show(self, look: Look) -> None:
        """Draw what is seen now."""
        text = f"{self._subject}: {look.text}"
        if not self._terminal:
            if text != self._last:
                click.echo(text, err=True)
            self._last = text
            return
        passed = f" {time.monotonic() - self._begun:.0f}s"
        filled = f" {bar(look.done, look.total, _BAR, self._blocks)}" if look.total else ""
        room = shutil.get_terminal_size().columns - len(filled) - len(passed) - 1
        self._last = text[: max(room, 20)]
        click.echo(f"\r\x1b[K{self._last}{filled}{passed}", err=True, nl=False)

    def end(self) -> None:
        """Leave the line."""
        if self._terminal and self._last:
            click.echo("", err=True)
