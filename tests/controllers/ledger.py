"""One job, its pods and its PodGroup in plain dictionaries: the instructions of the job reconciler run immediately.

The same events come of it that informers would give, in the same order. No clock, no network.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from volcano_py.api import bus, kinds
from volcano_py.api.batch import Job, JobStatus
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.instructions import (
    Again,
    Create,
    Delete,
    Emit,
    Ensure,
    Instruction,
    Patch,
    Together,
    UpdateStatus,
)
from volcano_py.controllers.job import events
from volcano_py.controllers.job.observed import Observed, task_of
from volcano_py.controllers.job.reconcile import reconcile
from volcano_py.controllers.job.request import Decision, Request, decide

Manifest = dict[str, Any]
MOST_STEPS = 400
"""Requests worked off in a row; a job that asks for more goes round in circles."""


class Ledger:
    """The state of the cluster, as far as one job is concerned."""

    def __init__(self, job: Manifest) -> None:
        self.job = from_manifest(Job, copy.deepcopy(job))
        self.job.metadata.uid = "job-uid"
        self.pods: dict[str, Manifest] = {}
        self.group: Manifest | None = None
        self.others: set[tuple[str, str]] = set()
        """What plugins made: (plural, name)."""
        self.waiting: list[Request] = []
        """Delayed actions."""
        self.now = 1_800_000_000.0
        self.visited: set[tuple[str, str]] = set()
        """(phase, what happened) of every request that was worked off."""
        self._requests: list[Request] = [Request(bus.OUT_OF_SYNC)]
        self._made = 0

    # -- the controller

    def settle(self) -> None:
        """Work off what has happened, and what happens because of that."""
        for _ in range(MOST_STEPS):
            if not self._requests:
                return
            request = self._requests.pop(0)
            decision = decide(self.job, request)
            if request.event == bus.COMMAND_ISSUED:
                self.visited.add((self.phase, f"command {request.action}"))
            elif not request.action:  # else it is an event that happened earlier
                self.visited.add((self.phase, request.event))
            if decision.delay:
                self.waiting.append(msgspec.structs.replace(request, action=decision.action))
                continue
            self.carry_out(reconcile(self._observed(), request, decision))
        raise AssertionError(f"no end in sight: {self.describe()}")

    def do(self, decision: Decision) -> None:
        self.carry_out(reconcile(self._observed(), Request(), decision))

    def ask(self, request: Request) -> None:
        self._requests.append(request)
        self.settle()

    def _observed(self) -> Observed:
        group = from_manifest(PodGroup, self.group) if self.group else None
        return Observed(job=self.job, pods=self.known_pods(), podgroup=group, queue=Queue(), now=self.now)

    def known_pods(self) -> list[Pod]:
        return [from_manifest(Pod, pod) for pod in self.pods.values()]

    def pods_of(self, task: str, phase: str) -> list[Pod]:
        return [pod for pod in self.known_pods() if task_of(pod) == task and pod.status.phase == phase]

    def carry_out(self, instructions: list[Instruction]) -> None:
        for one in instructions:
            match one:
                case Together(instructions=inner):
                    self.carry_out(list(inner))
                case Create(rt=kinds.POD, obj=obj):
                    self._create_pod(obj)
                case Create(rt=kinds.PODGROUP, obj=obj):
                    self.group = self.group or {**copy.deepcopy(obj), "status": {"phase": "Pending"}}
                case Create(rt=rt, obj=obj) | Ensure(rt=rt, obj=obj):
                    self.others.add((rt.plural, obj["metadata"]["name"]))
                case UpdateStatus(status=status):
                    self._write_status(status)
                case Patch(rt=kinds.POD, name=name, body=body):
                    if name in self.pods:
                        self._change_pod(name, body)
                case Patch(rt=kinds.PODGROUP, body=body):
                    assert self.group is not None
                    self.group["spec"] = {**self.group["spec"], **body["spec"]}
                case Delete(rt=kinds.POD, name=name):
                    self.delete_pod(name)
                case Delete(rt=kinds.PODGROUP):
                    if self.group is not None:
                        gone, self.group = from_manifest(PodGroup, self.group), None
                        assert events.podgroup_job(gone) == self.job.key
                        self._requests.append(Request(bus.OUT_OF_SYNC))
                case Delete(rt=rt, name=name):
                    self.others.discard((rt.plural, name))
                case Emit() | Again():
                    pass
                case _:
                    raise AssertionError(f"not expected: {one}")

    def _create_pod(self, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        if name in self.pods:
            return
        self._made += 1
        pod = copy.deepcopy(manifest)
        pod["metadata"]["uid"] = f"pod-{self._made}"
        pod["status"] = {"phase": "Pending"}
        self.pods[name] = pod
        self._requests.append(events.pod_added(from_manifest(Pod, pod), self.job, self.pods_of))

    def _write_status(self, status: Manifest) -> None:
        old = self.job
        self.job = msgspec.structs.replace(old, status=msgspec.convert(status, JobStatus))
        request = events.job_updated(old, self.job)
        if request is not None:
            self._requests.append(request)

    # -- other clients

    @property
    def phase(self) -> str:
        return self.job.status.state.phase

    def _change_pod(self, name: str, patch: Manifest) -> None:
        old = from_manifest(Pod, self.pods[name])
        pod = self.pods[name]
        for part in ("metadata", "spec", "status"):
            given = {k: v for k, v in patch.get(part, {}).items() if k != "uid"}
            if "annotations" in given:
                given["annotations"] = {**pod[part].get("annotations", {}), **given["annotations"]}
            pod[part] = {**pod.get(part, {}), **given}
        self._requests.append(events.pod_updated(old, from_manifest(Pod, pod), self.job, self.pods_of))

    def pod_phase(self, name: str, phase: str, exit_code: int | None = None, restarts: int = 0) -> None:
        """The status that the kubelet reports."""
        state: Manifest = {} if exit_code is None else {"terminated": {"exitCode": exit_code}}
        ready = phase == "Running"
        statuses = [{"name": "main", "ready": ready, "restartCount": restarts, "state": state}]
        self._change_pod(name, {"spec": {"nodeName": "n1"}, "status": {"phase": phase, "containerStatuses": statuses}})
        self.settle()

    def bind(self, name: str) -> None:
        """The scheduler gives a pod its node; the kubelet has not started it yet."""
        self._change_pod(name, {"spec": {"nodeName": "n1"}})
        self.settle()

    def delete_pod(self, name: str) -> None:
        """With grace while its containers live; a pod that has ended or never started is gone at once."""
        pod = self.pods.get(name)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running"):
            self._change_pod(name, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        else:
            self.reap(name)

    def reap(self, name: str) -> None:
        self._requests.append(events.pod_deleted(from_manifest(Pod, self.pods.pop(name))))

    def group_phase(self, phase: str) -> None:
        assert self.group is not None
        old = from_manifest(PodGroup, self.group)
        self.group["status"] = {"phase": phase}
        request = events.podgroup_updated(old, from_manifest(PodGroup, self.group))
        if request is not None:
            self._requests.append(request)
        self.settle()

    def resize(self, replicas: int) -> None:
        """Change the first task, and the minimums with it as far as admission requires it."""
        old, spec = self.job, copy.deepcopy(self.job.spec)
        assert spec.tasks
        spec.tasks[0].replicas = replicas
        spec.tasks[0].min_available = min(replicas, spec.tasks[0].min_available or 0)
        spec.min_available = min(spec.min_available, sum(task.replicas for task in spec.tasks))
        self.job = msgspec.structs.replace(old, spec=spec)
        request = events.job_updated(old, self.job)
        if request is not None:
            self._requests.append(request)
        self.settle()

    def tick(self) -> None:
        """The oldest delayed action is due."""
        if self.waiting:
            self.ask(self.waiting.pop(0))

    def fair_round(self) -> None:
        """Scheduler, kubelet and clock do their part, and nothing goes wrong."""
        self.settle()
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.reap(name)
                self.settle()
        self.waiting.clear()
        if self.group is not None and self.group["status"]["phase"] in ("Pending", "Unknown"):
            self.group_phase("Inqueue")
        for phase in ("Running", "Succeeded"):
            for name, pod in list(self.pods.items()):
                now = pod["status"]["phase"]
                if name in self.pods and now in ("Pending", "Running") and phase != now:
                    self.pod_phase(name, phase, 0 if phase == "Succeeded" else None)
        self.ask(Request(bus.OUT_OF_SYNC))

    def living(self) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"]["phase"] in ("Pending", "Running")]

    def describe(self) -> str:
        pods = {n: (p["status"]["phase"], "deletionTimestamp" in p["metadata"]) for n, p in self.pods.items()}
        return f"{self.phase} {self.job.status} pods {pods} group {self.group and self.group['status']}"
