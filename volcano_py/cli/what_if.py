"""`volcano-py simulate run --from SNAPSHOT`: decisions for a snapshot, and what differs with changes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click
import msgspec
import orjson

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.cli.terminal import style
from volcano_py.cli.wrapping import counted, wrapped
from volcano_py.scheduler.framework.config import Configuration, ConfigurationError
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.recording.archive import ArchiveError
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.manifests import ManifestError, read
from volcano_py.simulate.snapshot import Snapshot, load, summary
from volcano_py.simulate.what_if import CHANGES, CYCLES, Difference, Run, differences, nodes_to_add, run, simulation_of


class Changes(msgspec.Struct):
    """Changes to the snapshot."""

    nodes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    conf: Path | None = None
    parity: bool = False


def loaded(file: Path) -> Snapshot:
    """The snapshot in a file; exits with 2 if the file is invalid."""
    try:
        return load(file)
    except ArchiveError as error:
        _fail(error)
    except OSError as error:
        fail(describe_os_error(error), 2)


def compare(file: Path, changes: Changes, cycles: int | None, seed: int, registry: Registry, output: str) -> None:
    """Run the snapshot with and without the changes, and print the differences."""
    snapshot = loaded(file)
    for text in summary(snapshot.unread):
        click.echo(f"not in the snapshot: {text}", err=True)
    length = CYCLES if cycles is None else cycles
    try:
        text = snapshot.configuration_text
        old = _configuration(text, f"{file}: its configuration", False, registry)
        new = old
        if changes.conf is not None or changes.parity:
            where = str(changes.conf) if changes.conf else f"{file}: its configuration"
            new = _configuration(changes.conf.read_text() if changes.conf else text, where, changes.parity, registry)
        added = [node for shape in changes.nodes for node in nodes_to_add(shape, snapshot)] + read(changes.files)
        before = run(simulation_of(snapshot, seed=seed, registry=registry), old, length)
        after = run(simulation_of(snapshot, added, seed=seed, registry=registry), new, length)
    except (ConfigurationError, ManifestError) as error:
        _fail(error)
    except (OSError, UnicodeDecodeError) as error:
        fail(describe_os_error(error) if isinstance(error, OSError) else f"{changes.conf}: not UTF-8 text", 2)
    for fault in dict.fromkeys((*before.faults, *after.faults)):
        click.echo(f"plugin fault: {fault}", err=True)
    _print(before, after, differences(before, after), length, output)


def _configuration(text: str, where: str, parity: bool, registry: Registry) -> Configuration:
    try:
        return configuration(text, parity, registry)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _fail(error: Exception) -> NoReturn:
    fail(str(error), 2)


def _print(before: Run, after: Run, found: list[Difference], cycles: int, output: str) -> None:
    if output == "json":
        document = {"cycles": cycles, "differences": found, "before": before, "after": after}
        click.echo(orjson.dumps(msgspec.to_builtins(document), option=orjson.OPT_INDENT_2))
        return
    compared = any(of for run in (before, after) for of in (run.started, run.waiting, run.evicted))
    if not found and not compared:
        click.echo("Nothing was compared: no job waits, starts or is evicted, before or after the changes.")
        return
    if not found:
        click.echo(f"No difference in {counted(cycles, 'cycle')}.")
        return
    titles = before.titles | after.titles
    for change in CHANGES:
        of = [difference for difference in found if difference.change == change]
        if of:
            click.echo(style(f"{change} ({len(of)})", bold=True))
        for difference in of:
            _print_one(titles.get(difference.job, difference.job), difference)
    if any(difference.change == "is admitted" for difference in found):
        note = "note: the pods of an admitted job are created by its controller; a snapshot does not contain the Job"
        click.echo("\n" + wrapped(f"{note}; to see whether it starts, pass the Job with --job", sys.stdout, 2))
    evicted = [sum(run.evicted.values()) for run in (before, after)]
    click.echo(
        f"\nIn {counted(cycles, 'cycle')}: started jobs {len(before.started)} → {len(after.started)}, "
        f"evicted pods {evicted[0]} → {evicted[1]}"
    )


def _print_one(title: str, difference: Difference) -> None:
    """The job in one line, or with a line for each run."""
    before, after = difference.before, difference.after
    if before:
        click.echo(f"  {title}")
        for label, text in (("before", before), ("after", after)):
            if text:
                click.echo(f"    {label}: ".ljust(12) + wrapped(text, sys.stdout, 12, 12))
    else:
        click.echo(f"  {title}: " + wrapped(after or "no reason reported", sys.stdout, 4, len(title) + 4))
