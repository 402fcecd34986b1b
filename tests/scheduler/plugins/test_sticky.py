"""sticky: the node of a pod is stored before the bind, and the pod is placed there again."""

from __future__ import annotations

from typing import Any

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.jobs.pre_bind import StoreNode, object_of
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

NODES = {"a": {"cpu": 4}, "b": {"cpu": 4}}


def conf(**arguments: Any) -> Any:
    text = configuration({"plugins": [["gang"], ["predicates", "nodeorder", {"sticky": arguments}]]})
    return load(text, REGISTRY.actions)


def gang(pods: int = 2, **job: Any) -> Simulation:
    described = {"nodes": NODES, "jobs": {"g": {"min": pods, "pods": pods, "each": {"cpu": 1}, **job}}}
    return Simulation(manifests({"queues": {"default": {}}, **described}))


def again(simulation: Simulation, pod: str) -> None:
    """Delete a pod, and create it with another UID, as its controller does."""
    manifest = simulation.objects["Pod", f"default/{pod}"]
    simulation.drop("Pod", f"default/{pod}")
    spec = {k: v for k, v in manifest["spec"].items() if k != "nodeName"}
    metadata = {**manifest["metadata"], "uid": f"{pod}-again"}
    simulation.put({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def annotations(simulation: Simulation) -> dict[str, str]:
    found: dict[str, str] = simulation.objects["PodGroup", "default/g"]["metadata"].get("annotations") or {}
    return {key: value for key, value in found.items() if "sticky" in key}


def test_a_pod_that_is_created_again_returns_to_its_node() -> None:
    simulation = gang()
    first = simulation.cycle(conf()).bound
    assert sorted(first.values()) == ["a", "b"]
    assert annotations(simulation) == {f"volcano.sh/sticky-node.g-{i}": first[f"default/g-{i}"] for i in range(2)}
    node = first["default/g-0"]
    simulation.put({**simulation.objects["Node", node], "metadata": {"name": node, "labels": {"busy": "yes"}}})
    again(simulation, "g-0")
    other = manifests({"jobs": {"other": {"each": {"cpu": 2, "runsOn": node}, "phase": "Running"}}})
    for manifest in other:
        simulation.put(manifest)
    assert simulation.cycle(conf()).bound == {"default/g-0": node}


def test_the_annotation_is_written_once() -> None:
    simulation = gang(1)
    assert simulation.cycle(conf()).bound
    again(simulation, "g-0")
    report = run_once(simulation.cluster, conf(), simulation.now)
    (bind,) = [op for op in report.plan if type(op).__name__ == "Bind"]
    assert bind.steps == ()  # type: ignore[union-attr]


def test_the_step_belongs_to_the_pod_group() -> None:
    step = StoreNode("default", "g", "uid", "volcano.sh/sticky-node", "a")
    assert object_of(step) == ("PodGroup", "default", "g")


def test_a_native_gang_and_a_pod_without_a_pod_group_are_placed_and_nothing_is_stored() -> None:
    native = gang(native={})
    result = native.cycle(conf())
    assert len(result.bound) == 2 and not result.faults
    pod = {"metadata": {"name": "bare", "namespace": "default"}, "spec": {"schedulerName": "volcano"}}
    bare = Simulation([*manifests({"nodes": NODES, "queues": {"default": {}}}), {"kind": "Pod", **pod}])
    assert not bare.cycle(conf()).faults
