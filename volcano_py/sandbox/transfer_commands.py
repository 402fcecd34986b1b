"""`volcano-py sandbox dump` and `load`."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from volcano_py.sandbox.private_files import replacing
from volcano_py.sandbox.terminal import ask, fail, kubeconfig_option

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

DATA = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Output file; by default stdout.")
@click.option("--format", "form", type=click.Choice(("yaml", "json")), help="Output format; by default by file name.")
@click.option("--data", type=DATA, help="Data folder to read instead of a running sandbox; no sandbox may be using it.")
@kubeconfig_option()
def dump(output: Path | None, form: str | None, data: Path | None, kubeconfig: Path) -> None:
    """Write all objects as one List, for `load`. The file contains Secrets: only its owner can read it."""
    from volcano_py.sandbox.dump import ListWriter

    as_json = form == "json" or (form is None and output is not None and output.suffix == ".json")
    with ExitStack() as stack:
        file: IO[str] = sys.stdout
        if output is not None:
            try:
                file = stack.enter_context(replacing(output))
            except OSError as error:
                fail(f"cannot write {output} ({error.strerror}); choose another file with -o")
        writer = ListWriter(file, as_json)
        faults = _dump_folder(data, writer.add) if data is not None else _dump_server(kubeconfig, writer.add)
        writer.end()
    click.echo(f"{writer.count} objects" + (f" in {output}" if output else ""), err=True)
    if faults:
        fail(f"{faults} errors in {data}; the objects above could not be read, all others are in the dump")


def _dump_server(kubeconfig: Path, add: object) -> int:
    from volcano_py.sandbox.dump import served

    async def work(client: Client) -> None:
        async for obj in served(client):
            add(obj)  # type: ignore[operator]

    ask(kubeconfig, work)
    return 0


def _dump_folder(data: Path, add: object) -> int:
    from volcano_py.sandbox.apiserver.storage.database import Database, DataError
    from volcano_py.sandbox.dump import kept

    faults: list[str] = []

    def report(text: str) -> None:
        faults.append(text)
        click.echo(f"sandbox: {text}", err=True)

    try:
        database = Database(data, create=False)
        for obj in kept(database, report):
            add(obj)  # type: ignore[operator]
        database.close()
    except DataError as error:
        fail(str(error))
    return len(faults)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", type=DATA, help="Data folder to load into, with uids and status; no sandbox may be using it.")
@kubeconfig_option()
def load(file: Path, data: Path | None, kubeconfig: Path) -> None:
    """Create the missing objects of FILE, with one line for each."""
    from volcano_py.sandbox.dump import read
    from volcano_py.sandbox.load import into_server

    counts: Counter[str] = Counter()

    def report(what: str, line: str) -> None:
        counts[what] += 1
        click.echo(f"{what:8}  {line}")

    try:
        objects = read(file)
        if data is not None:
            asyncio.run(_load_folder(data, objects, report))
        else:
            ask(kubeconfig, lambda client: into_server(client, objects, report))
    except ValueError as error:
        fail(str(error))
    click.echo(", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "nothing to load", err=True)
    if counts["rejected"]:
        sys.exit(1)


async def _load_folder(data: Path, objects: list[dict], report: object) -> None:  # type: ignore[type-arg]
    from volcano_py.sandbox.apiserver.storage.database import DataError
    from volcano_py.sandbox.cluster import Sandbox, SandboxError
    from volcano_py.sandbox.load import into_store

    try:
        sandbox = Sandbox(nodes=0, data=data, hollow=False)
        await sandbox.keep_only(lambda api: into_store(api, objects, report))  # type: ignore[arg-type]
    except (SandboxError, DataError) as error:
        fail(str(error))
