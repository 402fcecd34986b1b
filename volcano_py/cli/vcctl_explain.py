"""`vcctl explain`: why a job waits, and how to unblock it. Not in Volcano."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from volcano_py.cli import terminal
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import fail
from volcano_py.cli.output import output_option, text_of

if TYPE_CHECKING:
    from volcano_py.cli.explain_facts import Facts
    from volcano_py.kube.client import Client

NOT_FOUND = 1
"""Exit code for an object that does not exist."""


_NAMES = {
    "job": ("vcjob", "vj", "job.batch.volcano.sh"),
    "podgroup": ("pg", "podgroup.scheduling.volcano.sh", "podgroup-v1beta1"),
    "pod": ("po",),
    "queue": ("q", "queue.scheduling.volcano.sh", "queue-v1beta1"),
    "podgroup.scheduling.k8s.io": (),
    "compositepodgroup.scheduling.k8s.io": ("compositepodgroup",),
}
"""The names that kubectl accepts for these kinds, in the singular."""


class _Kind(click.Choice[str]):
    """A kind by any name that kubectl accepts: `vcjob`, `jobs`, `pg`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name, _, group = str(value).lower().partition(".")
        for kind, others in _NAMES.items():
            for one in (kind, *others):
                short, _, of = one.partition(".")
                if (name in (short, f"{short}s")) and group == of:
                    return kind
        return super().convert(value, param, ctx)


@click.command()
@click.argument("kind", type=_Kind(tuple(_NAMES)))
@click.argument("name")
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the object.")
@output_option("json", "yaml")
@click.option("--unblock/--no-unblock", default=True, help="Search for changes that unblock the job.")
@click.option("--scheduler-name", default="volcano", show_default=True, help="Scheduler name of the pods.")
@click.option(
    "--lease", default="volcano-system/volcano", show_default=True, help="Lease of the scheduler: NAMESPACE/NAME."
)
@api_options
def explain(
    kind: str,
    name: str,
    namespace: str,
    output: str | None,
    unblock: bool,
    scheduler_name: str,
    lease: str,
    kubeconfig: str,
    master: str,
) -> None:
    """Explain why a job, podgroup, compositepodgroup or pod waits, or which jobs of a queue wait (docs/explain.md).

    The command reads the cluster with your permissions and writes nothing. Exits with 0 if there is an answer, 1 if the
    object does not exist, 2 for usage errors, and 255 if the API server cannot be reached or denies access.
    """
    from volcano_py.cli.explain_facts import Missing, read_facts

    taken: list[Facts] = []
    missing: list[str] = []

    async def work(client: Client) -> None:
        try:
            taken.append(await read_facts(client, kind, name, namespace, time.time(), scheduler_name, lease))
        except Missing as error:
            missing.append(str(error))

    call(f"explain {kind}", kubeconfig, master, work)
    if missing:
        fail(missing[0], NOT_FOUND)

    import msgspec

    from volcano_py.cli.explain_answer import answer
    from volcano_py.scheduler.framework.config import ConfigurationError

    try:
        found = answer(taken[0], scheduler_name, unblock)
    except ConfigurationError as error:
        fail(f"the scheduler's configuration is invalid: {error}", NOT_FOUND)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    if output == "yaml":
        click.echo(text_of(msgspec.to_builtins(found), output, sort=False), nl=False)
        return

    from volcano_py.cli.explain_print import show

    show(found, terminal.console(highlight=False))
