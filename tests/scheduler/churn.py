"""200 cycles of a cluster in which jobs come and go, nodes fail, and evicted pods are recreated; prints all plans.

    python -m tests.scheduler.churn --seed 7 --cycles 200 [--shuffle 3] [--restart 100]

Every line is one cycle's plan as JSON. `--shuffle` puts the first objects in another order; `--restart` discards the
scheduler before that cycle and starts another one with the objects as they are then.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import msgspec

from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.jobs.session_jobs import SettledJobs
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration

Manifest = dict[str, Any]
START = 1_767_225_600.0
QUEUES = ("a", "b", "c")
PRIORITIES = {"high": 100, "mid": 10, "low": -5}
CONF = {
    "actions": "enqueue, allocate, gangpreempt, preempt, gangreclaim, reclaim, backfill",
    "plugins": [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack", "network-topology-aware"],
    ],
}


def node(name: str, random: Random) -> Manifest:
    have = {"cpu": str(random.choice((2, 4, 8))), "memory": "32Gi", "pods": "20"}
    labels = {"kubernetes.io/hostname": name, "zone": random.choice("xy")}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": have}}


def first_objects(random: Random) -> list[Manifest]:
    """The objects before the first cycle."""
    found = [node(f"n{i}", random) for i in range(12)]
    found += [
        {"kind": "Queue", "metadata": {"name": q}, "spec": {"weight": i + 1}, "status": {"state": "Open"}}
        for i, q in enumerate(QUEUES)
    ]
    found += [{"kind": "PriorityClass", "metadata": {"name": n}, "value": v} for n, v in PRIORITIES.items()]
    for i, row in enumerate(("^n[0-5]$", "^n([6-9]|1[01])$")):
        members = [{"type": "Node", "selector": {"regexMatch": {"pattern": row}}}]
        found.append({"kind": "HyperNode", "metadata": {"name": f"row{i}"}, "spec": {"tier": 1, "members": members}})
    for i in range(10):
        found += job(f"first-{i}", random, START)
    return found


def job(name: str, random: Random, now: float) -> list[Manifest]:
    """A PodGroup and its pods."""
    pods = random.randint(1, 6)
    priority, created = random.choice(list(PRIORITIES)), format_time(now)
    cpu = random.choice(("500m", "1", "2"))
    spec: Manifest = {
        "minMember": random.randint(1, pods),
        "queue": random.choice(QUEUES),
        "priorityClassName": priority,
    }
    if random.random() < 0.5:
        spec["minResources"] = {"cpu": cpu}
    if random.random() < 0.25:
        spec["networkTopology"] = {"mode": random.choice(("hard", "soft")), "highestTierAllowed": 1}
    metadata = {"name": name, "namespace": "default", "uid": f"pg-{name}", "creationTimestamp": created}
    group = {"kind": "PodGroup", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    nothing = random.random() < 0.1
    anti = random.random() < 0.1
    return [group, *(pod(name, i, created, priority, {} if nothing else {"cpu": cpu}, anti) for i in range(pods))]


def pod(job: str, i: int, created: str, priority: str, requests: Manifest, anti: bool) -> Manifest:
    spec: Manifest = {
        "schedulerName": "volcano",
        "priorityClassName": priority,
        "priority": PRIORITIES[priority],
        "containers": [{"name": "main", "image": "busybox", "resources": {"requests": requests}}],
    }
    if anti:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"job": job}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    name = f"{job}-work-{i}"
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "creationTimestamp": created,
        "labels": {"job": job},
        "annotations": {"scheduling.k8s.io/group-name": job},
    }
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def disturb(simulation: Simulation, random: Random, cycle: int) -> None:
    """The changes of the cluster between two cycles, in addition to those of the scheduler."""
    jobs = sorted(key for kind, key in simulation.objects if kind == "PodGroup")
    if len(jobs) < 30:
        for n in range(random.randint(0, 2)):
            for manifest in job(f"job-{cycle}-{n}", random, simulation.now):
                simulation.put(manifest)
    running = [j for j in jobs if simulation.objects["PodGroup", j]["status"]["phase"] == "Running"]
    if running and random.random() < 0.4:
        finish(simulation, random.choice(running))
    if random.random() < 0.05:
        names = sorted(key for kind, key in simulation.objects if kind == "Node")
        fail(simulation, random.choice(names))
        simulation.put(node(f"m{cycle}", random))


def finish(simulation: Simulation, group: str) -> None:
    name = group.removeprefix("default/")
    for kind, key in [(k, o) for k, o in simulation.objects if k == "Pod" and o.startswith(f"default/{name}-work-")]:
        simulation.drop(kind, key)
    simulation.drop("PodGroup", group)


def fail(simulation: Simulation, name: str) -> None:
    """Delete a node and its pods; the pods are recreated."""
    simulation.drop("Node", name)
    here = [
        (key, o) for (kind, key), o in simulation.objects.items() if kind == "Pod" and o["spec"].get("nodeName") == name
    ]
    for key, manifest in sorted(here, key=lambda each: each[0]):
        simulation.drop("Pod", key)
        recreate(simulation, manifest)


def recreate(simulation: Simulation, manifest: Manifest) -> None:
    new = deepcopy(manifest)
    new["spec"].pop("nodeName", None)
    new["metadata"]["uid"] += "+"
    new["metadata"]["creationTimestamp"] = format_time(simulation.now)
    new["status"] = {"phase": "Pending"}
    simulation.put(new)


def plans(
    seed: int,
    cycles: int,
    shuffle: int | None = None,
    restart: int | None = None,
    *,
    without: str = "",
    tiers: Sequence[Any] = CONF["plugins"],
    settled: Callable[[SettledJobs], None] = lambda _: None,
    begin: Callable[[Simulation, Configuration], None] = lambda *_: None,
) -> Iterator[list[plan.Operation]]:
    """The plan of each cycle. `without`: a deviation that is off. `settled` is called before each cycle with the
    settled jobs, and `begin` with the simulation and the configuration."""
    random = Random(seed)
    objects = first_objects(random)
    if shuffle is not None:
        Random(shuffle).shuffle(objects)
    off = {"deviations": {without: False}} if without else {}
    conf: Configuration = load(configuration({**CONF, "plugins": tiers, **off}), REGISTRY.actions)
    simulation = Simulation(objects, raw=True, now=START, seed=seed)
    for cycle in range(cycles):
        if cycle == restart:
            kept = [simulation.objects[key] for key in sorted(simulation.objects)]
            simulation = Simulation(kept, raw=True, now=simulation.now, seed=seed)
        settled(simulation.cluster.keep(SettledJobs))
        begin(simulation, conf)
        emitted: list[plan.Operation] = []

        def emit(operations: Sequence[plan.Operation], emitted: list[plan.Operation] = emitted) -> None:
            emitted.extend(operations)

        report = run_once(simulation.cluster, conf, simulation.now, seed, emit=emit)
        assert not report.faults, report.faults
        yield emitted
        evicted = [simulation.objects["Pod", f"{o.namespace}/{o.name}"] for o in emitted if isinstance(o, plan.Evict)]
        simulation.react(emitted)
        for manifest in evicted:
            recreate(simulation, manifest)
        disturb(simulation, random, cycle)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--shuffle", type=int)
    parser.add_argument("--restart", type=int)
    parser.add_argument("--without", default="", help="A deviation that is off.")
    given = parser.parse_args()
    for operations in plans(given.seed, given.cycles, given.shuffle, given.restart, without=given.without):
        print(msgspec.json.encode(operations).decode())
