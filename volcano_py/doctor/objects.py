"""Checks of what users and administrators write: queues, the scheduler's configuration, nodes, pods of no scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from volcano_py.api import names, quantity
from volcano_py.api.kinds import CONFIGMAP, DEPLOYMENT, NODE, POD, QUEUE
from volcano_py.doctor.facts import Facts, programs_of
from volcano_py.doctor.finding import Finding
from volcano_py.scheduler.review.findings import findings as configuration_findings
from volcano_py.scheduler.run_once import REGISTRY

Manifest = dict[str, Any]
CONFIG_MAP, KEY = "volcano-scheduler-configmap", "volcano-scheduler.conf"
FIRST_QUEUES = ("root", "default")


def object_findings(facts: Facts) -> Iterator[Finding]:
    """The problems of objects."""
    yield from _configuration(facts)
    yield from _queues(facts)
    yield from _nodes(facts)
    yield from _scheduler_names(facts)


def _configuration(facts: Facts) -> Iterator[Finding]:
    if not facts.read(CONFIGMAP):
        return
    found = next((one for one in facts.of(CONFIGMAP) if one["metadata"]["name"] == CONFIG_MAP), None)
    edit = f"kubectl edit configmap -n {facts.namespace} {CONFIG_MAP}"
    if found is None:
        what = f"ConfigMap {facts.namespace}/{CONFIG_MAP} does not exist; the built-in configuration counts"
        yield Finding("note", "configuration", what, "helm upgrade creates it")
        return
    texts = {key: text for key, text in (found.get("data") or {}).items() if key.endswith(".conf")}
    if not texts:
        yield Finding("error", "configuration", f"ConfigMap {CONFIG_MAP} has no key {KEY}", edit)
    for key, text in texts.items():
        for one in configuration_findings(text, REGISTRY):
            what, _, remedy = one.text.partition("; ")
            if one.severity in ("error", "warning"):
                level: Any = one.severity
                yield Finding(level, "configuration", f"ConfigMap {CONFIG_MAP}, {key}: {what}", remedy or edit)


def _queues(facts: Facts) -> Iterator[Finding]:
    if not facts.read(QUEUE):
        return
    queues = {queue["metadata"]["name"]: queue for queue in facts.of(QUEUE)}
    for name in FIRST_QUEUES:
        if name not in queues:
            remedy = "restart the scheduler, which creates it"
            yield Finding("error", "queues", f"queue {name} does not exist: jobs without a queue are denied", remedy)
    for name, queue in queues.items():
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        state = status.get("state")
        if not state:
            what = f"queue {name} has no state: Jobs in it are denied"
            yield Finding("error", "queues", what, "check that the controller-manager runs; it sets the state")
        elif name == "default" and state != "Open":
            remedy = "vcctl queue operate -n default -a open"
            yield Finding("error", "queues", f"queue default is {state}: jobs without a queue are denied", remedy)
        parent = spec.get("parent") or "root"
        if name != "root" and parent not in queues:
            what = f"queue {name}: spec.parent {parent!r} does not exist"
            yield Finding("warning", "queues", what, f"create queue {parent}, or change spec.parent")
        yield from _amounts(name, spec)


def _amounts(name: str, spec: Manifest) -> Iterator[Finding]:
    """guarantee ≤ deserved ≤ capability, as admission demands; webhooks may be off."""
    guarantee = (spec.get("guarantee") or {}).get("resource") or {}
    rows = (
        ("guarantee", guarantee, "deserved", spec.get("deserved") or {}),
        ("deserved", spec.get("deserved") or {}, "capability", spec.get("capability") or {}),
        ("guarantee", guarantee, "capability", spec.get("capability") or {}),
    )
    for low, lower, high, upper in rows:
        for resource in sorted(lower.keys() & upper.keys()):
            try:
                exceeds = quantity.milli_value(str(lower[resource])) > quantity.milli_value(str(upper[resource]))
            except ValueError:
                what = f"queue {name}: {low} or {high} of {resource} is no quantity"
                yield Finding("error", "queues", what, f"kubectl edit queue {name}")
                continue
            if exceeds:
                what = f"queue {name}: {low} {resource}={lower[resource]} is above {high} {resource}={upper[resource]}"
                yield Finding("warning", "queues", what, f"kubectl edit queue {name}")


def _nodes(facts: Facts) -> Iterator[Finding]:
    if not facts.read(NODE):
        return
    nodes = facts.of(NODE)
    ready = [
        node
        for node in nodes
        if any(
            c.get("type") == "Ready" and c.get("status") == "True"
            for c in (node.get("status") or {}).get("conditions") or ()
        )
    ]
    if not nodes:
        yield Finding("error", "nodes", "the cluster has no nodes", "add nodes")
    elif not ready:
        yield Finding("error", "nodes", f"none of the {len(nodes)} nodes is Ready", "kubectl describe nodes")
    elif all((node.get("spec") or {}).get("unschedulable") for node in ready):
        remedy = f"kubectl uncordon {ready[0]['metadata']['name']}"
        yield Finding("error", "nodes", "all nodes are cordoned: no pod can start", remedy)


def _scheduler_names(facts: Facts) -> Iterator[Finding]:
    """Pending pods whose schedulerName no program of the cluster is known to serve."""
    served = {"volcano", "default-scheduler"}
    for deployment in facts.of(DEPLOYMENT):
        if "scheduler" in programs_of(deployment):
            for container in deployment["spec"]["template"]["spec"]["containers"]:
                words = container.get("args") or ()
                served |= {word.partition("=")[2] for word in words if word.startswith("--scheduler-name=")}
                if any(word.startswith("--config") for word in words):
                    return  # the names of profiles are in a file
    waiting: Counter[str] = Counter()
    for pod in facts.of(POD):
        spec = pod.get("spec") or {}
        name = spec.get("schedulerName") or "default-scheduler"
        ours = names.GROUP_NAME in (pod["metadata"].get("annotations") or {})
        if not spec.get("nodeName") and ours and name not in served:
            waiting[name] += 1
    for name, count in sorted(waiting.items()):
        what = f"{count} pods with a PodGroup wait for the scheduler {name!r}, which is not that of this installation"
        yield Finding(
            "warning", "pods", what, "set schedulerName: volcano, or start the scheduler with --scheduler-name"
        )
