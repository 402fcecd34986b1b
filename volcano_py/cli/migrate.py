"""`volcano-py migrate`: what changes for a cluster that runs Volcano."""

from __future__ import annotations

import click

from volcano_py.api.resource_types import NATIVE_PODGROUP
from volcano_py.cli.connection import api_options, call


@click.group()
def migrate() -> None:
    """Migrate from Volcano to volcano_py, and back (docs/migration.md)."""


@migrate.command()
@api_options
@click.option(
    "-n", "--namespace", default="volcano-system", show_default=True, help="Namespace of the Volcano installation."
)
@click.option(
    "--image",
    default="",
    help="Image that will be installed, as the chart's values name it (default: that of the chart).",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def check(kubeconfig: str, master: str, namespace: str, image: str, output: str) -> None:
    """Report what would change, before anything is installed. Only reads.

    Exits with 1 if the cluster uses a feature that volcano_py does not have, or if no node has the image.
    """
    import json
    from dataclasses import asdict

    from volcano_py.kube.client import Client
    from volcano_py.migrate.facts import gather
    from volcano_py.migrate.findings import Finding, findings
    from volcano_py.migrate.image import DEFAULT_IMAGE
    from volcano_py.scheduler.run_once import REGISTRY

    found: list[Finding] = []

    async def work(client: Client) -> None:
        found.extend(findings(await gather(client, namespace), REGISTRY, image or DEFAULT_IMAGE))

    call("migrate check", kubeconfig, master, work)
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            click.echo(f"{finding.weight + ':':9}{finding.what}\n         {finding.remedy}")
        if not found:
            click.echo("no differences")
    raise SystemExit(any(finding.weight == "blocks" for finding in found))


@migrate.command()
@api_options
def groups(kubeconfig: str, master: str) -> None:
    """Print Workloads and PodGroups of scheduling.k8s.io/v1alpha2 as manifests of v1beta1. Only reads.

    Save the output before an upgrade from Kubernetes 1.36 to 1.37, and apply it afterwards (docs/native-gangs.md).
    Exits with 1 if the cluster does not serve v1alpha2, or if something cannot be read.
    """
    import yaml

    from volcano_py.cli.errors import fail
    from volcano_py.kube.client import Client
    from volcano_py.migrate.convert_groups import converted_groups
    from volcano_py.migrate.native_groups import NativeFacts, read_native

    unread: list[str] = []
    read: list[NativeFacts] = []

    async def work(client: Client) -> None:
        read.append(await read_native(client, unread))

    call("migrate groups", kubeconfig, master, work)
    facts = read[0]
    if unread:
        fail(f"not read: {'; '.join(unread)}; run it as a user with permission to read it", 1)
    if facts.version != NATIVE_PODGROUP.version:
        fail(f"the cluster does not serve {NATIVE_PODGROUP.api_version}; run this on the cluster of Kubernetes 1.36", 1)
    found = converted_groups(facts.groups, facts.workloads, facts.pods)
    click.echo(yaml.safe_dump_all(found.manifests, sort_keys=False), nl=False)
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
