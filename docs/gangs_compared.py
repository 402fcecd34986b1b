"""The page that compares gangs of the session with those of kube-scheduler 1.37: both run each scenario of
`gangs_compared.yaml`, and the page shows what they decided."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import load
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.profiles import Scenario, run
from volcano_py.testing.table import configuration, manifests

Manifest = dict[str, Any]
SCENARIOS = Path(__file__).parent / "gangs_compared.yaml"
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "DRAWorkloadResourceClaims")
CONF = {
    "actions": "enqueue, allocate, preempt, reclaim, backfill",
    "plugins": [["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]],
}
CYCLES = 20
SECONDS = 300
HEAD = """\
<!-- Generated from docs/gangs_compared.yaml by docs/generate.py: do not edit. -->
# Gangs of the session and of kube-scheduler

What the session adds to [native gangs](native-gangs.md): queues with shares and limits, reclaim, reservations for jobs
that wait, arrangements, gangs that are not destroyed by evictions, and one reason for a gang that waits.

Both ran each scenario below: a session with the actions `{actions}`, for {cycles} cycles, and
a [profile](profiles.md) that decides as kube-scheduler 1.37, for {seconds} seconds. The decisions of profiles are
verified against those of kube-scheduler 1.37.2. Evicted pods are not created again.
"""


def page() -> str:
    """The page, from runs."""
    lines = [HEAD.format(actions=CONF["actions"], seconds=SECONDS, cycles=CYCLES)]
    for scenario in yaml.safe_load(SCENARIOS.read_text()):
        lines += [f"## {scenario['name']}", "", scenario["says"], "", "```yaml", _shown(scenario), "```", ""]
        lines += ["| | Session | kube-scheduler 1.37 |", "|---|---|---|"]
        ours, theirs = of_session(scenario), of_profile(scenario)
        lines += [f"| {name} | {ours[name]} | {theirs[name]} |" for name in ours]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def of_session(scenario: Manifest) -> dict[str, str]:
    """What the session decides, by row of the table."""
    simulation = Simulation(manifests(deepcopy(scenario)))
    conf = load(configuration(CONF), ACTIONS)
    bound: dict[str, str] = {}
    evicted: list[str] = []
    for _ in range(CYCLES):
        result = simulation.cycle(conf)
        bound |= result.bound
        evicted += result.evicted
    waiting = [(key, o) for (kind, key), o in simulation.objects.items() if kind == "Pod" and not _node(o)]
    groups = (o for (kind, _), o in simulation.objects.items() if "podgroup.scheduling.k8s.io" in kind)
    stated = {c["message"] for o in groups for c in _conditions(o) if c["status"] == "False"}
    return _rows(bound, evicted, [key for key, _ in waiting], sorted(stated))


def of_profile(scenario: Manifest) -> dict[str, str]:
    """What a profile decides, by row of the table."""
    values = scenario.get("priorities") or {}
    objects = [_for_profile(o, values) for o in manifests(deepcopy(scenario)) if o["kind"] != "Queue"]
    case = {"kubernetes": "1.37", "featureGates": dict.fromkeys(GATES, True), "objects": objects, "until": SECONDS}
    found = run(msgspec.convert(case, Scenario))[-1]
    running = {f"default/{o['metadata']['name']}" for o in objects if o["kind"] == "Pod" and _node(o)}
    pods = {f"default/{o['metadata']['name']}" for o in objects if o["kind"] == "Pod"}
    waiting = sorted(pods - running - set(found["bound"]))
    return _rows(found["bound"], found["deleted"], waiting, sorted(set(found["reason"].values())))


def _for_profile(manifest: Manifest, values: dict[str, int]) -> Manifest:
    versions = {"Pod": "v1", "Node": "v1", "PriorityClass": "scheduling.k8s.io/v1"}
    made = {"apiVersion": versions.get(manifest["kind"], ""), **manifest}
    spec = made.get("spec") or {}
    if name := spec.get("priorityClassName"):
        spec["priority"] = values[name]
    if made["kind"] == "Pod":
        spec["schedulerName"] = "default-scheduler"
        spec["terminationGracePeriodSeconds"] = 0
    return made


def _rows(bound: dict[str, str], evicted: list[str], waiting: list[str], reasons: list[str]) -> dict[str, str]:
    return {
        "Bound": _by_job(bound) or "none",
        "Evicted": _by_job(evicted) or "none",
        "Still waiting": _by_job(waiting) or "none",
        "Reasons": "<br>".join(reasons[:2]) or "-",
    }


def _by_job(pods: Any) -> str:
    """How many pods of each job: their names begin with its."""
    counts: dict[str, int] = {}
    for key in sorted(pods):
        job = key.partition("/")[2].partition("-")[0]
        counts[job] = counts.get(job, 0) + 1
    return ", ".join(f"{count} of {job}" for job, count in counts.items())


def _node(pod: Manifest) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _conditions(group: Manifest) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (group.get("status") or {}).get("conditions") or []
    return found


def _shown(scenario: Manifest) -> str:
    shown = {k: v for k, v in scenario.items() if k not in ("name", "says")}
    return "\n".join(
        f"{key}: {yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False).strip()}"
        for key, value in shown.items()
    )
