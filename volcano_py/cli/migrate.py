"""`volcano-py migrate`: what changes for a cluster that runs Volcano."""

from __future__ import annotations

import click

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
