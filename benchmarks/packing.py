"""How well scores pack a real cluster's pods: a trace of nodes and pods, submitted until the cluster is full.

`python -m benchmarks packing --nodes FILE --pods FILE`: CSV files with the columns cpu_milli, memory_mib, gpu (nodes)
and cpu_milli, memory_mib, num_gpu, gpu_milli (pods), as in the openb trace. Pods are drawn from the trace with a fixed
seed and stay forever; a GPU is 1,000 parts, and a node's GPUs are one pool.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import click

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration

GPU = "trace/gpu-parts"
BATCH = 200
DEMAND = 1.3
"""GPU parts that are requested in all, as a multiple of what exists."""

CANDIDATES: dict[str, list[Any]] = {
    "Volcano's stock: nodeorder and binpack": ["predicates", "nodeorder", "binpack"],
    "nodeorder alone (spread)": ["predicates", "nodeorder"],
    "binpack alone": ["predicates", "binpack"],
    "binpack, nodeorder without least requested": [
        "predicates",
        {"nodeorder": {"leastrequested.weight": 0}},
        "binpack",
    ],
    "the same, GPUs count five times": [
        "predicates",
        {"nodeorder": {"leastrequested.weight": 0}},
        {"binpack": {"binpack.resources": GPU, f"binpack.resources.{GPU}": 5}},
    ],
    "fragmentation (FGD)": ["predicates", {"fragmentation": {"gpu": GPU, "card": 1000}}],
    "fragmentation and binpack": [
        "predicates",
        {"fragmentation": {"gpu": GPU, "card": 1000}},
        {"binpack": {"binpack.resources": GPU, f"binpack.resources.{GPU}": 5}},
    ],
    "GPUs count five times, no balance": [
        "predicates",
        {"nodeorder": {"leastrequested.weight": 0, "balancedresource.weight": 0}},
        {"binpack": {"binpack.resources": GPU, f"binpack.resources.{GPU}": 5}},
    ],
}


class Outcome(NamedTuple):
    """Shares of the cluster, 0 to 1, when everything was tried."""

    name: str
    gpu: float
    cpu: float
    waiting: int
    first_wait: float
    """The share of GPUs in use when a pod had to wait for the first time."""
    stranded: float
    """GPUs that are free on nodes where no pod of the trace that requests one would find its cpu and memory."""


def run(nodes: Path, pods: Path, name: str, plugins: list[Any], seed: int = 1) -> Outcome:
    """Fill the cluster under one configuration."""
    conf = load(configuration({"actions": "allocate", "plugins": [["priority", "gang"], plugins]}), REGISTRY.actions)
    rows = list(_rows(nodes))
    queue = {"kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    simulation = Simulation([queue, *(_node(row) for row in rows)], raw=True, now=0.0)
    have = sum(int(row["gpu"]) * 1000 for row in rows)
    random, wanted = Random(seed), list(_rows(pods))
    requested = number = 0
    first = 1.0
    while requested < have * DEMAND:
        for row in random.choices(wanted, k=BATCH):
            for manifest in _job(number, row):
                simulation.put(manifest)
            requested += _parts(row)
            number += 1
        simulation.cycle(conf)
        if first == 1.0 and any(not t.node for t in simulation.cluster.tasks.values()):
            first = _used(simulation, GPU)
    waiting = sum(not t.node for t in simulation.cluster.tasks.values())
    return Outcome(
        name, _used(simulation, GPU), _used(simulation, "cpu"), waiting, first, _stranded(simulation, wanted)
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open() as file:
        yield from csv.DictReader(file)


def _parts(row: dict[str, str]) -> int:
    return int(row["num_gpu"]) * int(row["gpu_milli"])


def _node(row: dict[str, str]) -> dict[str, Any]:
    have = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "256"}
    have[GPU] = str(int(row["gpu"]) * 1000)
    return {"kind": "Node", "metadata": {"name": row["sn"]}, "status": {"allocatable": have}}


def _job(number: int, row: dict[str, str]) -> list[dict[str, Any]]:
    requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    if _parts(row):
        requests[GPU] = str(_parts(row))
    name = f"job-{number}"
    metadata = {"name": name, "namespace": "default", "uid": name}
    annotated = {**metadata, "name": f"{name}-0", "annotations": {"scheduling.k8s.io/group-name": name}}
    container = {"name": "main", "image": "trace", "resources": {"requests": requests}}
    return [
        {"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 1}, "status": {"phase": "Inqueue"}},
        {
            "kind": "Pod",
            "metadata": annotated,
            "spec": {"schedulerName": "volcano", "containers": [container]},
            "status": {"phase": "Pending"},
        },
    ]


def _used(simulation: Simulation, resource: str) -> float:
    table = simulation.cluster.nodes
    row = table.rows[resource]
    have = table.numbers.allocatable[row].sum()
    return float(table.numbers.used[row].sum() / have) if have else 0.0


def _stranded(simulation: Simulation, wanted: list[dict[str, str]]) -> float:
    least_cpu = min(int(r["cpu_milli"]) for r in wanted if _parts(r))
    least_memory = min(int(r["memory_mib"]) for r in wanted if _parts(r)) * 1024 * 1024
    table = simulation.cluster.nodes
    idle, rows = table.numbers.idle, table.rows
    poor = (idle[rows["cpu"]] < least_cpu) | (idle[rows["memory"]] < least_memory)
    count = len(table.names)
    return float(idle[rows[GPU]][:count][poor[:count]].sum() / table.numbers.allocatable[rows[GPU]].sum())


@click.command()
@click.option("--nodes", type=click.Path(exists=True, path_type=Path), required=True, help="CSV of nodes.")
@click.option("--pods", type=click.Path(exists=True, path_type=Path), required=True, help="CSV of pods.")
@click.option("--only", default="", help="Part of the names of the scores to compare.")
@click.option("--seeds", default=1, help="Number of orders of the pods.")
def packing(nodes: Path, pods: Path, only: str, seeds: int) -> None:
    """Fill a cluster from a trace under several scores, and compare how full it gets."""
    click.echo(f"{'scores':46} {'GPUs':>7} {'cpus':>7} {'waiting':>8} {'first wait':>11} {'stranded':>9}")
    for name, plugins in CANDIDATES.items():
        if only not in name:
            continue
        for seed in range(1, seeds + 1):
            o = run(nodes, pods, name, plugins, seed)
            _line(o)


def _line(o: Outcome) -> None:
    click.echo(f"{o.name:46} {o.gpu:7.1%} {o.cpu:7.1%} {o.waiting:8} {o.first_wait:11.1%} {o.stranded:9.1%}")
