"""The goals for a cycle, each measured with numpy alone and with the extra [fast], in one table.

Every figure comes from a process of its own: the first cycle of that process, unless the row names later cycles or
steps. Sizes are those of docs/performance.md; times depend on the machine, so compare figures of one run.
"""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson

from benchmarks.decision import in_own_process
from benchmarks.growth import gangs, scenario
from benchmarks.scenario import Spec

KERNELS = ("numpy", "compiled")
_SHAPES = [
    [str(cpu), f"{memory}Gi"]
    for cpu, memory in ((16, 64), (32, 128), (32, 256), (48, 192), (64, 256), (64, 512), (96, 384), (128, 512))
]


class Goal(NamedTuple):
    """One row of the table."""

    spec: Callable[[], Spec]
    seconds: float
    """Of the cycle, with numpy alone and with the extra [fast]."""
    megabytes: int = 0
    """The goal for the peak memory of the process; 0: none."""
    text: str = ""
    """What the name of the row does not state."""


def gang(nodes: int, pods: int, mixed: bool = False) -> Spec:
    """Gangs of 100."""
    spec = scenario(nodes, pods, 100)
    return _mixed(spec, min_member=80) if mixed else spec


def single(nodes: int, pods: int, mixed: bool = False) -> Spec:
    """Pods with a PodGroup each, of 200 classes in turn."""
    spec = scenario(nodes, pods, 1)
    spec["workload"] = [
        {
            "kind": "singles",
            "pods": pods,
            "min_member": 1,
            "queue": "q<i % 4>",
            "group": "s<i>",
            "pod": "s<i>-0",
            "shapes": 200,
            "cpu_milli": "100 + 25*(s % 20)",
            "memory_mi": "128 + 64*(s // 20)",
            "min_resources": True,
            "phase": "Pending",
            "priority": 0,
        }
    ]
    return _mixed(spec, min_member=1) if mixed else spec


def _mixed(spec: Spec, min_member: int) -> Spec:
    """On nodes of eight shapes of which every tenth has a taint, in 50 classes; each pod has another label."""
    nodes = {k: v for k, v in spec["nodes"].items() if k not in ("cpu", "memory")}
    (work,) = spec["workload"]
    requests = {"shapes": 50, "cpu_milli": "100 + 50*(s % 10)", "memory_mi": "256 + 256*(s // 10)"}
    work = {**work, **requests, "unique_label": True, "min_member": min_member}
    return {**spec, "nodes": {**nodes, "shapes": _SHAPES, "tainted": 10}, "workload": [work]}


def running(nodes: int, pods: int, **more: Any) -> Spec:
    """Gangs that run, spread over all nodes."""
    return {
        **gangs(pods, 100, 4),
        "group": "old<g>",
        "phase": "Running",
        "node": "node-<(100*g + k) % nodes>",
        "annotations": {"volcano.sh/preemptable": "true"},
        **more,
    }


def beside(nodes: int, pods: int, waiting: int, gang: int, bound: int, cycles: int = 1, **more: Any) -> Spec:
    """Gangs that wait beside running pods. `more`: fields of the waiting workload."""
    spec = scenario(nodes, waiting, gang)
    spec["workload"] = [running(nodes, pods), *({**work, **more} for work in spec["workload"] if waiting)]
    return {**spec, "cycles": cycles, "expect": {"bound": bound}}


def evicting(nodes: int, wanted: int, action: str, gang: int = 500) -> Spec:
    """A cluster full of pods of low priority or of another queue, and gangs with `wanted` pods in total."""
    spec = scenario(nodes, wanted, gang)
    pods = 16 * nodes
    held = {"cpu": "2", "memory": "4Gi", "gang_size": 80, "min_member": 1, "queue": "q0"}
    (work,) = spec["workload"]
    if action == "preempt":
        low = running(nodes, pods, **held, priority=10, priority_class="low")
        requesting = {"cpu": "4", "memory": "8Gi", "queue": "q0", "priority": 500, "priority_class": "high"}
    else:
        low, requesting = running(nodes, pods, **held), {"cpu": "2", "memory": "4Gi", "queue": "q1"}
    low["node"] = "node-<(80*g + k) % nodes>"
    return {
        **spec,
        "queues": [{"name": "q0", "weight": 1}, {"name": "q1", "weight": 1}],
        "priority_classes": {"low": 10, "high": 500},
        "actions": ["enqueue", "allocate", action, "backfill"],
        "workload": [low, {**work, **requesting}],
        "expect": {"bound": 0, "evicted": wanted * (2 if action == "preempt" else 1), "pipelined": wanted},
    }


def apart(nodes: int, pods: int) -> Spec:
    """Jobs of 20 pods with pod anti-affinity by host and hard spreading over zones."""
    spec = scenario(nodes, pods, 20)
    own = {"labelSelector": {"matchLabels": {"app": "g<g>"}}}
    spec["workload"][0]["pod_spec"] = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", **own}]
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", **own}
        ],
    }
    return spec


def hierarchy(nodes: int, jobs: int, widths: tuple[int, int, int, int] = (8, 32, 160, 800)) -> Spec:
    """Jobs of one pod in the leaves of a tree of queues on four levels, divided by the plugin capacity. `widths`: the
    number of queues on each level."""
    spec = scenario(nodes, jobs, 1)
    queues = [{"name": f"a{i}", "parent": "root"} for i in range(widths[0])]
    for above, level, parents, count in zip("abc", "bcd", widths, widths[1:], strict=False):
        queues += [{"name": f"{level}{i}", "parent": f"{above}{i % parents}"} for i in range(count)]
    (work,) = spec["workload"]
    spec["workload"] = [{**work, "queue": f"d<g % {widths[3]}>"}]
    first, second = spec["tiers"]
    capacity = {"capacity": {"enableHierarchy": True}}
    return {**spec, "queues": queues, "tiers": [first, [capacity if p == "proportion" else p for p in second]]}


def changing(steps: str) -> Spec:
    """A busy cluster, in which each step makes changes of `benchmarks.churn`: one-more, updates or updates-stuck."""
    return {**beside(5_000, 50_000, 0, 100, 0), "steps": steps}


def changing_queues() -> Spec:
    """The jobs of `hierarchy` when they run, with the changes of the step updates."""
    spec = hierarchy(2_000, 20_000)
    (work,) = spec["workload"]
    return {**spec, "workload": [{**work, "phase": "Running", "node": "node-<g % nodes>"}], "steps": "updates"}


GOALS = {
    "gang-1000n-10000p": Goal(lambda: gang(1_000, 10_000), 0.2),
    "gang-5000n-10000p": Goal(lambda: gang(5_000, 10_000), 0.2),
    "gang-10000n-50000p": Goal(lambda: gang(10_000, 50_000), 1.0, 800),
    "single-1000n-10000p": Goal(lambda: single(1_000, 10_000), 1.0),
    "single-5000n-10000p": Goal(lambda: single(5_000, 10_000), 1.0),
    "single-5000n-50000p": Goal(lambda: single(5_000, 50_000), 5.5, 1_000),
    "gang-1000n-10000p-mixed": Goal(lambda: gang(1_000, 10_000, True), 0.3),
    "gang-5000n-10000p-mixed": Goal(lambda: gang(5_000, 10_000, True), 0.3),
    "gang-10000n-50000p-mixed": Goal(lambda: gang(10_000, 50_000, True), 1.5, 800),
    "single-1000n-10000p-mixed": Goal(lambda: single(1_000, 10_000, True), 1.5),
    "single-5000n-10000p-mixed": Goal(lambda: single(5_000, 10_000, True), 1.5),
    "single-5000n-50000p-mixed": Goal(lambda: single(5_000, 50_000, True), 8.25, 1_000),
    "one-gang-5000n-10000p": Goal(lambda: scenario(5_000, 10_000, 10_000), 0.25),
    "apart-5000n-4000p": Goal(
        lambda: apart(5_000, 4_000), 1.33, text="gangs of 20 with anti-affinity and hard zone spreading"
    ),
    "preempt-1000n-500p": Goal(lambda: evicting(1_000, 500, "preempt"), 0.12),
    "reclaim-1000n-500p": Goal(lambda: evicting(1_000, 500, "reclaim"), 0.08),
    "preempt-5000n-2500p": Goal(lambda: evicting(5_000, 2_500, "preempt"), 1.0, text="80,000 pods run"),
    "reclaim-5000n-2500p": Goal(lambda: evicting(5_000, 2_500, "reclaim"), 1.0, text="80,000 pods run"),
    "queues-1000-20000p": Goal(lambda: hierarchy(2_000, 20_000), 1.5, text="jobs of one pod, queues on 4 levels"),
    "queues-update-1000": Goal(
        changing_queues, 0.02, text="50 pods and 20 nodes updated, 100 jobs completed, in the same queues"
    ),
    "stuck-5000n-50000r": Goal(
        lambda: beside(5_000, 50_000, 1_000, 10, 0, cycles=5, cpu="64"),
        0.01,
        text="1,000 pods fit no node, later cycles",
    ),
    "update-5000n-50000r": Goal(
        lambda: changing("updates"), 0.005, text="50 pods and 20 nodes updated, 100 pods completed"
    ),
    "update-stuck-5000n-50000r": Goal(
        lambda: changing("updates-stuck"), 0.02, text="the same while 200 pods of other classes fit no node"
    ),
    "one-more-5000n-50000r": Goal(lambda: changing("one-more"), 0.001, text="one pod more, with its intake"),
    "memory-10000n-100000r": Goal(lambda: beside(10_000, 100_000, 100, 100, 100), 1.0, 1_000),
    "large-50000n-500000r": Goal(lambda: beside(50_000, 500_000, 10_000, 100, 10_000), 1.5, 5_000),
}


def measured(name: str, kernels: str) -> dict[str, Any]:
    """Seconds and megabytes of one row in a process of its own."""
    spec = {**GOALS[name].spec(), "id": name, "kernels": kernels}
    return in_own_process(spec, module="benchmarks.goals" if "steps" in spec else "benchmarks.decision")


def run_steps(spec: Spec) -> dict[str, Any]:
    """The median of 50 steps, in this process."""
    from benchmarks.churn import measure, measure_updates
    from volcano_py.scheduler.framework.kernels.choice import use_compiled

    if spec["kernels"] == "compiled":
        use_compiled()
    with_intake = spec["steps"] == "one-more"  # the other goals are for the cycle, before which the model takes events
    if with_intake:
        done = measure(spec, 50)
    else:
        done = measure_updates(spec, 50, 200 if spec["steps"] == "updates-stuck" else 0)
    return {
        "cycle_s": statistics.median(s.wall if with_intake else s.wall - s.intake for s in done),
        "cpu_s": statistics.median(s.cpu for s in done),
        "intake_s": statistics.median(s.intake for s in done),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


@click.command()
@click.option("--only", multiple=True, metavar="ID", help="Measure only these rows; may be repeated.")
@click.option("--kernels", multiple=True, type=click.Choice(KERNELS), help="Default: both.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes for each figure, of which the fastest counts: the speed of a shared machine varies.",
)
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the results to this file.")
def goals(only: tuple[str, ...], kernels: tuple[str, ...], runs: int, out: Path | None) -> None:
    """Measure each goal, and mark what is missed."""
    unknown = set(only) - GOALS.keys()
    if unknown:
        raise click.BadParameter(f"no row {min(unknown)}; the rows are {', '.join(GOALS)}", param_hint="--only")
    results = []
    head = f"{'row':28} {'kernels':9} {'cycle s':>9} {'cpu s':>9} {'goal s':>7} {'peak MB':>8} {'goal MB':>8}"
    print(f"{head} {'intake ms':>9}")
    for name, goal in GOALS.items():
        for each in KERNELS:
            if (only and name not in only) or (kernels and each not in kernels):
                continue
            found = [measured(name, each) for _ in range(runs)]
            for r in found:
                if "unexpected" in r:
                    sys.exit(f"{name}: {r['unexpected']}")
            r = min(found, key=lambda r: float(r["cycle_s"]))
            seconds = goal.seconds
            peak = r["peak_rss_mb"]
            missed = r["cycle_s"] > seconds or (goal.megabytes and peak > goal.megabytes)
            results.append(
                {"row": name, "kernels": each, "goal_s": seconds, "goal_mb": goal.megabytes, **r}
                | {"all_cycles_s": [other["cycle_s"] for other in found]}
            )
            times = f"{r['cycle_s']:9.4f} {r['cpu_s']:9.4f} {seconds:7.3f}"
            memory = f"{peak:8d} {goal.megabytes or '':>8}"
            intake = f"{1000 * r['intake_s']:9.1f}"
            line = f"{name:28} {each:9} {times} {memory} {intake} {'missed' if missed else '':7} {goal.text}"
            print(line.rstrip(), flush=True)
    if out is not None:
        out.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(orjson.dumps(run_steps(orjson.loads(sys.stdin.buffer.read()))))
