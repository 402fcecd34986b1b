"""`volcano-py migrate`: what a cluster that runs Volcano has to expect."""

from __future__ import annotations

import click

from volcano_py.cli.connection import api_options, call


@click.group()
def migrate() -> None:
    """From Volcano to volcano_py, and back (docs/migration.md)."""


@migrate.command()
@api_options
@click.option("-n", "--namespace", default="volcano-system", show_default=True, help="Where Volcano is installed.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(kubeconfig: str, master: str, namespace: str, output: str) -> None:
    """Report what would differ, before anything is installed. Reads only.

    Ends with 1 if something that the cluster uses does not exist here.
    """
    import json
    from dataclasses import asdict

    from volcano_py.kube.client import Client
    from volcano_py.migrate.facts import gather
    from volcano_py.migrate.findings import Finding, findings
    from volcano_py.scheduler.run_once import REGISTRY

    found: list[Finding] = []

    async def work(client: Client) -> None:
        found.extend(findings(await gather(client, namespace), REGISTRY))

    call("migrate check", kubeconfig, master, work)
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            click.echo(f"{finding.weight + ':':9}{finding.what}\n         {finding.remedy}")
        if not found:
            click.echo("nothing would differ")
    raise SystemExit(any(finding.weight == "blocks" for finding in found))
