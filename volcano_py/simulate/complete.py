"""Completes described objects with what API defaulting, admission and controllers add in a cluster.

Volcano: the defaults of its CRDs and webhooks, the queue controller's states, and the PodGroups that the
podgroup controller creates for bare pods.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from volcano_py.api import batch, names
from volcano_py.api.meta import format_time
from volcano_py.simulate.bare_pods import groups_of_bare_pods
from volcano_py.simulate.jobs import expand, is_job
from volcano_py.simulate.label_keys import merge_label_keys
from volcano_py.simulate.manifests import Manifest, ManifestError, as_struct, copied, in_namespace, model_kind, read_as
from volcano_py.simulate.namespaces import complete_namespaces
from volcano_py.simulate.volumes import complete_volume
from volcano_py.webhooks.podgroups import mutate_podgroup
from volcano_py.webhooks.queues import mutate_queue

_EVERYWHERE: list[Manifest] = [
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"reclaimable": reclaimable, "weight": 1},
    }
    for name, reclaimable in (("root", False), ("default", True))
] + [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
]
"""Objects of every cluster: the API server creates the classes, and the scheduler the queues."""
_DEFAULT_SCHEDULER = "default-scheduler"
"""The API server's default of spec.schedulerName."""
_TOLERATED_300_SECONDS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def complete(
    manifests: list[Manifest], scheduler_names: frozenset[str], now: float
) -> tuple[list[Manifest], list[str]]:
    """Completed copies of the objects that the scheduler reads, and the reasons of those that cannot be decoded or
    that admission would deny. Adds the queues `default` and `root`, the system's PriorityClasses, PodGroups and pods of
    pending jobs, and PodGroups of bare pods. If an object is described twice, the last description is used."""
    by_key: dict[tuple[str, str, str], Manifest] = {}
    rejected: list[str] = []
    for m in manifests:
        try:
            if is_job(m):
                read_as(batch.Job, m, named=True)
            elif as_struct(m, named=True) is None:
                continue
        except ManifestError as e:
            rejected.append(str(e))
        else:
            o = in_namespace(copied(m))
            by_key[model_kind(o), o["metadata"].get("namespace", ""), o["metadata"]["name"]] = o
    objects = list(by_key.values())
    known = {(o["kind"], o["metadata"]["name"]) for o in objects}
    objects += [deepcopy(o) for o in _EVERYWHERE if (o["kind"], o["metadata"]["name"]) not in known]
    for o in objects:
        _metadata(o, now)
        if o["kind"] == "Queue":
            _queue(o)
        elif o["kind"] == "Node":
            status = o.setdefault("status", {})
            status.setdefault("allocatable", dict(status.get("capacity") or {}))
        else:
            complete_volume(o)
    made, bad_jobs = expand(objects)
    for o in made:
        _metadata(o, now)
    objects += made
    classes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "PriorityClass"}
    namespaces = complete_namespaces(objects)
    objects = [o for o in objects if o["kind"] != "Namespace"]
    pods = [o for o in objects if o["kind"] == "Pod"]
    for pod in pods:
        _pod(pod, classes)
    groups = [o for o in objects if model_kind(o) == "PodGroup"]
    made = groups_of_bare_pods(pods, groups, manifests, sorted(scheduler_names))
    made += namespaces.values()
    for o in made:
        _metadata(o, now)
    objects += made
    for group in (o for o in objects if model_kind(o) == "PodGroup"):
        _pod_group(group, namespaces.get(group["metadata"]["namespace"]))
    return objects, rejected + bad_jobs


def complete_for_profiles(manifests: list[Manifest]) -> list[Manifest]:
    """Completed copies of objects for profiles: pods without a scheduler name belong to the default scheduler. If an
    object is described twice, the last description is used."""
    by_key: dict[tuple[str, str, str], Manifest] = {}
    for m in manifests:
        o = in_namespace(copied(m))
        by_key[model_kind(o), o["metadata"].get("namespace", ""), o["metadata"]["name"]] = o
    objects = list(by_key.values())
    classes = {o["metadata"]["name"]: o for o in (*_EVERYWHERE, *objects) if o["kind"] == "PriorityClass"}
    for o in objects:
        _metadata(o, 0.0)
        if o["kind"] == "Node":
            status = o.setdefault("status", {})
            status.setdefault("allocatable", dict(status.get("capacity") or {}))
        elif o["kind"] == "Pod":
            spec = o.setdefault("spec", {})
            _fill(spec, schedulerName=_DEFAULT_SCHEDULER)
            _priority(spec, classes)
            _resources(spec)
    return objects


def _metadata(o: Manifest, now: float) -> None:
    metadata = in_namespace(o)["metadata"]
    key = "-".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    _fill(metadata, uid=f"{o['kind'].lower()}-{key}", creationTimestamp=format_time(now), resourceVersion="1")


def _fill(fields: Manifest, **defaults: Any) -> None:
    """Set defaults where a field is missing or empty."""
    for name, value in defaults.items():
        if fields.get(name) in (None, ""):
            fields[name] = value


def _pod(pod: Manifest, classes: dict[str, Manifest]) -> None:
    spec = pod.setdefault("spec", {})
    status = pod.setdefault("status", {})
    _fill(spec, schedulerName=_scheduler_of(pod))
    _fill(status, phase="Pending")
    _priority(spec, classes)
    _resources(spec)
    merge_label_keys(pod)
    tolerations = spec["tolerations"] = spec.get("tolerations") or []
    for key in _TOLERATED_300_SECONDS:
        if not any(t.get("key") in (key, None, "") and t.get("effect") in ("NoExecute", None, "") for t in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _scheduler_of(pod: Manifest) -> str:
    """The scheduler of a pod that sets none: Volcano, or the default scheduler for a pod with a node and no group."""
    in_group = (pod["metadata"].get("annotations") or {}).get(names.GROUP_NAME) or pod["spec"].get("schedulingGroup")
    return _DEFAULT_SCHEDULER if pod["spec"].get("nodeName") and not in_group else names.SCHEDULER_NAME


def _resources(spec: Manifest) -> None:
    """Limits are default requests; ports of a pod in the host's network are host ports."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for c in containers:
        resources = c.get("resources") or {}
        if resources.get("limits"):
            c["resources"] = {**resources, "requests": {**resources["limits"], **(resources.get("requests") or {})}}
        if spec.get("hostNetwork"):
            for port in c.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    whole = spec.get("resources") or {}
    if whole.get("limits"):
        requested = {name for c in containers for name in (c.get("resources") or {}).get("requests") or ()}
        limits = {
            name: amount
            for name, amount in whole["limits"].items()
            if name not in requested or name.startswith("hugepages-")  # requests of huge pages equal their limits
        }
        spec["resources"] = {**whole, "requests": {**limits, **(whole.get("requests") or {})}}


def _priority(spec: Manifest, classes: dict[str, Manifest]) -> None:
    """Set a pod's priority as admission does: its class's value, else that of the default class, else 0."""
    if not spec.get("priorityClassName"):
        defaults = [c for c in classes.values() if c.get("globalDefault")]
        lowest = min(defaults, key=lambda c: int(c.get("value", 0)), default=None)
        spec["priorityClassName"] = lowest["metadata"]["name"] if lowest is not None else ""
    chosen = classes.get(spec["priorityClassName"], {})
    if spec.get("priority") is None:
        spec["priority"] = int(chosen.get("value", 0))
    if chosen.get("preemptionPolicy"):
        spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"])


def _pod_group(group: Manifest, namespace: Manifest | None) -> None:
    spec = group.setdefault("spec", {})
    _fill(spec, queue="default")
    spec["queue"] = mutate_podgroup(group, namespace)["spec"]["queue"]
    for policy in (spec, *(spec.get("subGroupPolicy") or ())):
        if policy.get("networkTopology") is not None:
            _fill(policy["networkTopology"], mode="hard")
    _fill(group.setdefault("status", {}), phase="Pending")


def _queue(queue: Manifest) -> None:
    queue.update(mutate_queue(queue))
    if queue["metadata"]["name"] != "root":
        _fill(queue["spec"], parent="root")
    _fill(queue.setdefault("status", {}), state="Open")
