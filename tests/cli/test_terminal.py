"""The output on terminals of 80 and 140 columns: nothing wraps within a word, nothing is lost, help is complete."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.simulate.test_snapshot import secretive, snapshot_of
from volcano_py.cli.columns import Table, fitted
from volcano_py.cli.errors import fail
from volcano_py.cli.job_table import job_table
from volcano_py.cli.job_waits import why_pending
from volcano_py.cli.main import main
from volcano_py.cli.queue_table import queue_table
from volcano_py.cli.vcctl import main as vcctl
from volcano_py.cli.what_if import Changes, compare
from volcano_py.cli.wrapping import counted, wrapped
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.snapshot import save


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(params=(80, 140))
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def terminal(monkeypatch: pytest.MonkeyPatch, name: str) -> Terminal:
    """A terminal as sys.stdout or sys.stderr. (A fixture runs before pytest sets its own streams.)"""
    stream = Terminal()
    monkeypatch.setattr(sys, name, stream)
    return stream


def lines_of(stream: io.StringIO) -> list[str]:
    return click.unstyle(stream.getvalue()).splitlines()


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")


def test_the_help_of_all_commands_fits_and_is_complete() -> None:
    found = [*commands(main, "volcano-py"), *commands(vcctl, "vcctl")]
    assert len(found) > 75
    for path, command in found:
        with click.Context(command, info_name=path, terminal_width=80) as context:
            text = command.get_help(context)
        assert max(map(len, text.splitlines())) <= 80, path
        cut = [line for line in text.splitlines() if line.endswith("...") and isinstance(command, click.Group)]
        assert not [line for line in cut if "ARGS" not in line], f"{path}: a summary is cut"


def test_an_error_wraps_between_words(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    err = terminal(monkeypatch, "stderr")
    message = "Job nope does not exist in namespace default, or was just deleted; list them with `vcctl job " * 3
    with pytest.raises(SystemExit):
        fail(message)
    lines = lines_of(err)
    assert max(map(len, lines)) <= width and len(lines) > 1
    assert " ".join(line.strip() for line in lines) == f"error: {message.strip()}"


def test_what_is_no_terminal_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert wrapped("word " * 100, io.StringIO()) == "word " * 100
    assert wrapped("w" * 100 + " end", Terminal(), 2) == "w" * 100 + "\n  end", "a word is never broken"


def job(name: str, phase: str = "Running") -> dict[str, object]:
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"state": {"phase": phase}},
    }


def test_a_list_of_jobs_fits_and_reports_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    out = terminal(monkeypatch, "stdout")
    err = terminal(monkeypatch, "stderr")
    job_table([job("train-large-language-model-2026-11"), job("b")], False).show()
    lines = lines_of(out)
    assert max(map(len, lines)) <= width
    assert ("JobType" in lines[0]) == (width == 140)
    assert ("left out" in err.getvalue()) == (width == 80) and "Running" in lines[1]
    assert len({line.index("Running") for line in lines[1:]}) == 1, "columns are aligned"


def test_nothing_is_left_out_of_wide_tables_and_pipes(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    for wide, stream in ((True, Terminal()), (False, io.StringIO())):
        monkeypatch.setattr(sys, "stdout", stream)
        job_table([job("n" * 60)], False, wide).show()
        assert "JobType" in stream.getvalue() and "RetryCount" in stream.getvalue()


def test_a_table_that_cannot_fit_keeps_its_columns(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    out = terminal(monkeypatch, "stdout")
    fitted(("Name", "Least"), [("n" * 150, "x")], optional=("Least",)).show()
    assert "Least" in out.getvalue()


def test_a_namespace_is_left_out_only_if_there_is_one(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    out = terminal(monkeypatch, "stdout")
    terminal(monkeypatch, "stderr")
    row = ["x" * (width - 10), "x"]
    for others, shown in ((("a", "a"), False), (("a", "b"), True)):
        out.truncate(0)
        Table(("Name", "Y", "Namespace"), [[*row, n] for n in others], (4, 2, 12), ("Namespace",)).show()
        assert ("Namespace" in out.getvalue()) == shown


def test_a_long_name_does_not_touch_the_next_column(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = {"metadata": {"name": "research-computer-vision-amsterdam"}, "spec": {"weight": 2, "parent": "research"}}
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    queue_table([queue], {}).show()
    assert lines_of(stream)[1].split() == ["research-computer-vision-amsterdam", "2", "research", *"00000"]


def test_differences_are_complete_at_any_width(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int) -> None:
    out = terminal(monkeypatch, "stdout")
    save(snapshot_of([o for o in secretive() if o["kind"] != "Node"]), tmp_path / "s")
    compare(tmp_path / "s", Changes(("1xcpu=8,memory=8Gi",)), None, 0, REGISTRY, "table")
    lines = lines_of(out)
    assert max(map(len, lines)) <= width and "…" not in out.getvalue()
    assert lines[0] == "waits for another reason (1)" and any("before:" in line for line in lines)
    assert lines[-1].startswith("In 3 cycles: started jobs 0 → ")


def test_numbers_have_the_right_plural() -> None:
    texts = [counted(n, noun) for n, noun in ((1, "job"), (2, "job"), (0, "PriorityClass"), (2, "Numatopology"))]
    assert texts == ["1 job", "2 jobs", "0 PriorityClasses", "2 Numatopologies"]


def condition(type_: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": "True", "message": message}


@pytest.mark.parametrize(
    ("phase", "conditions", "why"),
    [
        ("Running", [condition("Unschedulable", "of an earlier cycle")], ""),
        ("Inqueue", [condition("Unschedulable", "no node")], "no node"),
        ("Inqueue", [condition("Unschedulable", "no node"), condition("Waiting", "1 of 1 nodes.")], "1 of 1 nodes"),
        ("Pending", [condition("Waiting", "The cluster is full.")], "The cluster is full"),
        ("Pending", [], ""),
    ],
)
def test_why_a_podgroup_waits(phase: str, conditions: list[dict[str, str]], why: str) -> None:
    assert why_pending([{"status": {"phase": phase, "conditions": conditions}}]) == why
