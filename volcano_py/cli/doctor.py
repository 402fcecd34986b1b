"""`volcano-py doctor`: checks this machine and a cluster, and prints remedies. Not in Volcano."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict

import click

from volcano_py.cli.connection import api_options
from volcano_py.cli.terminal import style
from volcano_py.cli.wrapping import counted, wrapped
from volcano_py.doctor.finding import ORDER, Finding

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@api_options
@click.option("-n", "--namespace", default="volcano-system", show_default=True, help="Namespace of the installation.")
@click.option("--machine", is_flag=True, help="Check this machine only, without a cluster.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def doctor(kubeconfig: str, master: str, namespace: str, machine: bool, output: str) -> None:
    """Check this machine and the cluster of the kubeconfig, and print what to do (docs/doctor.md).

    Versions, rights, CRDs, images, programs, leaders, webhooks, clocks, queues and the scheduler's configuration. Only
    reads. Exits with 0 if there is no error, 1 if there is one.
    """
    from volcano_py.doctor.machine import machine_findings

    found = list(machine_findings())
    where = "this machine"
    if not machine:
        where, more = asyncio.run(_cluster(kubeconfig, master, namespace))
        found += more
    found = sorted(dict.fromkeys(found), key=lambda one: ORDER.index(one.level))
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        for one in found:
            head = f"{one.level} ({one.check}): "
            text = wrapped(one.what, sys.stdout, 4, len(head))
            click.echo(style(head, fg=_COLORS[one.level]) + text)
            click.echo("    " + wrapped(one.remedy, sys.stdout, 4, 4))
        counts = [counted(sum(one.level == level for one in found), level) for level in ORDER]
        click.echo(f"Checked {where}: {', '.join(counts)}.")
    raise SystemExit(any(one.level == "error" for one in found))


async def _cluster(kubeconfig: str, master: str, namespace: str) -> tuple[str, list[Finding]]:
    """What was checked, and the findings. A cluster that cannot be read is a finding."""
    from volcano_py.doctor.facts import gather
    from volcano_py.doctor.installation import installation_findings
    from volcano_py.doctor.objects import object_findings
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError, Unauthorized

    try:
        client = Client.for_flags(kubeconfig or None, master or None)
    except (KubeError, OSError, ValueError) as error:
        what, _, remedy = str(error).partition("; ")
        more = remedy or "name one with --kubeconfig or KUBECONFIG, or start a cluster: volcano-py sandbox up"
        return "this machine", [Finding("error", "cluster", what, more)]
    server = client.credentials.server
    async with client:
        try:
            facts = await gather(client, namespace)
        except (KubeError, OSError) as error:
            tls = client.credentials.tls
            problem = tls.problem() if tls is not None else ""
            if isinstance(error, Unauthorized):
                what, remedy = f"{server} does not accept the credentials: {error}", "renew them in the kubeconfig"
            else:
                what, remedy = f"{server} cannot be read: {error}", "check that the API server runs, and its address"
            return f"this machine and {server}", [Finding("error", "cluster", what, problem or remedy)]
    found = [*installation_findings(facts), *object_findings(facts)]
    for text in facts.unread:
        found.append(Finding("note", "rights", f"not read: {text}", "run it as a user with permission to read it"))
    return f"this machine and {server} ({facts.version})", found
