"""hypothesis strategies: random clusters as manifests, in the notation of the scenarios' unfolded form.

They are small and full: few nodes, little room, so that decisions are hard, and every rule has something to say.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as s

Manifest = dict[str, Any]

ZONES = ("a", "b", "c")
APPS = ("web", "db")


@s.composite
def nodes(draw: s.DrawFn, least: int = 1, most: int = 6) -> list[Manifest]:
    found = []
    for i in range(draw(s.integers(least, most))):
        labels = {"kubernetes.io/hostname": f"n{i}"}
        if draw(s.booleans()):
            labels["zone"] = draw(s.sampled_from(ZONES))
        if draw(s.booleans()):
            labels["gen"] = str(draw(s.integers(1, 5)))
        have = {
            "cpu": f"{draw(s.sampled_from((1000, 2000, 2500, 4000, 8000)))}m",
            "memory": f"{draw(s.sampled_from((1, 2, 3, 8)))}Gi",
            "pods": str(draw(s.sampled_from((1, 2, 4, 110)))),
        }
        if draw(s.integers(0, 3)) == 0:
            have["nvidia.com/gpu"] = str(draw(s.integers(0, 4)))
        spec: Manifest = {}
        if draw(s.integers(0, 7)) == 0:
            spec["unschedulable"] = True
        if draw(s.integers(0, 3)) == 0:
            effect = draw(s.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")))
            spec["taints"] = [{"key": draw(s.sampled_from(("x", "y"))), "value": "1", "effect": effect}]
        images = []
        if draw(s.integers(0, 3)) == 0:
            images.append({"names": ["big:1"], "sizeBytes": draw(s.integers(1, 9)) * 100_000_000})
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"n{i}", "uid": f"n{i}", "labels": labels},
                "spec": spec,
                "status": {"allocatable": have, "capacity": have, "images": images},
            }
        )
    return found


@s.composite
def pod_spec(draw: s.DrawFn) -> Manifest:
    """A pod's spec: mostly plain, now and then with one of each constraint."""
    spec: Manifest = {"schedulerName": "volcano"}
    requests: Manifest = {}
    kind = draw(s.integers(0, 9))
    if kind > 0:
        requests["cpu"] = f"{draw(s.sampled_from((100, 250, 500, 1000, 1500, 2000)))}m"
    if kind > 1:
        requests["memory"] = f"{draw(s.sampled_from((64, 256, 512, 1024)))}Mi"
    if kind == 9:
        requests["nvidia.com/gpu"] = str(draw(s.integers(1, 2)))
    container: Manifest = {"name": "main", "image": draw(s.sampled_from(("busybox", "big:1")))}
    container["resources"] = {"requests": requests}
    if draw(s.integers(0, 7)) == 0:
        container["ports"] = [{"containerPort": 80, "hostPort": draw(s.sampled_from((80, 81)))}]
    spec["containers"] = [container]
    if draw(s.integers(0, 7)) == 0:
        spec["initContainers"] = [{"name": "init", "resources": {"requests": {"cpu": "1200m"}}}]
    if draw(s.integers(0, 5)) == 0:
        spec["nodeSelector"] = {"zone": draw(s.sampled_from(ZONES))}
    if draw(s.integers(0, 3)) == 0:
        spec["tolerations"] = [draw(s.sampled_from(_TOLERATIONS))]
    affinity: Manifest = {}
    if draw(s.integers(0, 3)) == 0:
        affinity["nodeAffinity"] = draw(node_affinity())
    if draw(s.integers(0, 4)) == 0:
        affinity["podAffinity"] = draw(pod_affinity())
    if draw(s.integers(0, 3)) == 0:
        affinity["podAntiAffinity"] = draw(pod_affinity())
    if affinity:
        spec["affinity"] = affinity
    if draw(s.integers(0, 4)) == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw(s.integers(1, 2)),
                "topologyKey": draw(s.sampled_from(("zone", "kubernetes.io/hostname"))),
                "whenUnsatisfiable": draw(s.sampled_from(("DoNotSchedule", "ScheduleAnyway"))),
                "labelSelector": {"matchLabels": {"app": draw(s.sampled_from(APPS))}},
            }
        ]
    return spec


_TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "x", "operator": "Exists"},
    {"key": "x", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
    {"key": "y", "value": "1"},
    {"key": "y", "value": "2"},
)


@s.composite
def node_affinity(draw: s.DrawFn) -> Manifest:
    def term() -> Manifest:
        operator = draw(s.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
        if operator in ("Gt", "Lt"):
            return {"matchExpressions": [{"key": "gen", "operator": operator, "values": [str(draw(s.integers(1, 4)))]}]}
        wanted: Manifest = {"key": "zone", "operator": operator}
        if operator in ("In", "NotIn"):
            wanted["values"] = draw(s.lists(s.sampled_from(ZONES), min_size=1, max_size=2, unique=True))
        return {"matchExpressions": [wanted]}

    found: Manifest = {}
    if draw(s.booleans()):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [term() for _ in range(draw(s.integers(1, 2)))]
        }
    else:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(s.sampled_from((1, 10, 50))), "preference": term()}
        ]
    return found


@s.composite
def pod_affinity(draw: s.DrawFn) -> Manifest:
    term = {
        "labelSelector": {"matchLabels": {"app": draw(s.sampled_from(APPS))}},
        "topologyKey": draw(s.sampled_from(("zone", "kubernetes.io/hostname"))),
    }
    if draw(s.booleans()):
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": draw(s.sampled_from((1, 20))), "podAffinityTerm": term}
        ]
    }


@s.composite
def jobs(draw: s.DrawFn, queues: list[str], node_names: list[str]) -> list[Manifest]:
    """PodGroups with their pods; some of them run already."""
    found: list[Manifest] = []
    for j in range(draw(s.integers(1, 5))):
        found += draw(job(f"j{j}", j, queues, node_names))
    return found


@s.composite
def job(draw: s.DrawFn, name: str, age: int, queues: list[str], node_names: list[str]) -> list[Manifest]:
    created = f"2026-01-01T00:00:{age:02d}Z"
    count = draw(s.integers(1, 5))
    roles = draw(s.sampled_from(((), ("ps", "worker"))))
    spec: Manifest = {"minMember": draw(s.integers(1, count)), "queue": draw(s.sampled_from(queues))}
    if draw(s.booleans()):
        spec["minResources"] = {"cpu": f"{draw(s.integers(1, 40)) * 100}m"}
    if roles and draw(s.booleans()):
        spec["minTaskMember"] = {"ps": 1}
    if draw(s.integers(0, 2)) == 0:
        spec["priorityClassName"] = draw(s.sampled_from(("high", "low")))
    running = draw(s.integers(0, 2)) == 0
    phase = "Running" if running else draw(s.sampled_from(("Pending", "Inqueue")))
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"pg-{name}", "creationTimestamp": created},
        "spec": spec,
        "status": {"phase": phase},
    }
    template = draw(pod_spec())
    found: list[Manifest] = [group]
    for i in range(count):
        role = roles[0 if i == 0 else 1] if roles else ""
        own = template if draw(s.integers(0, 3)) else draw(pod_spec())
        annotations = {"scheduling.k8s.io/group-name": name}
        if role:
            annotations["volcano.sh/task-spec"] = role
        pod: Manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{role or 'task'}-{i}",
                "namespace": "default",
                "uid": f"{name}-{i}",
                "creationTimestamp": created,
                "labels": {"app": draw(s.sampled_from(APPS))},
                "annotations": annotations,
            },
            "spec": dict(own),
            "status": {"phase": "Pending"},
        }
        if running and draw(s.booleans()):
            pod["spec"]["nodeName"] = draw(s.sampled_from(node_names))
            pod["status"]["phase"] = draw(s.sampled_from(("Running", "Running", "Pending", "Succeeded", "Failed")))
            if draw(s.integers(0, 7)) == 0:
                pod["metadata"]["deletionTimestamp"] = created
        found.append(pod)
    return found


@s.composite
def clusters(draw: s.DrawFn) -> list[Manifest]:
    """A whole cluster: nodes, queues, priority classes, jobs."""
    all_nodes = draw(nodes())
    queues = ["default", *(f"q{i}" for i in range(draw(s.integers(0, 2))))]
    found = list(all_nodes)
    for name in queues:
        spec: Manifest = {"weight": draw(s.integers(1, 4))}
        if name != "default" and draw(s.integers(0, 2)) == 0:
            spec["capability"] = {"cpu": str(draw(s.integers(1, 6)))}
        if name != "default" and draw(s.integers(0, 3)) == 0:
            spec["guarantee"] = {"resource": {"cpu": "1", "memory": "1Gi"}}
        if draw(s.integers(0, 3)) == 0:
            spec["priority"] = draw(s.integers(1, 3))
        state = "Closed" if name != "default" and draw(s.integers(0, 7)) == 0 else "Open"
        found.append(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": spec,
                "status": {"state": state},
            }
        )
    for name, value in (("high", 100), ("low", -5)):
        found.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    return found + draw(jobs(queues, [n["metadata"]["name"] for n in all_nodes]))


PLUGIN_TIERS = (
    [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]],
    [["priority", "gang"], ["drf", "predicates", "proportion", "nodeorder", "binpack"]],
    [["gang"], ["predicates", "nodeorder", "binpack"]],
    [["drf", "gang"], ["overcommit", "predicates", "binpack"]],
)


def plugin_tiers() -> s.SearchStrategy[list[list[Any]]]:
    """Configurations, in the scenarios' short form."""
    return s.sampled_from(PLUGIN_TIERS).map(lambda tiers: [list(t) for t in tiers])
