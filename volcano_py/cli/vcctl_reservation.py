"""`vcctl reservation`: nodes that are kept for a time. Not in Volcano; cluster-scoped, so -n is the name.

`create` has the words of Slurm's `scontrol create reservation` as flags.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from volcano_py.api.duration import parse_duration
from volcano_py.api.kinds import RESERVATION
from volcano_py.api.meta import format_time, parse_time
from volcano_py.cli import dry_run as dry_runs
from volcano_py.cli.columns import age
from volcano_py.cli.connection import api_options, call, exit_failed
from volcano_py.cli.kind_commands import (
    Kind,
    add_delete,
    add_describe,
    add_get,
    add_list,
    each,
    file_option,
    named,
    read,
)
from volcano_py.cli.output import output_option, print_objects

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]


@click.group()
def reservation() -> None:
    """Create, get, list, describe and delete Reservations."""


def _cells(found: Manifest) -> list[object]:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    end = status.get("endTime") or spec.get("endTime") or f"+{spec.get('duration', '')}"
    start = status.get("startTime") or spec.get("startTime", "")
    phase = status.get("phase") or "<none>"
    return [found["metadata"]["name"], phase, start, end, status.get("nodeCount", 0), _users(spec), age(found)]


def _wide_cells(found: Manifest) -> list[object]:
    status = found.get("status") or {}
    used = ",".join(f"{name}={amount}" for name, amount in sorted((status.get("used") or {}).items()))
    return [",".join(status.get("nodes") or ()) or "<none>", used or "<none>", status.get("message") or "<none>"]


def _users(spec: Manifest) -> str:
    """Who may use it, as words."""
    return ";".join(_user(owner) for owner in spec.get("owners") or ()) or "<none>"


def _user(owner: Manifest) -> str:
    parts = [f"{kind}={owner[kind]}" for kind in ("queue", "namespace", "owner") if owner.get(kind)]
    labels = (owner.get("labelSelector") or {}).get("matchLabels") or {}
    parts += [f"{key}={value}" for key, value in sorted(labels.items())]
    return ",".join(parts) or "labelSelector"


KIND = Kind(
    RESERVATION,
    ("Name", "Phase", "Start", "End", "Nodes", "Owners", "Age"),
    _cells,
    ("NodeNames", "Used", "Message"),
    _wide_cells,
)


@reservation.command("create", help="Create a Reservation from flags, or the Reservations in a file.")
@file_option(KIND)
@named(KIND)
@click.option("--start", default="now", show_default=True, help="A time (2026-12-01T08:00:00Z), now, or +2h.")
@click.option("--end", default="", help="When it ends, instead of --duration.")
@click.option("--duration", default="", help="How long it lasts, such as 90m or 36h.")
@click.option("--nodes", default="", help="Names of nodes, separated by commas.")
@click.option("--node-selector", default="", help="Nodes with these labels: key=value, separated by commas.")
@click.option("--node-count", type=int, help="How many of the nodes.")
@click.option("--resources", default="", help="As many nodes as have these amounts: nvidia.com/gpu=16,cpu=64.")
@click.option("--queue", "queues", multiple=True, help="A queue whose jobs may use it; repeatable.")
@click.option("--owner", "owners", multiple=True, help="An owner (volcano.sh/owner) whose jobs may use it; repeatable.")
@click.option("--namespace", "namespaces", multiple=True, help="A namespace whose pods may use it; repeatable.")
@click.option("--selector", "selectors", multiple=True, help="Labels of pods that may use it: key=value,…; repeatable.")
@output_option("json", "yaml", "name")
@dry_runs.dry_run_option
@api_options
def create(file: str, output: str | None, dry_run: str | None, kubeconfig: str, master: str, **flags: Any) -> None:
    what = "create reservation"
    if bool(file) == bool(flags["name"]):
        exit_failed(what, "give either a file (-f FILE) or a name (-n NAME) with --duration and --nodes or similar")
    try:
        objects = read(KIND, file) if file else [manifest(time.time(), **flags)]
    except ValueError as error:
        exit_failed(what, str(error))
    if dry_run == "client":
        dry_runs.run_on_client(what, kubeconfig, master, RESERVATION, objects, output)
        return

    async def work(client: Client) -> None:
        if dry_run:
            await dry_runs.run_on_server(client, RESERVATION, objects, None, output)
            return
        made: list[Manifest] = []

        async def one(obj: Manifest) -> None:
            made.append(await client.create(RESERVATION, obj))

        failed = await each(KIND, "create", objects, one, quiet=output is not None)
        if output is not None and made:
            print_objects(RESERVATION, made, output)
        if failed:
            raise ValueError(f"{failed} of {len(objects)} documents failed; see the messages above")

    call(what, kubeconfig, master, work)


def manifest(
    now: float,
    *,
    name: str,
    start: str,
    end: str,
    duration: str,
    nodes: str,
    node_selector: str,
    node_count: int | None,
    resources: str,
    queues: tuple[str, ...] = (),
    owners: tuple[str, ...] = (),
    namespaces: tuple[str, ...] = (),
    selectors: tuple[str, ...] = (),
) -> Manifest:
    """The object that the flags describe. Raises ValueError."""
    users: list[Manifest] = [
        {kind: value}
        for kind, values in (("queue", queues), ("owner", owners), ("namespace", namespaces))
        for value in values
    ]
    users += [{"labelSelector": {"matchLabels": _pairs("--selector", text)}} for text in selectors]
    spec: Manifest = {
        "startTime": _time("--start", start, now),
        "endTime": _time("--end", end, now) if end else None,
        "duration": duration or None,
        "nodes": [node for node in nodes.split(",") if node] or None,
        "nodeSelector": {"matchLabels": _pairs("--node-selector", node_selector)} if node_selector else None,
        "nodeCount": node_count,
        "resources": _pairs("--resources", resources) if resources else None,
        "owners": users or None,
    }
    stated = {key: value for key, value in spec.items() if value is not None}
    if bool(end) == bool(duration):
        raise ValueError("set either --duration or --end")
    if not stated.keys() & {"nodes", "nodeSelector", "nodeCount", "resources"}:
        raise ValueError("it names no node; set --nodes, --node-selector, --node-count or --resources")
    return {
        "apiVersion": RESERVATION.api_version,
        "kind": RESERVATION.kind,
        "metadata": {"name": name},
        "spec": stated,
    }


def _time(flag: str, text: str, now: float) -> str:
    if text == "now":
        return format_time(now)
    try:
        return format_time(now + parse_duration(text[1:]) if text.startswith("+") else parse_time(text))
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def _pairs(flag: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise ValueError(f"{flag}: {part!r} is not key=value")
        found[key] = value
    return found


for add in (add_delete, add_get, add_list, add_describe):
    add(reservation, KIND)
