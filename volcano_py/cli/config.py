"""`volcano-py config`: documents for a cluster's administrators."""

from __future__ import annotations

import click
import yaml


@click.group()
def config() -> None:
    """Print documents to be applied to a cluster."""


@config.command()
@click.option("--scheduler-name", default="volcano", show_default=True, help="schedulerName of our pods and new Jobs.")
@click.option(
    "--mutating",
    type=click.Choice(["v1", "v1beta1"]),
    default=None,
    help="Defaults, too, in the version in which the cluster serves MutatingAdmissionPolicies.",
)
def policies(scheduler_name: str, mutating: str | None) -> None:
    """Admission policies in CEL, for clusters without our webhooks: `volcano-py config policies | kubectl apply -f -`.

    They say what can be said of one object. What needs others is left out: whether a Job's queue is open, how queues
    fit into their parents, whether tasks or flows wait for each other in circles, pod templates.
    """
    from volcano_py.webhooks.policy_documents import documents

    made = documents(scheduler_name, mutating=mutating or "")
    click.echo(yaml.safe_dump_all(made, sort_keys=False, width=120), nl=False)
