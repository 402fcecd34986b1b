"""Control characters in texts of the cluster do not reach the terminal."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import click
import pytest
from rich.table import Table

import volcano_py.cli
from volcano_py.cli import terminal
from volcano_py.cli.errors import Program, Tool, fail

EVIL = "a\x1b[31mred\x1b[0m\x07bell\rover\x9b31m\x7fz"
SHOWN = "a\\u001b[31mred\\u001b[0m\\u0007bell\\u000dover\\u009b31m\\u007fz"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def redirected(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard output and standard error from now on: a file, or a terminal."""
    made = kind()
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setattr(sys, "stderr", made)
    return made


KINDS = pytest.mark.parametrize("kind", [io.StringIO, Terminal])


@KINDS
def test_every_program_escapes_what_it_prints(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    out = redirected(kind, monkeypatch)

    @click.command(cls=Tool)
    def tool() -> None:
        click.echo(f"message: {EVIL}\n\tnext")
        print(EVIL)
        click.echo(EVIL, err=True)

    with pytest.raises(SystemExit):
        tool.main([])
    text = out.getvalue()
    assert not set(text) & {"\x1b", "\x07", "\r", "\x9b", "\x7f"}
    assert "\n\tnext\n" in text
    if out.isatty():
        assert text.count(SHOWN) == 3


@KINDS
def test_errors_are_escaped_and_keep_their_colour(kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    out = redirected(kind, monkeypatch)

    @click.group(cls=Program)
    def program() -> None: ...

    @program.command()
    def broken() -> None:
        fail(f"Pod {EVIL} is invalid")

    with pytest.raises(SystemExit):
        program.main(["broken"])
    text = out.getvalue()
    if out.isatty():
        assert text.startswith("\x1b[31merror: \x1b[0m") and SHOWN in text
    else:
        assert "\x1b" not in text and "error: Pod a" in text


def test_json_stays_the_same_value() -> None:
    stream = io.StringIO()
    terminal.Escaping(stream).write(json.dumps({"m": EVIL + "\u202e"}, ensure_ascii=False))
    assert json.loads(stream.getvalue()) == {"m": EVIL + "\u202e"}


def test_the_direction_of_text_cannot_be_changed_on_a_terminal() -> None:
    stream = Terminal()
    terminal.Escaping(stream).write("a\u202eb")
    assert stream.getvalue() == "a\\u202eb"


def test_tables_of_rich_are_escaped_and_keep_their_style(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = redirected(Terminal, monkeypatch)
    table = Table("[bold]name[/bold]")
    table.add_row(EVIL.replace("\r", ""))
    with terminal.escaping():
        terminal.console(force_terminal=True, width=200, color_system="standard").print(table)
    text = stream.getvalue()
    assert "a\\u001b[31mred\\u001b[0m" in text and "\x1b[31m" not in text
    assert "\x1b[1m" in text


def test_logs_of_containers_are_printed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = redirected(Terminal, monkeypatch)
    with terminal.escaping():
        click.echo(terminal.passing(EVIL), nl=False)
    assert stream.getvalue() == EVIL


def test_no_command_writes_past_it() -> None:
    """Styles and consoles are those of the terminal module."""
    own = {"terminal.py"}
    for path in Path(volcano_py.cli.__file__).parent.glob("*.py"):
        text = path.read_text()
        if path.name not in own:
            assert "click.style(" not in text and "Console(" not in text, path.name
