"""The objects that `vcctl top` watches, and its rows of queues, jobs and nodes as data.

All reads use the user's permissions. A forbidden kind is reported once, and the others are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from volcano_py.api.kinds import NODE, POD, PODGROUP, QUEUE, ResourceType
from volcano_py.cli import queue_table, queue_tree
from volcano_py.cli.columns import age
from volcano_py.cli.follow import Followed, Source
from volcano_py.cli.job_waits import why_pending
from volcano_py.cli.queue_tree import Amounts, Branch

Manifest = dict[str, Any]
_KINDS: dict[str, tuple[ResourceType, ...]] = {
    "queues": (QUEUE, PODGROUP, NODE),
    "jobs": (PODGROUP,),
    "nodes": (NODE, POD),
}
_ENDED = ("Succeeded", "Failed")
"""Phases of pods that hold no resources."""
_ORDER = ("Unknown", "Pending", "Inqueue", "Running", "Completed")
"""Phases of PodGroups in the order of the jobs: waiting ones come first."""
_ZERO = Fraction(0)


class JobRow(NamedTuple):
    """A job: a PodGroup. `running` and `least` are pods; `why` is the message of its condition."""

    namespace: str
    name: str
    queue: str
    phase: str
    running: int
    least: int
    age: str
    code: str
    why: str


class NodeRow(NamedTuple):
    """A node. `used`: the requests of its pods; None: the user may not list pods."""

    name: str
    state: str
    pods: int | None
    used: Amounts | None
    allocatable: Amounts


class Facts(NamedTuple):
    """The data shown at one moment."""

    trees: list[Branch]
    total: Amounts
    """The allocatable resources of the nodes."""
    jobs: list[JobRow]
    nodes: list[NodeRow]
    notes: Sequence[str]


def sources(sections: Sequence[str], namespace: str, own: str) -> list[Source]:
    """The objects to follow. `namespace`: of the jobs, empty for all; `own`: that of the kubeconfig's context.

    Jobs in other namespaces count for queues; users that may not list them see the jobs of one namespace.
    """
    kinds = dict.fromkeys(kind for section in sections for kind in _KINDS[section])
    all_groups = "queues" in sections or not namespace
    found = []
    for rt in kinds:
        source = Source(rt, optional=True)
        if rt is PODGROUP and all_groups:
            source = source._replace(otherwise=namespace or own)
        elif rt is PODGROUP:
            source = source._replace(namespace=namespace)
        elif rt is POD:
            source = source._replace(prepare=held_by)
        found.append(source)
    return found


def facts(followed: Followed, given: Sequence[Source], sections: Sequence[str], namespace: str) -> Facts:
    """The facts from the followed objects. `given`: the sources, in their order."""
    objects = {source.rt: followed.objects(number) for number, source in enumerate(given)}
    groups, nodes = objects.get(PODGROUP, []), objects.get(NODE, [])
    total: Amounts = {}
    for node in nodes:
        queue_tree.add(total, _allocatable(node))
    queues = objects.get(QUEUE, [])
    trees = queue_tree.grow(queues, groups, total, queue_table.count(groups, queues))
    mine = [group for group in groups if namespace in ("", group["metadata"]["namespace"])]
    pods = None if POD in followed.forbidden else objects.get(POD)
    return Facts(
        trees,
        total,
        job_rows(mine) if "jobs" in sections else [],
        node_rows(nodes, pods) if "nodes" in sections else [],
        followed.notes,
    )


def job_rows(groups: list[Manifest]) -> list[JobRow]:
    """The rows of PodGroups: waiting ones first, then by age, oldest first."""
    order = {phase: place for place, phase in enumerate(_ORDER)}

    def place(group: Manifest) -> tuple[int, str]:
        phase = (group.get("status") or {}).get("phase") or "Pending"
        return order.get(phase, 0), str(group["metadata"].get("creationTimestamp") or "")

    return [_job_row(group) for group in sorted(groups, key=place)]


def _job_row(group: Manifest) -> JobRow:
    metadata, spec, status = group["metadata"], group.get("spec") or {}, group.get("status") or {}
    waiting = next((c for c in status.get("conditions") or () if c.get("type") == "Waiting"), None)
    phase = status.get("phase") or "Pending"
    code, why = "", ""
    if waiting is not None:
        code, why = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    elif phase in ("Pending", "Inqueue", "Unknown"):
        why = why_pending([group])  # the report of Volcano's scheduler
    return JobRow(
        metadata.get("namespace", ""),
        job_name(group),
        spec.get("queue") or "default",
        phase,
        int(status.get("running") or 0),
        int(spec.get("minMember") or 0),
        age(group),
        code,
        " ".join(why.split()),
    )


def job_name(group: Manifest) -> str:
    """The name of the Job that owns a PodGroup, or the PodGroup's own name."""
    metadata = group["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("kind") == "Job" and metadata["name"] == f"{owner.get('name')}-{owner.get('uid')}":
            return str(owner["name"])
    return str(metadata["name"])


def node_rows(nodes: list[Manifest], pods: list[Manifest] | None) -> list[NodeRow]:
    """The rows of nodes. `pods`: as returned by `held_by`; None: the user may not list them."""
    used: dict[str, Amounts] = {}
    counts: dict[str, int] = {}
    for pod in pods or ():
        if pod["nodeName"]:
            queue_tree.add(used.setdefault(pod["nodeName"], {}), pod["held"])
            counts[pod["nodeName"]] = counts.get(pod["nodeName"], 0) + 1
    known = pods is not None
    rows = []
    for node in nodes:
        name = node["metadata"]["name"]
        rows.append(
            NodeRow(
                name,
                _node_state(node),
                counts.get(name, 0) if known else None,
                used.get(name, {}) if known else None,
                _allocatable(node),
            )
        )
    return rows


def _node_state(node: Manifest) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((c.get("status") for c in conditions if c.get("type") == "Ready"), None)
    state = "Ready" if ready in ("True", None) else "NotReady"
    return f"{state},NoSchedule" if (node.get("spec") or {}).get("unschedulable") else state


def _allocatable(node: Manifest) -> Amounts:
    return queue_tree.amounts((node.get("status") or {}).get("allocatable"))


def held_by(pod: Manifest) -> Manifest:
    """The part of a pod that is stored: its node, and its requests while it runs there."""
    from volcano_py.api.core import Pod
    from volcano_py.scheduler.model.jobs.pod_request import pod_request
    from volcano_py.simulate.manifests import ManifestError, read_as

    node = (pod.get("spec") or {}).get("nodeName") or ""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        node = ""
    held: Amounts = {}
    if node:
        try:
            held = queue_tree.amounts(pod_request(read_as(Pod, {"kind": "Pod", **pod})).quantities())
        except (ManifestError, ValueError):
            held = {}
    metadata = {key: pod["metadata"].get(key) for key in ("namespace", "name", "uid", "resourceVersion")}
    return {"metadata": metadata, "nodeName": node, "held": held}


def resources(found: Facts) -> list[str]:
    """The resources of the nodes, cpu and memory first, without counts of objects."""
    return resources_of(found.total)


def resources_of(total: Amounts) -> list[str]:
    """The resources with an amount above zero; cpu and memory for an empty cluster."""
    hidden = ("pods", "ephemeral-storage")
    names = {r for r, amount in total.items() if amount > 0 and r not in hidden and not r.startswith("hugepages")}
    first = [r for r in ("cpu", "memory") if r in names or not total]
    return first + sorted(names - {"cpu", "memory"})
