"""`volcano-py simulate`: the scheduler's decisions for described clusters. A command is imported on use."""

from __future__ import annotations

import click

from volcano_py.cli.main import LazyGroup

COMMANDS = {
    "run": ("volcano_py.cli.simulate_run", "run", "Run scheduling cycles over manifests, and print the decisions."),
    "trace": ("volcano_py.cli.trace", "trace", "Replay a trace of jobs (openb CSV, or SWF) in virtual time."),
    "profiles": (
        "volcano_py.cli.simulate_profiles",
        "profiles",
        "Schedule pod by pod with a KubeSchedulerConfiguration.",
    ),
}


@click.group(cls=LazyGroup, commands=COMMANDS)
def simulate() -> None:
    """Simulate the scheduler for clusters that are described in files."""
