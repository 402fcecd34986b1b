"""What explaining costs: a pending gang on a full cluster, with and without what would unblock it; and the reasons of
many jobs that wait.

`model_s` is the objects of a snapshot into the model, `first_s` the first cycle over it, `explain_s` one explanation,
`unblock_s` the explanation with all suggestions, `trials` the cycles that these took. `cycle_s` and `without_reasons_s`
are the median cycles with `waiting` jobs that wait while small jobs come, with and without stated reasons; `reasons_mb`
is the memory that the reasons take.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from typing import Any

import click
import orjson

Manifest = dict[str, Any]
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=10000, show_default=True)
@click.option("--waiting", default=20000, show_default=True, help="Jobs that wait, for the cost of reasons.")
@click.option("--cycles", default=10, show_default=True)
def explaining(nodes: int, pods: int, waiting: int, cycles: int) -> None:
    """Explain a pending job of a large cluster, and state the reasons of many."""
    click.echo(orjson.dumps({**_one(nodes, pods), **_many(waiting, cycles)}, option=orjson.OPT_INDENT_2))


def _one(nodes: int, pods: int) -> dict[str, Any]:
    from volcano_py.scheduler.framework.config import load
    from volcano_py.scheduler.run_once import REGISTRY
    from volcano_py.simulate.cycles import Simulation
    from volcano_py.simulate.explained import explained
    from volcano_py.simulate.manifests import as_struct
    from volcano_py.simulate.snapshot import Snapshot, cluster_of
    from volcano_py.simulate.unblock.search import suggestions
    from volcano_py.simulate.unblock.trials import Trials
    from volcano_py.testing.table import manifests

    each = max(pods // nodes, 1)
    running = {
        f"r{i}": {"phase": "Running", "min": each, "pods": each, "each": {"cpu": 1, "runsOn": f"n{i}"}}
        for i in range(nodes)
    }
    story = {
        "nodes": {f"n{i}": {"cpu": each + 1, "memory": "64Gi"} for i in range(nodes)},
        "queues": {"default": {"capability": {"cpu": nodes * (each + 1), "memory": "100Ti"}}},
        "jobs": {**running, "g": {"phase": "Inqueue", "min": 8, "pods": 8, "each": {"cpu": 4}}},
    }
    objects = manifests(story)
    conf = load(CONF, REGISTRY.actions)
    simulation = Simulation(objects, raw=True)
    simulation.cycle(conf)  # as in a cluster whose scheduler has written the statuses
    by_kind: dict[str, list[Any]] = {}
    for o in simulation.objects.values():
        by_kind.setdefault(o["kind"], []).append(as_struct(o))
    snapshot = Snapshot(0.0, by_kind)
    start = time.perf_counter()
    cluster, _ = cluster_of(snapshot)
    modelled = time.perf_counter()
    trials = Trials(cluster, conf, simulation.now)
    trials.session()
    ready = time.perf_counter()
    found = explained(trials, "default/g")
    done = time.perf_counter()
    helps = suggestions(trials, "default/g", found.blockers)
    end = time.perf_counter()
    return {
        "model_s": round(modelled - start, 3),
        "first_s": round(ready - modelled, 3),
        "explain_s": round(done - ready, 3),
        "unblock_s": round(end - ready, 3),
        "trials": trials.count,
        "verdict": found.verdict,
        "unblock": [s.text for s in helps],
    }


def _many(waiting: int, cycles: int) -> dict[str, Any]:
    on, kept = _cycles(waiting, cycles, "")
    off, before = _cycles(waiting, cycles, "deviations: {stated-reasons: false}\n")
    return {
        "waiting": waiting,
        "cycle_s": round(on, 4),
        "without_reasons_s": round(off, 4),
        "overhead": f"{(on / off - 1) * 100:.1f} %",
        "reasons_mb": round((kept - before) / 2**20, 1),
    }


def _cycles(waiting: int, cycles: int, more: str) -> tuple[float, int]:
    """The median cycle in seconds, and the bytes that the model holds after it."""
    from volcano_py.scheduler.framework.config import load
    from volcano_py.scheduler.run_once import REGISTRY, run_once
    from volcano_py.simulate.cycles import Simulation
    from volcano_py.testing.table import manifests

    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    jobs = {
        f"w{i}": {"phase": "Inqueue", "metadata": created, "each": {"cpu": 3 + i % 20, "metadata": created}}
        for i in range(waiting)
    }
    story = {"nodes": {f"n{i}": {"cpu": 2} for i in range(200)}, "queues": {"default": {"weight": 1}}, "jobs": jobs}
    simulation = Simulation(manifests(story), raw=True)
    conf = load(CONF.replace("capacity", "proportion") + more, REGISTRY.actions)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    run_once(simulation.cluster, conf, simulation.now)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    times = []
    gc.disable()
    for cycle in range(cycles):
        for o in manifests({"jobs": {f"churn-{cycle}": {"phase": "Inqueue", "each": {"cpu": 1}}}}):
            simulation.put(o)
        start = time.perf_counter()
        run_once(simulation.cluster, conf, simulation.now + cycle + 1)
        times.append(time.perf_counter() - start)
    gc.enable()
    return statistics.median(times), held
