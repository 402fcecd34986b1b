"""How the cost of a cycle grows: with nodes, with pods, with queues and with pods that only run.

Every point runs in a process of its own. The slope is that of a line through the points on logarithmic axes: 1 means
proportional, 0 that the size does not matter.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import orjson

from benchmarks.decision import default_tiers, in_own_process

Spec = dict[str, Any]
Point = dict[str, Any]


class Axis(NamedTuple):
    """What grows. `text`: in words; `value`: the figure that is compared, in seconds."""

    text: str
    unit: str
    sizes: tuple[int, ...]
    value: str = "cycle_s"


AXES = {
    "nodes": Axis("10,000 pods in gangs of 100, by nodes", "nodes", (1_000, 2_000, 5_000, 10_000)),
    "pods": Axis("pods in gangs of 100 on 5,000 nodes, by pods", "pods", (1_000, 3_000, 10_000, 30_000, 100_000)),
    "queues": Axis("1,000 gangs of 10 on 1,000 nodes, by queues", "queues", (10, 30, 100, 300, 1_000)),
    "running": Axis(
        "one gang of 100 beside pods that run on 5,000 nodes, by these pods", "pods", (1_000, 10_000, 100_000)
    ),
}
SMALL = {"nodes": (10, 20), "pods": (20, 40), "queues": (2, 4), "running": (20, 40)}
"""Sizes for a test of the command itself."""


def spec_of(axis: str, size: int) -> Spec:
    """The scenario of one point."""
    match axis:
        case "nodes":
            return scenario(nodes=size, pods=10 * min(size, 1_000), gang=min(size, 100))
        case "pods":
            return scenario(nodes=5_000 if size >= 1_000 else 50, pods=size, gang=min(size // 10, 100))
        case "queues":
            return scenario(nodes=1_000 if size >= 10 else 50, pods=10_000 if size >= 10 else 40, gang=10, queues=size)
        case "running":
            nodes = 5_000 if size >= 1_000 else 50
            spec = scenario(nodes=nodes, pods=100 if size >= 1_000 else 10, gang=100 if size >= 1_000 else 10)
            running = gangs(size, min(size // 10, 100), 4)
            running |= {"group": "old<g>", "phase": "Running", "node": "node-<(100*g + k) % nodes>", "cpu": "250m"}
            return {**spec, "workload": [running, *spec["workload"]]}
    raise ValueError(axis)


def scenario(nodes: int, pods: int, gang: int, queues: int = 4) -> Spec:
    """Gangs that wait, on equal nodes with capacity for all of them."""
    labels = {"kubernetes.io/hostname": "<name>", "topology.kubernetes.io/zone": "zone-<i % 10>"}
    return {
        "id": f"{nodes}n-{pods}p-{queues}q",
        "nodes": {"count": nodes, "cpu": "32", "memory": "256Gi", "pods": 110, "name": "node-%05d", "labels": labels},
        "queues": [{"name": f"q{i}", "weight": i % 4 + 1} for i in range(queues)],
        "actions": ["enqueue", "allocate", "backfill"],
        "tiers": default_tiers(),
        "workload": [gangs(pods, gang, queues)],
        "expect": {"bound": pods},
    }


def gangs(pods: int, size: int, queues: int) -> Spec:
    return {
        "kind": "gangs",
        "pods": pods,
        "gang_size": size,
        "min_member": size,
        "queue": f"q<g % {queues}>",
        "group": "g<g>",
        "cpu": "500m",
        "memory": "1Gi",
        "min_resources": True,
        "phase": "Pending",
        "priority": 0,
    }


def slope(sizes: list[int], values: list[float]) -> float:
    """Of a line through the points on logarithmic axes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(AXES)), help="Run only this axis; may be repeated.")
@click.option("--small", is_flag=True, help="A few tiny points, to try the command.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the points to this file.")
@click.option("--plots", type=click.Path(path_type=Path), help="Draw one SVG an axis into this folder (extra [plots]).")
def growth(only: tuple[str, ...], small: bool, out: Path | None, plots: Path | None) -> None:
    """How a cycle grows with nodes, pods, queues and running pods."""
    found: dict[str, list[Point]] = {}
    for name, axis in AXES.items():
        if only and name not in only:
            continue
        print(f"{axis.text}{' (tiny sizes)' if small else ''}")
        print(f"  {axis.unit:>10} {'cycle s':>9} {'us a pod':>9} {'intake s':>9} {'peak MB':>8}")
        found[name] = []
        for size in SMALL[name] if small else axis.sizes:
            point = {"size": size, **in_own_process(spec_of(name, size))}
            if "unexpected" in point:
                sys.exit(f"{name} {size}: {point['unexpected']}")
            found[name].append(point)
            each = point["cycle_s"] * 1e6 / point["bound"]
            row = f"{point['cycle_s']:9.3f} {each:9.1f} {point['intake_s']:9.3f} {point['peak_rss_mb']:8d}"
            print(f"  {size:10,d} {row}", flush=True)
        sizes, values = [p["size"] for p in found[name]], [p[axis.value] for p in found[name]]
        print(f"  slope {slope(sizes, values):.2f}\n", flush=True)
    if out is not None:
        out.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    if plots is not None:
        draw(found, plots)


def draw(found: dict[str, list[Point]], folder: Path) -> None:
    """One plot an axis: seconds of the cycle and of the intake, on logarithmic axes."""
    try:
        import matplotlib
    except ImportError:
        raise click.ClickException("plots need matplotlib: pip install 'volcano-py[plots]'") from None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "volcano_py"
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for name, points in found.items():
        sizes = [p["size"] for p in points]
        figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
        for key, label, marker in (("cycle_s", "cycle", "o"), ("intake_s", "objects into the model", "s")):
            values = [max(p[key], 1e-4) for p in points]
            axes.loglog(sizes, values, marker=marker, label=f"{label} (slope {slope(sizes, values):.2f})")
        axes.set_title(AXES[name].text, fontsize=10)
        axes.set_xlabel(AXES[name].unit)
        axes.set_ylabel("seconds")
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=9)
        figure.savefig(folder / f"growth-{name}.svg", metadata={"Date": None})
        pyplot.close(figure)
