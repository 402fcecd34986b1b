"""What changes cost in a cluster that is busy: from the events to the plan.

Gangs run on all nodes. By default each step adds one pod with its PodGroup and runs a cycle; the pod of the step before
runs by then. With --updates nothing is added: in each step 50 pods and 20 nodes are updated and 100 pods complete; pods
that fit no node can wait meanwhile, each of a class of its own. The cost should follow the change, not the size of the
cluster.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import click
import orjson

from benchmarks.decision import default_tiers, loaded
from benchmarks.scenario import objects

START = 1_760_000_000.0
FIRST = 5
"""Steps that are not counted: they fill caches."""

Manifest = dict[str, Any]


def busy(nodes: int, gangs: int, size: int) -> dict[str, Any]:
    """A scenario of running gangs."""
    labels = {"kubernetes.io/hostname": "<name>", "topology.kubernetes.io/zone": "zone-<i % 8>"}
    shape = {"cpu": "64", "memory": "512Gi", "pods": 110, "name": "node-%05d", "labels": labels}
    return {
        "nodes": {"count": nodes, **shape},
        "queues": [{"name": "team0", "weight": 1}, {"name": "team1", "weight": 2}],
        "actions": ["enqueue", "allocate", "backfill"],
        "tiers": default_tiers(),
        "workload": [
            {
                "kind": "gangs",
                "queue": "team<g % 2>",
                "group": "gang<g>",
                "cpu": "1",
                "memory": "2Gi",
                "min_resources": True,
                "phase": "Running",
                "priority": 0,
                "gang_size": size,
                "min_member": size,
                "pods": gangs * size,
                "node": f"node-<({size}*g + k) % nodes>",
            }
        ],
    }


def one_more(i: int) -> list[tuple[str, Manifest]]:
    """A PodGroup and its pod."""
    metadata = {"name": f"one-{i}", "namespace": "default"}
    requests = {"cpu": "1", "memory": "1Gi"}
    group = {
        "metadata": {**metadata, "uid": f"group-one-{i}"},
        "spec": {"minMember": 1, "queue": "default", "minResources": requests},
        "status": {"phase": "Inqueue"},
    }
    container = {"name": "main", "image": "busybox", "resources": {"requests": requests}}
    pod = {
        "metadata": {
            **metadata,
            "uid": f"pod-one-{i}",
            "annotations": {"scheduling.k8s.io/group-name": f"one-{i}"},
        },
        "spec": {"schedulerName": "volcano", "containers": [container]},
        "status": {"phase": "Pending"},
    }
    return [("PodGroup", group), ("Pod", pod)]


class Seconds(NamedTuple):
    """What a step has taken, on the clock and of CPU time; `intake`: the part before the cycle, on the clock, in which
    the model took the events."""

    wall: float
    cpu: float
    intake: float


def measure(
    spec: dict[str, Any], steps: int, observed: Callable[[], AbstractContextManager[None]] = nullcontext
) -> list[Seconds]:
    """Seconds of each step. `spec`: the pods that run. `observed`: entered for each step."""
    from volcano_py.api.codec import decoder
    from volcano_py.scheduler.model.cluster import Cluster
    from volcano_py.scheduler.model.plan import Bind
    from volcano_py.scheduler.run_once import run_once
    from volcano_py.scheduler.runtime.collection import keep_loaded, paused
    from volcano_py.simulate.manifests import STRUCTS

    conf = loaded(spec)
    model = Cluster()
    for kind, manifest in objects(spec):
        model.upsert(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(manifest)))
    keep_loaded()
    seconds = []
    for i in range(FIRST + steps):
        events = [(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(m))) for kind, m in one_more(i) if i]
        begun, used = time.perf_counter(), time.process_time()
        with observed():
            for kind, event in events:
                model.upsert(kind, event)
            intake = time.perf_counter() - begun
            with paused():  # as the live loop
                report = run_once(model, conf, START + i, seed=1)
        seconds.append(Seconds(time.perf_counter() - begun, time.process_time() - used, intake))
        for op in report.plan:
            if isinstance(op, Bind):
                group, pod = one_more(i)
                group[1]["status"] = {"phase": "Running", "running": 1}
                pod[1]["spec"]["nodeName"], pod[1]["status"] = op.node, {"phase": "Running"}
                for kind, manifest in (group, pod):
                    model.upsert(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(manifest)))
        if report.bound != bool(i):
            raise click.ClickException(f"step {i} bound {report.bound} pods")
    return seconds[FIRST:]


def changes(i: int, pods: list[Manifest], nodes: list[Manifest]) -> list[tuple[str, Manifest]]:
    """The events of one step, in which 50 pods and 20 nodes are updated and 100 pods complete. `pods`: those that
    still run; the completed ones are removed."""

    def updated(manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        annotations = {**(metadata.get("annotations") or {}), "example.com/step": str(i)}
        return {**manifest, "metadata": {**metadata, "annotations": annotations}}

    events = [("Pod", updated(pods[(50 * i + k) % len(pods)])) for k in range(50)]
    events += [("Node", updated(nodes[(20 * i + k) % len(nodes)])) for k in range(20)]
    events += [("Pod", {**pods.pop(), "status": {"phase": "Succeeded"}}) for _ in range(100)]
    return events


def waiting(i: int) -> list[tuple[str, Manifest]]:
    """A pod that fits no node, with its PodGroup."""
    group, pod = one_more(i)
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{65_000 + i}m", "memory": "1Gi"}
    return [group, pod]


def measure_updates(spec: dict[str, Any], steps: int, stuck: int) -> list[Seconds]:
    """Seconds of each step with updates. `spec`: the pods that run."""
    from volcano_py.api.codec import decoder
    from volcano_py.scheduler.model.cluster import Cluster
    from volcano_py.scheduler.run_once import run_once
    from volcano_py.scheduler.runtime.collection import keep_loaded, paused
    from volcano_py.simulate.manifests import STRUCTS

    def decoded(kind: str, manifest: Manifest) -> Any:
        return decoder(STRUCTS[kind]).decode(orjson.dumps(manifest))

    conf = loaded(spec)
    model = Cluster()
    made: dict[str, list[Manifest]] = {}
    for kind, manifest in [*objects(spec), *(event for i in range(stuck) for event in waiting(i + 1))]:
        model.upsert(kind, decoded(kind, manifest))
        made.setdefault(kind, []).append(manifest)
    running = [pod for pod in made["Pod"] if pod["status"]["phase"] == "Running"]
    keep_loaded()
    seconds = []
    for i in range(FIRST + steps):
        events = [(kind, decoded(kind, manifest)) for kind, manifest in changes(i, running, made["Node"])]
        begun, used = time.perf_counter(), time.process_time()
        for kind, event in events:
            model.upsert(kind, event)
        intake = time.perf_counter() - begun
        with paused():  # as the live loop
            report = run_once(model, conf, START + i, seed=1)
        seconds.append(Seconds(time.perf_counter() - begun, time.process_time() - used, intake))
        if report.bound or report.evicted:
            raise click.ClickException(f"step {i} bound {report.bound} pods and evicted {report.evicted}")
    return seconds[FIRST:]


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--gangs", default=500, show_default=True)
@click.option("--size", default=100, show_default=True, help="Pods of a gang.")
@click.option("--steps", default=100, show_default=True)
@click.option("--updates", is_flag=True, help="Update and complete pods instead of adding one.")
@click.option("--stuck", default=0, show_default=True, help="With --updates: pods of as many classes that fit no node.")
def churn(nodes: int, gangs: int, size: int, steps: int, updates: bool, stuck: int) -> None:
    """Changes in a busy cluster: events to plan."""
    if stuck and not updates:
        raise click.UsageError("--stuck goes with --updates")
    if updates and (FIRST + steps) * 100 + 50 > gangs * size:
        raise click.UsageError(f"{gangs * size} pods are too few for {steps} steps in which 100 complete")
    spec = busy(nodes, gangs, size)
    done = measure_updates(spec, steps, stuck) if updates else measure(spec, steps)
    wall, cpu, intake = (sorted(1000 * getattr(each, kind) for each in done) for kind in Seconds._fields)
    what = f"50 pods and 20 nodes updated, 100 pods completed, {stuck} pods stuck" if updates else "one pod more"
    print(f"{nodes} nodes, {gangs} running gangs of {size}: {what}, {steps} times")
    print(
        f"median {statistics.median(wall):.2f} ms (intake of the events {statistics.median(intake):.2f} ms), "
        f"slowest {wall[-1]:.2f} ms; CPU: median {statistics.median(cpu):.2f} ms"
    )
