"""Cycles over a described cluster, and the changes of the cluster between two cycles.

Bound pods run on their node, evicted and terminating pods are deleted, and the scheduler's writes are stored; nothing
else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from volcano_py.api import core
from volcano_py.api.meta import format_time, parse_time
from volcano_py.scheduler.explain.messages import job_message
from volcano_py.scheduler.framework.callbacks import once_each
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Shard
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, uid_of
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import Manifest, ManifestError, as_struct, copied, in_namespace, model_kind
from volcano_py.simulate.pre_bind import ClaimWrites, release_claims

if TYPE_CHECKING:
    from volcano_py.scheduler.profiles.configuration import ProfilesConfiguration as Profiles
    from volcano_py.scheduler.profiles.scheduler import PodScheduler

PERIOD = 1.0
"""Seconds between two cycles."""


class CycleResult(msgspec.Struct):
    """The decisions of one cycle; pods and PodGroups as `namespace/name`."""

    bound: dict[str, str] = {}
    pipelined: dict[str, str] = {}
    evicted: list[str] = []
    claims: dict[str, str] = {}
    """The results of claims. By `pvc:namespace/name`: the volume, or `@` and the node selected for provisioning. By
    `claim:namespace/name`: the devices and the pods that they are for."""
    phases: dict[str, str] = {}
    conditions: dict[str, list[dict[str, str]]] = {}
    """By PodGroup: type, status, reason and message of each condition."""
    allocated: dict[str, dict[str, str]] = {}
    """By queue: status.allocated."""
    waiting: dict[str, str] = {}
    devices: dict[str, dict[str, str]] = {}
    """By bound pod: the annotations that its binding adds or changes."""
    faults: list[str] = []


class Simulation:
    """A cluster in memory.

    `raw`: use the objects as they are; only a missing namespace is set. `rejected` contains the invalid objects with
    the reason; the others are scheduled.
    """

    def __init__(
        self,
        manifests: Iterable[Manifest],
        *,
        now: float | None = None,
        seed: int = 0,
        raw: bool = False,
        scheduler_names: frozenset[str] = frozenset(("volcano",)),
        default_queue: str = "default",
        registry: Registry = REGISTRY,
        features: frozenset[str] = DEFAULT_GATES,
        shard: Shard | None = None,
        recreates: bool = False,
        profiles: Profiles | None = None,
    ) -> None:
        """`profiles`: the session also places gangs of their schedulerNames, by their rules. Raises
        ConfigurationError."""
        self.registry = registry
        self.shard = shard
        self.raw = raw
        self.recreates = recreates
        """Whether evicted pods are recreated, as a controller does: with the same name and a new UID."""
        given = list(manifests)
        self.now = _latest(given) if now is None else now
        self.seed = seed
        if profiles is not None:
            scheduler_names |= {p.name for p in profiles.profiles}
        self.scheduler_names = scheduler_names
        self.cluster = Cluster(default_queue=default_queue, features=features)
        self.pods: PodScheduler | None = None
        if profiles is not None:
            from volcano_py.scheduler.profiles.scheduler import PodScheduler  # only some programs need it

            self.pods = PodScheduler(profiles, features, self.cluster)
        self.warnings: list[str] = []
        """Warnings about the configuration, each once; complete after the first cycle."""
        self.rejected: list[str] = []
        """Invalid objects, with the reason."""
        self.objects: dict[tuple[str, str], Manifest] = {}
        if raw:
            objects = [_as_it_is(copied(o)) for o in given]
        else:
            objects, self.rejected = complete(given, scheduler_names, self.now)
        for o in objects:
            self.put(o)

    def put(self, manifest: Manifest) -> None:
        """Create or replace an object."""
        try:
            struct = as_struct(manifest, named=not self.raw)
        except ManifestError as e:
            self.rejected.append(str(e))
            return
        if struct is None:
            return
        kind = model_kind(manifest)
        self.objects[kind, struct.metadata.key] = manifest
        if kind == "Pod" and not self._is_responsible_for(struct):
            self.cluster.remove("Pod", struct.metadata.namespace, struct.metadata.name)
            return
        try:
            self.cluster.upsert(kind, struct)
        except ValueError as e:
            self.rejected.append(f"{kind} {struct.metadata.key}: {e}")

    def _is_responsible_for(self, pod: core.Pod) -> bool:
        """Pods of other schedulers count only once they are bound. Volcano: responsibleForPod.

        An API server sets a scheduler name on every pod; a described pod without one belongs to this scheduler.
        """
        name = pod.spec.scheduler_name
        return not name or name in self.scheduler_names or bool(pod.spec.node_name)

    def cycle(self, configuration: Configuration) -> CycleResult:
        """Run one cycle, and apply its plan to the cluster."""
        emitted: list[plan.Operation] = []

        def emit(operations: Sequence[plan.Operation]) -> None:
            emitted.extend(operations)

        report = run_once(
            self.cluster,
            configuration,
            self.now,
            self.seed,
            emit=emit,
            registry=self.registry,
            shard=self.shard,
            profiles=self.pods.session_rules if self.pods is not None else None,
        )
        self.warnings += [w for w in dict.fromkeys(report.warnings) if w not in self.warnings]
        writes = ClaimWrites(self.objects, self.put, self.drop)
        failed = writes.carry_out(op for op in emitted if isinstance(op, plan.Bind))
        for op in emitted:
            if isinstance(op, plan.Bind) and op.uid in failed:
                self.cluster.forget(op)
        done = [op for op in emitted if not (isinstance(op, plan.Bind) and op.uid in failed)]
        result = msgspec.structs.replace(result_of(report, done), claims=writes.changed)
        result.waiting |= {
            f"{op.namespace}/{op.name}": failed[op.uid]
            for op in emitted
            if isinstance(op, plan.Bind) and op.uid in failed
        }
        self.react(done)
        return result

    def drop(self, kind: str, key: str) -> None:
        """Delete an object."""
        self.objects.pop((kind, key), None)
        namespace, _, name = key.rpartition("/")
        self.cluster.remove(kind, namespace, name)

    def react(self, operations: Iterable[plan.Operation]) -> None:
        """Apply a cycle's plan to the cluster, and advance the time to the next cycle."""
        changed: dict[tuple[str, str], Manifest] = {}
        gone = {
            (kind, key)
            for (kind, key), o in self.objects.items()
            if kind == "Pod" and o["metadata"].get("deletionTimestamp")
        }
        for (kind, key), o in self.objects.items():
            if kind == "Pod" and self._is_to_start(o):
                o["status"]["phase"] = "Running"
                o["status"].setdefault("startTime", format_time(self.now))
                changed[kind, key] = o
        for op in operations:
            match op:
                case plan.Bind():
                    pod = self.objects["Pod", f"{op.namespace}/{op.name}"]
                    pod["spec"]["nodeName"] = op.node
                    pod["status"]["phase"] = "Running"
                    pod["status"].setdefault("startTime", format_time(self.now))
                    _set_condition(pod, {"type": "PodScheduled", "status": "True"}, self.now)
                    if op.annotations:
                        pod["metadata"].setdefault("annotations", {}).update(op.annotations)
                    changed["Pod", f"{op.namespace}/{op.name}"] = pod
                case plan.RemoveGate():
                    pod = self.objects["Pod", f"{op.namespace}/{op.name}"]
                    pod["spec"]["schedulingGates"] = []
                    changed["Pod", f"{op.namespace}/{op.name}"] = pod
                case plan.Evict():
                    gone.add(("Pod", f"{op.namespace}/{op.name}"))
                case plan.PodCondition():
                    pod = self.objects["Pod", f"{op.namespace}/{op.name}"]
                    condition = {"type": "PodScheduled", "status": "False"}
                    _set_condition(pod, {**condition, "reason": op.reason, "message": op.message}, self.now)
                    if op.nominated_node:
                        pod["status"]["nominatedNodeName"] = op.nominated_node
                    changed["Pod", f"{op.namespace}/{op.name}"] = pod
                case plan.PodGroupStatus():
                    group = self.objects["PodGroup", f"{op.namespace}/{op.name}"]
                    group["status"] = op.status
                    changed["PodGroup", f"{op.namespace}/{op.name}"] = group
                case plan.NativeGroupStatus():
                    group = self.objects[op.kind, f"{op.namespace}/{op.name}"]
                    set_conditions(group, op.conditions)
                    changed[op.kind, f"{op.namespace}/{op.name}"] = group
                case plan.QueueStatus():
                    queue = self.objects["Queue", op.name]
                    queue.setdefault("status", {})["allocated"] = op.allocated
                    changed["Queue", op.name] = queue
        leaving = [self.objects[entry] for entry in gone if entry in self.objects]
        for claim in release_claims(self.objects, leaving, self.drop):
            changed["ResourceClaim", claim["metadata"]["namespace"] + "/" + claim["metadata"]["name"]] = claim
        for kind, key in gone:
            changed.pop((kind, key), None)
            self.drop(kind, key)
        for manifest in changed.values():
            self.put(manifest)
        self.now += PERIOD
        if self.recreates:
            for pod in leaving:
                self.put(recreated(pod, self.now))

    def _is_to_start(self, pod: Manifest) -> bool:
        """Whether the pod is Pending on a node that exists."""
        node, status = (pod.get("spec") or {}).get("nodeName"), pod.get("status") or {}
        return status.get("phase") == "Pending" and ("Node", node) in self.objects


def recreated(pod: Manifest, now: float) -> Manifest:
    """The pod that a controller creates in the place of an evicted one: pending, and without what was written to it."""
    made: Manifest = copied(pod)
    metadata, spec = made["metadata"], made["spec"]
    number = int(metadata.get("generation") or 0) + 1
    metadata |= {"uid": f"{str(metadata.get('uid', '')).partition('~')[0]}~{number}", "generation": number}
    metadata["creationTimestamp"] = format_time(now)
    metadata.pop("deletionTimestamp", None)
    spec.pop("nodeName", None)
    made["status"] = {"phase": "Pending"}
    return made


def _as_it_is(manifest: Manifest) -> Manifest:
    """Missing fields stay empty, even if an API server has a default; only the namespace is set."""
    if model_kind(manifest) == "PodGroup" and isinstance(manifest.setdefault("spec", {}), dict):
        manifest["spec"].setdefault("queue", "")
    return in_namespace(manifest)


def set_conditions(group: Manifest, new: list[dict[str, str]]) -> None:
    """Set conditions of a native PodGroup; conditions of other types are kept."""
    status = group.setdefault("status", {})
    types = {condition["type"] for condition in new}
    status["conditions"] = [*(c for c in status.get("conditions") or () if c["type"] not in types), *new]


def _set_condition(pod: Manifest, condition: Manifest, now: float) -> None:
    conditions = pod["status"].setdefault("conditions", [])
    old = next((c for c in conditions if c["type"] == condition["type"]), None)
    moved = old is None or old.get("status") != condition["status"]
    stamp = format_time(now) if moved or old is None else old.get("lastTransitionTime", format_time(now))
    new = {**condition, "lastTransitionTime": stamp}
    if old is None:
        conditions.append(new)
    else:
        old.clear()
        old.update(new)


def result_of(report: CycleReport, emitted: list[plan.Operation]) -> CycleResult:
    """The decisions, and the objects after they were written."""
    model = report.session.cluster
    of = model.native_groups
    native = {uid_of(kind, key): of.get(kind, key) for kind in NATIVE_KINDS for key in of.keys(kind)}
    groups = {uid: j.pod_group for uid, j in sorted(model.jobs.items()) if j.pod_group is not None and not j.shadow}
    return CycleResult(
        bound={f"{o.namespace}/{o.name}": o.node for o in emitted if isinstance(o, plan.Bind)},
        pipelined=report.pipelined(),
        evicted=[f"{o.namespace}/{o.name}" for o in emitted if isinstance(o, plan.Evict)],
        phases={uid: g.status.phase for uid, g in groups.items()},
        conditions={
            uid: [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in conditions]
            for uid, g in (groups | native).items()
            if g is not None and (conditions := g.status.conditions)
        },
        allocated={
            name: {resource: str(amount) for resource, amount in (q.object.status.allocated or {}).items()}
            for name, q in sorted(model.queues.items())
        },
        waiting=waiting(report),
        devices={
            f"{o.namespace}/{o.name}": changed
            for o in emitted
            if isinstance(o, plan.Bind) and (changed := _changed(model, o))
        },
        faults=[
            f"{f.plugin}.{f.point} {f.subject}{f' and {count - 1} more' if count > 1 else ''}: {f.text}"
            for f, count in once_each(report.faults)
        ],
    )


def _changed(model: Cluster, bind: plan.Bind) -> dict[str, str]:
    """The annotations that a binding adds to its pod or changes."""
    task = model.tasks.get(f"{bind.namespace}/{bind.name}")
    old = (task.pod.metadata.annotations or {}) if task is not None else {}
    return {key: value for key, value in (bind.annotations or {}).items() if old.get(key) != value}


def waiting(report: CycleReport) -> dict[str, str]:
    """Why jobs are pending, by job."""
    session = report.session
    found: dict[str, str] = {}
    for job in session.jobs.values():
        if job.is_pending():
            events = session.notes.get(("PodGroup", job.uid), ())
            messages = [e.message for e in events if e.type == "Normal" and e.reason == "Unschedulable"]
            found[job.uid] = messages[0] if messages else "not admitted to its queue"
        elif session.pending(job):
            invalid = session.states.job_valid(job)
            found[job.uid] = invalid.message if invalid is not None else job_message(session, job)
    found |= {job.uid: f"queue {job.queue} does not exist" for job in session.jobs_without_queue}
    return found


def _latest(manifests: Iterable[Manifest]) -> float:
    """The time of the newest object, which depends only on the input. Times that cannot be parsed are skipped;
    their objects are rejected when they are put."""
    latest = 0.0
    for m in manifests:
        metadata = m.get("metadata")
        stamp = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
        with suppress(ValueError):
            latest = max(latest, parse_time(str(stamp)) if stamp else 0.0)
    return latest
