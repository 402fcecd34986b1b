"""The short notation of scenarios, unfolded into manifests.

    - name: what must be true (`conf` may also be {file: path of a configuration})
      conf: {actions: "allocate", plugins: [[priority, gang], [predicates, {binpack: {binpack.weight: 5}}]]}
      nodes:
        n1: {cpu: 4, memory: 8Gi, labels: {zone: a}, taints: ["gpu=yes:NoSchedule"], cordoned: true, annotations: {..}}
      queues: {q1: {weight: 2, capability: {cpu: 4}}}
      hyperNodes: {s1: {tier: 1, nodes: [n1, n2]}, s2: {tier: 2, hyperNodes: [s1]}, s3: {tier: 1, pattern: "^n[3-5]$"}}
      priorities: {high: 100}
      usage: {n1: {cpu: 85, memory: 20, age: 10}}   # in percent, measured this number of seconds ago
      recreates: true   # evicted pods are created again, as by their controllers
      held: [n1]   # nodes that take no new pods, as the cache audit holds them
      reservations: {r: {startTime: "2026-01-01T02:00:00Z", duration: 1h, nodes: [n1]}}   # the spec of a Reservation
      composites: {c: {min: 2, topology: zone}, d: {parent: c, queue: q1, priority: high}}   # CompositePodGroups
      jobs:
        g: {queue: q1, min: 2, minResources: {cpu: 2}, priority: high, pods: 3, each: {cpu: 1}, phase: Inqueue}
        t: {min: 2, pods: 2, topology: {mode: hard, tier: 1}}
        n: {min: 2, pods: 3, native: {disruptionMode: PodGroup}}  # {}, {policy: basic}, {version: v1beta1}, {parent: c}
        s: {min: 4, subGroups: {r: {size: 2, min: 2, by: [rank], topology: {tier: 1}}}, tasks: {...}}
        h: {min: 1, tasks: {ps: {pods: 1, cpu: 1}, worker: {pods: 2, cpu: 2, runsOn: n1}}, minTask: {ps: 1}}
      profiles: {profiles: [{schedulerName: batch, plugins: {...}}]}   # KubeSchedulerConfiguration; its gangs
      pods: [complete manifests, where the short form does not reach]
      featureGates: {SchedulingGatesQueueAdmission: true}
      expect: {bound: {g-0: n1}, ...}

A `native` job is a PodGroup of scheduling.k8s.io; as a job it is called `podgroup.scheduling.k8s.io/<name>`.
A job's pods are called `<job>-<i>` or `<job>-<task>-<i>`. `runsOn: node` makes them run there. Every queue but
`default` and `root` has to be listed. `expect` may hold: bound (map, or a number, or per job {g: 3}), pipelined,
evicted, claims, phases, waiting (job → words that its reason contains), conditions (job → type → message),
nativeConditions (native job → type → words that "status reason message" contains), devices (pod → annotations of its
binding, those that are named), faults. `limits: {name: amount}` of a task or of `each` are limits and requests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from volcano_py.scheduler.framework.config import FLAGS

Manifest = dict[str, Any]
DEFAULT_PLUGINS = [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]]


def configuration(conf: dict[str, Any] | None) -> str:
    """A configuration document from the short form, or from a file."""
    conf = conf or {}
    if "file" in conf:
        return Path(conf["file"]).read_text()
    tiers = []
    for tier in conf.get("plugins", DEFAULT_PLUGINS):
        plugins: list[Manifest] = []
        for plugin in tier:
            if isinstance(plugin, str):
                plugins.append({"name": plugin})
            else:
                for name, settings in plugin.items():
                    flags = {k: v for k, v in settings.items() if k in FLAGS}
                    rest = {k: v for k, v in settings.items() if k not in FLAGS}
                    plugins.append({"name": name, **flags, "arguments": rest})
        tiers.append({"plugins": plugins})
    document = {"actions": conf.get("actions", "enqueue, allocate, backfill"), "tiers": tiers}
    if "deviations" in conf:
        document["deviations"] = conf["deviations"]
    if "configurations" in conf:
        document["configurations"] = conf["configurations"]
    return json.dumps(document)


def manifests(scenario: Manifest) -> list[Manifest]:
    """All objects of a scenario."""
    found: list[Manifest] = []
    for name, node in (scenario.get("nodes") or {}).items():
        found.append(_node(name, node or {}))
    for name, hyper_node in (scenario.get("hyperNodes") or {}).items():
        found.append(_hyper_node(name, hyper_node))
    for name, queue in (scenario.get("queues") or {}).items():
        found.append(_queue(name, queue or {}))
    for name, value in (scenario.get("priorities") or {}).items():
        found.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    for order, (name, spec) in enumerate((scenario.get("reservations") or {}).items()):
        found.append(_reservation(name, dict(spec), order))
    for order, (name, group) in enumerate((scenario.get("composites") or {}).items()):
        found.append(_composite(name, group or {}, order))
    for order, (name, job) in enumerate((scenario.get("jobs") or {}).items()):
        found += _job(name, job or {}, order)
    return [*found, *(scenario.get("pods") or []), *(scenario.get("objects") or [])]


def _texts(amounts: Manifest) -> dict[str, str]:
    return {k: str(v) for k, v in amounts.items()}


def _node(name: str, node: Manifest) -> Manifest:
    node = dict(node)
    labels = {"kubernetes.io/hostname": name, **node.pop("labels", {})}
    annotations = node.pop("annotations", {})
    spec: Manifest = {}
    if node.pop("cordoned", False):
        spec["unschedulable"] = True
    taints = node.pop("taints", None)
    if taints:
        spec["taints"] = [_taint(t) for t in taints]
    images = node.pop("images", {})
    have = _texts({"cpu": 4, "memory": "8Gi", "pods": 110, **node})
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": spec,
        "status": {
            "allocatable": have,
            "capacity": have,
            "images": [{"names": [image], "sizeBytes": size} for image, size in images.items()],
        },
    }


def _hyper_node(name: str, hyper_node: Manifest) -> Manifest:
    members = [
        {"type": kind, "selector": {"exactMatch": {"name": member}}}
        for key, kind in (("nodes", "Node"), ("hyperNodes", "HyperNode"))
        for member in hyper_node.get(key, ())
    ]
    if "pattern" in hyper_node:
        members.append({"type": "Node", "selector": {"regexMatch": {"pattern": hyper_node["pattern"]}}})
    if "labels" in hyper_node:
        members.append({"type": "Node", "selector": {"labelMatch": {"matchLabels": hyper_node["labels"]}}})
    spec = {"tier": hyper_node["tier"], "tierName": hyper_node.get("tierName", ""), "members": members}
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def _reservation(name: str, spec: Manifest, order: int) -> Manifest:
    if "resources" in spec:
        spec["resources"] = _texts(spec["resources"])
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": f"2026-01-01T00:00:{order:02d}Z"}
    return {"kind": "Reservation", "metadata": metadata, "spec": spec, "status": spec.pop("status", {})}


def _topology(topology: Manifest) -> Manifest:
    names = {"mode": "mode", "tier": "highestTierAllowed", "tierName": "highestTierName"}
    return {names[key]: value for key, value in topology.items()}


def _sub_group(name: str, group: Manifest) -> Manifest:
    policy = {
        "name": name,
        "subGroupSize": group.get("size", 1),
        "minSubGroups": group.get("min", 0),
        "matchLabelKeys": group["by"],
    }
    if "topology" in group:
        policy["networkTopology"] = _topology(group["topology"])
    return policy


def _taint(text: str) -> Manifest:
    left, _, effect = text.partition(":")
    key, _, value = left.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _queue(name: str, queue: Manifest) -> Manifest:
    queue = dict(queue)
    state = queue.pop("state", "Open")
    metadata = {"name": name, "annotations": queue.pop("annotations", {})}
    return {"kind": "Queue", "metadata": metadata, "spec": queue, "status": {"state": state}}


def _job(name: str, job: Manifest, order: int) -> list[Manifest]:
    created = f"2026-01-01T00:{order // 60:02d}:{order % 60:02d}Z"
    tasks = job.get("tasks") or {"": {"pods": job.get("pods", 1), **(job.get("each") or {})}}
    pods = [
        _pod(name, role, i, dict(task), created, job.get("priority"), native="native" in job)
        for role, task in tasks.items()
        for i in range(task.get("pods", 1))
    ]
    if "native" in job:
        return [_native_group(name, job, created), *pods]
    spec: Manifest = {"minMember": job.get("min", 1), "queue": job.get("queue", "default")}
    if "minResources" in job:
        spec["minResources"] = _texts(job["minResources"])
    if "minTask" in job:
        spec["minTaskMember"] = job["minTask"]
    if "priority" in job:
        spec["priorityClassName"] = job["priority"]
    if "topology" in job:
        spec["networkTopology"] = _topology(job["topology"])
    if "subGroups" in job:
        spec["subGroupPolicy"] = [_sub_group(n, g) for n, g in job["subGroups"].items()]
    group = {
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created} | job.get("metadata", {}),
        "spec": spec,
        "status": {"phase": job.get("phase", "Pending")},
    }
    return [group, *pods]


def _composite(name: str, group: Manifest, order: int) -> Manifest:
    """A CompositePodGroup: `min` of its child groups, or basic without it."""
    policy = {"gang": {"minGroupCount": group["min"]}} if "min" in group else {"basic": {}}
    spec: Manifest = {"schedulingPolicy": policy, "workloadRef": {"workloadName": "w", "templateName": name}}
    for field, key in (("priority", "priorityClassName"), ("parent", "parentCompositePodGroupName")):
        if field in group:
            spec[key] = group[field]
    if "topology" in group:
        spec["schedulingConstraints"] = {"topology": [{"key": group["topology"]}]}
    for key in ("disruptionMode", "preemptionPolicy"):
        if key in group:
            spec[key] = group[key]
    created = f"2026-01-01T00:{order // 60:02d}:{order % 60:02d}Z"
    metadata: Manifest = {"name": name, "namespace": "default", "creationTimestamp": created}
    if "queue" in group:
        metadata["labels"] = {"volcano.sh/queue-name": group["queue"]}
    version = "scheduling.k8s.io/v1alpha3"
    return {"apiVersion": version, "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}


def _native_group(name: str, job: Manifest, created: str) -> Manifest:
    native = job["native"] or {}
    policy = {"basic": {}} if native.get("policy") == "basic" else {"gang": {"minCount": job.get("min", 1)}}
    spec: Manifest = {"schedulingPolicy": policy}
    if "topology" in native:
        spec["schedulingConstraints"] = {"topology": [{"key": native["topology"]}]}
    for key in ("disruptionMode", "preemptionPolicy", "resourceClaims"):
        if key in native:
            spec[key] = native[key]
    version = native.get("version", "v1alpha2")
    if "parent" in native:
        version = native.get("version", "v1beta1")
        spec["parentCompositePodGroupName"] = native["parent"]
    if "priority" in job:
        spec["priorityClassName"] = job["priority"]
    metadata: Manifest = {"name": name, "namespace": "default", "creationTimestamp": created}
    if "queue" in job:
        metadata["labels"] = {"volcano.sh/queue-name": job["queue"]}
    group = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup"}
    return {**group, "metadata": metadata | job.get("metadata", {}), "spec": spec}


def _pod(
    job: str, role: str, i: int, task: Manifest, created: str, priority: str | None, *, native: bool = False
) -> Manifest:
    name = f"{job}-{role}-{i}" if role else f"{job}-{i}"
    task.pop("pods", None)
    on = task.pop("runsOn", None)
    labels = task.pop("labels", {})
    group: Manifest = {} if native else {"scheduling.k8s.io/group-name": job}
    annotations = {**group, **task.pop("annotations", {})}
    if role:
        annotations["volcano.sh/task-spec"] = role
    spec, status = task.pop("spec", {}), task.pop("status", {})
    metadata = task.pop("metadata", {})
    image = task.pop("image", "busybox")
    ports = [{"containerPort": p, "hostPort": p} for p in task.pop("hostPorts", [])]
    limits = _texts(task.pop("limits", {}))
    resources = {"requests": _texts(task) | limits, **({"limits": limits} if limits else {})}
    container: Manifest = {"name": "main", "image": image, "ports": ports, "resources": resources}
    pod: Manifest = {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": annotations,
            "creationTimestamp": created,
            **metadata,
        },
        "spec": {"schedulerName": "volcano", "containers": [container], **spec},
        "status": {"phase": "Pending", **status},
    }
    if native:
        pod["spec"]["schedulingGroup"] = {"podGroupName": job}
    if priority:
        pod["spec"]["priorityClassName"] = priority
    if on:
        pod["spec"]["nodeName"] = on
        pod["status"]["phase"] = "Running"
    return pod
