"""Ledgers of volumes and devices under random histories: nothing is assigned twice, and nothing is kept forever.

The dispatcher's machine executes the binds of real cycles; every pre-bind step may fail, as may any bind, and
leadership and pods may be lost in between. `LEDGER_HISTORIES` is the number of histories of a normal run; the slow test
has 5,000 short ones.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest

from volcano_py.api import dra
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.dispatch.machine import Failure, Machine
from volcano_py.scheduler.dispatch.messages import Result, Revoke
from volcano_py.scheduler.dispatch.pre_bind.barriers import StepWrite
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.jobs.pre_bind import (
    LOCK_EXPIRES,
    AllocateClaim,
    AwaitDevices,
    AwaitVolume,
    BindVolume,
    LockNode,
    PreBindStep,
    SelectNode,
)
from volcano_py.scheduler.model.plan import Bind, Operation
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

HISTORIES = int(os.environ.get("LEDGER_HISTORIES", "40"))
SHORT = 5000
FAILURES = (
    Failure("rejected", "no"),
    Failure("busy", "internal error"),
    Failure("unreachable", "no answer in time"),
    Failure("not-yet", "no volume yet", sent=False),
)
SHARED = {"deviceshare": {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True}}
CONF = load(
    configuration({"actions": "enqueue, allocate", "plugins": [["gang"], [SHARED, "predicates"]]}), REGISTRY.actions
)
LOCK, IDS, MEMORY = "hamivgpu", "volcano.sh/vgpu-ids-new", 16384
LOCAL = {"kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner"}
GPU = "example.com/gpu"
MADE = {"kind": "StorageClass", "provisioner": "csi.example.com"}


def described(rng: random.Random, most: int = 4) -> list[dict[str, Any]]:
    """Gangs with claims for local disks, for provisioned volumes, and for devices, some of them shared, and with parts
    of cards. `most`: nodes and jobs."""
    nodes = {f"n{i}": {"cpu": rng.randint(2, 6), **_cards(rng)} for i in range(rng.randint(1, most))}
    objects: list[dict[str, Any]] = [
        {**LOCAL, "metadata": {"name": "local"}, "volumeBindingMode": "WaitForFirstConsumer"},
        {**MADE, "metadata": {"name": "made"}, "volumeBindingMode": "WaitForFirstConsumer"},
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}},
    ]
    for node in nodes:
        for i in range(rng.randint(0, 3)):
            objects.append(_disk(f"{node}-disk-{i}", node))
        devices = [_device(f"d{i}", rng.random() < 0.3) for i in range(rng.randint(0, 3))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
        objects.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
    jobs: dict[str, Any] = {}
    for number in range(rng.randint(1, most + 1)):
        size = rng.randint(1, 3)
        tasks: dict[str, Any] = {}
        for i in range(size):
            name = f"j{number}" if rng.random() < 0.3 else f"j{number}-{i}"
            spec: dict[str, Any] = {}
            if rng.random() < 0.7:
                claim = f"pvc-{name}"
                spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
                wanted = {"storageClassName": rng.choice(("local", "made")), "accessModes": ["ReadWriteOnce"]}
                objects.append({"kind": "PersistentVolumeClaim", "metadata": {"name": claim}, "spec": wanted})
            if rng.random() < 0.6:
                spec["resourceClaims"] = [{"name": "c", "resourceClaimName": f"claim-{name}"}]
                request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": rng.randint(1, 2)}}
                devices_of = {"devices": {"requests": [request]}}
                objects.append({"kind": "ResourceClaim", "metadata": {"name": f"claim-{name}"}, "spec": devices_of})
            extended = {GPU: rng.randint(1, 2)} if rng.random() < 0.45 else {}
            part = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1000 * rng.randint(2, 9)}
            limits = {"limits": part} if rng.random() < 0.4 else {}
            tasks[f"t{i}"] = {"pods": 1, "cpu": 1, **extended, **limits, "spec": spec}
        jobs[f"g{number}"] = {"min": size, "tasks": tasks}
    return manifests({"nodes": nodes, "jobs": jobs, "objects": objects})


def _cards(rng: random.Random) -> dict[str, Any]:
    """Cards of a node that pods share."""
    count = rng.randint(0, 2)
    if not count:
        return {}
    register = "".join(f"GPU-{i},10,{MEMORY},NVIDIA-T4,true,hami-core:" for i in range(count))
    amounts = {"number": 10 * count, "memory": MEMORY * count, "cores": 100 * count}
    annotations = {"volcano.sh/node-vgpu-register": register}
    return {**{f"volcano.sh/vgpu-{name}": amount for name, amount in amounts.items()}, "annotations": annotations}


def _device(name: str, later: bool) -> dict[str, Any]:
    """`later`: it is ready only some time after its allocation."""
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]} if later else {}
    return {"name": name, **conditions}


def _disk(name: str, node: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {
        "storageClassName": "local",
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


class History:
    """A simulated API server behind the dispatcher's machine."""

    def __init__(self, seed: int, failing: int = 8, settling: int = 4, most: int = 4, odds: float = 0.15) -> None:
        self.odds = odds
        self.cycles = (failing, settling)
        self.most = most
        self.failed: Counter[str] = Counter()
        """The steps and binds that failed or whose outcome was unknown."""
        self.rng = random.Random(seed)
        self.world = self.described_cluster()
        self.machine = Machine(max_in_flight=4, jitter=lambda: 0.5)
        self.machine.lead(True, 0.0)
        self.now = 0.0
        self.next_id = 1
        self.open: dict[int, Operation] = {}
        self.failing = True

    def described_cluster(self) -> Simulation:
        return Simulation(described(self.rng, self.most), now=1000.0)

    def run(self) -> None:
        for _ in range(self.cycles[0]):
            self.step()
        # What a rejected write holds must be released: without failures everything that fits is placed.
        # A lock whose undo was rejected expires.
        self.failing = False
        self.world.now += LOCK_EXPIRES
        for _ in range(self.cycles[1] if self.failed or self.cycles[0] > 1 else 0):
            self.step()
        self.check(settled=True)

    def step(self) -> None:
        emitted: list[list[Operation]] = []
        run_once(self.world.cluster, CONF, self.world.now, emit=lambda ops: emitted.append(list(ops)))
        for operations in emitted:
            self.send(operations)
        self.check()
        if self.failing and self.rng.random() < 0.1:
            self.machine.lead(False, self.now)
        self.carry_out()
        self.machine.lead(True, self.now)
        self.world.now += 1
        if self.failing and self.rng.random() < 0.2:
            self.end_a_pod()
        self.check()

    def send(self, operations: list[Operation]) -> None:
        self.machine.plan(self.next_id, operations, self.now)
        self.open.update(enumerate(operations, self.next_id))
        self.next_id += len(operations)

    def carry_out(self) -> None:
        """Execute all pending writes; each may fail."""
        for _ in range(2000):
            items = list(self.machine.take(self.now))
            self.rng.shuffle(items)
            for item in items:
                failure = self.rng.choice(FAILURES) if self.failing and self.rng.random() < self.odds else None
                op = item.op
                if failure is not None and failure.kind == "not-yet" and not _waits(op):
                    failure = None
                if failure is None and not self.write(op):
                    failure = FAILURES[0]
                if failure is None:
                    self.machine.done(item, self.now)
                else:
                    if isinstance(op, StepWrite):
                        self.failed[f"{'undo ' * op.undo}{_kind(op.step)}"] += 1
                    elif isinstance(op, Bind):
                        self.failed["Bind"] += 1
                    if failure.sent and failure.kind != "rejected" and self.rng.random() < 0.5:
                        self.write(op)
                    self.machine.failed(item, failure, self.now)
            if not items and not self.machine.backlog:
                break
            self.now += 1.0
        results = self.machine.results()
        ended = [(self.open.pop(result.id), result) for result in results]
        assert not self.open and not self.machine.backlog
        for op, result in ended:
            self.handle(op, result)

    def handle(self, op: Operation, result: Result) -> None:
        if result.outcome not in ("done", "superseded"):
            self.world.cluster.forget(op)
            self.refresh(op)

    def refresh(self, op: Operation) -> None:
        if isinstance(op, Bind):
            pod = self.world.objects.get(("Pod", f"{op.namespace}/{op.name}"))
            if pod is not None:
                self.world.put(pod)

    def write(self, op: Any) -> bool:
        """The effect of a write on the API server and its controllers; False: it is rejected."""
        if isinstance(op, StepWrite):
            return self.undo(op) if op.undo else self.carry_out_step(op)
        if isinstance(op, Bind):
            self.world.react([op])
            for step in op.steps:
                if isinstance(step, LockNode):  # the device plugin assigns the devices
                    self.lock(step, None)
        return True

    def lock(self, step: LockNode, time: str | None) -> None:
        """Write a node's lock, or remove it."""
        node = self.world.objects["Node", step.node]
        annotations = node["metadata"].setdefault("annotations", {})
        annotations.pop(step.lock, None)
        if time:
            annotations[step.lock] = time
        self.world.put(node)

    def lock_of(self, step: LockNode) -> str:
        """The lock of a node, unless it has expired."""
        found = _annotations(self.world.objects["Node", step.node]).get(step.lock, "")
        return found if found and self.world.now - parse_time(found) < LOCK_EXPIRES else ""

    def carry_out_step(self, write: StepWrite) -> bool:
        from volcano_py.simulate.pre_bind import ClaimWrites

        if isinstance(write.step, LockNode):
            held = self.lock_of(write.step)
            if held in ("", write.step.time):
                self.lock(write.step, write.step.time)
            return held in ("", write.step.time)
        alone = Bind("", "", write.bind.uid, write.bind.node, "", None, (write.step,))
        return not ClaimWrites(self.world.objects, self.world.put, self.world.drop).carry_out([alone])

    def undo(self, write: StepWrite) -> bool:
        objects, step = self.world.objects, write.step
        if isinstance(step, AllocateClaim) and step.extended is not None:
            self.world.drop("ResourceClaim", f"{step.namespace}/{step.claim}")
        elif isinstance(step, AllocateClaim):
            claim = objects.get(("ResourceClaim", f"{step.namespace}/{step.claim}"))
            status = (claim or {}).get("status") or {}
            reserved = status.get("reservedFor") or []
            left = [c for c in reserved if c["uid"] != step.pod_uid]
            if claim is not None and len(left) != len(reserved):
                status["reservedFor"] = left
                if not left:
                    status.pop("allocation", None)
                self.world.put(claim)
        if isinstance(step, LockNode) and self.lock_of(step) == step.time:
            self.lock(step, None)
        # Volumes that are already bound stay bound, as with the real writes.
        return True

    def end_a_pod(self) -> None:
        pods = [key for (kind, key) in self.world.objects if kind == "Pod"]
        if pods:
            key = self.rng.choice(sorted(pods))
            self.machine.revoke(Revoke("Pod", key), self.now)
            from volcano_py.simulate.pre_bind import release_claims

            pod = self.world.objects["Pod", key]
            for claim in release_claims(self.world.objects, [pod], self.world.drop):
                self.world.put(claim)
            self.world.drop("Pod", key)

    # ---- the ledgers ------------------------------------------------------------------------------------------

    def check(self, settled: bool = False) -> None:
        claims = self.world.cluster.claims
        objects = self.world.objects
        volumes = Counter(o["spec"].get("volumeName") for (kind, _), o in objects.items() if _is_bound(kind, o))
        assert max(volumes.values(), default=0) <= 1, f"a volume has two claims: {volumes}"
        devices = Counter(
            dra.device_id(result)
            for (kind, _), o in objects.items()
            if kind == "ResourceClaim"
            for result in dra.results((o.get("status") or {}).get("allocation"))
        )
        assert max(devices.values(), default=0) <= 1, f"a device is assigned twice: {devices}"
        assumed = Counter(device for device, users in claims.resource_claims.used().items() for _ in users)
        assert max(assumed.values(), default=0) <= 1, f"a device is assumed twice: {assumed}"
        taken = [v for v, steps in claims.storage.volume_taken.items() if len({s.claim for s in steps.values()}) > 1]
        assert not taken, f"a volume is assumed twice: {taken}"
        cards: Counter[tuple[str, str]] = Counter()
        for (kind, _), pod in objects.items():
            if kind == "Pod" and pod["spec"].get("nodeName"):
                self.check_pod(pod)
                for record in filter(None, pod["metadata"].get("annotations", {}).get(IDS, "").split(":")):
                    card, _, memory, _ = record.split(",")
                    cards[pod["spec"]["nodeName"], card] += int(memory)
        assert max(cards.values(), default=0) <= MEMORY, f"a card has more than its memory: {cards}"
        if settled:
            assert not claims.storage.volume_taken and not claims.storage.node_selected
            assert not claims.resource_claims.assumed
            locks = [_annotations(o).get(LOCK) for (kind, _), o in objects.items() if kind == "Node"]
            locked = [lock for lock in locks if lock and self.world.now - parse_time(lock) < LOCK_EXPIRES]
            assert not locked, f"nodes stay locked: {locked}"
            for (kind, key), claim in objects.items():
                status = claim.get("status") or {}
                if kind == "ResourceClaim" and status.get("allocation"):
                    assert status.get("reservedFor"), f"{key} keeps its devices without a pod"
                # A claim whose undo was rejected, or whose bind may have succeeded, stays until its pod is tried again.
                owned = kind == "ResourceClaim" and claim["metadata"].get("ownerReferences")
                if owned and not (self.failed["undo created"] or self.failed["Bind"]):
                    pod = objects.get(("Pod", f"default/{claim['metadata']['ownerReferences'][0]['name']}"))
                    assert pod is not None and pod["spec"].get("nodeName"), f"{key} is left behind"

    def check_pod(self, pod: dict[str, Any]) -> None:
        """A bound pod has everything that it claims."""
        for volume in pod["spec"].get("volumes") or ():
            claim = self.world.objects[
                "PersistentVolumeClaim", f"default/{volume['persistentVolumeClaim']['claimName']}"
            ]
            assert claim["spec"].get("volumeName"), f"{pod['metadata']['name']} is bound without its volume"
        for row in pod["spec"].get("resourceClaims") or ():
            status = self.world.objects["ResourceClaim", f"default/{row['resourceClaimName']}"].get("status") or {}
            uids = [c["uid"] for c in status.get("reservedFor") or ()]
            assert status.get("allocation") and pod["metadata"]["uid"] in uids
        if "volcano.sh/vgpu-number" in pod["spec"]["containers"][0].get("resources", {}).get("limits", {}):
            assert pod["metadata"]["annotations"][IDS], "it is bound without a card"
        wanted = int(pod["spec"]["containers"][0].get("resources", {}).get("requests", {}).get(GPU, 0))
        if wanted:
            stated = pod["status"]["extendedResourceClaimStatus"]
            status = self.world.objects["ResourceClaim", f"default/{stated['resourceClaimName']}"]["status"]
            assert len(dra.results(status["allocation"])) == wanted, "it has another number of devices"
            assert [c["uid"] for c in status["reservedFor"]] == [pod["metadata"]["uid"]]


def _waits(op: Any) -> bool:
    return isinstance(op, StepWrite) and isinstance(op.step, AwaitVolume | AwaitDevices) and not op.undo


def _is_bound(kind: str, obj: dict[str, Any]) -> bool:
    return kind == "PersistentVolumeClaim" and bool(obj["spec"].get("volumeName"))


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


@pytest.mark.parametrize("block", range(2))
def test_nothing_is_assigned_twice_or_kept_forever(block: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(block, HISTORIES, 2):
        history = History(seed)
        plan = history.machine.plan

        def counting(first: int, operations: Any, now: float, plan: Any = plan) -> None:
            kinds.update(_kind(s) for o in operations if isinstance(o, Bind) for s in o.steps)
            plan(first, operations, now)

        history.machine.plan = counting  # type: ignore[method-assign]
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
    steps = (SelectNode, BindVolume, AwaitVolume, AllocateClaim, AwaitDevices, LockNode)
    assert {c.__name__ for c in steps} | {"created"} <= set(kinds)


def _kind(step: PreBindStep) -> str:
    created = isinstance(step, AllocateClaim) and step.extended is not None
    return "created" if created else type(step).__name__


@pytest.mark.slow
def test_short_histories() -> None:
    """5,000 histories in about a minute of CPU time."""
    failed: Counter[str] = Counter()
    for seed in range(SHORT):
        history = History(SHORT + seed, failing=1, settling=1, most=2, odds=0.2)
        try:
            history.run()
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        failed += history.failed
    print(f"{SHORT} histories; failures: {dict(sorted(failed.items()))}")
    steps = {c.__name__ for c in (SelectNode, BindVolume, AwaitVolume, AllocateClaim, AwaitDevices, LockNode)}
    assert steps | {"created", "undo AllocateClaim", "undo LockNode", "undo created"} <= set(failed)
