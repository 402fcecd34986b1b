"""hypothesis strategies: what plugin numa-aware reads: Numatopologies, guaranteed pods and their policies."""

from __future__ import annotations

import json

from hypothesis import strategies as s

from tests.strategies import Manifest, one_in

POLICY = "volcano.sh/numa-topology-policy"
POLICIES = ("single-numa-node", "restricted", "best-effort", "none")


@s.composite
def with_numa(draw: s.DrawFn, case: Manifest) -> Manifest:
    """The case with plugin numa-aware, a Numatopology of most nodes, and guaranteed pods."""
    objects = case["objects"]
    usual = draw(s.sampled_from(POLICIES[:3]))
    added = [draw(topology(o, usual)) for o in objects if o["kind"] == "Node" and not one_in(draw, 10)]
    for group in [o for o in objects if o["kind"] == "PodGroup"]:
        pods = [p for p in objects if p["kind"] == "Pod" and _group_of(p) == group["metadata"]["name"]]
        policy = draw(s.sampled_from(("", usual, usual, usual, *POLICIES)))
        containers = draw(guaranteed())
        for pod in pods:
            if not one_in(draw, 8):
                pod["spec"] = {k: v for k, v in pod["spec"].items() if k not in ("initContainers", "resources")}
                pod["spec"]["containers"] = draw(guaranteed()) if one_in(draw, 8) else containers
            if policy and not one_in(draw, 12):
                meta = pod["metadata"]
                meta["annotations"] = {**(meta.get("annotations") or {}), POLICY: policy}
    conf = json.loads(case["conf"])
    plugins = draw(s.sampled_from(conf["tiers"]))["plugins"]
    plugin = {"name": "numa-aware", "arguments": {"weight": draw(s.sampled_from((0, 1, 10, 100)))}}
    if one_in(draw, 4):
        del plugin["arguments"]
    plugins.insert(draw(s.integers(0, len(plugins))), plugin)
    return {**case, "conf": json.dumps(conf), "objects": [*objects, *added]}


def _group_of(pod: Manifest) -> str:
    return (pod["metadata"].get("annotations") or {}).get("scheduling.k8s.io/group-name", "")


@s.composite
def guaranteed(draw: s.DrawFn) -> list[Manifest]:
    """Containers whose limits are their requests; sometimes a fraction of a CPU."""
    found = []
    for name in ("main", "side")[: draw(s.sampled_from((1, 1, 2)))]:
        amounts = {"cpu": draw(s.sampled_from(("1", "1", "2", "2", "3", "4", "500m"))), "memory": "64Mi"}
        found.append({"name": name, "image": "busybox", "resources": {"requests": amounts, "limits": amounts}})
    return found


@s.composite
def topology(draw: s.DrawFn, node: Manifest, usual: str) -> Manifest:
    """The node gets as many CPUs as its Numatopology."""
    numa_nodes = draw(s.sampled_from((1, 2, 2, 2, 4)))
    cores = draw(s.sampled_from((1, 2, 3, 4)))
    threads = draw(s.sampled_from((1, 1, 1, 2)))
    one_socket = one_in(draw, 4)
    detail = {}
    for thread in range(threads):
        for core in range(numa_nodes * cores):
            numa = core // cores
            place = {"numa": numa, "socket": 0 if one_socket else numa, "core": core}
            detail[str(thread * numa_nodes * cores + core)] = place
    count = len(detail)
    status = node["status"]
    given = {"cpu": str(count), "memory": "8Gi"}
    status["allocatable"] = status["capacity"] = {**status["allocatable"], **given}
    available = [c for c in detail if not one_in(draw, 5)] if draw(s.booleans()) else [*detail]
    spec: Manifest = {
        "policies": {
            "CPUManagerPolicy": "none" if one_in(draw, 15) else "static",
            "TopologyManagerPolicy": draw(s.sampled_from(POLICIES)) if one_in(draw, 5) else usual,
        },
        "numares": {"cpu": {"allocatable": ",".join(available), "capacity": count}},
        "cpuDetail": detail,
    }
    if one_in(draw, 4):
        spec["resReserved"] = {"cpu": draw(s.sampled_from(("500m", "1", "1500m")))}
    name = node["metadata"]["name"]
    meta = {"name": name, "uid": f"numa-{name}"}
    return {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": meta, "spec": spec}
