"""hypothesis strategies: full clusters, in which pods must be evicted so that others can be placed.

The pods are simpler than those of tests.strategies: these clusters test evictions, not node rules.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as s

from tests.strategies import START, Manifest, node, one_in, pod_spec

FULL_THEMES = ("preempt", "reclaim", "capacity", "tree")
"""The type of eviction: within queues, or between them, flat or in a tree."""
GROUP = "scheduling.k8s.io/group-name"
PREEMPTABLE = "volcano.sh/preemptable"
GPU = "nvidia.com/gpu"
SLA = ("sla-waiting-time", "volcano.sh/sla-waiting-time")


@s.composite
def full_clusters(draw: s.DrawFn, theme: str) -> list[Manifest]:
    names = [f"n{i}" for i in range(draw(s.integers(1, 4)))]
    nodes = [draw(node(n)) if one_in(draw, 6) else draw(plain_node(n)) for n in names]
    queues = draw(tree() if theme == "tree" else full_cluster_queues(theme))
    found = [*nodes, *queues]
    for name, value in (("high", 100), ("low", -5), ("higher", 1000)):
        found.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    parents = {q["spec"].get("parent", "") for q in queues}
    queue_names = [n for q in queues if (n := q["metadata"]["name"]) not in parents and n != "root"]
    if theme == "tree" and one_in(draw, 20):
        queue_names.append("p0")
    if one_in(draw, 8):
        found[-1]["globalDefault"] = True
    found += [draw(quota(name)) for name in ("quota", "other")[: draw(s.sampled_from((1, 2)))]]
    found += [draw(budget(f"b{i}")) for i in range(draw(s.integers(0, 3)))]
    room = {n["metadata"]["name"]: milli(n["status"]["allocatable"]["cpu"]) for n in nodes}
    holders, comers = draw(sides(queue_names)) if theme != "preempt" else (queue_names, queue_names)
    for j in range(draw(s.integers(3, 5))):
        found += draw(running_job(f"h{j}", j, holders, room))
    for j in range(draw(s.integers(1, 4))):
        found += draw(pending_job(f"c{j}", j, comers, names))
    return found


@s.composite
def sides(draw: s.DrawFn, queues: list[str]) -> tuple[list[str], list[str]]:
    """The queues of running jobs, and those of pending jobs: mostly different ones."""
    held = draw(s.sampled_from(queues))
    others = [q for q in queues if q != held]
    return [held] * 4 + others, others * 4 + [held]


def milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)


@s.composite
def plain_node(draw: s.DrawFn, name: str) -> Manifest:
    have = {"cpu": str(draw(s.integers(1, 4))), "memory": "8Gi", "pods": draw(s.sampled_from(("3", "110", "110")))}
    if one_in(draw, 3):
        have[GPU] = str(draw(s.integers(0, 3)))
    labels = {"kubernetes.io/hostname": name, "zone": draw(s.sampled_from("ab"))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": have, "capacity": have},
    }


@s.composite
def full_cluster_queues(draw: s.DrawFn, theme: str) -> list[Manifest]:
    found = []
    for name in ("default", "q0", "q1")[: draw(s.integers(1 if theme == "preempt" else 2, 3))]:
        state = "Closed" if one_in(draw, 16) else "Open"
        found.append(queue(name, draw(queue_spec()), state))
        if theme == "reclaim" and not one_in(draw, 4):
            path = draw(s.sampled_from(("root/a", "root/a/x", "root/a/y", "root/b", "root/b/x", "root")))
            weights = draw(s.sampled_from(("1/2/3", "1/1/1", "1/0.5", "1/x/2", "1/ 2/1_0", "")))
            found[-1]["metadata"]["annotations"] = {
                "volcano.sh/hierarchy": path,
                "volcano.sh/hierarchy-weights": weights,
            }
    return found


@s.composite
def tree(draw: s.DrawFn) -> list[Manifest]:
    """Up to three levels below root."""
    found = [queue("root", draw(queue_spec()) if one_in(draw, 6) else {"weight": 1})]
    if one_in(draw, 20):
        found[0]["spec"]["capability"] = {"pods": str(draw(s.integers(1, 6)))}
    parents = ["root"]
    for name in ("p0", "p1", "p00")[: draw(s.integers(1, 3))]:
        parent = "p0" if name == "p00" else "root"
        found.append(queue(name, {**draw(queue_spec()), "parent": parent}))
        parents.append(name)
    for name in ("default", "q0", "q1", "q2")[: draw(s.integers(2, 4))]:
        spec = draw(queue_spec())
        parent = "gone" if one_in(draw, 50) else draw(s.sampled_from((*parents, "")))
        if parent:
            spec["parent"] = parent
        found.append(queue(name, spec, "Closed" if one_in(draw, 30) else "Open"))
    return found


@s.composite
def queue_spec(draw: s.DrawFn) -> Manifest:
    spec: Manifest = {"weight": draw(s.sampled_from((1, 1, 2, 4)))}
    if not one_in(draw, 3):
        spec["deserved"] = draw(amounts(0, 4))
    if one_in(draw, 4):
        spec["guarantee"] = {"resource": draw(amounts(0, 2))}
    if one_in(draw, 4):
        spec["capability"] = draw(amounts(1, 8))
    if one_in(draw, 6):
        spec["priority"] = draw(s.integers(1, 3))
    if one_in(draw, 8):
        spec["reclaimable"] = False
    return spec


@s.composite
def quota(draw: s.DrawFn, name: str = "quota") -> Manifest:
    status: Manifest = {"hard": draw(amounts(1, 2))}
    if one_in(draw, 8):
        status["hard"] = {f"requests.{k}": v for k, v in status["hard"].items()}
    status["used"] = dict.fromkeys(status["hard"], "1")
    meta = {"name": name, "namespace": draw(s.sampled_from(("default",) * 9 + ("other",)))}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {}, "status": status}


@s.composite
def budget(draw: s.DrawFn, name: str) -> Manifest:
    known = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    selector = draw(s.sampled_from(({"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}, known, {})))
    status: Manifest = {"disruptionsAllowed": draw(s.sampled_from((0, 0, 1, 3)))}
    if one_in(draw, 6):
        status["disruptedPods"] = {f"h{draw(s.integers(0, 2))}-task-{i}": START for i in range(2)}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": draw(s.sampled_from(("default", "default", "other")))},
        "spec": {"selector": selector},
        "status": status,
    }


def queue(name: str, spec: Manifest, state: str = "Open") -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": name, "creationTimestamp": START},
        "spec": spec,
        "status": {"state": state},
    }


@s.composite
def amounts(draw: s.DrawFn, least: int, most: int) -> Manifest:
    found = {"cpu": str(draw(s.integers(least, most)))}
    if draw(s.booleans()):
        found["memory"] = f"{draw(s.integers(1, 8))}Gi"
    if one_in(draw, 8):
        found["pods"] = str(draw(s.integers(1, 6)))
    if one_in(draw, 8):
        found[GPU] = str(draw(s.integers(0, 2)))
    return found


@s.composite
def group(draw: s.DrawFn, name: str, age: int, namespace: str, queues: list[str], **spec: Any) -> Manifest:
    meta: Manifest = {"name": name, "namespace": namespace, "uid": f"pg-{name}"}
    meta["creationTimestamp"] = f"2026-01-01T00:00:{draw(s.sampled_from((age, age, 0))):02d}Z"
    if one_in(draw, 8):
        meta["annotations"] = {PREEMPTABLE: draw(s.sampled_from(("true", "false")))}
    if one_in(draw, 5):
        for key in draw(s.sampled_from((SLA[:1], SLA[1:], SLA))):
            meta.setdefault("annotations", {})[key] = draw(s.sampled_from(("2s", "1h", "-1s", "soon")))
    if not one_in(draw, 4):
        spec["minResources"] = draw(amounts(1, 4))
        if one_in(draw, 4):  # as the job controller sets it
            spec["minResources"] |= {f"requests.{k}": v for k, v in spec["minResources"].items()}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"queue": draw(s.sampled_from(queues)), **spec},
    }


@s.composite
def running_job(draw: s.DrawFn, name: str, age: int, queues: list[str], room: dict[str, int]) -> list[Manifest]:
    """A job that runs, within the remaining capacity."""
    namespace = draw(s.sampled_from(("default", "default", "other", "kube-system")))
    count = draw(s.integers(2, 6))
    least = draw(s.sampled_from((0, 1, 1, 1, 1, count, max(count - 1, 1))))
    made = draw(group(name, age, namespace, queues, minMember=least))
    if one_in(draw, 3):
        made["spec"]["priorityClassName"] = draw(s.sampled_from(("low", "low", "high")))
    made["status"] = {"phase": draw(s.sampled_from(("Running", "Running", "Running", "Inqueue")))}
    if one_in(draw, 12):
        made["spec"]["minTaskMember"] = draw(s.sampled_from(({"ps": 1}, {"worker": 1})))
    if one_in(draw, 12):
        sizes = {"subGroupSize": draw(s.integers(1, 2)), "minSubGroups": draw(s.integers(0, 2))}
        made["spec"]["subGroupPolicy"] = [{"name": "r", "matchLabelKeys": ["app"], **sizes}]
    found = [made]
    usual = draw(s.sampled_from((250, 500, 500, 1000, 1500)))
    for i in range(count):
        each = 0 if one_in(draw, 15) else usual
        pod = draw(pod_of(name, namespace, i, each, made["metadata"]["creationTimestamp"]))
        free = [n for n, left in room.items() if left >= each]
        if free and not one_in(draw, 20):
            pod["spec"]["nodeName"] = draw(s.sampled_from(free))
            room[pod["spec"]["nodeName"]] -= each
            pod["status"]["phase"] = draw(s.sampled_from(("Running",) * 7 + ("Pending",)))
            condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": START}
            pod["status"]["conditions"] = [condition]
            pod["status"]["startTime"] = START
            if draw(s.booleans()):
                kind = draw(s.sampled_from(("labels", "annotations")))
                pod["metadata"].setdefault(kind, {})["volcano.sh/cooldown-time"] = draw(
                    s.sampled_from(("1s", "1h", "1h", "1h", "x"))
                )
            if one_in(draw, 20):
                pod["metadata"]["deletionTimestamp"] = START
        found.append(pod)
    return found


@s.composite
def pending_job(draw: s.DrawFn, name: str, age: int, queues: list[str], nodes: list[str]) -> list[Manifest]:
    """A pending job."""
    namespace = draw(s.sampled_from(("default",) * 5 + ("other",)))
    count = draw(s.integers(1, 4))
    least = draw(s.sampled_from((1, count, count, max(count - 1, 1))))
    made = draw(group(name, age + 10, namespace, queues, minMember=least))
    if not one_in(draw, 4):
        made["spec"]["priorityClassName"] = draw(s.sampled_from(("high", "high", "higher", "low")))
    made["status"] = {"phase": draw(s.sampled_from(("Inqueue", "Inqueue", "Pending")))}
    found = [made]
    each = draw(s.sampled_from((0, 500, 500, 1000, 1000, 1500)))
    for i in range(count):
        pod = draw(pod_of(name, namespace, i, each, made["metadata"]["creationTimestamp"]))
        if one_in(draw, 20):
            pod["status"]["nominatedNodeName"] = draw(s.sampled_from((*nodes, "gone")))
        if one_in(draw, 20):
            pod["spec"]["preemptionPolicy"] = "Never"
        if one_in(draw, 60):
            pod["spec"]["schedulerName"] = "default-scheduler"
        if one_in(draw, 20):
            pod["spec"]["schedulingGates"] = [{"name": "mine"}]
        found.append(pod)
    return found


@s.composite
def pod_of(draw: s.DrawFn, job: str, namespace: str, i: int, each: int, created: str) -> Manifest:
    meta: Manifest = {
        "name": f"{job}-task-{i}",
        "namespace": namespace,
        "uid": f"{job}-{i}",
        "creationTimestamp": created,
        "annotations": {GROUP: job},
    }
    if not one_in(draw, 8):
        meta["labels"] = {"app": draw(s.sampled_from(("web", "db")))}
    if one_in(draw, 10):
        meta["annotations"][PREEMPTABLE] = draw(s.sampled_from(("true", "false", "what")))
    if one_in(draw, 4):
        meta["annotations"]["volcano.sh/task-spec"] = draw(s.sampled_from(("ps", "worker")))
    if one_in(draw, 20):
        meta["annotations"]["volcano.sh/task-priority"] = draw(s.sampled_from(("3", "+2", "-1", "1_0", "high")))
    spec: Manifest = {"schedulerName": "volcano"}
    if one_in(draw, 12):
        spec = draw(pod_spec())
    requests = {"cpu": f"{each}m"} if each else {}
    if each and draw(s.booleans()):
        requests["memory"] = f"{draw(s.integers(1, 3))}Gi"
    if each and one_in(draw, 16):
        requests[GPU] = "1"
    spec["containers"] = [{"name": "main", "image": "busybox", "resources": {"requests": requests}}]
    if one_in(draw, 4):
        spec["priority"] = draw(s.integers(-2, 3))
    if one_in(draw, 20):
        spec["priorityClassName"] = "system-node-critical"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
