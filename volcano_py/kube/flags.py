"""Flags of Kubernetes components: Go's switches and durations, feature gates, and klog's flags without effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from volcano_py.api.duration import parse_duration

KLOG = (
    "log-flush-frequency",
    "logtostderr",
    "alsologtostderr",
    "stderrthreshold",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "one-output",
    "skip-headers",
    "skip-log-headers",
    "add-dir-header",
    "vmodule",
)
"""Flags of Go's logging; they are accepted so that a deployment's arguments remain valid."""

REDIRECTION = "2>&1"
"""An argument that Volcano's chart passes to its programs, without a shell that would interpret it."""
_TOOL_FLAGS = frozenset(("-v", "--v", "--vmodule", "--log-flush-frequency"))


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.5
    """Seconds, in Go's duration format."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float | int):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DEBUG_FROM = 4
"""The klog level from which everything is logged."""


class Verbosity(click.ParamType):  # type: ignore[type-arg]
    """A klog level: `-v=3` as in Go, `-v 3` or `-v3`."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(str(value).removeprefix("="))
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)


def flag(name: str, default: bool, help: str, attribute: str | None = None) -> Callable[[Any], Any]:
    """A switch in Go's notation: `--name`, `--name=true` or `--name=false`."""
    names = (name, attribute) if attribute else (name,)
    return click.option(
        *names, type=bool, is_flag=False, flag_value=True, default=default, show_default=True, help=help
    )


def ignored_flags(names: Sequence[str]) -> Callable[[Any], Any]:
    """Accept flags that have no effect, and REDIRECTION; the parameters of absent flags are None."""

    def decorate(command: Any) -> Any:
        command = click.argument("redirection", nargs=-1, expose_value=False, callback=_only_redirection)(command)
        for name in names:
            command = click.option(
                f"--{name}", is_flag=False, flag_value="true", default=None, hidden=True, expose_value=True
            )(command)
        return command

    return decorate


def _only_redirection(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    if others := [text for text in value if text != REDIRECTION]:
        raise click.UsageError(f"Got unexpected extra argument ({others[0]})", ctx)


def without_klog_flags(arguments: Sequence[str]) -> list[str]:
    """The arguments without klog's flags, which Volcano's tools accept at any position: `-v 3`, `--vmodule=a=2`."""
    kept: list[str] = []
    waiting = list(arguments)
    while waiting:
        text = waiting.pop(0)
        if text == "--":
            return [*kept, text, *waiting]
        name, equals, _ = text.partition("=")
        if name not in _TOOL_FLAGS:
            kept.append(text)
        elif not equals and waiting:
            waiting.pop(0)
    return kept


def parse_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false` as a dict. Raises click.BadParameter."""
    gates = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise click.BadParameter(f"--feature-gates: {part!r} should be Name=true or Name=false")
        gates[name.strip()] = value.lower() == "true"
    return gates
