"""`volcano-py simulate trace`: replays a trace of jobs in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import orjson

from volcano_py.cli import terminal
from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.cli.wrapping import wrapped
from volcano_py.scheduler.framework.config import DEFAULT_TEXT, Configuration, ConfigurationError
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.trace.engine import Outcome
from volcano_py.simulate.trace.figures import figures, plot, require_matplotlib
from volcano_py.simulate.trace.fill import fill
from volcano_py.simulate.trace.jobs import TraceError, TraceJob, TraceNode, read_jobs, read_nodes
from volcano_py.simulate.trace.queues import read_queues
from volcano_py.simulate.trace.side_by_side import replay_all

_LOW = 0.2
"""If less of the cluster is allocated, the jobs of a trace do not compete."""
STEPS = 2000
"""Number of steps of a trace without --interval."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nodes", required=True, help="Path to an openb CSV file, or COUNTxCORES for SWF, e.g. 1000x32.")
@click.option(
    "--conf",
    "--config",
    "confs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Path to a scheduler configuration. Can be repeated.",
)
@click.option(
    "--jobs", "limit", type=click.IntRange(1), help="Number of jobs to replay, earliest first (default: all)."
)
@click.option(
    "--compress",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="Divide the time between jobs by this factor.",
)
@click.option(
    "--interval", type=click.FloatRange(1), help="Duration of a step in seconds (default: 1/2000 of the trace)."
)
@click.option("--skip", is_flag=True, help="Skip invalid rows, and report their number.")
@click.option("--queues", type=click.Path(path_type=Path), help="Path to a YAML file with Queues (default: one queue).")
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="Number of configurations that are replayed at the same time (default: one per core).",
)
@click.option(
    "--arrivals",
    type=click.Choice(["trace", "fill"]),
    default="trace",
    show_default=True,
    help="When jobs arrive: as in the trace, or in random order without ends until 130 % of the GPUs are requested.",
)
@click.option("--seed", type=int, default=0, help="Seed for the choice among nodes with equal scores.")
@click.option(
    "--plot", "folder", type=click.Path(path_type=Path), help="Path to a folder for plots (SVG; requires matplotlib)."
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
def trace(
    file: Path,
    nodes: str,
    confs: tuple[Path, ...],
    limit: int | None,
    compress: float,
    interval: float | None,
    skip: bool,
    queues: Path | None,
    processes: int | None,
    arrivals: str,
    seed: int,
    folder: Path | None,
    output: str,
) -> None:
    """Replay a trace of jobs (openb CSV, or SWF) in virtual time.

    Prints the results for each configuration. Exits with 2 if the trace or a configuration is invalid.
    """
    try:
        if folder is not None:
            require_matplotlib()  # report it before the replay, which may take minutes
        cluster, cores = _nodes(nodes)
        jobs, skipped = read_jobs(file, cores, skip, arrivals == "fill")
        jobs = [msgspec.structs.replace(job, submitted=job.submitted / compress) for job in jobs[:limit]]
        loaded = {str(path): configuration(path.read_text(), False) for path in confs}
        loaded = loaded or {"built-in": configuration(DEFAULT_TEXT, False)}
        step = interval or max(1.0, (jobs[-1].submitted - jobs[0].submitted) / STEPS)
        if arrivals == "fill":
            _fill(jobs, cluster, loaded, seed, output)
            return
        own = read_queues(queues) if queues is not None else []
        replayed = replay_all(jobs, cluster, loaded, step, seed=seed, queues=own, processes=processes)
        outcomes: dict[str, Outcome] = {name: one.outcome for name, one in replayed.items()}
        plots = plot(outcomes, jobs, folder) if folder is not None else []
    except (TraceError, ConfigurationError, UnicodeDecodeError) as error:
        fail(str(error), 2)
    except OSError as error:
        fail(describe_os_error(error), 2)
    if skipped:
        click.echo(f"skipped {skipped} invalid rows", err=True)
    found = {name: {**figures(jobs, o), "run time": replayed[name].seconds} for name, o in outcomes.items()}
    for name, outcome in outcomes.items():
        for fault in dict.fromkeys(outcome.faults):
            click.echo(f"plugin fault ({name}): {fault}", err=True)
    never = next(iter(outcomes.values())).never
    for name, why in list(never.items())[:_MOST_NAMED]:
        click.echo(f"job {name} never fits: {why}", err=True)
    if len(never) > _MOST_NAMED:
        click.echo(f"{len(never) - _MOST_NAMED} more jobs never fit", err=True)
    if output == "json":
        click.echo(
            orjson.dumps(
                {"interval": step, "skipped": skipped, "neverFit": len(never), "figures": found},
                option=orjson.OPT_INDENT_2,
            )
        )
    else:
        _table(found)
        for note in _notes(found, step, compress):
            click.echo(wrapped(f"note: {note}", sys.stderr, 6), err=True)
    for path in plots:
        click.echo(f"wrote {path}", err=True)


_MOST_NAMED = 5


def _fill(
    jobs: list[TraceJob], nodes: list[TraceNode], configurations: dict[str, Configuration], seed: int, output: str
) -> None:
    """Print what is allocated when jobs arrive without end."""
    found = {}
    for name, conf in configurations.items():
        outcome, found[name] = fill(jobs, nodes, conf, seed)
        for fault in dict.fromkeys(outcome.faults):
            click.echo(f"plugin fault ({name}): {fault}", err=True)
    if output == "json":
        click.echo(orjson.dumps({"figures": found}, option=orjson.OPT_INDENT_2))
    else:
        _table(found)


def _nodes(text: str) -> tuple[list[TraceNode], int]:
    count, x, cores = text.partition("x")
    if x and count.isdecimal() and cores.isdecimal() and 0 < int(count) <= 100_000 and int(cores):
        capacity = {"cpu": 1000 * int(cores), "memory": 2**30}
        return [TraceNode(f"node-{i}", capacity) for i in range(int(count))], int(cores)
    return read_nodes(Path(text)), 32


def _table(found: dict[str, dict[str, float]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("FIGURE", overflow="fold")
    for name in found:
        table.add_column(name, justify="right", overflow="fold")
    for figure in dict.fromkeys(key for of in found.values() for key in of):
        unit = _unit(figure)
        label = f"{figure} ({unit})" if unit == "s" else figure
        table.add_row(label, *(_text(of.get(figure), unit) for of in found.values()))
    terminal.console().print(table)


def _notes(found: dict[str, dict[str, float]], step: float, compress: float) -> Iterator[str]:
    """What limits the meaning of the figures."""
    if any(of.get("wait, p50", step) < step for of in found.values()):
        yield (
            f"a cycle runs every {step:,.0f} s, and most waits are shorter than that: they depend on the steps, not on "
            "the configuration; set a smaller --interval"
        )
    highest = max(of.get("GPU allocated, highest", of.get("cpu allocated, highest", 1.0)) for of in found.values())
    if highest < _LOW:
        faster = f"--compress {max(2.0, 2 * compress * round(_LOW / max(highest, 1e-3))):g}"
        yield (
            f"at most {highest:.1%} of the cluster is allocated, so jobs do not compete: set more load, such as "
            f"{faster}, or a smaller cluster"
        )


def _unit(figure: str) -> str:
    """`s`, `%`, or none for counts, ratios and indices."""
    if figure.startswith("GPU") or "allocated" in figure:
        return "%"
    return "s" if figure.partition(",")[0] in ("wait", "completion", "makespan", "run time") else ""


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "%":
        return f"{value:.1%}"
    if unit == "s":
        return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3f}"
