"""`volcano-py simulate profiles`: schedules pod by pod with the profiles of a KubeSchedulerConfiguration."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import orjson

from volcano_py.cli.errors import fail
from volcano_py.cli.reading import lines
from volcano_py.cli.wrapping import columns_of, wrapped
from volcano_py.kube.flags import parse_gates
from volcano_py.scheduler.configuration.extensions import ExtensionError, profile_plugins
from volcano_py.scheduler.framework.config import ConfigurationError as NoYaml
from volcano_py.scheduler.framework.config import read_yaml
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, features_of, load
from volcano_py.scheduler.profiles.release import DEFAULT, release_of
from volcano_py.simulate.complete import complete_for_profiles
from volcano_py.simulate.manifests import Manifest, ManifestError, read
from volcano_py.simulate.profile_calls import PluginCall, recorded
from volcano_py.simulate.profiles import Scenario, run, run_lines


@click.command()
@click.argument("files", nargs=-1, metavar="[FILES|-]...")
@click.option(
    "--config", type=click.Path(path_type=Path), help="Path to a KubeSchedulerConfiguration (default: an empty one)."
)
@click.option("--until", type=click.IntRange(0), default=60, show_default=True, help="Seconds of virtual time.")
@click.option("--calls", is_flag=True, help="Print the calls of all plugins, in order, with their results.")
@click.option("--jsonl", is_flag=True, help="Batch mode: one scenario per input line, one result per output line.")
@click.option("--plugins-dir", default="", help="Folder of Python files with custom plugins.")
@click.option("--feature-gates", default="", help="Comma-separated list of Name=true|false, as for the scheduler.")
@click.option(
    "--kubernetes-version",
    default="",
    help="Decide as kube-scheduler of this version, 1.36 or 1.37 (default: that of the scenario, else 1.36).",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
def profiles(
    files: tuple[str, ...],
    config: Path | None,
    until: int,
    calls: bool,
    jsonl: bool,
    plugins_dir: str,
    feature_gates: str,
    kubernetes_version: str,
    output: str,
) -> None:
    """Schedule pod by pod with a KubeSchedulerConfiguration.

    The time is virtual: no step waits (docs/profiles.md).
    """
    try:
        registry = profile_plugins(plugins_dir)
        if jsonl:
            if config is not None or calls:
                raise click.UsageError(
                    "--jsonl cannot be combined with --config or --calls: each line contains its own"
                )
            for line in run_lines(lines(files), registry, kubernetes_version):
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()
            return
        if not files:
            raise click.UsageError("specify manifest files, or - for standard input")
        made: list[PluginCall] = []
        version = kubernetes_version or DEFAULT.name
        scenario = Scenario(_document(config), parse_gates(feature_gates), _objects(files), [], until, version)
        outcome = run(scenario, recorded(registry, made.append) if calls else registry)[-1]
        features = features_of(scenario.feature_gates or {}, release_of(version))
        names = {p.name for p in load(scenario.config, features, registry).profiles}
    except ProfilesConfigurationError as e:
        fail(f"{config}: {e}" if config else str(e), 2)
    except (ManifestError, ExtensionError) as e:
        fail(str(e), 2)
    if output == "json":
        document = {**outcome, **({"calls": msgspec.to_builtins(made)} if calls else {})}
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return
    pods = [*_pods(scenario.objects, outcome, names)]
    if pods:
        _table(("POD", "PROFILE", "NODE", "REASON"), pods)
    else:
        click.echo("No pod of the manifests waits for a node.")
    if calls:
        click.echo()
        rows = ((f"{c.at:.3f}", c.pod, c.point, c.plugin, c.node, c.answer) for c in made)
        _table(("TIME", "POD", "POINT", "PLUGIN", "NODE", "ANSWER"), rows)


def _document(path: Path | None) -> dict[str, Any]:
    """The configuration. Raises ConfigurationError."""
    if path is None:
        return {}
    try:
        found = read_yaml(path.read_text())
    except OSError as e:
        raise ProfilesConfigurationError(e.strerror or str(e)) from None
    except (NoYaml, UnicodeDecodeError) as e:
        raise ProfilesConfigurationError(str(e)) from None
    if not isinstance(found, dict):
        raise ProfilesConfigurationError("the document must be a KubeSchedulerConfiguration")
    return found


def _objects(files: Iterable[str]) -> list[Manifest]:
    """The objects of manifests; Volcano's kinds are skipped and reported. Raises ManifestError."""
    found = read(files)
    for kind in dict.fromkeys(m["kind"] for m in found if _is_volcanos(m)):
        click.echo(f"left out: {kind} of Volcano, profiles do not read this kind; use simulate run", err=True)
    return complete_for_profiles([m for m in found if not _is_volcanos(m)])


def _is_volcanos(manifest: Manifest) -> bool:
    return str(manifest.get("apiVersion") or "").partition("/")[0].endswith("volcano.sh")


def _pods(objects: Iterable[Manifest], outcome: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, ...]]:
    """A row for each pod that waited for a node, or was evicted."""
    for pod in objects:
        if pod["kind"] != "Pod":
            continue
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        profile, node = pod["spec"]["schedulerName"], outcome["bound"].get(key, "")
        if key in outcome["deleted"]:
            yield key, profile, "", "evicted"
        elif not pod["spec"].get("nodeName"):
            yield key, profile, node, "" if node else _reason(pod, key, outcome, names)


def _reason(pod: Manifest, key: str, outcome: Mapping[str, Any], names: Collection[str]) -> str:
    """Why a pod has no node."""
    spec = pod["spec"]
    if spec["schedulerName"] not in names:
        return f"no profile has the schedulerName {spec['schedulerName']}; profiles are {', '.join(sorted(names))}"
    if key in outcome["reason"]:
        nominated = outcome["nominated"].get(key)
        return (f"waits for evictions on {nominated}: " if nominated else "") + str(outcome["reason"][key])
    if spec.get("schedulingGates"):
        return f"gated: {', '.join(g['name'] for g in spec['schedulingGates'])}"
    return "waits: for its group, for Permit, or for a program over HTTP, which a simulation does not call"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns with the width of their longest entry; the last one is free text."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header) - 1)]
    before = sum(widths) + 2 * len(widths)
    columns = columns_of(sys.stdout) or 0
    indent = before if before < columns // 2 else 4
    for line in lines:
        padded = (f"{text:{width}}" for text, width in zip(line, widths, strict=False))
        rest = wrapped(line[-1], sys.stdout, indent, before if before < columns else 0)
        click.echo("  ".join((*padded, rest)).rstrip())
