"""What hostile or unusual input costs: many classes of pods, one pod with many terms, one huge job, junk updates.

Every case runs in a process of its own. Nothing here is a goal to reach; docs/limits.md states what was measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import click
import orjson

from benchmarks.churn import START, busy
from benchmarks.decision import in_own_process, loaded
from benchmarks.growth import gangs, scenario
from benchmarks.scenario import objects

Spec = dict[str, Any]


def classes(nodes: int, pods: int) -> Spec:
    """Single pods of which no two ask for the same."""
    spec = scenario(nodes=nodes, pods=pods, gang=1)
    work = {"kind": "singles", "group": "s<i>", "pod": "s<i>-0", "queue": "q<i % 4>", "min_member": 1}
    shapes = {"shapes": pods, "cpu_milli": "100 + (s % 1000)", "memory_mi": "256 + (s // 1000)"}
    spec["workload"] = [{**work, **shapes, "pods": pods, "min_resources": True, "phase": "Pending", "priority": 0}]
    return spec


def terms(nodes: int, count: int) -> Spec:
    """One pod with many anti-affinity terms beside running pods to which they apply, and a hundred plain pods."""
    spec = scenario(nodes=nodes, pods=100, gang=10)
    wanted = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"old{i % nodes}"}}}
        for i in range(count)
    ]
    running = gangs(nodes // 2, 1, 4)
    running |= {"group": "old<g>", "phase": "Running", "node": "node-<g % nodes>"}
    one = gangs(1, 1, 4) | {"group": "terms"}
    one["pod_spec"] = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}},
    }
    spec["workload"] = [running, one, *spec["workload"]]
    spec["expect"] = {"bound": 101}
    return spec


def huge(small: bool) -> Spec:
    """One job."""
    nodes, pods = (20, 40) if small else (5_000, 100_000)
    return scenario(nodes=nodes, pods=pods, gang=pods)


CASES: dict[str, tuple[str, Callable[[bool], Spec]]] = {
    "classes": ("single pods of as many classes", lambda small: classes(*((20, 40) if small else (5_000, 50_000)))),
    "terms": ("one pod with 1,000 anti-affinity terms", lambda small: terms(*((20, 40) if small else (5_000, 1_000)))),
    "huge": ("one job of 100,000 tasks", huge),
}


def junk(nodes: int, pods: int, updates: int) -> list[dict[str, float]]:
    """Updates of running pods, a second, and the cycle after them: of what the scheduler does not keep, such as the
    states of containers, and of an annotation, which a plugin could read."""
    from volcano_py.api.codec import decoder
    from volcano_py.scheduler.model.cluster import Cluster
    from volcano_py.scheduler.run_once import run_once
    from volcano_py.simulate.manifests import STRUCTS

    spec = busy(nodes, pods // 10, 10)
    conf = loaded(spec)
    model = Cluster()
    running: list[Spec] = []
    for kind, manifest in objects(spec):
        model.upsert(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(manifest)))
        if kind == "Pod":
            running.append(manifest)
    run_once(model, conf, START, seed=1)
    read, found = decoder(STRUCTS["Pod"]), []
    for what in ("status", "annotation"):
        events = []
        for i in range(updates):
            manifest = running[i % len(running)]
            manifest["metadata"]["resourceVersion"] = str(i + 1)
            if what == "status":
                manifest["status"]["containerStatuses"] = [{"name": "main", "restartCount": i}]
            else:
                manifest["metadata"]["annotations"]["example.com/junk"] = str(i)
            events.append(orjson.dumps(manifest))
        started = time.perf_counter()
        for event in events:
            model.upsert("Pod", read.decode(event))
        intake = time.perf_counter() - started
        started = time.perf_counter()
        run_once(model, conf, START + 1, seed=1)
        found.append({"updates_a_second": updates / intake, "cycle_s": time.perf_counter() - started})
    return found


@click.command()
@click.option("--only", multiple=True, type=click.Choice([*CASES, "junk"]), help="Run only this case; may be repeated.")
@click.option("--small", is_flag=True, help="Tiny sizes, to try the command.")
def limits(only: tuple[str, ...], small: bool) -> None:
    """What hostile or unusual input costs: time of the cycle, peak memory."""
    print(f"{'case':44} {'cycle s':>9} {'cpu s':>9} {'us a pod':>9} {'intake s':>9} {'bound':>8} {'peak MB':>8}")
    for name, (text, make) in CASES.items():
        if only and name not in only:
            continue
        r = in_own_process(make(small))
        if "unexpected" in r:
            sys.exit(f"{name}: {r['unexpected']}")
        each = r["cycle_s"] * 1e6 / r["bound"]
        times = f"{r['cycle_s']:9.3f} {r['cpu_s']:9.3f} {each:9.1f} {r['intake_s']:9.3f}"
        print(f"{text:44} {times} {r['bound']:8,d} {r['peak_rss_mb']:8d}", flush=True)
    if only and "junk" not in only:
        return
    sizes = (20, 40, 100) if small else (5_000, 50_000, 200_000)
    program = f"import json; from benchmarks.limits import junk; print(json.dumps(junk{sizes}))"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    for what, r in zip(("states of containers", "annotations"), json.loads(done.stdout), strict=True):
        rate = f"{r['updates_a_second']:,.0f} a second"
        print(f"junk updates of running pods, {what}: {rate}, then a cycle of {r['cycle_s']:.3f} s")
