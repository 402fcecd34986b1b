"""How well scores pack a real cluster's pods: a trace of nodes and pods, submitted until the cluster is full.

`python -m benchmarks packing --nodes FILE --pods FILE`: CSV files as those of the openb trace. Pods arrive in random
order and stay, as with `simulate trace --arrivals fill`: a share of a GPU belongs to one card. The same pods are placed
by FGD in a model of its own (`fgd_model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import click

from benchmarks.fgd_model import FgdModel
from benchmarks.trace_variants import variant
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.trace.fill import AT_THE_END, FIRST_WAIT, arrivals, fill
from volcano_py.simulate.trace.jobs import TraceError, TraceJob, TraceNode, read_jobs, read_nodes
from volcano_py.simulate.trace.objects import GPU_RESOURCE
from volcano_py.testing.table import configuration

_FRAGMENTATION = {"fragmentation": {"gpu": GPU_RESOURCE, "card": 1000}}
_BINPACK = {"binpack": {"binpack.resources": GPU_RESOURCE, f"binpack.resources.{GPU_RESOURCE}": 5}}
MODEL = "FGD in a model"
CANDIDATES: dict[str, list[Any]] = {
    "fragmentation": ["predicates", _FRAGMENTATION],
    "fragmentation and binpack": ["predicates", _FRAGMENTATION, _BINPACK],
    "default configuration": ["predicates", {"nodeorder": {"leastrequested.weight": 0}}, _BINPACK],
    "Volcano's: nodeorder and binpack": ["predicates", "nodeorder", "binpack"],
}


def run(name: str, jobs: Sequence[TraceJob], nodes: Sequence[TraceNode], seed: int) -> tuple[float, float]:
    """The shares of the GPUs that are allocated when a pod waits for the first time, and at the end."""
    if name == MODEL:
        return _model(jobs, nodes, seed)
    tiers = {"actions": "allocate", "plugins": [["priority", "gang"], CANDIDATES[name]]}
    _, found = fill(jobs, nodes, load(configuration(tiers), REGISTRY.actions), seed)
    return found.get(FIRST_WAIT, found[AT_THE_END]), found[AT_THE_END]


def _model(jobs: Sequence[TraceJob], nodes: Sequence[TraceNode], seed: int) -> tuple[float, float]:
    arriving = arrivals(jobs, nodes, seed)
    model, first = FgdModel(nodes, jobs), None
    for job in arriving:
        if not model.place(job) and first is None:
            first = model.allocated
    return (model.allocated if first is None else first), model.allocated


@click.command()
@click.option("--nodes", type=click.Path(exists=True, path_type=Path), required=True, help="Path to a CSV of nodes.")
@click.option("--pods", type=click.Path(exists=True, path_type=Path), required=True, help="Path to a CSV of pods.")
@click.option("--variant", "of", default="", help="Another mix of these pods: gpushareN or gpuspecN, N in percent.")
@click.option("--only", default="", help="Part of the names of the scores to compare.")
@click.option("--seeds", default=1, help="Number of orders of the pods.")
def packing(nodes: Path, pods: Path, of: str, only: str, seeds: int) -> None:
    """Fill a cluster from a trace under several scores, and compare how full it gets."""
    try:
        have, (jobs, _) = read_nodes(nodes), read_jobs(pods, 1, timeless=True)
        jobs = variant(of, jobs, have) if of else jobs
        _table(jobs, have, only, seeds)
    except TraceError as error:
        raise click.ClickException(str(error)) from None


def _table(jobs: Sequence[TraceJob], have: Sequence[TraceNode], only: str, seeds: int) -> None:
    click.echo(f"{'scores':34} {'first wait':>10} {'GPUs':>7} {'least':>7} {'most':>7}  ({seeds} orders)")
    for name in (MODEL, *CANDIDATES):
        if only not in name:
            continue
        results = [run(name, jobs, have, seed) for seed in range(1, seeds + 1)]
        ends = [end for _, end in results]
        first = mean(first for first, _ in results)
        click.echo(f"{name:34} {first:10.2%} {mean(ends):7.2%} {min(ends):7.2%} {max(ends):7.2%}")
