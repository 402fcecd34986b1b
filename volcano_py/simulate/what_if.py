"""What if: the difference in decisions between a snapshot and the same snapshot with more nodes, more jobs or another
configuration. Both run the same number of cycles, with the same seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from volcano_py.api import names, quantity
from volcano_py.api.meta import format_time
from volcano_py.scheduler.explain.table import meaning_of, sentence_of
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.model.jobs.group_names import native_uid
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.scheduler.session_close.stated_reasons import StatedReasons
from volcano_py.simulate.complete import complete
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import Manifest, ManifestError, model_kind
from volcano_py.simulate.snapshot import Snapshot, manifests_of

CYCLES = 3
"""The number of cycles: the pods of a job are evicted, are deleted, and another job starts in their place."""
MAX_ADDED = 100_000
"""The limit of nodes to add, as a protection from typing errors."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_BETWEEN = re.compile(r"[,;:.] ")
_COUNTED = re.compile(r"(\d+)x(.+)", re.DOTALL)


class Why(msgspec.Struct, frozen=True):
    """The first blocker of a job: its code, the sentence with numbers, and the names in it."""

    code: str
    sentence: str
    names: tuple[str | int | float, ...] = ()

    def means(self, other: Why) -> bool:
        """Whether both are the same reason; numbers make no difference."""
        return (self.code, self.names) == (other.code, other.names)


class Run(msgspec.Struct):
    """The result of each job, `namespace/podgroup`, after some cycles."""

    started: dict[str, int] = {}
    """The cycle in which its first pod was bound, from 1."""
    bound: dict[str, int] = {}
    evicted: dict[str, int] = {}
    waiting: dict[str, str] = {}
    """Why it is pending after the last cycle."""
    nodes: dict[str, str] = {}
    """The node of each bound pod."""
    faults: list[str] = []
    reasons: dict[str, Why] = {}
    """The first blocker of waiting jobs; empty if the deviation stated-reasons is off."""
    admitted: dict[str, bool] = {}
    """Of each job without pods: whether it is admitted, so that its controller creates them."""
    titles: dict[str, str] = {}
    """`namespace/job` of PodGroups that a Job owns."""


class Difference(msgspec.Struct):
    """The difference of one job. `change` is one of CHANGES."""

    job: str
    change: str
    before: str
    after: str


CHANGES = (
    "starts",
    "does not start",
    "starts earlier",
    "waits longer",
    "is evicted",
    "is not evicted",
    "is admitted",
    "is not admitted",
    "gets more pods",
    "gets fewer pods",
    "waits",
    "waits for another reason",
)


def simulation_of(
    snapshot: Snapshot, added: Iterable[Manifest] = (), *, seed: int = 0, registry: Registry = REGISTRY
) -> Simulation:
    """The cluster of a snapshot as a simulation, with further objects, which are completed as in that cluster. Raises
    ManifestError for an invalid object."""
    manifests = list(manifests_of(snapshot))
    scheduler_names = frozenset(snapshot.scheduler_names)
    new, rejected = _completed(manifests, list(added), scheduler_names, snapshot.time)
    if rejected:
        raise ManifestError(rejected[0])
    return Simulation(
        [*manifests, *new],
        now=snapshot.time,
        seed=seed,
        raw=True,
        scheduler_names=scheduler_names,
        default_queue=snapshot.default_queue,
        registry=registry,
    )


def run(simulation: Simulation, configuration: Configuration, cycles: int = CYCLES) -> Run:
    """Run some cycles; returns the result of each job."""
    outcome = Run()
    for cycle in range(1, cycles + 1):
        of = simulation.cluster.native_groups.job_of
        group_of = {key: of(_group(o)) for (kind, key), o in simulation.objects.items() if kind == "Pod"}
        result = simulation.cycle(configuration)
        for pod, node in result.bound.items():
            job = group_of[pod]
            outcome.started.setdefault(job, cycle)
            outcome.bound[job] = outcome.bound.get(job, 0) + 1
            outcome.nodes[pod] = node
        for pod in result.evicted:
            outcome.evicted[group_of[pod]] = outcome.evicted.get(group_of[pod], 0) + 1
        outcome.waiting = result.waiting
        outcome.faults += result.faults
    _explain(outcome, simulation)
    return outcome


def _explain(outcome: Run, simulation: Simulation) -> None:
    """Add reasons, admission and titles after the last cycle."""
    for uid, stated in simulation.cluster.keep(StatedReasons).of.items():
        code, *found = meaning_of(stated.cause)
        outcome.reasons[uid] = Why(str(code), sentence_of(stated.cause), tuple(found))
    for uid, job in simulation.cluster.jobs.items():
        if job.pod_group is None:
            continue
        if not job.tasks:
            outcome.admitted[uid] = job.pod_group.status.phase not in ("", "Pending")
        for owner in job.pod_group.metadata.owner_references or ():
            if owner.kind == "Job" and job.pod_group.metadata.name == f"{owner.name}-{owner.uid}":
                outcome.titles[uid] = f"{job.pod_group.metadata.namespace}/{owner.name}"


def differences(before: Run, after: Run) -> list[Difference]:
    """The differences, job by job in the order of their names; a job may start and be evicted."""
    found: list[Difference] = []
    jobs = {job for run in (before, after) for of in (run.started, run.waiting, run.evicted) for job in of}
    for job in sorted(jobs):
        found += _of_job(job, before, after)
    return found


def _of_job(job: str, before: Run, after: Run) -> Iterable[Difference]:
    old, new = before.started.get(job), after.started.get(job)
    reasons = _why(job, before), _why(job, after)
    if old is None and new is not None:
        yield Difference(job, "starts", reasons[0], f"cycle {new}")
    elif old is not None and new is None:
        yield Difference(job, "does not start", f"cycle {old}", reasons[1])
    elif old is not None and new is not None and old != new:
        yield Difference(job, "starts earlier" if new < old else "waits longer", f"cycle {old}", f"cycle {new}")
    elif job in before.admitted and job in after.admitted and before.admitted[job] != after.admitted[job]:
        yield Difference(job, "is admitted" if after.admitted[job] else "is not admitted", *reasons)
    elif old is None and reasons[0] != reasons[1]:
        if reasons[0] and reasons[1]:
            if _same(job, before, after):
                return
            yield Difference(job, "waits for another reason", *reasons)
        elif reasons[1]:
            yield Difference(job, "waits", "", reasons[1])
    if old is not None and new is not None:
        pods = before.bound[job], after.bound[job]
        if pods[0] != pods[1]:
            change = "gets more pods" if pods[1] > pods[0] else "gets fewer pods"
            yield Difference(job, change, f"{pods[0]} bound", f"{pods[1]} bound")
    gone = before.evicted.get(job, 0), after.evicted.get(job, 0)
    if gone[0] != gone[1]:
        change = "is evicted" if gone[1] > gone[0] else "is not evicted"
        yield Difference(job, change, f"{gone[0]} pods evicted", f"{gone[1]} pods evicted")


def _why(job: str, run: Run) -> str:
    """Why a job waits at the end: its first blocker, or else the message of the scheduler."""
    if job not in run.waiting:
        return ""
    return run.reasons[job].sentence if job in run.reasons else run.waiting[job]


def _same(job: str, before: Run, after: Run) -> bool:
    """Whether a job waits for the same reason in both runs, with other numbers."""
    if job in before.reasons and job in after.reasons:
        return before.reasons[job].means(after.reasons[job])
    parts = [sorted(_BETWEEN.split(_NUMBER.sub("0", run.waiting[job]).rstrip("."))) for run in (before, after)]
    return parts[0] == parts[1]


def nodes_to_add(text: str, snapshot: Snapshot) -> list[Manifest]:
    """Nodes from `4xcpu=32,memory=256Gi,nvidia.com/gpu=8` or `4xNODE`, which are like a node of the snapshot.

    Raises ManifestError.
    """
    counted = _COUNTED.fullmatch(text.strip())
    if counted is None:
        raise ManifestError(f"nodes to add {text!r}: write COUNTxSHAPE, e.g. 4xcpu=32,memory=256Gi or 4xNODE")
    count, shape = int(counted[1]), counted[2]
    if not 0 < count <= MAX_ADDED:
        raise ManifestError(f"nodes to add {text!r}: the count must be between 1 and {MAX_ADDED}")
    taken = {node.metadata.name for node in snapshot.of("Node")}
    like = _from_amounts(shape) if "=" in shape else _like(shape, snapshot)
    made: list[Manifest] = []
    number = 0
    while len(made) < count:
        number += 1
        name = f"added-{number}"
        if name in taken:
            continue
        labels = {**like["metadata"].get("labels", {}), "kubernetes.io/hostname": name}
        metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
        made.append({"apiVersion": "v1", "kind": "Node", **like, "metadata": metadata})
    return made


def _from_amounts(shape: str) -> Manifest:
    have: dict[str, str] = {"pods": "110"}
    for part in shape.split(","):
        name, equals, amount = part.partition("=")
        try:
            have[name.strip()] = quantity.canonical(amount.strip()) if equals and name.strip() else _no_amount()
        except ValueError:
            message = f"nodes to add: {part!r} is not resource=amount; write e.g. cpu=32,memory=256Gi"
            raise ManifestError(message) from None
    return {"metadata": {}, "spec": {}, "status": {"allocatable": have, "capacity": have}}


def _no_amount() -> str:
    raise ValueError("no amount")


def _like(name: str, snapshot: Snapshot) -> Manifest:
    """A node of the snapshot without its identity."""
    for manifest in manifests_of(msgspec.structs.replace(snapshot, objects={"Node": snapshot.of("Node")})):
        if manifest["metadata"]["name"] == name:
            status = {key: value for key, value in manifest.get("status", {}).items() if key != "volumesAttached"}
            return {"metadata": manifest["metadata"], "spec": manifest.get("spec", {}), "status": status}
    raise ManifestError(f"nodes to add: the snapshot has no node {name!r}; name one that it has, or write cpu=32")


def _completed(
    known: list[Manifest], added: list[Manifest], scheduler_names: frozenset[str], now: float
) -> tuple[list[Manifest], list[str]]:
    """The added objects, completed with the queues, classes and namespaces of the cluster."""
    if not added:
        return [], []
    around = [m for m in known if m["kind"] in ("Queue", "PriorityClass", "Namespace")]
    made, rejected = complete([*around, *added], scheduler_names, now)
    existing = {_key(m) for m in known}
    given = {_key(m) for m in added}
    implied = ("Queue", "PriorityClass", "Namespace")
    new = [m for m in made if _key(m) in given or (_key(m) not in existing and m["kind"] not in implied)]
    for manifest in new:
        manifest["metadata"].setdefault("creationTimestamp", format_time(now))
    return new, rejected


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return model_kind(manifest), metadata.get("namespace", ""), metadata["name"]


def _group(pod: Mapping[str, Any]) -> str:
    """The job of a pod, as if its native PodGroup had no parent; a pod without one is a job itself."""
    metadata = pod["metadata"]
    native = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if native:
        return native_uid(f"{metadata['namespace']}/{native}")
    annotations = metadata.get("annotations") or {}
    name = annotations.get(names.GROUP_NAME) or annotations.get(names.VOLCANO_GROUP_NAME) or metadata["name"]
    return f"{metadata['namespace']}/{name}"
