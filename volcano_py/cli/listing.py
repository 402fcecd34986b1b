"""Lists: fetch, select and print objects, as a table or as objects; with --watch also each change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volcano_py.api.kinds import ResourceType
from volcano_py.cli.columns import Table, line
from volcano_py.cli.follow import Source, following
from volcano_py.cli.output import as_table, full_name, print_objects, text_of, whole
from volcano_py.cli.wrapping import columns_of

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]
NOTHING = "No resources found"


class Listing(NamedTuple):
    """The content of a list command.

    `table` builds the table from the selected objects, the objects of the kind `beside`, and whether it is wide.
    `choose` selects and sorts the objects, and may raise ValueError. `hides`: objects that are not selected still count
    for the width of the columns.
    """

    rt: ResourceType
    table: Callable[[list[Manifest], list[Manifest], bool], Table]
    namespace: str | None = None
    label_selector: str = ""
    choose: Callable[[list[Manifest]], list[Manifest]] = list
    hides: bool = False
    beside: ResourceType | None = None


async def show(client: Client, listing: Listing, output: str | None = None, watch: bool = False) -> None:
    """Print a list in the format of -o, and with `watch` every change until Ctrl-C."""
    if watch:
        await _watch(client, listing, output)
        return
    found = await client.list(listing.rt, listing.namespace, label_selector=listing.label_selector or None)
    chosen = listing.choose(list(found))
    if not as_table(output):
        print_objects(listing.rt, chosen, output or "")
    elif not (found if listing.hides else chosen):
        click.echo(NOTHING)
    else:
        beside = list(await client.list(listing.beside)) if listing.beside else []
        table = listing.table(chosen, beside, output == "wide")
        if listing.hides:
            table = table._replace(widths=listing.table(list(found), beside, output == "wide").widths)
        table.show()


async def _watch(client: Client, listing: Listing, output: str | None) -> None:
    sources = [Source(listing.rt, listing.namespace, listing.label_selector or None)]
    if listing.beside and as_table(output):
        sources.append(Source(listing.beside))
    async with following(client, *sources) as followed:
        wide = output == "wide"

        def beside() -> list[Manifest]:
            return followed.objects(1) if len(sources) > 1 else []

        first = listing.choose(followed.objects())
        shown: dict[str, list[object]] = {}
        widths: list[int] = []
        if as_table(output):
            table = listing.table(first, beside(), wide)
            columns = columns_of(sys.stdout)
            if columns is not None:
                table = table.narrowed(columns)
            table.print_lines()
            widths = list(table.widths)
            shown = {_uid(obj): list(row) for obj, row in zip(first, table.rows, strict=True)}
        else:
            for obj in first:
                _print_one(listing.rt, obj, output or "")
        while True:
            change = await followed.next()
            if change is None:
                continue
            # An object of the other kind may change any row: print only rows that differ.
            changed = [change.object] if change.rt == listing.rt else followed.objects()
            for obj in listing.choose(changed):
                if not as_table(output):
                    _print_one(listing.rt, obj, output or "")
                    continue
                row = list(listing.table([obj], beside(), wide).rows[0])
                if change.deleted and change.rt == listing.rt:
                    shown.pop(_uid(obj), None)
                    click.echo(line(row, widths) + "deleted")
                elif shown.get(_uid(obj)) != row:
                    shown[_uid(obj)] = row
                    click.echo(line(row, widths))


def _uid(obj: Manifest) -> str:
    metadata = obj["metadata"]
    return str(metadata.get("uid") or (metadata.get("namespace"), metadata.get("name")))


def _print_one(rt: ResourceType, obj: Manifest, output: str) -> None:
    if output == "name":
        click.echo(full_name(rt, obj))
    elif output == "json":
        click.echo(text_of(whole(rt, obj), "json"), nl=False)
    else:
        click.echo("---\n" + text_of(whole(rt, obj), "yaml"), nl=False)


def watch_option(letter: bool = True) -> Callable[..., Any]:
    """Adds --watch, and -w if that letter is free."""
    names = ("-w", "--watch") if letter else ("--watch",)
    return click.option(*names, is_flag=True, help="Print the list, then each change, until Ctrl-C.")
