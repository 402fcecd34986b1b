"""Runs the job reconciler: collects the requests of each Job and processes them, one Job at a time."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from volcano_py.api import batch, bus
from volcano_py.api.batch import Job
from volcano_py.api.bus import Command
from volcano_py.api.core import Pod, PriorityClass
from volcano_py.api.duration import format_duration
from volcano_py.api.kinds import JOB, PERSISTENTVOLUMECLAIM, POD, PODGROUP, PRIORITYCLASS, QUEUE
from volcano_py.api.meta import parse_time
from volcano_py.api.scheduling import FAILED_CREATE, PodGroup, Queue
from volcano_py.api.storage import PersistentVolumeClaim
from volcano_py.controllers import metrics
from volcano_py.controllers.admission import MirroredQueues, problems_of_job
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.failures import FailureLog, from_outside
from volcano_py.controllers.instructions import Emit, Instruction, Together, UpdateStatus
from volcano_py.controllers.job import events
from volcano_py.controllers.job.backoff import EvictionBackoff
from volcano_py.controllers.job.counters import Held, only_counters
from volcano_py.controllers.job.delayed import DelayedActions
from volcano_py.controllers.job.failed_create import set_condition
from volcano_py.controllers.job.observed import Observed, Unready, with_task_defaults
from volcano_py.controllers.job.pod_creates import PodCreates
from volcano_py.controllers.job.podgroup import controls
from volcano_py.controllers.job.pods import podgroup_name
from volcano_py.controllers.job.reconcile import reconcile
from volcano_py.controllers.job.request import Decision, Request, decide
from volcano_py.controllers.job.run_limit import end_of_run, enforced_limit, problem_of
from volcano_py.controllers.job.volumes import claim_name
from volcano_py.controllers.mirror import Mirror, version_of
from volcano_py.controllers.runner import LONGEST_SLEEP, Cluster, pods_of_task
from volcano_py.kube.errors import ApiError, Conflict, KubeError
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

_POD_MOVED = (bus.POD_RUNNING, bus.POD_FAILED, bus.POD_EVICTED)
RESTARTS = (bus.RESTART_JOB, bus.RESTART_TASK, bus.RESTART_POD, bus.RESTART_PARTITION)
MANY_PODS = 50
SECONDS_A_POD = 1e-4
"""Seconds in which events of a large Job's pods are collected, per pod: 0.2 s for 2,000 pods."""


def is_failed_create(error: Exception) -> bool:
    """Whether the API server rejected a pod: for a missing PriorityClass, a quota, a webhook, an invalid template."""
    return isinstance(error, ApiError) and error.blame == FAILED_CREATE


class JobController:
    name = "job-controller"

    def __init__(
        self,
        cluster: Cluster,
        *,
        workers: int = 3,
        max_requeue: int = 15,
        on_max_run_time: str = "",
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """After `max_requeue` failed attempts a Job is terminated; a negative number means never.

        `on_max_run_time`: the action at the end of a stated limit; empty: only for Jobs that choose one.

        `clock` is for timestamps, `steady` for pauses: the time of day may be set back.
        """
        self.queue: WorkQueue[str] = WorkQueue()
        self.workers = workers
        self._max_requeue = max_requeue
        self._on_max_run_time = on_max_run_time
        self._clock = clock
        self._steady = steady
        self._failures = FailureLog(log)
        self._executor = cluster.executor
        self._pending: dict[str, dict[Request, None]] = {}
        self._delayed = DelayedActions(self._due)
        self._evictions = EvictionBackoff()
        self._held = Held()
        self._written: dict[str, int] = {}
        """Per Job: the version of the object after the last write of this controller."""
        self._writing: set[str] = set()
        """Jobs whose status this controller may be writing now."""
        self._stuck: set[str] = set()
        """Jobs that are blocked by another object."""
        self._jobs: Mirror[Job] = cluster.mirror(JOB)
        self._pods: Mirror[Pod] = cluster.mirror(POD)
        self._podgroups: Mirror[PodGroup] = cluster.mirror(PODGROUP)
        self._queues: Mirror[Queue] = cluster.mirror(QUEUE)
        self._priorities: Mirror[PriorityClass] = cluster.mirror(PRIORITYCLASS)
        self._claims: Mirror[PersistentVolumeClaim] = cluster.mirror(PERSISTENTVOLUMECLAIM)
        self._jobs.on(
            add=self._job_added,
            update=self._job_updated,
            delete=self._job_deleted,
        )
        self._pods.on(add=self._pod_added, update=self._pod_updated, delete=self._pod_deleted)
        self._queues.on(add=lambda queue: self._try_again(), update=self._queue_updated)
        self._claims.on(add=lambda claim: self._try_again())
        self._priorities.on(add=lambda priority: self._try_again())
        self._podgroups.on(add=self._podgroup_added, update=self._podgroup_updated, delete=self._podgroup_deleted)

    def command(self, command: Command) -> None:
        """Process an action that a user requested."""
        assert command.target is not None
        key = f"{command.metadata.namespace}/{command.target.name}"
        job = self._jobs.get(key)
        if job is not None:
            self._record(job, "CommandIssued", f"Start to execute command {command.action}")
        self._add(key, Request(bus.COMMAND_ISSUED, command.action))

    async def process(self, key: str) -> None:
        """Process the requests of one Job: first actions of policies and users, then one sync for all other requests.

        A sync could conclude that the Job has failed, because all of its pods have; a policy for the failure of the
        first pod must run before that.
        """
        requests = self._pending.pop(key, {})
        self._enforce_limit(key, requests)
        action = bus.SYNC_JOB
        try:
            while (found := self._next_action(key, requests)) is not None:
                job, request, decision = found
                action = decision.action
                await self._do(job, request, decision)
                if request.evicted and decision.action in RESTARTS:
                    self._evictions.restarted(key, self._steady())
                self._delayed.on_done(key, request, decision)
                action = bus.SYNC_JOB
                del requests[request]
                requests |= self._pending.pop(key, {})
            seen = self._jobs.get(key)
            if requests and seen is not None:
                # no await between the last check of the requests and this observation of the pods
                await self._do(seen, next(reversed(requests)), Decision(bus.SYNC_JOB))
        except (KubeError, Unready) as error:
            self._pending[key] = requests | self._pending.get(key, {})
            await self._failed(key, action, error)
            return
        except Exception:
            self._pending[key] = requests | self._pending.get(key, {})  # requests are kept after a failure
            raise
        self._stuck.discard(key)
        self.queue.forget(key)
        if self._jobs.get(key) is None:
            self._forget(key)

    def _enforce_limit(self, key: str, requests: dict[Request, None]) -> None:
        """Add the action of a limit that has ended, or look at the Job again when it ends."""
        job = self._jobs.get(key)
        if job is None:
            return
        if problem := problem_of(job):
            self._executor.record(job, Emit("Warning", "InvalidMaxRunTime", problem, once=True))
        limit = enforced_limit(job, self._on_max_run_time)
        end = end_of_run(job, self._pods.by_index(job.metadata.uid), limit) if limit is not None else None
        if limit is None or end is None:
            return
        if end > (now := self._clock()):
            self.queue.add_after(key, min(end - now, LONGEST_SLEEP))
        else:
            requests[Request(bus.MAX_RUN_TIME_EXCEEDED, limit.action, message=limit.message)] = None

    def _next_action(self, key: str, requests: dict[Request, None]) -> tuple[Job, Request, Decision] | None:
        """The first request with an action other than sync. Requests with a delayed action are scheduled first."""
        for request in list(requests):
            job = self._jobs.get(key)
            if job is None:
                return None
            if request.event in _POD_MOVED and not request.action:
                self._delayed.on_event(key, request)
            decision = self._spaced(key, request, decide(job, request))
            if decision.delay:
                self._postpone(key, job, request, decision)
                del requests[request]
            elif decision.action != bus.SYNC_JOB:
                return job, request, decision
        return None

    def _spaced(self, key: str, request: Request, decision: Decision) -> Decision:
        """Delay restarts after evictions; a request that was already delayed is not delayed again."""
        if decision.counts or decision.action not in RESTARTS or request.action:
            return decision
        delay = max(decision.delay, self._evictions.delay(key, self._steady()))
        return Decision(decision.action, delay, counts=False)

    def _postpone(self, key: str, job: Job, request: Request, decision: Decision) -> None:
        if self._delayed.schedule(key, request, decision):
            after = format_duration(decision.delay)
            self._record(job, "ExecuteAction", f"Execute action {decision.action} after {after}")

    async def _do(self, job: Job, request: Request, decision: Decision) -> None:
        instructions = self._hold_back(job, reconcile(self._observe(job), request, decision))
        await self._carry_out(instructions, job)
        self._measure(job, instructions)

    async def _carry_out(self, instructions: list[Instruction], job: Job) -> None:
        self._writing.add(job.key)
        try:
            await self._executor.carry_out(instructions, job)
        finally:
            # Also after a failure: an instruction before it may have written the status.
            self._writing.discard(job.key)
            after = self._jobs.get(job.key)
            if after is not None and after.metadata.resource_version != job.metadata.resource_version:
                self._written[job.key] = version_of(after)

    def _hold_back(self, job: Job, instructions: list[Instruction]) -> list[Instruction]:
        """Delay a status write that changes only counters, until it is due."""
        key = job.key
        writes = [one for one in instructions if isinstance(one, UpdateStatus)]
        if not writes:
            return instructions
        if all(only_counters(job, one) for one in writes) and (wait := self._held.wait(key, self._steady())):
            self._pending.setdefault(key, {})[Request(bus.OUT_OF_SYNC)] = None
            self.queue.add_after(key, wait)
            return [one for one in instructions if one not in writes]
        self._held.drop(key)
        return instructions

    async def _failed(self, key: str, action: str, error: Exception) -> None:
        job = self._jobs.get(key)
        if job is None:
            self._forget(key)
            return
        if isinstance(error, Conflict):
            self.queue.add_after_conflict(key)
            return
        self._failures.report(f"job {key}", error)
        metrics.RECONCILE_FAILURES.labels(self.name).inc()
        if isinstance(error, Unready):
            self._record(job, error.reason, str(error), "Warning")
        await self._note_on_podgroup(job, error)
        await self._note(job, error)
        # A missing queue or claim, or pods that cannot be created, do not count against the Job either.
        if isinstance(error, Unready):
            ours = not error.from_outside
        else:
            ours = not from_outside(error) and not is_failed_create(error)
        if ours and 0 <= self._max_requeue <= self.queue.retries(key):
            self._record(job, "ExecuteAction", f"Job failed on action {action} for retry limit reached", "Warning")
            self._pending[key] = {}
            try:
                await self._do(job, Request(), Decision(bus.TERMINATE_JOB))
            except (KubeError, Unready) as again:
                log.warning("job %s could not be terminated: %s", key, again)
                self._pending[key] = {Request(action=bus.TERMINATE_JOB): None}
                self.queue.add_rate_limited(key)
                return
            self.queue.forget(key)
            return
        self.queue.add_rate_limited(key)

    async def _note(self, job: Job, error: Exception) -> None:
        """Report the obstacle in the Job's status; the next successful sync removes it."""
        if isinstance(error, Unready):
            reason, message = error.reason, str(error)
        elif isinstance(error, ApiError):
            reason, message = error.blame or "SyncError", str(error)
        else:
            return
        self._stuck.add(job.key)
        if (job.status.state.reason, job.status.state.message) == (reason, message):
            return
        status = msgspec.structs.replace(
            job.status, state=msgspec.structs.replace(job.status.state, reason=reason, message=message)
        )
        with contextlib.suppress(KubeError):
            await self._carry_out([status_write(JOB, job, status)], job)

    async def _note_on_podgroup(self, job: Job, error: Exception) -> None:
        """Report pods that cannot be created to the scheduler."""
        podgroup = self._observe(job).podgroup
        if podgroup is not None and is_failed_create(error):
            with contextlib.suppress(KubeError):
                await self._executor.carry_out(set_condition(podgroup, str(error), self._clock()), job)

    def _try_again(self) -> None:
        """An object was added that Jobs may have waited for."""
        stuck, self._stuck = self._stuck, set()
        for key in stuck:
            self._add(key, Request(bus.OUT_OF_SYNC))

    def _queue_updated(self, old: Queue, new: Queue) -> None:
        if old.status.state != new.status.state or old.spec.parent != new.spec.parent:
            self._try_again()

    def _observe(self, job: Job) -> Observed:
        namespace = job.metadata.namespace
        podgroup = self._podgroups.get(f"{namespace}/{podgroup_name(job)}")
        if podgroup is None:
            # created by a version of Volcano before 1.5
            older = self._podgroups.get(job.key)
            podgroup = older if older is not None and controls(job, older) else None
        ours = podgroup is None or controls(job, podgroup)
        claims = {claim_name(job, index) for index in range(len(job.spec.volumes or ()))}
        return Observed(
            job=with_task_defaults(job),
            pods=self._pods.by_index(job.metadata.uid),
            podgroup=podgroup if ours else None,
            foreign_podgroup="" if podgroup is None or ours else podgroup.metadata.name,
            queue=self._queues.get(job.spec.queue),
            problems=() if job.status.state.phase else problems_of_job(job, MirroredQueues(self._queues)),
            priorities={known.metadata.name: known.value for known in self._priorities.all()},
            claims=frozenset(name for name in claims if self._claims.get(f"{namespace}/{name}") is not None),
            now=self._clock(),
        )

    def _measure(self, before: Job, instructions: Sequence[Instruction]) -> None:
        after = self._jobs.get(before.key)
        if after is not None and after.status.state.phase != before.status.state.phase:
            labels = (before.key, before.spec.queue)
            if after.status.state.phase == batch.COMPLETED:
                metrics.JOB_COMPLETED.labels(*labels).inc()
            elif after.status.state.phase == batch.FAILED:
                metrics.JOB_FAILED.labels(*labels).inc()
        created = before.metadata.creation_timestamp
        for instruction in instructions:
            if isinstance(instruction, Together) and isinstance(instruction.instructions, PodCreates) and created:
                waited = max(0.0, self._clock() - parse_time(created))
                for _ in range(len(instruction.instructions)):
                    metrics.POD_CREATION_LATENCY.observe(waited * 1000)

    def _record(self, job: Job, reason: str, message: str, type_: Literal["Normal", "Warning"] = "Normal") -> None:
        self._executor.record(job, Emit(type_, reason, message))

    def _add(self, key: str, request: Request) -> None:
        self._pending.setdefault(key, {})[request] = None
        self.queue.add(key)

    def _add_of_pod(self, pod: Pod, key: str, request: Request) -> None:
        """A sync costs time per pod of the Job: the more pods, the more events are collected for one sync."""
        owner = pod.metadata.controller
        pods = self._pods.count(owner.uid) if owner else 0
        self._pending.setdefault(key, {})[request] = None
        if pods > MANY_PODS:
            self.queue.add_after(key, pods * SECONDS_A_POD)
        else:
            self.queue.add(key)

    def _due(self, key: str, request: Request) -> None:
        """A delayed action is due. A pod that was pending too long must still be pending."""
        if request.event == bus.POD_PENDING:
            pod = self._pods.get(f"{key.partition('/')[0]}/{request.pod}")
            if pod is None or pod.metadata.uid != request.pod_uid or not events.is_pending(pod):
                return
        self._add(key, request)

    def _job_added(self, job: Job) -> None:
        for request in events.job_added(job, self._pods_of(job.metadata.uid)):
            self._add(job.key, request)

    def _job_updated(self, old: Job, new: Job) -> None:
        request = events.job_updated(old, new)
        if old.metadata.annotations != new.metadata.annotations or old.metadata.labels != new.metadata.labels:
            self.queue.add(new.key)  # its limit may end at another time
        by_others = new.key not in self._writing and version_of(new) > self._written.get(new.key, 0)
        if request is None and old.status != new.status and by_others:
            # Another client wrote the status, or the API server was restored from a backup: count the pods again.
            request = Request(bus.OUT_OF_SYNC)
        if request is not None:
            self._add(new.key, request)

    def _job_deleted(self, job: Job) -> None:
        self._forget(job.key)
        metrics.forget_job(job.key, job.spec.queue)

    def _forget(self, key: str) -> None:
        """The Job was deleted; called again after a sync that was in progress at the deletion."""
        self._pending.pop(key, None)
        self._delayed.drop(key)
        self._evictions.drop(key)
        self._held.drop(key)
        self._written.pop(key, None)
        self._stuck.discard(key)
        self.queue.forget(key)

    def _pod_added(self, pod: Pod) -> None:
        key = events.job_key(pod)
        if key is not None:
            uid = pod.metadata.controller.uid if pod.metadata.controller else ""
            self._add_of_pod(pod, key, events.pod_added(pod, self._jobs.get(key), self._pods_of(uid)))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        key = events.job_key(new)
        if key is not None:
            uid = new.metadata.controller.uid if new.metadata.controller else ""
            self._add_of_pod(new, key, events.pod_updated(old, new, self._jobs.get(key), self._pods_of(uid)))

    def _pods_of(self, uid: str) -> events.PodsOf:
        return lambda task, phase: self._pods.by_index(pods_of_task(uid, task, phase))

    def _pod_deleted(self, pod: Pod) -> None:
        key = events.job_key(pod)
        if key is not None:
            self._add_of_pod(pod, key, events.pod_deleted(pod))

    def _podgroup_added(self, podgroup: PodGroup) -> None:
        request = events.podgroup_added(podgroup)
        if request is not None:
            self._add(events.podgroup_job(podgroup), request)

    def _podgroup_updated(self, old: PodGroup, new: PodGroup) -> None:
        request = events.podgroup_updated(old, new)
        if request is not None:
            self._add(events.podgroup_job(new), request)

    def _podgroup_deleted(self, podgroup: PodGroup) -> None:
        self._add(events.podgroup_job(podgroup), Request(bus.OUT_OF_SYNC))
        self._try_again()  # it may have blocked the PodGroup of another Job
