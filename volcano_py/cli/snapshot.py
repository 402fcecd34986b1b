"""`volcano-py snapshot`: saves the scheduling state of a live cluster in a file."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import fail
from volcano_py.cli.wrapping import counted, wrapped


@click.group()
def snapshot() -> None:
    """Save the scheduling state of a cluster in a file (docs/snapshot.md)."""


@snapshot.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@api_options
@click.option("--anonymize", "anonymous", is_flag=True, help="Replace all names.")
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    default=("volcano",),
    show_default=True,
    help="Scheduler name of the pending pods. Can be repeated.",
)
@click.option(
    "--scheduler-configmap",
    "config_map",
    metavar="NAMESPACE/NAME/KEY",
    default="",
    help="ConfigMap with the scheduler's configuration (default: that of Volcano's chart).",
)
def save(file: Path, kubeconfig: str, master: str, anonymous: bool, names: tuple[str, ...], config_map: str) -> None:
    """Read the cluster and write FILE, readable only by its owner.

    The command sends list and get requests only. Secrets, environment variables and commands of containers are never
    included. Objects that you may not list are reported and left out. Exits with 0 if the file was written, 255 if the
    cluster cannot be read, and 2 if the file cannot be written.
    """
    from volcano_py.kube.client import Client
    from volcano_py.scheduler.recording.archive import ArchiveError
    from volcano_py.simulate import snapshot as snapshots
    from volcano_py.simulate.anonymize import anonymize
    from volcano_py.simulate.capture import CONFIG_MAP, capture

    where = config_map or CONFIG_MAP
    if where.count("/") != 2 or not all(where.split("/")):
        raise click.BadParameter(f"--scheduler-configmap is {where!r}; use NAMESPACE/NAME/KEY, e.g. {CONFIG_MAP}")
    taken: list[snapshots.Snapshot] = []

    async def work(client: Client) -> None:
        taken.append(await capture(client, time.time(), scheduler_names=names, config_map=where))

    call("snapshot save", kubeconfig, master, work)
    found = taken[0]
    for text in snapshots.summary(found.unread):
        click.echo(f"not in the snapshot: {text}", err=True)
    try:
        size = snapshots.save(anonymize(found) if anonymous else found, file)
    except ArchiveError as error:
        fail(str(error), 2)
    except FileNotFoundError:
        fail(f"{file}: folder {file.parent} does not exist; create it", 2)
    except OSError as error:
        fail(f"{file}: {error.strerror}", 2)
    amounts = ", ".join(counted(len(objects), kind) for kind, objects in found.objects.items()) or "no objects"
    click.echo(wrapped(f"{file}: {amounts}; {_size(size)}", sys.stdout, 2))


def _size(size: int) -> str:
    """A number of bytes in kB or MB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
