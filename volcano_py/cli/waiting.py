"""`--wait`: returns when an object has reached a state; reports its progress, and why it fails to reach it."""

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
from volcano_py.cli.terminal import passing

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_TICK = 0.5
"""Seconds between two redraws of the same state on a terminal."""
_BAR = 16

_CLEARED = "\r\x1b[K"
"""Begins the last line of the terminal again."""


class NotReached(ValueError):
    """The state cannot be reached; the message contains the reason and the remedy."""


class State(NamedTuple):
    """Progress as text and as a fraction; whether the state is reached, or why it failed."""

    text: str
    done: int = 0
    total: int = 0
    reached: bool = False
    failed: str = ""


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
            self.fail(f"{value} is negative; use 0 to wait without a limit", param, ctx)
        return seconds


timeout_option: Callable[..., Any] = click.option(
    "--timeout", type=Seconds(), default=0.0, help="Time limit for --wait, such as 90s or 10m; 0 means no limit."
)


def wait_option(text: str) -> Callable[..., Any]:
    """Adds --wait and --timeout; `text` is the help of --wait."""

    waits: Callable[..., Any] = click.option("--wait", is_flag=True, help=text)
    return lambda command: waits(timeout_option(command))


async def wait(
    client: Client, subject: str, sources: Sequence[Source], state_of: Callable[[Followed], State], timeout: float = 0.0
) -> None:
    """Wait until `state_of` returns a reached state. `timeout`: seconds, 0: no limit.

    Raises NotReached and KubeError.
    """
    begun = time.monotonic()
    progress = Progress(subject)
    try:
        async with following(client, *sources) as followed:
            while True:
                state = state_of(followed)
                progress.show(state)
                if state.reached:
                    return
                if state.failed:
                    raise NotReached(f"{subject} {state.failed}")
                left = begun + timeout - time.monotonic() if timeout else _TICK
                if left <= 0:
                    raise NotReached(f"{subject} is still {state.text} after {timeout:g}s; increase --timeout")
                await followed.next(min(_TICK, left))
    finally:
        progress.end()


class Progress:
    """The state of a wait on standard error: one redrawn line on a terminal, otherwise one line per change."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._begun = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._blocks = has_blocks(sys.stderr)
        self._last = ""

    def show(self, state: State) -> None:
        """Show a state."""
        text = f"{self._subject}: {state.text}"
        if not self._terminal:
            if text != self._last:
                click.echo(text, err=True)
            self._last = text
            return
        passed = f" {time.monotonic() - self._begun:.0f}s"
        filled = f" {bar(state.done, state.total, _BAR, self._blocks)}" if state.total else ""
        width = shutil.get_terminal_size().columns - len(filled) - len(passed) - 1
        self._last = text[: max(width, 20)]
        click.echo(f"{passing(_CLEARED)}{self._last}{filled}{passed}", err=True, nl=False)

    def end(self) -> None:
        """End the line."""
        if self._terminal and self._last:
            click.echo("", err=True)
