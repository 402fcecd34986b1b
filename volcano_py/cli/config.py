"""`volcano-py config`: documents for a cluster's administrators."""

from __future__ import annotations

import click
import yaml


@click.group()
def config() -> None:
    """Print documents to apply to a cluster."""


@config.command()
@click.option(
    "--scheduler-name",
    default="volcano",
    show_default=True,
    help="schedulerName of the pods that this scheduler schedules, and of new Jobs.",
)
@click.option(
    "--mutating",
    type=click.Choice(["v1", "v1beta1"]),
    default=None,
    help="Print MutatingAdmissionPolicies with the defaults, too, in the version that the cluster serves.",
)
def policies(scheduler_name: str, mutating: str | None) -> None:
    """Admission policies in CEL, for clusters without the webhooks: `volcano-py config policies | kubectl apply -f -`.

    They validate one object by itself. Rules that need other objects are left out: whether a Job's queue is open,
    whether queues fit into their parents, cycles of dependencies among tasks or flows, pod templates.
    """
    from volcano_py.webhooks.policy_documents import documents

    made = documents(scheduler_name, mutating=mutating or "")
    click.echo(yaml.safe_dump_all(made, sort_keys=False, width=120), nl=False)
