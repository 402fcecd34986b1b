"""Clusters and workloads described as data: the format of benchmark scenarios, read into API objects.

Nothing is random: names, sizes and placements follow from running numbers. In texts, `<g>` is a gang's number, `<k>` a
pod's number in its gang, `<i>` the running number of a single, `<s>` the number of its shape; an expression may follow
inside the brackets (`node-<(100*g + k) % nodes>`).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from benchmarks.claims import claimed, provided

Spec = dict[str, Any]
_EXPRESSION = re.compile(r"<([^<>]+)>")
_START = 1_760_000_000.0
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(text: str, names: dict[str, int]) -> int:
    """Whole-number arithmetic over named numbers."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(n)):
                return n
            case ast.Name(id=name):
                return names[name]
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](value(left), value(right))
        raise ValueError(f"not an arithmetic expression: {text}")

    return value(ast.parse(text, mode="eval").body)


def fill(text: str, names: dict[str, int]) -> str:
    """Replace each `<expression>`."""
    return _EXPRESSION.sub(lambda m: str(evaluate(m[1], names)), text)


def objects(spec: Spec) -> Iterator[tuple[str, Spec]]:
    """(kind, manifest) of everything in a scenario."""
    nodes = spec["nodes"]
    for i in range(nodes["count"]):
        yield "Node", _node(nodes, i)
    if nodes.get("devices") or any(work.get("claims") for work in spec["workload"]):
        yield from provided(spec)
    for queue in [*spec["queues"], *({"name": n} for n in ("root", "default"))]:
        yield "Queue", _queue(queue)
    for name, value in (spec.get("priority_classes") or {}).items():
        yield "PriorityClass", {"metadata": {"name": name}, "value": value}
    clock = 0
    for work in spec["workload"]:
        for kind, manifest in _work(work, nodes["count"]):
            if kind == "PodGroup":
                clock += 1
            manifest["metadata"]["creationTimestamp"] = _micro_time(_START + clock / 1000)
            yield kind, manifest


def _micro_time(seconds: float) -> str:
    """Unix seconds as a Kubernetes MicroTime: gangs created within one second keep their order."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _node(spec: Spec, i: int) -> Spec:
    """`shapes`: lists of (cpu, memory), taken in turn; `resources`: further amounts; `tainted`: the step between two
    nodes with a taint."""
    name = spec["name"] % i
    labels = {k: fill(v.replace("<name>", name), {"i": i}) for k, v in spec["labels"].items()}
    cpu, memory = spec["shapes"][i % len(spec["shapes"])] if spec.get("shapes") else (spec["cpu"], spec["memory"])
    have = {"cpu": cpu, "memory": memory, "pods": str(spec["pods"]), **spec.get("resources", {})}
    made: Spec = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": have, "capacity": have}}
    if spec.get("tainted") and i % spec["tainted"] == 0:
        made["spec"] = {"taints": [{"key": "reserved", "effect": "NoSchedule"}]}
    return made


def _queue(spec: Spec) -> Spec:
    body: Spec = {"weight": spec.get("weight", 1), "reclaimable": spec.get("reclaimable", True)}
    body |= {field: spec[field] for field in ("capability", "parent") if spec.get(field)}
    return {"metadata": {"name": spec["name"]}, "spec": body, "status": {"state": "Open"}}


def _work(work: Spec, nodes: int) -> Iterator[tuple[str, Spec]]:
    gangs = work["kind"] == "gangs"
    size = work["gang_size"] if gangs else 1
    for number in range(work["pods"] // size):
        names = {"g": number, "i": number, "nodes": nodes}
        if work.get("shapes"):
            names["s"] = number % work["shapes"]
        if "cpu_milli" not in work:
            cpu, memory = work["cpu"], work["memory"]
        else:
            cpu = f"{evaluate(work['cpu_milli'], names)}m"
            memory = f"{evaluate(work['memory_mi'], names)}Mi"
        group = fill(work["group"], names)
        yield "PodGroup", _group(work, group, fill(work["queue"], names), cpu, memory)
        for k in range(size):
            pod = _pod(work, group, names | {"k": k}, cpu, memory)
            yield from claimed(work, pod)
            yield "Pod", pod


def _group(work: Spec, name: str, queue: str, cpu: str, memory: str) -> Spec:
    spec: Spec = {"minMember": work["min_member"], "queue": queue}
    if work.get("min_resources"):
        spec["minResources"] = {"cpu": times(cpu, work["min_member"]), "memory": times(memory, work["min_member"])}
    if work.get("priority_class"):
        spec["priorityClassName"] = work["priority_class"]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"group-{name}"},
        "spec": spec,
        "status": {"phase": work["phase"]},
    }


def _pod(work: Spec, group: str, names: dict[str, int], cpu: str, memory: str) -> Spec:
    pattern = work.get("pod") or f"{work['group']}-<k>"
    name = fill(pattern, names)
    spec: Spec = {
        "schedulerName": "volcano",
        "priority": work.get("priority", 0),
        "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
    }
    if work.get("limits"):
        limits = _filled(work["limits"], names)
        # An API server sets the requests of what a pod only limits.
        spec["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory, **limits}, "limits": limits}
    spec |= _filled(work.get("pod_spec") or {}, names)
    if work.get("node"):
        at = re.sub(r"<([^<>]+)>", lambda m: f"{evaluate(m[1], names):05d}", work["node"])
        spec["nodeName"] = at
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"pod-{name}",
            "labels": {"app": group, **({"pod": name} if work.get("unique_label") else {})},
            "annotations": {"scheduling.k8s.io/group-name": group, **(work.get("annotations") or {})},
        },
        "spec": spec,
        "status": {"phase": work["phase"]},
    }


def _filled(value: Any, names: dict[str, int]) -> Any:
    """The same with the expressions of all its texts replaced."""
    if isinstance(value, dict):
        return {key: _filled(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, names) for part in value]
    return fill(value, names) if isinstance(value, str) else value


def times(quantity: str, factor: int) -> str:
    """A quantity with a plain suffix, multiplied."""
    match = re.fullmatch(r"(\d+)(.*)", quantity)
    if match is None:
        raise ValueError(f"not a whole quantity: {quantity}")
    return f"{int(match[1]) * factor}{match[2]}"
