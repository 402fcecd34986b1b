"""`volcano-py demo`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from volcano_py.cli import terminal
from volcano_py.cli.errors import describe_os_error, fail


@click.command()
@click.option("--keep", is_flag=True, help="Keep the cluster running after the demo.")
@click.option(
    "--dashboard/--no-dashboard", default=True, show_default=True, help="Serve the dashboard if it is installed."
)
@click.option("--seed", type=int, default=0, help="Seed for names, sizes and times.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".sandbox/demo/kubeconfig"),
    show_default=True,
    help="Path of the kubeconfig file to write.",
)
def demo(keep: bool, dashboard: bool, seed: int, kubeconfig: Path) -> None:
    """Show a gang job scheduled on an embedded cluster (about 25 seconds)."""
    from volcano_py.sandbox.terminal import missing_extra

    if problem := missing_extra():
        fail(problem)
    from volcano_py.demo.play import DemoError, play
    from volcano_py.demo.story import story
    from volcano_py.kube.errors import ApiError, Unreachable

    # a signal from outside also shuts the cluster of the demo down, as Ctrl-C does
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        console = terminal.console()
        if not console.is_terminal:
            console = terminal.console(width=120)
        completed = asyncio.run(play(story(seed), kubeconfig.absolute(), keep, dashboard, console))
    except (DemoError, ApiError, Unreachable) as e:
        fail(str(e))
    except OSError as e:
        fail(f"{describe_os_error(e)}; set another path with --kubeconfig")
    except KeyboardInterrupt:
        fail("interrupted; the cluster of the demo was shut down", 130)
    if not completed:
        fail("not every job completed; see the table above")
