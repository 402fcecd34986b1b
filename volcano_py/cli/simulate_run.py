"""`volcano-py simulate run`: the scheduler's decisions for described clusters."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec
import orjson

from volcano_py.cli import terminal
from volcano_py.cli.errors import fail
from volcano_py.cli.reading import lines
from volcano_py.cli.wrapping import wrapped
from volcano_py.kube.flags import parse_gates
from volcano_py.scheduler.configuration.extensions import ExtensionError, extended
from volcano_py.scheduler.framework.config import DEFAULT_TEXT, Configuration, ConfigurationError
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.feature_gates import enabled_gates
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.batch import Defaults, configuration, run_lines
from volcano_py.simulate.cycles import CycleResult, Simulation
from volcano_py.simulate.jobs import is_job
from volcano_py.simulate.manifests import STRUCTS, Manifest, ManifestError, is_read, read


@click.command()
@click.argument("files", nargs=-1, metavar="[FILES|-]...")
@click.option(
    "--conf",
    "--config",
    type=click.Path(path_type=Path),
    help="Path to a scheduler configuration (default: the built-in one).",
)
@click.option("--cycles", type=click.IntRange(1), help="Number of cycles to run (default: 1; with --from 3).")
@click.option(
    "--from",
    "snapshot",
    type=click.Path(path_type=Path),
    help="Path to a snapshot; print what differs with the changes.",
)
@click.option("--add-nodes", multiple=True, metavar="COUNTxSHAPE", help="With --from: 4xcpu=32,memory=256Gi or 4xNODE.")
@click.option("--job", "jobs", multiple=True, help="With --from: path to a file with new jobs or other objects.")
@click.option("--recreate", is_flag=True, help="Recreate evicted pods, as controllers do.")
@click.option("--parity", is_flag=True, help="Decide exactly as Volcano: turn all deviations off.")
@click.option("--raw", is_flag=True, help="Use the objects unchanged, without defaults or added queues.")
@click.option("--seed", type=int, default=0, help="Seed for the choice among nodes with equal scores.")
@click.option(
    "--jsonl", is_flag=True, help="Batch mode: one case per input line, one result per output line (docs/simulate.md)."
)
@click.option("--plugins-dir", default="", help="Folder of Python files with custom plugins and actions.")
@click.option("--feature-gates", default="", help="Comma-separated list of Name=true|false, as for the scheduler.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
def run(
    files: tuple[str, ...],
    conf: Path | None,
    cycles: int | None,
    snapshot: Path | None,
    add_nodes: tuple[str, ...],
    jobs: tuple[str, ...],
    recreate: bool,
    parity: bool,
    raw: bool,
    seed: int,
    jsonl: bool,
    plugins_dir: str,
    feature_gates: str,
    output: str,
) -> None:
    """Run scheduling cycles over manifests, and print the decisions.

    Manifests describe nodes, queues, Jobs, PodGroups, pods and other objects that the scheduler reads. Between two
    cycles bound pods start and evicted pods are deleted (or recreated with --recreate); nothing else happens.
    """
    features = enabled_gates(parse_gates(feature_gates))
    try:
        registry = extended(REGISTRY, plugins_dir)
    except ExtensionError as e:
        fail(str(e), 2)
    if snapshot is not None:
        if jsonl or raw or recreate:
            raise click.UsageError("--from cannot be combined with --jsonl, --raw or --recreate")
        from volcano_py.cli.what_if import Changes, compare

        compare(snapshot, Changes(add_nodes, (*files, *jobs), conf, parity), cycles, seed, registry, output)
        return
    if add_nodes or jobs:
        raise click.UsageError("--add-nodes and --job change a snapshot; set it with --from")
    cycles = cycles or 1
    if jsonl:
        try:
            defaults = Defaults(_text(conf), cycles, seed, parity, raw, features, recreate)
            for line in run_lines(lines(files), defaults, registry):
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()
        except (ConfigurationError, ManifestError) as e:
            fail(str(e), 2)
        return
    if not files:
        raise click.UsageError("specify manifest files, or - for standard input")
    try:
        chosen = _configuration(conf, parity, registry)
        manifests = read(files)
        simulation = Simulation(manifests, seed=seed, raw=raw, registry=registry, features=features, recreates=recreate)
    except (ConfigurationError, ManifestError) as e:
        fail(str(e), 2)
    if not any(manifest["kind"] == "Node" for manifest in manifests):
        note = "the manifests contain no Node, so no pod is placed; add nodes, or use a snapshot with --from"
        click.echo(wrapped(f"warning: {note}", sys.stderr, 9), err=True)
    results = [simulation.cycle(chosen) for _ in range(cycles)]
    _warn(chosen, manifests, simulation, raw)
    if output == "json":
        document = {"cycles": [msgspec.to_builtins(r) for r in results]}
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    else:
        for number, result in enumerate(results, 1):
            _table(result, number if cycles > 1 else 0)


def _warn(chosen: Configuration, manifests: list[Manifest], simulation: Simulation, raw: bool) -> None:
    """Print what has no effect, and what is invalid."""
    for warning in (*chosen.warnings, *simulation.warnings):
        click.echo(wrapped(f"warning: {warning}", sys.stderr, 9), err=True)
    plugins = {option.name for tier in chosen.tiers for option in tier}
    if "network-topology-aware" not in plugins and any(m["kind"] == "HyperNode" for m in manifests):
        text = "HyperNodes have no effect: the configuration lacks the plugin network-topology-aware"
        click.echo(wrapped(f"warning: {text}; set one with --conf", sys.stderr, 9), err=True)
    unknown = (_kind_of(m) for m in manifests if not is_read(m) and (raw or not is_job(m)))
    for kind in dict.fromkeys(unknown):
        hint = "if it creates pods, add the pods to the manifests"
        text = f"left out: {kind}, the scheduler does not read this kind; {hint}"
        click.echo(wrapped(text, sys.stderr, 10), err=True)
    for reason in simulation.rejected:
        click.echo(wrapped(f"invalid: {reason}", sys.stderr, 9), err=True)


def _kind_of(manifest: Manifest) -> str:
    """`Deployment`; `Queue of kueue.x-k8s.io` if the kind alone would be ambiguous."""
    group, _, _ = str(manifest.get("apiVersion") or "").rpartition("/")
    return f"{manifest['kind']} of {group}" if manifest["kind"] in STRUCTS and group else str(manifest["kind"])


def _configuration(path: Path | None, parity: bool, registry: Registry) -> Configuration:
    try:
        return configuration(_text(path), parity, registry)
    except ConfigurationError as e:
        raise ConfigurationError(f"{path}: {e}" if path else str(e)) from None


def _text(path: Path | None) -> str:
    """The configuration in a file, or the built-in one. Raises ConfigurationError."""
    if path is None:
        return DEFAULT_TEXT
    try:
        return path.read_text()
    except OSError as e:
        raise ConfigurationError(f"{path}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: not UTF-8 text") from None


def _table(result: CycleResult, number: int) -> None:
    from rich.table import Table

    console = terminal.console()
    if number:
        console.print(f"[bold]Cycle {number}[/bold]")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("POD", "DECISION", "NODE"):
        table.add_column(column, overflow="fold")
    for pod, node in result.bound.items():
        table.add_row(pod, "[green]bound[/green]", node)
    for pod, node in result.pipelined.items():
        table.add_row(pod, "[yellow]waits for capacity[/yellow]", node)
    for pod in result.evicted:
        table.add_row(pod, "[red]evicted[/red]", "")
    if table.row_count:
        console.print(table)
    else:
        console.print("Nothing is bound or evicted.")
    if result.claims:
        console.print("\n[bold]Claims[/bold]")
        for claim, got in result.claims.items():
            console.print(f"  {claim.partition(':')[2]}: {_claimed(got)}", soft_wrap=True, highlight=False)
    if result.waiting:
        console.print("\n[bold]Waiting[/bold]")
        for group, reason in result.waiting.items():
            stated = next((c for c in result.conditions.get(group, ()) if c["type"] == "Waiting"), None)
            why = f"{stated['reason']}: {stated['message']}" if stated else reason
            text = f"  {group} ({result.phases.get(group, '-')}): {why}"
            click.echo(wrapped(text, sys.stdout, 4))
    for fault in result.faults:
        console.print(f"[red]plugin fault:[/red] {fault}", soft_wrap=True, highlight=False)
    console.print()


def _claimed(got: str) -> str:
    """The result for a claim as text."""
    return f"a volume is provisioned near node {got[1:]}" if got.startswith("@") else got
