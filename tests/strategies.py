"""hypothesis strategies: random clusters as complete manifests, and configurations.

They are small and full: few nodes, little room, so that decisions are hard, and every rule has something to say.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as s

Manifest = dict[str, Any]

ZONES = ("a", "b", "c")
APPS = ("web", "db")
ZONE_KEYS = ("zone", "topology.kubernetes.io/zone")
SPREAD_KEYS = (*ZONE_KEYS, "kubernetes.io/hostname")
IMAGES = ("busybox", "big:1", "repo/huge", "repo/huge:2")
OWNERS = (("apps/v1", "ReplicaSet"), ("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"))
START = "2026-01-01T00:00:00Z"


THEMES = ("", "", "ports", "spread", "affinity", "gates", "queues", "leaving", "leaving", "roles", "requests", "empty")
"""What a cluster is about: of that it has much. Rules that meet seldom meet there."""


def one_in(draw: s.DrawFn, n: int, often: bool = False) -> bool:
    """True once in `n` times; every second time if it is what the cluster is about."""
    n = 2 if often else n
    return draw(s.integers(1, n)) == n


@s.composite
def nodes(draw: s.DrawFn, least: int = 1, most: int = 9) -> list[Manifest]:
    return [draw(node(f"n{i}")) for i in range(draw(s.integers(least, most)))]


@s.composite
def node(draw: s.DrawFn, name: str) -> Manifest:
    labels = {} if one_in(draw, 12) else {"kubernetes.io/hostname": name}
    for key in ZONE_KEYS:
        if draw(s.booleans()):
            labels[key] = draw(s.sampled_from(ZONES))
    if draw(s.booleans()):
        labels["gen"] = str(draw(s.integers(1, 5)))
    have = {
        "cpu": f"{draw(s.sampled_from((1000, 2000, 2500, 4000, 8000, 8000)))}m",
        "memory": f"{draw(s.sampled_from((1, 2, 3, 8)))}Gi",
        "pods": str(draw(s.sampled_from((1, 2, 4, 110)))),
    }
    if one_in(draw, 4):
        have["nvidia.com/gpu"] = str(draw(s.integers(0, 4)))
    if one_in(draw, 6):
        have["ephemeral-storage"] = f"{draw(s.integers(1, 4))}Gi"
    spec: Manifest = {}
    if one_in(draw, 8):
        spec["unschedulable"] = True
    if one_in(draw, 4):
        effects = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")
        spec["taints"] = [
            {"key": key, "value": "1", "effect": draw(s.sampled_from(effects))}
            for key in draw(s.sampled_from((["x"], ["y"], ["x", "y"])))
        ]
    images = []
    if one_in(draw, 3):
        for image in draw(s.lists(s.sampled_from(("big:1", "repo/huge:latest", "busybox:latest")), unique=True)):
            images.append({"names": [image, f"alias/{image}"], "sizeBytes": draw(s.integers(1, 9)) * 100_000_000})
    meta: Manifest = {"name": name, "uid": name, "labels": labels}
    if one_in(draw, 10):
        lent = {"volcano.sh/oversubscription-cpu": draw(s.sampled_from(("1500", "2000.5", "1e3", "2x")))}
        if draw(s.booleans()):
            lent["volcano.sh/oversubscription-memory"] = draw(s.sampled_from(("1073741824", "5e8")))
        meta["annotations"] = lent
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": spec,
        "status": {"allocatable": have, "capacity": have, "images": images},
    }


@s.composite
def requests(draw: s.DrawFn, theme: str = "") -> Manifest:
    found: Manifest = {}
    kind = draw(s.integers(0, 1 if theme == "empty" and draw(s.booleans()) else 9))
    if kind > 0:
        found["cpu"] = f"{draw(s.sampled_from((100, 250, 500, 1000, 1500, 2000)))}m"
    if kind > 1:
        found["memory"] = f"{draw(s.sampled_from((64, 256, 512, 1024)))}Mi"
    if kind == 9:
        found["nvidia.com/gpu"] = str(draw(s.integers(1, 2)))
    if kind == 8:
        found["ephemeral-storage"] = "1Gi"
    if kind == 7 and one_in(draw, 4):
        found["nvidia.com/gpu"] = "0"
    return found


@s.composite
def host_ports(draw: s.DrawFn) -> list[Manifest]:
    found = []
    for number in draw(s.sampled_from(([80], [80], [81], [80, 81]))):
        port: Manifest = {"containerPort": number, "hostPort": number}
        port["protocol"] = draw(s.sampled_from(("TCP", "TCP", "UDP")))
        if draw(s.booleans()):
            port["hostIP"] = draw(s.sampled_from(("10.0.0.1", "10.0.0.2", "0.0.0.0")))
        found.append(port)
    return found


@s.composite
def pod_spec(draw: s.DrawFn, theme: str = "") -> Manifest:
    """A pod's spec: mostly plain, now and then with one of each constraint."""
    spec: Manifest = {"schedulerName": "volcano"}
    container: Manifest = {"name": "main", "image": draw(s.sampled_from(IMAGES))}
    container["resources"] = {"requests": draw(requests(theme))}
    if one_in(draw, 8, theme == "ports"):
        container["ports"] = draw(host_ports())
    spec["containers"] = [container]
    if one_in(draw, 10, theme == "requests"):
        second: Manifest = {"name": "second", "image": draw(s.sampled_from(IMAGES))}
        spec["containers"].append({**second, "resources": {"requests": draw(requests(theme))}})
    if one_in(draw, 8, theme == "requests"):
        spec["initContainers"] = [draw(init_container(f"init-{i}", theme)) for i in range(draw(s.integers(1, 3)))]
    if one_in(draw, 20, theme == "requests"):
        spec["overhead"] = {"cpu": "50m"}
    if one_in(draw, 30, theme == "requests" and one_in(draw, 2)):
        spec["resources"] = {"requests": {"cpu": "1200m", "memory": "600Mi"}}
    if one_in(draw, 20):
        spec["priority"] = draw(s.integers(-2, 3))
    if one_in(draw, 8, theme == "spread"):
        spec["nodeSelector"] = {"zone": draw(s.sampled_from(ZONES))}
    if one_in(draw, 4):
        spec["tolerations"] = [draw(s.sampled_from(_TOLERATIONS))]
    affinity: Manifest = {}
    if one_in(draw, 4):
        affinity["nodeAffinity"] = draw(node_affinity())
    if one_in(draw, 6, theme == "affinity"):
        affinity["podAffinity"] = draw(pod_affinity())
    if one_in(draw, 5, theme == "affinity"):
        affinity["podAntiAffinity"] = draw(pod_affinity())
    if affinity:
        spec["affinity"] = affinity
    if one_in(draw, 6, theme == "spread"):
        spec["topologySpreadConstraints"] = [draw(spread(theme)) for _ in range(draw(s.sampled_from((1, 1, 2))))]
    return spec


@s.composite
def init_container(draw: s.DrawFn, name: str, theme: str = "") -> Manifest:
    found: Manifest = {"name": name, "image": draw(s.sampled_from(IMAGES))}
    found["resources"] = {"requests": {"cpu": f"{draw(s.sampled_from((100, 700, 1200)))}m"}}
    if one_in(draw, 3):
        found["restartPolicy"] = "Always"
        if one_in(draw, 4, theme == "ports"):
            found["ports"] = draw(host_ports())
    return found


_TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "x", "operator": "Exists"},
    {"key": "x", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
    {"key": "y", "value": "1"},
    {"operator": "Equal", "value": "1"},
    {"key": "y", "value": "2"},
    {"key": "y", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)


@s.composite
def spread(draw: s.DrawFn, theme: str = "") -> Manifest:
    found: Manifest = {
        "maxSkew": draw(s.integers(1, 2)),
        "topologyKey": draw(s.sampled_from(SPREAD_KEYS)),
        "whenUnsatisfiable": draw(s.sampled_from(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))),
        "labelSelector": draw(selector()),
    }
    if one_in(draw, 10):
        found["matchLabelKeys"] = draw(s.sampled_from((["app"], ["app", "none"])))
    if found["whenUnsatisfiable"] == "DoNotSchedule" and one_in(draw, 6):
        found["minDomains"] = draw(s.integers(2, 3))
    if one_in(draw, 6, theme == "spread"):
        found["nodeAffinityPolicy"] = draw(s.sampled_from(("Honor", "Ignore")))
    if one_in(draw, 6, theme == "spread"):
        found["nodeTaintsPolicy"] = draw(s.sampled_from(("Honor", "Ignore")))
    return found


@s.composite
def selector(draw: s.DrawFn) -> Manifest:
    """A selector over the pods' label `app`."""
    if one_in(draw, 10):
        return {}
    if one_in(draw, 4):
        operator = draw(s.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")))
        wanted: Manifest = {"key": "app", "operator": operator}
        if operator in ("In", "NotIn"):
            wanted["values"] = draw(s.lists(s.sampled_from(APPS), min_size=1, unique=True))
        return {"matchExpressions": [wanted]}
    return {"matchLabels": {"app": draw(s.sampled_from(APPS))}}


@s.composite
def node_affinity(draw: s.DrawFn) -> Manifest:
    def term() -> Manifest:
        operator = draw(s.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "name")))
        if operator == "name":
            names = draw(s.lists(s.sampled_from(("n0", "n1", "n2")), min_size=1, max_size=2, unique=True))
            how = draw(s.sampled_from(("In", "In", "In", "NotIn")))
            return {"matchFields": [{"key": "metadata.name", "operator": how, "values": [n]} for n in names]}
        if operator in ("Gt", "Lt"):
            return {"matchExpressions": [{"key": "gen", "operator": operator, "values": [str(draw(s.integers(1, 4)))]}]}
        wanted: Manifest = {"key": "zone", "operator": operator}
        if operator in ("In", "NotIn"):
            wanted["values"] = draw(s.lists(s.sampled_from(ZONES), min_size=1, max_size=2, unique=True))
        return {"matchExpressions": [wanted]}

    found: Manifest = {}
    if one_in(draw, 3):
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [term() for _ in range(draw(s.integers(1, 2)))]
        }
    if not found or one_in(draw, 4):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(s.sampled_from((1, 10, 50))), "preference": term()}
            for _ in range(draw(s.sampled_from((1, 1, 2))))
        ]
    return found


@s.composite
def pod_affinity(draw: s.DrawFn) -> Manifest:
    def term() -> Manifest:
        found: Manifest = {"labelSelector": draw(selector()), "topologyKey": draw(s.sampled_from(SPREAD_KEYS))}
        if one_in(draw, 8):
            found["namespaces"] = draw(s.sampled_from((["other"], ["default", "other"])))
        elif one_in(draw, 8):
            team = {"key": "team", "operator": "NotIn", "values": ["blue"]}
            selectors = ({}, {"matchLabels": {"team": "red"}}, {"matchExpressions": [team]})
            found["namespaceSelector"] = draw(s.sampled_from(selectors))
        return found

    if one_in(draw, 3):
        terms = [term() for _ in range(draw(s.sampled_from((1, 1, 2))))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": draw(s.sampled_from((1, 20))), "podAffinityTerm": term()}
            for _ in range(draw(s.sampled_from((1, 1, 2))))
        ]
    }


@s.composite
def jobs(draw: s.DrawFn, queues: list[str], node_names: list[str], theme: str = "") -> list[Manifest]:
    """PodGroups with their pods; some of them run already."""
    found: list[Manifest] = []
    for j in range(draw(s.integers(1, 8))):
        found += draw(job(f"j{j}", j, queues, node_names, theme))
    return found


@s.composite
def job(draw: s.DrawFn, name: str, age: int, queues: list[str], nodes: list[str], theme: str = "") -> list[Manifest]:
    created = f"2026-01-01T00:00:{draw(s.sampled_from((age, age, 0))):02d}Z"
    namespace = "other" if one_in(draw, 8) else "default"
    count = draw(s.integers(1, 5))
    running = draw(s.booleans())
    group = draw(pod_group(name, namespace, created, count, queues, running, theme))
    roles = draw(s.sampled_from(((), ("ps", "worker"), ("ps", "worker"))))
    if theme == "roles":
        roles = ("ps", "worker")
    if roles and draw(s.booleans()):
        minimums = ({"ps": 1}, {"worker": 1}, {"worker": 2}, {"ps": 1, "worker": 2})
        group["spec"]["minTaskMember"] = draw(s.sampled_from(minimums))
    template = draw(pod_spec(theme))
    naming = draw(s.sampled_from(("number", "number", "number", "mixed", "no", "short")))
    owner = draw(s.sampled_from((None, None, None, "web", "db")))
    found: list[Manifest] = [group]
    for i in range(count):
        role = roles[0 if i == 0 else 1] if roles else ""
        own = draw(pod_spec(theme)) if one_in(draw, 6, theme == "roles") else template
        numbered = naming == "number" or (naming == "mixed" and draw(s.booleans()))
        full = f"{name}-{role or 'task'}-{'' if numbered else 'x'}{i}"
        meta: Manifest = {
            "name": f"{name}-{count - i}" if naming == "short" else full,
            "namespace": namespace,
            "uid": f"{name}-{i}",
            "creationTimestamp": "2026-01-01T00:01:00Z" if one_in(draw, 12) else created,
            "labels": {"app": draw(s.sampled_from(APPS))},
            "annotations": {"scheduling.k8s.io/group-name": name},
        }
        if role:
            meta["annotations"]["volcano.sh/task-spec"] = role
        if one_in(draw, 20):
            meta["annotations"]["volcano.sh/task-priority"] = str(draw(s.integers(0, 3)))
        if owner:
            group_of_owner, kind = draw(s.sampled_from((*OWNERS, *OWNERS, ("other/v1", "ReplicaSet"))))
            reference = {"apiVersion": group_of_owner, "kind": kind, "name": owner, "uid": owner, "controller": True}
            meta["ownerReferences"] = [reference]
        pod: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": dict(own)}
        pod["status"] = {"phase": "Pending"}
        if one_in(draw, 20, theme == "gates"):
            gates = draw(s.sampled_from((["mine"], [_QUEUE_GATE], [_QUEUE_GATE, "mine"])))
            pod["spec"]["schedulingGates"] = [{"name": g} for g in gates]
            if one_in(draw, 8):
                pod["metadata"]["deletionTimestamp"] = created
        elif running and draw(s.booleans()):
            pod["spec"]["nodeName"] = "gone" if one_in(draw, 20) else draw(s.sampled_from(nodes))
            phases = ("Running", "Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown")
            pod["status"]["phase"] = draw(s.sampled_from(phases))
            if one_in(draw, 12, theme == "requests"):
                draw(resized(pod))
            if one_in(draw, 6, theme == "leaving"):
                pod["metadata"]["deletionTimestamp"] = created
        elif one_in(draw, 12):
            pod["status"]["nominatedNodeName"] = draw(s.sampled_from((*nodes, "gone")))
        elif one_in(draw, 30):
            pod["metadata"]["deletionTimestamp"] = created
        found.append(pod)
    return found


@s.composite
def pod_group(
    draw: s.DrawFn,
    name: str,
    namespace: str,
    created: str,
    count: int,
    queues: list[str],
    running: bool,
    theme: str,
) -> Manifest:
    spec: Manifest = {"minMember": draw(s.integers(1, count)), "queue": draw(s.sampled_from(queues))}
    if one_in(draw, 12, theme == "empty"):
        spec["minMember"] = draw(s.integers(0, count + 1))
    if theme in ("gates", "queues") or not one_in(draw, 3):
        spec["minResources"] = draw(min_resources(theme))
    if one_in(draw, 3):
        spec["priorityClassName"] = draw(s.sampled_from(("high", "low")))
    phases = ("Pending", "Pending", "Inqueue", "")
    if running:
        phases = ("Running", "Running", "Running", "Unknown", "Inqueue", "Pending", "Completed")
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "uid": f"pg-{name}", "creationTimestamp": created},
        "spec": spec,
        "status": {"phase": draw(s.sampled_from(phases))},
    }


@s.composite
def resized(draw: s.DrawFn, pod: Manifest) -> None:
    """Its first container is given something else than what it asks for."""
    given = {"cpu": f"{draw(s.sampled_from((100, 400, 1300)))}m"}
    status: Manifest = {"name": "main", "resources": {"requests": given}}
    if draw(s.booleans()):
        status["allocatedResources"] = {"memory": "300Mi", **draw(s.sampled_from(({}, {"cpu": "600m"})))}
    pod["status"]["containerStatuses"] = [status]
    if one_in(draw, 4):
        condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        pod["status"]["conditions"] = [condition]


_QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"


@s.composite
def min_resources(draw: s.DrawFn, theme: str = "") -> Manifest:
    found = {"cpu": f"{draw(s.integers(1, 40)) * 100}m"}
    if theme != "queues" and draw(s.booleans()):  # about as much as a cluster has
        found["cpu"] = str(draw(s.integers(5, 40)))
    if one_in(draw, 3):
        found["memory"] = f"{draw(s.integers(1, 6)) * 512}Mi"
    if one_in(draw, 8):
        found["nvidia.com/gpu"] = str(draw(s.integers(1, 3)))
    if one_in(draw, 5):
        found["pods"] = str(draw(s.integers(1, 6)))
    if one_in(draw, 12):
        found["count/jobs.batch"] = "3"
    if one_in(draw, 12):
        found["ephemeral-storage"] = "2Gi"
    return {} if one_in(draw, 20) else found


@s.composite
def other_pods(draw: s.DrawFn, node_names: list[str], theme: str = "") -> list[Manifest]:
    """Pods of other schedulers: only their weight counts."""
    found = []
    for i in range(draw(s.sampled_from((0, 0, 1, 2, 3)))):
        meta: Manifest = {"name": f"o{i}", "namespace": draw(s.sampled_from(("default", "other"))), "uid": f"o{i}"}
        meta |= {"creationTimestamp": START, "labels": {"app": draw(s.sampled_from(APPS))}}
        spec = {**draw(pod_spec(theme)), "schedulerName": "default-scheduler"}
        phase = "Pending"
        if not one_in(draw, 5):
            spec["nodeName"] = draw(s.sampled_from(node_names))
            phase = draw(s.sampled_from(("Running", "Running", "Succeeded")))
            if one_in(draw, 6):
                meta["deletionTimestamp"] = START
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}})
    return found


@s.composite
def queues(draw: s.DrawFn, theme: str = "") -> list[Manifest]:
    found = []
    for name in ["default", *(f"q{i}" for i in range(draw(s.sampled_from((0, 0, 1, 1, 2, 3)))))]:
        spec: Manifest = {"weight": draw(s.integers(1, 4))}
        if name != "default" and one_in(draw, 3, theme == "queues"):
            spec["capability"] = {"cpu": str(draw(s.integers(1, 8)))}
            if one_in(draw, 3):
                spec["capability"]["memory"] = f"{draw(s.integers(1, 6))}Gi"
            if one_in(draw, 4):
                spec["capability"]["nvidia.com/gpu"] = "1"
            if one_in(draw, 4):
                spec["capability"]["pods"] = str(draw(s.integers(1, 5)))
        if name != "default" and one_in(draw, 4, theme == "queues"):
            spec["guarantee"] = {"resource": {"cpu": str(draw(s.integers(1, 4))), "memory": "1Gi"}}
        if one_in(draw, 4):
            spec["priority"] = draw(s.integers(1, 3))
        state = draw(s.sampled_from(("Closed", "Closing"))) if name != "default" and one_in(draw, 8) else "Open"
        found.append(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name, "uid": name, "creationTimestamp": START},
                "spec": spec,
                "status": {"state": state},
            }
        )
    return found


@s.composite
def surroundings(draw: s.DrawFn, theme: str = "") -> list[Manifest]:
    """Services and owners that pods are spread by, namespaces that affinity terms look for."""
    found: list[Manifest] = []
    for name, labels in (("default", {"team": "blue"}), ("other", {"team": "red"})):
        meta = {"name": name, "labels": labels}
        if not one_in(draw, 6):
            found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    for app in APPS:
        if one_in(draw, 4, theme == "spread"):
            meta = {"name": app, "namespace": "default"}
            found.append({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": app}}})
        if draw(s.booleans()):
            meta = {"name": app, "namespace": "default", "uid": app}
            group_of_owner, kind = draw(s.sampled_from(OWNERS))
            selector = {"app": app} if kind == "ReplicationController" else {"matchLabels": {"app": app}}
            spec = {"replicas": 1, "selector": selector}
            found.append({"apiVersion": group_of_owner, "kind": kind, "metadata": meta, "spec": spec})
    return found


@s.composite
def clusters(draw: s.DrawFn, themes: tuple[str, ...] = THEMES) -> list[Manifest]:
    """A whole cluster: nodes, queues, priority classes, jobs, and what else is there."""
    theme = draw(s.sampled_from(themes))
    all_nodes = draw(nodes(1, 3)) if theme == "leaving" else draw(nodes(2))
    all_queues = draw(queues(theme))
    found = [*all_nodes, *all_queues, *draw(surroundings(theme))]
    for name, value in (("high", 100), ("low", -5)):
        found.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    node_names = [n["metadata"]["name"] for n in all_nodes]
    found += draw(jobs([q["metadata"]["name"] for q in all_queues], node_names, theme))
    return found + draw(other_pods(node_names, theme))


PLUGIN_TIERS = (
    [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]],
    [["priority", "gang"], ["drf", "predicates", "proportion", "nodeorder", "binpack"]],
    [["gang"], ["predicates", "nodeorder", "binpack"]],
    [["drf", "gang"], ["overcommit", "predicates", "binpack"]],
)


def plugin_tiers() -> s.SearchStrategy[list[list[Any]]]:
    """Configurations, in the scenarios' short form."""
    return s.sampled_from(PLUGIN_TIERS).map(lambda tiers: [list(t) for t in tiers])
