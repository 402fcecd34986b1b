"""Objects in kubectl's output formats: `-o json|yaml|name`; `-o wide` is a table with more columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from volcano_py.api.kinds import ResourceType

Manifest = Mapping[str, Any]

FORMS = ("json", "yaml", "wide", "name")


def output_option(*forms: str) -> Callable[..., Any]:
    """Adds -o/--output; by default with all formats."""
    text = "Output format; wide adds columns." if "wide" in (forms or FORMS) else "Output format."
    return click.option("-o", "--output", type=click.Choice(forms or FORMS), help=text)


def as_table(output: str | None) -> bool:
    """Whether an output format is a table."""
    return output in (None, "wide")


def print_object(rt: ResourceType, obj: Manifest, output: str) -> None:
    """One object as json, yaml, or its name."""
    if output == "name":
        click.echo(full_name(rt, obj))
    else:
        click.echo(text_of(whole(rt, obj), output), nl=False)


def print_objects(rt: ResourceType, objects: Sequence[Manifest], output: str) -> None:
    """Several objects: a List, or one name per line."""
    if output == "name":
        for obj in objects:
            click.echo(full_name(rt, obj))
    else:
        items = [whole(rt, obj) for obj in objects]
        listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
        click.echo(text_of(listed, output), nl=False)


def full_name(rt: ResourceType, obj: Manifest) -> str:
    """`job.batch.volcano.sh/hello`: the form that kubectl accepts as one argument."""
    kind = f"{rt.kind.lower()}.{rt.group}" if rt.group else rt.kind.lower()
    return f"{kind}/{obj['metadata'].get('name', '')}"


def whole(rt: ResourceType, obj: Manifest) -> dict[str, Any]:
    """An object with its kind, which lists omit, and without managedFields."""
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
    return {**obj, "apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata}


def text_of(value: Mapping[str, Any], output: str, sort: bool = True) -> str:
    """JSON or YAML; keys are sorted, as kubectl prints them, unless `sort` is false. Ends with a newline."""
    if output == "json":
        return json.dumps(value, indent=4, sort_keys=sort, ensure_ascii=False) + "\n"
    return yaml_of(value, sort)


def yaml_of(value: Mapping[str, Any], sort: bool = True) -> str:
    """One YAML document."""
    import yaml

    dumped: str = yaml.dump(
        value,
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=sort,
        allow_unicode=True,
        width=2**20,
        default_flow_style=False,
    )
    return dumped
