"""`volcano-py replay`: runs the cycles of a recording again."""

from __future__ import annotations

from pathlib import Path

import click

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.cli.wrapping import counted


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cycle", type=int, help="Report only this cycle; earlier cycles run without a report.")
@click.option("-v", "--verbose", is_flag=True, help="Log every result of the plugins' callbacks.")
@click.option("--plugins-dir", default="", help="Folder of Python files with custom plugins and actions.")
def replay(file: Path, cycle: int | None, verbose: bool, plugins_dir: str) -> None:
    """Run the cycles and attempts of a file that `volcano-py scheduler --record DIR` wrote; compare the decisions.

    Exits with 0 if all are identical, 1 if some differ, and 2 if the file is invalid.
    """
    from volcano_py.scheduler.configuration.extensions import ExtensionError, extended, profile_plugins
    from volcano_py.scheduler.recording.archive import ArchiveError
    from volcano_py.scheduler.run_once import REGISTRY
    from volcano_py.simulate import replay as replays

    count = attempts = different = 0
    log = (lambda text: click.echo(f"    {text}")) if verbose else None
    try:
        plugins, of_profiles = extended(REGISTRY, plugins_dir), profile_plugins(plugins_dir)
        for found in replays.replay(file, cycle, registry=plugins, profile_plugins=of_profiles, log=log):
            different += not found.identical
            if isinstance(found, replays.ReplayedAttempt):
                attempts += 1
                if verbose or not found.identical:
                    _print_attempt(found)
                continue
            count += 1
            if cycle in (None, found.cycle.number):
                _print(found)
    except (ArchiveError, ExtensionError) as error:
        fail(str(error), 2)
    except OSError as error:
        fail(describe_os_error(error), 2)
    if not count:
        fail(f"{file}: it contains no cycle, so nothing was compared; record with volcano-py scheduler --record DIR", 2)
    compared = counted(count, "cycle") + (f" and {counted(attempts, 'attempt')}" if attempts else "")
    click.echo(f"{compared}, {count + attempts - different} with identical decisions")
    raise SystemExit(1 if different else 0)


def _print(found: object) -> None:
    import msgspec

    from volcano_py.api.meta import format_time
    from volcano_py.simulate.replay import Replayed

    assert isinstance(found, Replayed)
    line = found.cycle
    verdict = "identical" if found.identical else "DIFFERENT"
    click.echo(
        f"cycle {line.number}  {format_time(line.now)}  {counted(len(found.decided), 'operation')}  "
        f"{found.report.bound} bound  {found.report.evicted} evicted  {verdict}"
    )
    if not found.identical:
        for sign, one, other in (("-", found.recorded, found.decided), ("+", found.decided, found.recorded)):
            for operation in one:
                if operation not in other:
                    click.echo(f"  {sign} {msgspec.json.encode(operation).decode()}")


def _print_attempt(found: object) -> None:
    from volcano_py.simulate.replay import ReplayedAttempt

    assert isinstance(found, ReplayedAttempt)
    click.echo(f"attempt {found.search.pod}  {'identical' if found.identical else 'DIFFERENT'}")
    if found.identical:
        click.echo(f"    {_outcome(found.outcome)}")
        return
    click.echo(f"  - {_outcome(found.search.outcome)}\n  + {_outcome(found.outcome)}")


def _outcome(outcome: object) -> str:
    import msgspec

    return msgspec.json.encode(outcome).decode()
