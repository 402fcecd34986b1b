"""`simulate profiles`: profiles of KubeSchedulerConfiguration on a described cluster, in virtual time.

Second 0 is later than all times in the manifests. At second 0 and at each step objects change. Then the pods are
scheduled, one per millisecond, until none is left. The same happens at every whole second.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from volcano_py.api import core, gang
from volcano_py.api.codec import from_manifest
from volcano_py.api.gang import POD_GROUP_INITIALLY_SCHEDULED as INITIALLY
from volcano_py.api.meta import format_time, parse_time
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.claims.pod_claims import KINDS as CLAIM_KINDS
from volcano_py.scheduler.profiles.cluster_events import (
    BindEnded,
    ClaimObjectChanged,
    ClusterChange,
    CompositeChanged,
    GroupChanged,
    NodeChanged,
    ObjectChanged,
    PodChanged,
)
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, features_of, load
from volcano_py.scheduler.profiles.decisions import (
    BindPod,
    Decision,
    EvictPod,
    Fail,
    GroupCondition,
    Nominate,
    Patch,
    ReportEvent,
)
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugins.default_preemption import BY_SCHEDULER
from volcano_py.scheduler.profiles.registry import REGISTRY, Registry
from volcano_py.scheduler.profiles.release import DEFAULT, release_of
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.simulate.case_lines import run_cases
from volcano_py.simulate.manifests import STRUCTS, Manifest, ManifestError, in_namespace
from volcano_py.simulate.pre_bind import ClaimWrites, Objects, release_claims
from volcano_py.simulate.volumes import complete_volume

Path = tuple[str, str]
"""Kind and key of an object."""
_ATTEMPT = 0.001
_GRACE = 30
"""Seconds; the default of `terminationGracePeriodSeconds`."""
_OTHERS: dict[str, type[Any]] = {
    "Namespace": core.Namespace,
    "Service": core.Service,
    "PodDisruptionBudget": core.PodDisruptionBudget,
    "ReplicaSet": core.ReplicaSet,
    "StatefulSet": core.StatefulSet,
    "ReplicationController": core.ReplicationController,
}
"""Kinds that rules read."""


class Step(msgspec.Struct):
    at: int
    apply: list[dict[str, Any]] = []
    delete: list[str] = []


class Scenario(msgspec.Struct, rename="camel"):
    config: dict[str, Any] = {}
    feature_gates: dict[str, bool] | None = None
    objects: list[dict[str, Any]] = []
    steps: list[Step] = []
    until: int = 0
    kubernetes: str = DEFAULT.name
    """The version whose rules hold."""


def run_lines(lines: Iterable[str | bytes], registry: Registry = REGISTRY, kubernetes: str = "") -> Iterator[bytes]:
    """Run every scenario; an invalid one yields its id and the error, and the others run.

    `kubernetes`: the version of Kubernetes, whatever the scenarios contain; empty: theirs.
    """

    def of_line(case: dict[str, Any]) -> dict[str, Any]:
        if kubernetes:
            case["kubernetes"] = kubernetes
        return {"steps": run(msgspec.convert(case, Scenario), registry)}

    return run_cases(lines, "scenario", of_line, ProfilesConfigurationError)


def run(scenario: Scenario, registry: Registry = REGISTRY) -> list[dict[str, Any]]:
    """The outcomes after second 0, after each step, and at `until`. Raises ConfigurationError, ManifestError."""
    try:
        release = release_of(scenario.kubernetes)
    except ValueError as e:
        raise ManifestError(str(e)) from None
    features = features_of(scenario.feature_gates or {}, release)
    world = _World(PodScheduler(load(scenario.config, features, registry, release), features), scenario.objects)
    world.change(scenario.objects, ())
    world.settle()
    outcomes = [world.outcome()]
    for step in scenario.steps:
        world.run_to(step.at)
        world.change(step.apply, step.delete)
        world.settle()
        outcomes.append(world.outcome())
    world.run_to(scenario.until + 1)
    outcomes.append(world.outcome())
    return outcomes


class _World:
    """Simulates the API server and the kubelets of a scenario."""

    def __init__(self, scheduler: PodScheduler, objects: list[Manifest]) -> None:
        self._scheduler = scheduler
        times = [_time(o) for o in objects]
        times += [parse_time(s) for o in objects if (s := (o.get("status") or {}).get("startTime"))]
        self._epoch = float(int(max(times, default=0.0))) + 3600
        """Second 0, in seconds since the epoch."""
        self._second = 0
        self._now = 0.0
        self._objects: Objects = {}
        self._writes = ClaimWrites(self._objects, self._put, lambda kind, key: self._delete((kind, key)))
        self._pods: dict[str, PodInfo] = {}
        self._ends: dict[Path, int] = {}
        """Pod to the second in which its grace period ends; it is deleted some milliseconds later."""
        self._bound: dict[str, str] = {}
        self._evicted: dict[str, None] = {}

    def change(self, apply: list[Manifest], delete: Iterable[str]) -> None:
        """Apply the changes of a step, in the order in which the scheduler receives them."""
        for text in delete:
            kind, _, key = text.partition("/")
            self._delete((kind, key))
        merged = []
        for manifest in apply:
            path = _path(manifest)
            old = self._objects.get(path)
            new = merge_patch(old or {}, manifest)
            new["metadata"].setdefault("uid", "/".join(path))
            complete_volume(new)
            merged.append((path, old, new))
        others = [m for m in merged if m[2]["kind"] != "Pod"]
        changed = [m for m in merged if m[2]["kind"] == "Pod" and m[1] is not None]
        created = sorted((m for m in merged if m[2]["kind"] == "Pod" and m[1] is None), key=lambda m: _time(m[2]))
        for path, _, new in [*others, *changed]:
            self._store(path, new)
        last = None
        for path, _, new in created:
            moment = _time(new)
            if last is not None and moment != last:
                self._now += _ATTEMPT
            last = moment
            self._store(path, new)

    def settle(self) -> None:
        """Schedule pods until none is left."""
        while (decisions := self._scheduler.attempt(self._now)) is not None:
            for decision in decisions:
                self._carry_out(decision)
            self._now += _ATTEMPT

    def run_to(self, second: int) -> None:
        """Run all seconds before `second`, and the start of `second`."""
        while self._second < second:
            self._second += 1
            self._now = float(self._second)
            for path in [p for p, end in self._ends.items() if end < self._second]:
                self._delete(path)
            for decision in self._scheduler.tick(self._now):
                self._carry_out(decision)
            if self._second < second:
                self.settle()

    def outcome(self) -> dict[str, Any]:
        waiting = {k: p.pod for k, p in self._pods.items() if not p.node}
        rejected = {}
        for key, pod in waiting.items():
            for c in pod.status.conditions or ():
                if c.type == "PodScheduled" and c.status == "False":
                    rejected[key] = c.message
        nominated = {k: p.status.nominated_node_name for k, p in waiting.items() if p.status.nominated_node_name}
        return {
            "bound": dict(self._bound),
            "order": list(self._bound),
            "deleted": list(self._evicted),
            "nominated": nominated,
            "unschedulable": list(rejected),
            "reason": rejected,
        }

    def _carry_out(self, decision: Decision) -> None:
        if isinstance(decision, ReportEvent):
            return
        if isinstance(decision, GroupCondition):
            self._group_condition(decision)
            return
        if isinstance(decision, Patch):
            self._patch(decision)
            return
        path = ("Pod", decision.pod.key)
        if path not in self._objects:
            return
        if isinstance(decision, BindPod) and decision.steps and not self._write(decision):
            return
        pod = copy.deepcopy(self._objects[path])
        status = pod.setdefault("status", {})
        match decision:
            case BindPod(_, node):
                pod["spec"]["nodeName"] = node
                status.pop("nominatedNodeName", None)
                status |= {"phase": "Running", "startTime": format_time(self._epoch + self._second)}
                _condition(status, "PodScheduled", "True")
                self._bound[decision.pod.key] = node
            case Fail(_, message, reason):
                _condition(status, "PodScheduled", "False", reason, message)
            case Nominate(_, node):
                status["nominatedNodeName"] = node
            case EvictPod():
                self._evicted[decision.pod.key] = None
                grace = pod["spec"].get("terminationGracePeriodSeconds", _GRACE)
                if not grace:
                    self._delete(path)
                    return
                _condition(status, "DisruptionTarget", "True", BY_SCHEDULER)
                pod["metadata"]["deletionTimestamp"] = format_time(self._epoch + self._second + grace)
                self._ends[path] = self._second + grace
        self._store(path, pod)

    def _write(self, bind: BindPod) -> bool:
        """Execute the pre-bind steps; returns whether the pod can be bound."""
        key, uid = bind.pod.key, bind.pod.pod.metadata.uid
        operation = plan.Bind(bind.pod.namespace, bind.pod.name, uid, bind.node, "", steps=bind.steps)
        why = self._writes.carry_out([operation]).get(uid, "")
        for decision in self._scheduler.handle(BindEnded(key, why, uid), self._now):
            self._carry_out(decision)
        return not why

    def _patch(self, decision: Patch) -> None:
        path = (decision.kind.kind, decision.key)
        if path in self._objects:
            self._store(path, merge_patch(self._objects[path], decision.patch))

    def _group_condition(self, decision: GroupCondition) -> None:
        path = ("PodGroup", decision.group.key)
        if path not in self._objects:
            return
        group = copy.deepcopy(self._objects[path])
        status = group.setdefault("status", {})
        known = {c["type"]: c for c in status.get("conditions") or ()}
        if known.get(INITIALLY, {}).get("status") != "True":
            _condition(status, INITIALLY, str(decision.ok), decision.reason, decision.message)
            self._store(path, group)

    def _handle(self, event: ClusterChange) -> None:
        self._scheduler.handle(event, self._now)

    def _put(self, manifest: Manifest) -> None:
        self._store(_path(manifest), manifest)

    def _store(self, path: Path, manifest: Manifest) -> None:
        self._objects[path] = manifest
        match manifest["kind"]:
            case _ if ObjectKind.of(manifest) in self._scheduler.reads:
                self._handle(ObjectChanged(manifest))
            case "Pod":
                pod = PodInfo(_read(core.Pod, manifest))
                old = self._pods.get(pod.key)
                self._pods[pod.key] = pod
                self._handle(PodChanged(old, pod))
            case "Node":
                self._handle(NodeChanged(None, _read(core.Node, manifest)))
            case "PodGroup":
                self._handle(GroupChanged(path[1], _read(gang.PodGroup, manifest)))
            case "CompositePodGroup":
                self._handle(CompositeChanged(path[1], _read(gang.CompositePodGroup, manifest)))
            case kind if kind in CLAIM_KINDS:
                self._handle(ClaimObjectChanged(kind, None, _read(STRUCTS[kind], manifest)))
            case kind if kind in _OTHERS:
                self._scheduler.cluster.model.upsert(kind, _read(_OTHERS[kind], manifest))

    def _delete(self, path: Path) -> None:
        gone = self._objects.pop(path, None)
        if gone is None:
            return
        self._ends.pop(path, None)
        kind, key = path
        match kind:
            case _ if ObjectKind.of(gone) in self._scheduler.reads:
                self._handle(ObjectChanged(gone, deleted=True))
            case "Pod":
                self._handle(PodChanged(self._pods.pop(key), None))
                for claim in release_claims(self._objects, [gone], lambda kind, key: self._delete((kind, key))):
                    self._put(claim)
            case "Node":
                self._handle(NodeChanged(_read(core.Node, gone), None))
            case "PodGroup":
                self._handle(GroupChanged(key, None))
            case "CompositePodGroup":
                self._handle(CompositeChanged(key, None))
            case _ if kind in CLAIM_KINDS:
                self._handle(ClaimObjectChanged(kind, _read(STRUCTS[kind], gone), None))
            case _:
                namespace, _, name = key.rpartition("/")
                self._scheduler.cluster.model.remove(kind, namespace, name)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: the target with the patch applied; null deletes."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _condition(status: Manifest, type_: str, value: str, reason: str = "", message: str = "") -> None:
    others = [c for c in status.get("conditions") or () if c.get("type") != type_]
    status["conditions"] = [*others, {"type": type_, "status": value, "reason": reason, "message": message}]


def _path(manifest: Manifest) -> Path:
    """Kind and key: `Pod` and `default/a`, `Node` and `n0`. Raises ManifestError."""
    metadata = manifest.get("metadata")
    if not isinstance(manifest.get("kind"), str) or not isinstance(metadata, dict) or not metadata.get("name"):
        raise ManifestError("an object has no kind or no metadata.name")
    in_namespace(manifest)
    space = metadata.get("namespace")
    return manifest["kind"], f"{space}/{metadata['name']}" if space else str(metadata["name"])


def _time(manifest: Manifest) -> float:
    text = (manifest.get("metadata") or {}).get("creationTimestamp")
    return parse_time(text) if text else 0.0


def _read(type_: type[Any], manifest: Manifest) -> Any:
    try:
        return from_manifest(type_, manifest)
    except (TypeError, ValueError) as e:
        raise ManifestError(f"{manifest['kind']} {manifest['metadata']['name']}: {e}") from None
