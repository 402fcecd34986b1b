"""hypothesis strategies: what plugin usage reads: measurements of nodes, limits and start times of pods."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as s

from tests.strategies import START, Manifest, one_in


@s.composite
def with_usage(draw: s.DrawFn, case: Manifest) -> Manifest:
    """The case with plugin usage, and measurements of most nodes."""
    draw(add_limits(case["objects"]))
    conf = json.loads(case["conf"])
    plugins = draw(s.sampled_from(conf["tiers"]))["plugins"]
    plugins.insert(draw(s.integers(0, len(plugins))), draw(usage_arguments()))
    if draw(s.booleans()):
        conf["metrics"] = {"interval": draw(s.sampled_from(("5s", "10s", "1m", "1h", "1m30s", "soon")))}
    return {**case, "conf": json.dumps(conf), "usage": draw(measurements(case["objects"]))}


@s.composite
def usage_arguments(draw: s.DrawFn) -> Manifest:
    """The plugin in a configuration: its arguments, valid and invalid, and sometimes a flag."""
    found: Manifest = {}
    for key in ("usage.weight", "cpu.weight", "memory.weight"):
        if one_in(draw, 3):
            found[key] = draw(s.sampled_from((0, 1, 2, 8, -1, "3")))
    if draw(s.booleans()):
        names = draw(s.lists(s.sampled_from(("cpu", "mem")), min_size=1, unique=True))
        found["thresholds"] = {name: draw(s.sampled_from((0, 30, 50, 90, 100, 101, -1, "70"))) for name in names}
    if draw(s.booleans()):
        found["estimator"] = draw(estimator())
    plugin: Manifest = {"name": "usage", "arguments": found}
    if one_in(draw, 12):
        plugin[draw(s.sampled_from(("enablePredicate", "enableNodeOrder")))] = False
    return plugin


@s.composite
def estimator(draw: s.DrawFn) -> Manifest:
    choices: dict[str, tuple[Any, ...]] = {
        "request_ratio": (0.0, 0.5, 1.0, 1, 1.5, "0.9"),
        "burst_ratio": (0.0, 0.3, 1.0, -0.1),
        "risk_threshold": (0.0, 0.3, 0.5, 1.0, 2.0),
        "risk_factor": (1.0, 1.5, 3, 0.5),
        "be_cpu": ("500m", 1000, "2", 0, -1, "-1", "much"),
        "be_mem": ("1Gi", 512, "0", "1e9", -5, "bad"),
    }
    names = draw(s.lists(s.sampled_from(sorted(choices)), min_size=1, unique=True))
    return {name: draw(s.sampled_from(choices[name])) for name in names}


@s.composite
def measurements(draw: s.DrawFn, objects: list[Manifest]) -> Manifest:
    """By node: the load in percent and the age of the measurement in the first cycle; some nodes have none."""
    found: Manifest = {}
    for node in (o for o in objects if o["kind"] == "Node"):
        if not one_in(draw, 8):
            found[node["metadata"]["name"]] = {
                "cpu": draw(s.sampled_from((0, 5, 12.5, 20, 33.3, 50, 59, 60, 70, 80, 80.5, 90))),
                "memory": draw(s.sampled_from((0, 5, 10, 25, 40.7, 50, 60, 75, 80, 81, 100))),
                "age": draw(s.sampled_from((0, 0, 15, 60, 298.5, 299, 299.5, 300, 301, 4000))),
            }
    return found


@s.composite
def add_limits(draw: s.DrawFn, objects: list[Manifest]) -> None:
    """Limits and start times of pods, and nodes whose capacity is not their allocatable amounts.

    Pods share their containers, so these are replaced, not changed.
    """
    for o in objects:
        if o["kind"] == "Node" and not one_in(draw, 3):
            allocatable = o["status"]["allocatable"]
            amounts = {"cpu": ("4", "4500m", "8", "8", "16"), "memory": ("4Gi", "8Gi", "8Gi", "16Gi")}
            more = {name: draw(s.sampled_from(of)) for name, of in amounts.items()}
            if one_in(draw, 10):
                more[draw(s.sampled_from(("cpu", "memory")))] = "0"
            o["status"]["capacity"] = {**allocatable, **more}
        elif o["kind"] == "Pod":
            spec, status = o["spec"], o["status"]
            if draw(s.booleans()):
                spec["containers"] = [draw(with_limits(c)) for c in spec["containers"]]
            if spec.get("initContainers") and draw(s.booleans()):
                spec["initContainers"] = [draw(with_limits(c)) for c in spec["initContainers"]]
            if spec.get("resources") and draw(s.booleans()):
                spec["resources"] = {**spec["resources"], "limits": draw(limits())}
            if status.get("phase") == "Running" and not one_in(draw, 4):
                status["startTime"] = draw(s.sampled_from((START, "2025-12-31T23:59:45Z", "2025-12-31T23:00:00Z")))


@s.composite
def with_limits(draw: s.DrawFn, container: Manifest) -> Manifest:
    return {**container, "resources": {**container.get("resources", {}), "limits": draw(limits())}}


@s.composite
def limits(draw: s.DrawFn) -> Manifest:
    found: Manifest = {}
    if not one_in(draw, 4):
        found["cpu"] = draw(s.sampled_from(("500m", "1", "1500m", "2", "3")))
    if draw(s.booleans()):
        found["memory"] = draw(s.sampled_from(("256Mi", "1Gi", "3Gi")))
    return found
