"""`volcano-py sandbox node …` and `clock`: change a running sandbox through objects that its kubelets watch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volcano_py.api.resource_types import CONFIGMAP, NODE
from volcano_py.kube.errors import AlreadyExists, NotFound
from volcano_py.sandbox.terminal import ask, fail, kubeconfig_option, node_shape_option

if TYPE_CHECKING:
    from volcano_py.kube.client import Client


@click.group()
def node() -> None:
    """Add nodes to the running sandbox, remove them, or let them fail."""


@node.command()
@click.argument("names", nargs=-1)
@click.option("--count", type=click.IntRange(1), help="Number of nodes, named node-N with the next free numbers.")
@node_shape_option
@kubeconfig_option()
def add(names: tuple[str, ...], count: int | None, node_shapes: tuple[str, ...], kubeconfig: Path) -> None:
    """Add nodes, by NAMES or by --count."""
    from volcano_py.sandbox import shapes

    if names and count is not None:
        fail("node add: specify names or --count, not both")
    try:
        chosen = [shapes.parse(text) for text in node_shapes] or [shapes.NodeShape()]
    except ValueError as error:
        fail(str(error))

    async def work(client: Client) -> None:
        there = [item["metadata"]["name"].rpartition("node-")[2] for item in await client.list(NODE)]
        first = max((int(number) for number in there if number.isdigit()), default=-1) + 1
        wanted = names or [f"node-{number}" for number in range(first, first + (count or 1))]
        for index, name in enumerate(wanted):
            await client.create(NODE, shapes.manifest(name, chosen[index % len(chosen)]))
            click.echo(f"node {name} added")

    ask(kubeconfig, work)


async def _each(names: tuple[str, ...], work: Any, done: str) -> None:
    """Call a function for every node; a missing node does not affect the others."""
    missing = []
    for name in names:
        try:
            await work(name)
            click.echo(f"node {name} {done}")
        except NotFound:
            missing.append(name)
    if missing:
        what = f"node {missing[0]} does" if len(missing) == 1 else f"nodes {', '.join(missing)} do"
        fail(f"{what} not exist; `kubectl get nodes` lists all nodes")


@node.command()
@click.argument("names", nargs=-1, required=True)
@kubeconfig_option()
def remove(names: tuple[str, ...], kubeconfig: Path) -> None:
    """Delete nodes, and the pods on them."""
    ask(kubeconfig, lambda client: _each(names, lambda name: client.delete(NODE, name), "removed"))


@node.command("fail")
@click.argument("names", nargs=-1, required=True)
@kubeconfig_option()
def break_(names: tuple[str, ...], kubeconfig: Path) -> None:
    """Let nodes fail: they send no heartbeat and no pod status. The Node objects are kept."""
    _set_failed(names, kubeconfig, "true", "has failed")


@node.command()
@click.argument("names", nargs=-1, required=True)
@kubeconfig_option()
def recover(names: tuple[str, ...], kubeconfig: Path) -> None:
    """Recover failed nodes; their remaining pods continue."""
    _set_failed(names, kubeconfig, None, "is ready again")


def _set_failed(names: tuple[str, ...], kubeconfig: Path, value: str | None, done: str) -> None:
    from volcano_py.sandbox.kubelet.nodes import FAILED

    change = {"metadata": {"annotations": {FAILED: value}}}
    ask(kubeconfig, lambda client: _each(names, lambda name: client.patch(NODE, name, change), done))


@click.command()
@click.option("--speed", help="Simulated seconds per second; 1 is the wall clock.")
@kubeconfig_option()
def clock(speed: str | None, kubeconfig: Path) -> None:
    """Print or set the speed of the run times of hollow containers."""
    from volcano_py.sandbox.kubelet.clock import KEY, NAME, NAMESPACE, parse_speed

    async def work(client: Client) -> None:
        if speed is not None:
            parse_speed(speed)
            body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {KEY: speed}}
            try:
                await client.create(CONFIGMAP, body)
            except AlreadyExists:
                await client.patch(CONFIGMAP, NAME, {"data": {KEY: speed}}, NAMESPACE)
        click.echo(f"a container's run time advances by {await speed_of(client)} s in every second")

    ask(kubeconfig, work)


async def speed_of(client: Client) -> str:
    """The clock's speed in its ConfigMap."""
    from volcano_py.sandbox.kubelet.clock import KEY, NAME, NAMESPACE

    try:
        found = await client.get(CONFIGMAP, NAME, NAMESPACE)
    except NotFound:
        return "1"
    return str((found.get("data") or {}).get(KEY, "1"))


async def summary(client: Client) -> str:
    """A summary: `3 nodes (1 failed)`."""
    from volcano_py.sandbox.kubelet.nodes import FAILED

    nodes, speed = await asyncio.gather(client.list(NODE), speed_of(client))
    failed = sum((item["metadata"].get("annotations") or {}).get(FAILED) == "true" for item in nodes)
    text = f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}"
    text += f" ({failed} failed)" if failed else ""
    return text + (f", clock at {speed}" if speed != "1" else "")
