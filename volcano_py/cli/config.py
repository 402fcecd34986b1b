"""`volcano-py config`: validation of the scheduler's configuration, and policies to apply to a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.cli.terminal import style
from volcano_py.cli.wrapping import wrapped

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.registry import Registry
    from volcano_py.scheduler.review.document import Document

_COLOURS = {"error": "red", "warning": "yellow", "hint": "cyan"}


@click.group()
def config() -> None:
    """Check, show and compare scheduler configurations; print admission policies."""


def _plugins_dir() -> Callable[..., Any]:
    return click.option("--plugins-dir", default="", help="Folder of Python files with custom plugins and actions.")


@config.command()
@click.argument("file")
@click.option("--strict", is_flag=True, help="Exit with 1 also for warnings and hints.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@_plugins_dir()
def check(file: str, strict: bool, output: str, plugins_dir: str) -> None:
    """Report problems of a configuration before a scheduler loads it.

    FILE is Volcano's configuration, a ConfigMap with it, or a KubeSchedulerConfiguration; - is standard input. Exits
    with 1 if the scheduler would reject it.
    """
    from volcano_py.scheduler.review.findings import findings

    document = _document(file)
    if document.profiles is None:
        found = findings(document.text, _registry(plugins_dir))
    else:
        from volcano_py.scheduler.configuration.extensions import profile_plugins
        from volcano_py.scheduler.review.profiles import profile_findings

        found = profile_findings(document.profiles, profile_plugins(plugins_dir))
    if output == "json":
        click.echo(json.dumps([finding._asdict() for finding in found], indent=2))
    else:
        for finding in found:
            label = style(f"{finding.severity + ':':9}", fg=_COLOURS[finding.severity])
            click.echo(label + wrapped(finding.text, sys.stdout, 9, 9))
        if not found:
            click.echo("no problems found")
    raise SystemExit(1 if any(strict or finding.severity == "error" for finding in found) else 0)


@config.command()
@click.argument("file", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Include flags and deviations with default values.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@_plugins_dir()
def show(file: str, everything: bool, output: str, plugins_dir: str) -> None:
    """Print the values that a configuration activates. Values that it sets are marked.

    FILE is Volcano's configuration or a ConfigMap with it; - is standard input. The default is the built-in one.
    """
    from volcano_py.scheduler.review.effective import settings

    registry = _registry(plugins_dir)
    found = settings(_configuration(file, registry), registry, everything=everything)
    if output == "json":
        click.echo(json.dumps([setting._asdict() for setting in found], indent=2, default=str))
        return
    width = max(len(setting.name) for setting in found)
    owner = ""
    for setting in found:
        plain = isinstance(setting.value, str) and setting.value != ""
        value = setting.value if plain else json.dumps(setting.value)
        if setting.owner != owner:
            owner = setting.owner
            click.echo(owner if setting.name or value == "on" else f"{owner}: {value}")
        if setting.name:
            origin = "" if setting.origin == "default" else f"  ({setting.origin})"
            click.echo(f"  {setting.name:{width}}  {value}{origin}")


@config.command()
@click.argument("old")
@click.argument("new")
@_plugins_dir()
def diff(old: str, new: str, plugins_dir: str) -> None:
    """Describe what changes when the configuration NEW replaces OLD. Exits with 1 if they differ, as diff does."""
    from volcano_py.scheduler.review.differences import differences

    registry = _registry(plugins_dir)
    found = differences(_configuration(old, registry), _configuration(new, registry), registry)
    for text in found or ["no differences"]:
        click.echo(wrapped(text, sys.stdout, 2))
    raise SystemExit(1 if found else 0)


def _document(file: str) -> Document:
    from volcano_py.scheduler.framework.config import ConfigurationError
    from volcano_py.scheduler.review.document import unwrap

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return unwrap(text)
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8 text; convert it to UTF-8")
    except OSError as error:
        fail(describe_os_error(error))
    except ConfigurationError as error:
        fail(f"{file}: {error}")
    except RecursionError:
        fail(f"{file}: nested too deep; use fewer levels")


def _configuration(file: str, registry: Registry) -> Any:
    from volcano_py.scheduler.framework.config import DEFAULT_TEXT, ConfigurationError, load

    document = _document(file) if file else None
    if document is not None and document.profiles is not None:
        fail(f"{file} is a KubeSchedulerConfiguration; this command reads Volcano's configuration")
    try:
        return load(DEFAULT_TEXT if document is None else document.text, registry.actions)
    except ConfigurationError as error:
        fail(f"{file}: {error}")


def _registry(plugins_dir: str) -> Registry:
    from volcano_py.scheduler.actions import ACTIONS
    from volcano_py.scheduler.configuration.extensions import ExtensionError, extended
    from volcano_py.scheduler.framework.registry import Registry
    from volcano_py.scheduler.plugins import PLUGINS

    try:
        # not run_once.REGISTRY, which has imported every plugin
        return extended(Registry(PLUGINS, ACTIONS), plugins_dir)
    except ExtensionError as error:
        fail(str(error))


@config.command()
@click.option(
    "--scheduler-name",
    default="volcano",
    show_default=True,
    help="schedulerName of the pods that this scheduler schedules, and of new Jobs.",
)
@click.option(
    "--mutating",
    type=click.Choice(["v1", "v1beta1"]),
    default=None,
    help="Also print MutatingAdmissionPolicies, in the API version that the cluster serves.",
)
def policies(scheduler_name: str, mutating: str | None) -> None:
    """Print admission policies in CEL for clusters without webhooks.

    Apply them with `volcano-py config policies | kubectl apply -f -`.

    They validate an object by itself, and Jobs, PodGroups and Queues also against each existing Queue. Rules that CEL
    cannot express are left out, such as cycles of dependencies and sums over child queues (docs/admission.md).
    """
    from volcano_py.webhooks.policy_documents import documents

    made = documents(scheduler_name, mutating=mutating or "")
    click.echo(yaml.safe_dump_all(made, sort_keys=False, width=120), nl=False)
