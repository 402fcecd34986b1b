"""create, delete, get, list and describe for one kind, from a declarative description of the kind.

Volcano: vcctl jobflow and vcctl jobtemplate; all kinds have their flags, messages and columns. For namespaced kinds -n
is the namespace and -N the name; for cluster-scoped kinds both are the name.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volcano_py.api.kinds import ResourceType
from volcano_py.cli import dry_run as dry_runs
from volcano_py.cli.columns import NAMESPACE, Table, fitted
from volcano_py.cli.connection import api_options, call, exit_failed
from volcano_py.cli.listing import NOTHING, Listing, show, watch_option
from volcano_py.cli.output import as_table, output_option, print_object, print_objects, whole, yaml_of
from volcano_py.cli.selection import label_option
from volcano_py.cli.waiting import wait_option
from volcano_py.kube.errors import ApiError

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]
_TABLE_GAP = 4


class Kind(NamedTuple):
    """How a kind is printed, and which of Volcano's commands it has.

    `cells` and `wide_cells` return the columns of `header` and `wide_header`; a narrow terminal leaves out those of
    `optional`. `empty_status`: the status that
    `describe` prints if there is none. `forgiving`: `create` and `delete` of files exit with 0 although a document
    failed, as in Volcano. `until_done`: waits for the created objects, for at most `timeout` seconds; without it
    `create` has no --wait.
    """

    rt: ResourceType
    header: Sequence[str]
    cells: Callable[[Manifest], list[object]]
    wide_header: Sequence[str] = ()
    wide_cells: Callable[[Manifest], list[object]] = lambda _: []
    optional: Sequence[str] = (NAMESPACE,)
    empty_status: Manifest = {}
    forgiving: bool = False
    until_done: Callable[[Client, list[Manifest], float], Awaitable[None]] | None = None

    @property
    def word(self) -> str:
        """The kind as used in commands and errors."""
        return self.rt.kind.lower()

    def table(self, objects: list[Manifest], wide: bool) -> Table:
        """The table of objects."""
        header = [*self.header, *(self.wide_header if wide else ())]
        rows = [[*self.cells(o), *(self.wide_cells(o) if wide else ())] for o in objects]
        return fitted(header, rows, _TABLE_GAP, () if wide else self.optional)


def in_namespace(kind: Kind, all_namespaces: bool = False) -> Callable[..., Any]:
    """Adds -n/--namespace for namespaced kinds, and with `all_namespaces` also --all-namespaces."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        if not kind.rt.namespaced:
            return command
        if all_namespaces:
            command = click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")(
                command
            )
        return click.option(
            "-n", "--namespace", default="default", show_default=True, help=f"Namespace of the {kind.rt.kind}."
        )(command)

    return added


def named(kind: Kind) -> Callable[..., Any]:
    """Adds -N/--name."""
    letters = ("-N",) if kind.rt.namespaced else ("-n", "-N")
    return click.option(*letters, "--name", default="", help=f"Name of the {kind.rt.kind}.")


def file_option(kind: Kind) -> Callable[..., Any]:
    """Adds -f/--file."""
    return click.option("-f", "--file", "file", default="", help=f"{kind.rt.kind}s as YAML; - is standard input.")


def read(kind: Kind, file: str) -> list[Manifest]:
    """The documents of a file; the default namespace is `default`. Raises ValueError."""
    from volcano_py.simulate.manifests import read as read_manifests

    found = read_manifests([file])
    for document in found:
        if document["kind"] != kind.rt.kind:
            raise ValueError(
                f"{file}: contains a {document['kind']}, must contain {kind.rt.kind}s ({kind.rt.api_version})"
            )
        if kind.rt.namespaced:
            document["metadata"].setdefault("namespace", "default")
    return found


def _unchanged(command: Callable[..., Any]) -> Callable[..., Any]:
    return command


async def each(
    kind: Kind,
    verb: str,
    objects: Sequence[Manifest],
    do: Callable[[Manifest], Awaitable[None]],
    quiet: bool = False,
) -> int:
    """Call `one` for each document and print a line for each (`quiet`: only for failures). Returns how many failed.

    `verb`: create or delete.
    """
    failed = 0
    for obj in objects:
        try:
            await do(obj)
        except ApiError as e:
            failed += 1
            click.echo(f"Failed to {verb} {kind.rt.kind}: {e}")
        else:
            if not quiet:
                click.echo(f"{verb.capitalize()}d {kind.rt.kind}: {place(obj)}")
    return failed


def place(obj: Manifest) -> str:
    """namespace/name, or the name."""
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace", ""), metadata.get("name", ""))))


def add_create(group: click.Group, kind: Kind) -> None:
    """`create -f`."""
    waits: Callable[..., Any] = (
        wait_option("Wait until the created objects have succeeded.") if kind.until_done else _unchanged
    )

    @group.command("create", help=f"Create the {kind.rt.kind}s in a file.")
    @file_option(kind)
    @output_option("json", "yaml", "name")
    @dry_runs.dry_run_option
    @waits
    @api_options
    def create(
        file: str,
        output: str | None,
        dry_run: str | None,
        kubeconfig: str,
        master: str,
        wait: bool = False,
        timeout: float = 0.0,
    ) -> None:
        what = f"create {kind.word}"
        if not file:
            exit_failed(what, "a file must be specified; use -f")
        try:
            objects = read(kind, file)
        except ValueError as e:
            exit_failed(what, str(e))
        if dry_run == "client":
            dry_runs.run_on_client(what, kubeconfig, master, kind.rt, objects, output)
            return

        async def work(client: Client) -> None:
            if dry_run:
                await dry_runs.run_on_server(client, kind.rt, objects, None, output)
                return
            made: list[Manifest] = []

            async def one(obj: Manifest) -> None:
                made.append(await client.create(kind.rt, obj, obj["metadata"].get("namespace")))

            failed = await each(kind, "create", objects, one, quiet=output is not None)
            if output is not None and made:
                print_objects(kind.rt, made, output)
            if failed and (wait or not kind.forgiving):
                raise ValueError(f"{failed} of {len(objects)} documents failed; see the messages above")
            if wait and kind.until_done:
                await kind.until_done(client, made, timeout)

        call(what, kubeconfig, master, work)


def add_delete(group: click.Group, kind: Kind) -> None:
    """`delete -N NAME` or `delete -f FILE`."""

    @group.command("delete", help=f"Delete a {kind.rt.kind}, or the {kind.rt.kind}s in a file.")
    @file_option(kind)
    @named(kind)
    @in_namespace(kind)
    @api_options
    def delete(file: str, name: str, kubeconfig: str, master: str, namespace: str | None = None) -> None:
        what = f"delete {kind.word}"
        if not file and not name:
            exit_failed(what, f"{kind.word} name must be specified; use -N NAME or -f FILE")

        async def work(client: Client) -> None:
            async def one(obj: Manifest) -> None:
                await client.delete(kind.rt, obj["metadata"]["name"], obj["metadata"].get("namespace"))

            if file:
                objects = read(kind, file)
                failed = await each(kind, "delete", objects, one)
                if failed and not kind.forgiving:
                    raise ValueError(f"{failed} of {len(objects)} documents failed; see the messages above")
                return
            found = await client.get(kind.rt, name, namespace)
            await one(found)
            click.echo(f"Deleted {kind.rt.kind}: {place(found)}")

        call(what, kubeconfig, master, work)


def add_get(group: click.Group, kind: Kind) -> None:
    """`get -N NAME`."""

    @group.command("get", help=f"Show one {kind.rt.kind}.")
    @named(kind)
    @in_namespace(kind)
    @output_option()
    @api_options
    def get(name: str, output: str | None, kubeconfig: str, master: str, namespace: str | None = None) -> None:
        what = f"get {kind.word}"
        if not name:
            exit_failed(what, f"name is mandatory to get the particular {kind.word} details; use -N NAME")

        async def work(client: Client) -> None:
            found = await client.get(kind.rt, name, namespace)
            if as_table(output):
                kind.table([found], output == "wide").show()
            else:
                print_object(kind.rt, found, output or "")

        call(what, kubeconfig, master, work)


def add_list(group: click.Group, kind: Kind, all_namespaces: bool = True) -> None:
    """`list`."""

    @group.command("list", help=f"List {kind.rt.kind}s.")
    @in_namespace(kind, all_namespaces)
    @label_option
    @output_option()
    @watch_option()
    @api_options
    def list_(
        label_selector: str,
        output: str | None,
        watch: bool,
        kubeconfig: str,
        master: str,
        namespace: str | None = None,
        all_namespaces: bool = False,
    ) -> None:
        listing = Listing(
            kind.rt,
            lambda objects, _, wide: kind.table(objects, wide),
            None if all_namespaces else namespace,
            label_selector,
        )
        call(f"list {kind.word}", kubeconfig, master, lambda client: show(client, listing, output, watch))


def add_describe(group: click.Group, kind: Kind) -> None:
    """`describe [-N NAME]`: one whole object, or all objects of a namespace."""

    of = " of the namespace" if kind.rt.namespaced else ""

    @group.command("describe", help=f"Print a whole {kind.rt.kind}, or all {kind.rt.kind}s{of}.")
    @named(kind)
    @in_namespace(kind)
    @click.option("-o", "--format", "format_", default="yaml", show_default=True, help="Output format: yaml or json.")
    @api_options
    def describe(name: str, format_: str, kubeconfig: str, master: str, namespace: str | None = None) -> None:
        what = f"describe {kind.word}"
        if format_ not in ("yaml", "json"):
            exit_failed(what, f"unsupported format {format_}; use yaml or json")

        async def work(client: Client) -> None:
            if name:
                found = [await client.get(kind.rt, name, namespace)]
            else:
                found = list(await client.list(kind.rt, namespace))
            if not found:
                click.echo(NOTHING)
            click.echo("\n\n".join(described(kind, obj, format_) for obj in found), nl=False)

        call(what, kubeconfig, master, work)


def described(kind: Kind, obj: Manifest, format_: str) -> str:
    """A whole object as text; JSON in the field order of Volcano."""
    parts = {"spec": {}, "status": kind.empty_status, **whole(kind.rt, obj)}
    if format_ == "yaml":
        return yaml_of(parts)
    first = ("kind", "apiVersion", "metadata", "spec", "status")
    ordered = {key: parts[key] for key in (*first, *sorted(parts.keys() - set(first)))}
    return json.dumps(ordered, indent=2, ensure_ascii=False) + "\n"


def add_all(group: click.Group, kind: Kind) -> None:
    """Adds all five commands."""
    for add in (add_create, add_delete, add_get, add_list, add_describe):
        add(group, kind)
