"""`volcano-py sandbox nodes`: hollow nodes for another control plane than the sandbox's."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import click
import yaml

from volcano_py.sandbox.terminal import fail, node_shape_option


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path to the kubeconfig of the control plane to attach to.",
)
@click.option("--context", help="Name of the kubeconfig context to use. Defaults to the current context.")
@click.option("--nodes", "count", type=click.IntRange(0), default=20, show_default=True, help="Number of nodes.")
@node_shape_option
@click.option("--name", default="hollow", show_default=True, help="Prefix of the node names: NAME-0, NAME-1, ….")
@click.option(
    "--controllers",
    is_flag=True,
    help="Also run Kubernetes' controllers, for a kube-apiserver without kube-controller-manager.",
)
@click.option("--keep", is_flag=True, help="Keep the nodes and their pods at the end; they become NotReady.")
@click.option("--print-role", is_flag=True, help="Print the ClusterRole for hollow nodes, and exit.")
def nodes(
    kubeconfig: Path | None,
    context: str | None,
    count: int,
    node_shapes: tuple[str, ...],
    name: str,
    controllers: bool,
    keep: bool,
    print_role: bool,
) -> None:
    """Attach hollow nodes to any control plane until Ctrl-C."""
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError
    from volcano_py.sandbox import shapes
    from volcano_py.sandbox.foreign.attachment import AttachError, Attachment, role

    if print_role:
        click.echo(yaml.safe_dump(role(), sort_keys=False), nl=False)
        return
    if kubeconfig is None:
        fail("nodes: set the control plane with --kubeconfig")

    async def run() -> None:
        done = asyncio.Event()
        for which in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(which, done.set)
        async with Client.from_kubeconfig(kubeconfig, context) as client:
            attachment = Attachment(client, count, parsed, name=name, controllers=controllers, keep=keep)
            async with attachment:
                with_what = " and Kubernetes' controllers" if controllers else ""
                click.echo(f"{count} nodes {name}-…{with_what} are attached to {client.credentials.server}.")
                end = "keeps them" if keep else "deletes them and their pods"
                click.echo(f"Ctrl-C {end}.")
                await done.wait()

    try:
        if not re.fullmatch("[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", name):
            raise ValueError(f"--name {name!r} is not a valid node name; use lower case letters, digits and -")
        parsed = [shapes.parse(text) for text in node_shapes]
        asyncio.run(run())
    except (AttachError, KubeError, ValueError) as error:
        fail(str(error))
