"""The next step of a batch Job: which pods count, whether it ends, how many pods are created or deleted.

Kubernetes: job_controller.go, in plain functions. Pods have a finalizer until they are counted: a finished pod is
first recorded in `uncountedTerminatedPods`, then its finalizer is removed, then it is added to the counters. So each is
counted exactly once, also after interruptions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from volcano_py.sandbox.controllers.apps.replicaset import deletion_order
from volcano_py.sandbox.controllers.batch import job_failure, job_indexes
from volcano_py.sandbox.controllers.runtime.pods import Pod

Object = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_LIMIT = 600.0  # seconds


class End(NamedTuple):
    """How a Job ends: the interim condition, and the final one."""

    target: str
    final: str
    reason: str
    message: str


@dataclass(slots=True)
class Tally:
    """The pods of a Job, sorted and counted; `succeeded` and `failed` include those that are only recorded."""

    active: list[Pod] = field(default_factory=list)
    terminating: list[Pod] = field(default_factory=list)
    noted: dict[str, list[str]] = field(default_factory=lambda: {"succeeded": [], "failed": []})
    counted: dict[str, int] = field(default_factory=lambda: {"succeeded": 0, "failed": 0})
    completed: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)  # indexes that have failed and are not retried
    failures: Counter[int] = field(default_factory=Counter)  # by index
    release: list[Pod] = field(default_factory=list)  # those whose finalizer is removed once the status is written
    fatal: str = ""  # the message of a rule that ends the whole Job

    @property
    def succeeded(self) -> int:
        return self.counted["succeeded"] + len(self.noted["succeeded"])

    @property
    def failed(self) -> int:
        return self.counted["failed"] + len(self.noted["failed"])


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Pod) -> int:
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isdigit() else -1


def tally(job: Object, pods: list[Pod]) -> Tally:
    """Count the pods, each once."""
    spec, old = job["spec"], job.get("status") or {}
    out = Tally()
    out.counted = {key: old.get(key, 0) for key in out.counted}
    known = old.get("uncountedTerminatedPods") or {}
    tracked = {pod.entry.uid for pod in pods if FINALIZER in pod.finalizers}
    for key, noted in out.noted.items():
        for uid in known.get(key) or ():
            if uid in tracked:
                noted.append(uid)
            else:
                out.counted[key] += 1
    completions = spec.get("completions") or 0
    if is_indexed(job):
        out.completed = job_indexes.parse(old.get("completedIndexes", ""), completions)
        out.failed_indexes = job_indexes.parse(old.get("failedIndexes", ""), completions)
    replace_late = spec.get("podReplacementPolicy") == "Failed"
    for pod in pods:
        succeeded = pod.phase == "Succeeded"
        over = pod.finished or pod.stopped
        if pod.deleting and not over:
            out.terminating.append(pod)
        elif not over:
            out.active.append(pod)
        lost = (over and not succeeded) or (pod.deleting and not replace_late and not succeeded)
        verdict = _verdict(job, pod) if lost else job_failure.COUNT
        if lost and verdict.action != "Ignore":
            out.failures[index_of(pod)] += 1
        if FINALIZER in pod.finalizers and (succeeded or lost):
            out.release.append(pod)
            if succeeded:
                _note_success(job, pod, out)
            else:
                _note_failure(pod, verdict, out)
    _fail_indexes(job, out)
    if is_indexed(job):
        out.counted["succeeded"] = len(out.completed)
    return out


def _note_success(job: Object, pod: Pod, out: Tally) -> None:
    if is_indexed(job):
        if 0 <= index_of(pod) < job["spec"]["completions"]:
            out.completed.add(index_of(pod))
    elif pod.entry.uid not in out.noted["succeeded"]:
        out.noted["succeeded"].append(pod.entry.uid)


def _verdict(job: Object, pod: Pod) -> job_failure.Verdict:
    policy = job["spec"].get("podFailurePolicy")
    return job_failure.COUNT if policy is None else job_failure.evaluate(policy, pod.entry.load())


def _note_failure(pod: Pod, verdict: job_failure.Verdict, out: Tally) -> None:
    if verdict.action == "Ignore" or pod.entry.uid in out.noted["failed"]:
        return
    if verdict.action == "FailIndex":
        out.failed_indexes.add(index_of(pod))
    elif verdict.action == "FailJob":
        out.fatal = out.fatal or verdict.message
    out.noted["failed"].append(pod.entry.uid)


def _fail_indexes(job: Object, out: Tally) -> None:
    limit = job["spec"].get("backoffLimitPerIndex")
    if limit is not None:
        out.failed_indexes |= {index for index, count in out.failures.items() if count > limit and index >= 0}
    out.failed_indexes -= out.completed


# --- the end ---------------------------------------------------------------------------------------------------------


def condition(job: Object, type_: str) -> Object | None:
    """A condition with status True."""
    rows = (job.get("status") or {}).get("conditions") or ()
    return next((row for row in rows if row["type"] == type_ and row["status"] == "True"), None)


def is_finished(job: Object) -> bool:
    return condition(job, "Complete") is not None or condition(job, "Failed") is not None


def end_of(job: Object, seen: Tally, started: float, now: float) -> End | None:
    """How the Job ends, if it ends now or has ended before."""
    for target, final in (("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")):
        row = condition(job, target)
        if row is not None:
            return End(target, final, row["reason"], row.get("message", ""))
    failure = _failure(job, seen, started, now)
    if failure is not None:
        return End("FailureTarget", "Failed", *failure)
    rule = _success_rule(job, seen)
    if rule is not None:
        return End("SuccessCriteriaMet", "Complete", "SuccessPolicy", f"Matched rules at index {rule}")
    if _is_complete(job, seen):
        text = "Reached expected number of succeeded pods"
        return End("SuccessCriteriaMet", "Complete", "CompletionsReached", text)
    return None


def _failure(job: Object, seen: Tally, started: float, now: float) -> tuple[str, str] | None:
    spec = job["spec"]
    if seen.fatal:
        return "PodFailurePolicy", seen.fatal
    if seen.failed > spec["backoffLimit"] or _restarted_too_often(spec, seen):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and started and not spec.get("suspend") and now >= started + deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    most = spec.get("maxFailedIndexes")
    if most is not None and len(seen.failed_indexes) > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if seen.failed_indexes and len(seen.completed) + len(seen.failed_indexes) >= spec["completions"]:
        return "FailedIndexes", "Job has failed indexes"
    return None


def _restarted_too_often(spec: Object, seen: Tally) -> bool:
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(pod.restarts for pod in seen.active)
    return restarts > 0 if spec["backoffLimit"] == 0 else restarts >= spec["backoffLimit"]


def _success_rule(job: Object, seen: Tally) -> int | None:
    """The number of the first rule of the success policy that holds."""
    if not is_indexed(job):
        return None
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        wanted = seen.completed
        if rule.get("succeededIndexes") is not None:
            named = job_indexes.parse(rule["succeededIndexes"], job["spec"]["completions"])
            wanted = wanted & named
            if rule.get("succeededCount") is None and wanted == named:
                return number
        if rule.get("succeededCount") is not None and len(wanted) >= rule["succeededCount"]:
            return number
    return None


def _is_complete(job: Object, seen: Tally) -> bool:
    completions = job["spec"].get("completions")
    if completions is None:
        return seen.succeeded > 0 and not seen.active
    return seen.succeeded >= int(completions)


# --- pods to create and to delete ------------------------------------------------------------------------------------


class Step(NamedTuple):
    """create: one entry per pod, the completion index or None. wait: seconds until failed pods may be replaced."""

    create: list[int | None]
    delete: list[Pod]
    wait: float | None = None


def step_of(job: Object, seen: Tally, pods: list[Pod], backoff: float, now: float) -> Step:
    """The steps to the intended number of active pods."""
    spec = job["spec"]
    surplus = _misplaced(job, seen)
    active = [pod for pod in seen.active if pod not in surplus]
    # with podReplacementPolicy Failed, terminating pods count until they have ended
    busy = len(active) + (len(seen.terminating) if spec.get("podReplacementPolicy") == "Failed" else 0)
    wanted = _wanted(job, seen, len(active))
    if len(active) > wanted:
        order = sorted(active, key=deletion_order(active))
        return Step([], [*surplus, *order[: len(active) - wanted]])
    missing = max(wanted - busy, 0)
    wait = _backoff(pods, backoff, now) if missing else 0.0
    if wait > 0:
        return Step([], surplus, wait)
    return Step(_indexes(job, seen, active, missing) if is_indexed(job) else [None] * missing, surplus)


def _wanted(job: Object, seen: Tally, active: int) -> int:
    spec = job["spec"]
    parallel: int = spec["parallelism"]
    if spec.get("completions") is None:
        return min(active, parallel) if seen.succeeded else parallel
    left: int = spec["completions"] - seen.succeeded - len(seen.failed_indexes)
    return max(min(parallel, left), 0)


def _misplaced(job: Object, seen: Tally) -> list[Pod]:
    """Active pods whose index is complete, has failed, or belongs to another pod."""
    if not is_indexed(job):
        return []
    taken = seen.completed | seen.failed_indexes
    out = []
    for pod in sorted(seen.active, key=lambda row: (not row.ready, row.created, row.name)):
        index = index_of(pod)
        if index in taken or not 0 <= index < job["spec"]["completions"]:
            out.append(pod)
        taken = taken | {index}
    return out


def _indexes(job: Object, seen: Tally, active: list[Pod], count: int) -> list[int | None]:
    taken = seen.completed | seen.failed_indexes | {index_of(pod) for pod in active}
    if job["spec"].get("podReplacementPolicy") == "Failed":
        taken |= {index_of(pod) for pod in seen.terminating}
    free: list[int | None] = [index for index in range(job["spec"]["completions"]) if index not in taken]
    return free[:count]


def _backoff(pods: list[Pod], first: float, now: float) -> float:
    """Seconds until pods may be created again: longer with each failure since the last success."""
    last_success = max((pod.ended for pod in pods if pod.phase == "Succeeded"), default=0.0)
    failures = [pod.ended for pod in pods if pod.phase == "Failed" and pod.ended > last_success]
    if not failures:
        return 0.0
    delay: float = min(first * 2 ** min(len(failures) - 1, 20), BACKOFF_LIMIT)
    return max(failures) + delay - now
