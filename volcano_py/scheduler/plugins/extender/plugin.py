"""extender: decisions of an HTTP service. Volcano: plugin extender.

A response is used from the cycle after the one that sent the call. Until the first response the scheduler waits: nodes
are rejected, jobs are not admitted, nothing is evicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from msgspec import field

from volcano_py.api import names
from volcano_py.api.core import Container
from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.plugins.extender import bodies
from volcano_py.scheduler.plugins.extender.mailbox import ExtenderAnswer, ExtenderRequest, Mailbox

_WAITING = "the extender has not responded yet"
_IDENTITIES = frozenset(
    (
        names.TASK_INDEX,
        names.GROUP_NAME,
        names.VOLCANO_GROUP_NAME,
        names.JOB_NAME,
        names.JOB_VERSION,
        names.TEMPLATE_UID,
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
        "kubectl.kubernetes.io/last-applied-configuration",
        "statefulset.kubernetes.io/pod-name",
    )
)
"""Labels and annotations with which controllers and clients identify pods and their owners."""


class Extender(Plugin):
    """See `Arguments`. The plugin does not call an empty verb."""

    name = "extender"

    class Arguments(PluginArguments):
        url_prefix: str = field(default="", name="extender.urlPrefix")
        """The URL of the extender; the verb is appended."""
        timeout: str = field(default="1s", name="extender.httpTimeout")
        """The timeout of a call, as a Go duration."""
        session_open: str = field(default="", name="extender.onSessionOpenVerb")
        """Notifies the extender of the start of each cycle, with jobs, nodes and queues."""
        session_close: str = field(default="", name="extender.onSessionCloseVerb")
        """Notifies the extender of the end of each cycle."""
        predicate: str = field(default="", name="extender.predicateVerb")
        """Whether a node accepts a pod: one call for equal pods of a job and each node."""
        predicate_nodes: str = field(default="", name="extender.predicateNodesVerb")
        """The same in one call for all nodes; not in Volcano."""
        prioritize: str = field(default="", name="extender.prioritizeVerb")
        """The scores of nodes."""
        preemptable: str = field(default="", name="extender.preemptableVerb")
        """Which pods may be preempted for a pod."""
        reclaimable: str = field(default="", name="extender.reclaimableVerb")
        """Which pods may be reclaimed for a pod."""
        queue_overused: str = field(default="", name="extender.queueOverusedVerb")
        """Whether a queue is overused."""
        job_enqueueable: str = field(default="", name="extender.jobEnqueueableVerb")
        """Whether a job may be admitted."""
        job_enqueued: str = field(default="", name="extender.jobEnqueuedVerb")
        """Notifies the extender of a job that was admitted."""
        job_ready: str = field(default="", name="extender.jobReadyVerb")
        """Whether a job's pods may be bound."""
        allocate: str = field(default="", name="extender.allocateFuncVerb")
        """Notifies the extender of a pod that got a node."""
        deallocate: str = field(default="", name="extender.deallocateFuncVerb")
        """Notifies the extender of a pod that left its node."""
        ignorable: bool = field(default=False, name="extender.ignorable")
        """Whether scheduling continues without the extender when a call fails."""
        managed: list[str] = field(default_factory=list, name="extender.managedResources")
        """The extender is called only for pods that request one of these resources; empty: for all pods."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        try:
            self.timeout = parse_duration(self.arguments.timeout)
        except ValueError:
            self.warn(f"extender.httpTimeout is {self.arguments.timeout!r}, it must be a duration such as 1s; 1s stays")
            self.timeout = 1.0
        if not self.arguments.url_prefix.startswith(("http://", "https://")):
            self.warn("extender.urlPrefix must begin with http:// or https://; without it every call fails")

    def on_session_open(self, session: Session) -> None:
        a = self.arguments
        self._session = session
        self._shown = bodies.Snapshot(session)
        self._mail = session.cluster.keep(Mailbox)
        self._mail.forget_old(session.now)
        if a.session_open and not self._opened():
            return
        if a.predicate or a.predicate_nodes or a.prioritize:
            session.add_filters(_Filter(self, session))
        if a.prioritize:
            session.add_scores(_Score(self, session))
        if a.preemptable:
            session.add_preemptable(lambda evictor, tasks: self._victims(a.preemptable, evictor, tasks))
        if a.reclaimable:
            session.add_reclaimable(lambda evictor, tasks: self._victims(a.reclaimable, evictor, tasks))
        if a.queue_overused:
            session.add_overused(self._overused)
        if a.job_enqueueable:
            session.add_job_enqueueable(self._enqueueable)
        if a.job_enqueued:
            session.add_job_enqueued(lambda job: self._notify(a.job_enqueued, lambda: {"job": bodies.job(job)}))
        if a.job_ready:
            session.add_job_ready(self._ready)
        if a.allocate or a.deallocate:
            session.add_event_handler(
                lambda task, node: self._moved(a.allocate, task, node),
                lambda task, node: self._moved(a.deallocate, task, node),
            )

    def on_session_close(self, session: Session) -> None:
        """Notify the extender of the end of the cycle."""
        if self.arguments.session_close:
            self._notify(self.arguments.session_close, dict)

    # ---- calls ------------------------------------------------------------------------------------------

    def call(self, verb: str, about: Sequence[str], body: Callable[[], Any]) -> ExtenderAnswer | None:
        """The extender's newest response for these objects; None if there is none yet, in which case the call is
        added."""
        key = (self.arguments.url_prefix, verb, *about)
        return self._mail.answer(key, self._request(verb, body), self._session.now)

    def _request(self, verb: str, body: Callable[[], Any]) -> ExtenderRequest:
        return ExtenderRequest(f"{self.arguments.url_prefix.removesuffix('/')}/{verb}", body, self.timeout)

    def _notify(self, verb: str, body: Callable[[], Any]) -> None:
        self._mail.notices.append(self._request(verb, body))

    def _opened(self) -> bool:
        """Notify the extender of the cycle; returns whether the extender takes part in it."""
        session = self._session

        def body() -> Any:
            return {
                "Jobs": {uid: bodies.job(job) for uid, job in session.jobs.items()},
                "Nodes": {node["Name"]: node for node in self._shown.nodes()},
                "Queues": {name: bodies.queue(queue) for name, queue in session.queues.items()},
                "NamespaceInfo": {},
                "RevocableNodes": {},
                "NodeList": self._shown.names,
            }

        answer = self.call(self.arguments.session_open, (), body)
        return answer is None or not answer.error or self.arguments.ignorable

    # ---- responses --------------------------------------------------------------------------------------

    def is_interested(self, task: Task) -> bool:
        """Whether the extender is called for a pod."""
        return is_managed(task, self.arguments.managed)

    def _victims(self, verb: str, evictor: Task, tasks: list[Task]) -> list[Task] | None:
        if not self.is_interested(evictor):
            return None

        def body() -> Any:
            return {"evictor": self._shown.task(evictor), "evictees": [self._shown.task(t) for t in tasks]}

        answer = self.call(verb, (evictor.key, *(t.key for t in tasks)), body)
        victims = _field(answer, "victims", list)
        if victims is None:
            # As in Volcano: if the call to an ignorable extender has failed, the other plugins decide.
            return None if answer is not None and answer.error and self.arguments.ignorable else []
        named = {v.get("UID") for v in victims if isinstance(v, dict)}
        return [t for t in tasks if t.uid in named]

    def _overused(self, queue: Queue) -> bool:
        answer = self.call(self.arguments.queue_overused, (queue.name,), lambda: {"queue": bodies.queue(queue)})
        overused = _field(answer, "overused", bool)
        return bool(self._otherwise(answer, good=False, bad=True)) if overused is None else bool(overused)

    def _enqueueable(self, job: SessionJob) -> Vote:
        answer = self.call(self.arguments.job_enqueueable, (job.uid,), lambda: {"job": bodies.job(job)})
        status = _field(answer, "status", int)
        if status is None:
            return Vote(self._otherwise(answer, good=Vote.PERMIT, bad=Vote.REJECT))
        return Vote.PERMIT if status > 0 else Vote.REJECT if status < 0 else Vote.ABSTAIN

    def _ready(self, job: SessionJob) -> bool:
        about = (job.uid, ",".join(map(str, job.counts)))
        answer = self.call(self.arguments.job_ready, about, lambda: {"job": bodies.job(job)})
        ready = _field(answer, "status", bool)
        if ready is None and answer is not None and not self.arguments.ignorable:
            return not self._session.deviations.extender_fails_closed
        return bool(ready)

    def _otherwise(self, answer: ExtenderAnswer | None, *, good: Any, bad: Any) -> Any:
        """The result without a usable response: `good` if the call has failed and the extender is ignorable, else
        `bad`."""
        return good if answer is not None and self.arguments.ignorable else bad

    def _moved(self, verb: str, task: Task, node: int) -> None:
        if verb and self.is_interested(task):
            self._notify(verb, lambda: {"task": self._shown.task(task, node)})

    def reject(self, task: Task, node: int) -> Reason | None:
        """Why a node rejects a pod."""
        a, name = self.arguments, self._shown.names[node]
        if not a.predicate_nodes and not a.predicate:
            return None
        if a.predicate_nodes:
            answer = self.call(a.predicate_nodes, (about(task),), lambda: self._task_and_nodes(task))
            statuses = _field(answer, "statuses", dict)
            if statuses is not None and name not in statuses and not a.ignorable:
                return Reason("the extender failed: statuses has no entry for this node")
            status = None if statuses is None else statuses.get(name)
        else:

            def body() -> Any:
                return {"task": self._shown.task(task), "node": self._shown.node(node)}

            answer = self.call(a.predicate, (about(task), name), body)
            status = answer.body if answer is not None and not answer.error else None
        if not isinstance(status, dict) or not isinstance(status.get("status", ""), str):
            if answer is not None and a.ignorable:
                return None
            return Reason(_WAITING if answer is None else f"the extender failed: {answer.error or 'no valid response'}")
        text, code = status.get("status", ""), status.get("code", 0)
        known = code if isinstance(code, int) and code in FitCode._value2member_map_ and code != 0 else FitCode.ERROR
        return Reason(text, FitCode(known)) if text else None

    def waits_for_scores(self, task: Task) -> bool:
        """Whether the call for the scores of a pod has neither a response nor an error yet."""
        return bool(self.arguments.prioritize) and self._mail.carried and self._scores_answer(task) is None

    def _scores_answer(self, task: Task) -> ExtenderAnswer | None:
        return self.call(self.arguments.prioritize, (about(task),), lambda: self._task_and_nodes(task))

    def scores(self, task: Task) -> Floats:
        """The extender's score of each node; 0 if the call has failed or a score in the response is invalid."""
        table = self._session.table
        found = np.zeros(len(table))
        answer = self._scores_answer(task)
        given = _field(answer, "nodeScore", dict)
        if given is None or (answer is not None and answer.body.get("errorMessage")):
            return found
        if not all(isinstance(s, int | float) and math.isfinite(s) and s >= 0 for s in given.values()):
            return found
        for name, score in given.items():
            if name in table.index:
                found[table.index[name]] = score
        return found

    def _task_and_nodes(self, task: Task) -> Any:
        return {"task": self._shown.task(task), "nodes": self._shown.nodes()}


def about(task: Task) -> str:
    """The key of a pod in calls: equal for pods that differ only in their names and their owners."""
    metadata = task.pod.metadata
    labels, annotations = (
        sorted((k, v) for k, v in (of or {}).items() if k not in _IDENTITIES)
        for of in (metadata.labels, metadata.annotations)
    )
    read = (task.spec_class.id, task.namespace, task.role, task.priority, labels, annotations)
    return blake2b(repr(read).encode(), digest_size=12).hexdigest()


def is_managed(task: Task, resources: Sequence[str]) -> bool:
    """Whether a pod requests one of some resources; without resources, every pod."""
    spec = task.pod.spec
    return not resources or requests_any((*(spec.containers or ()), *(spec.init_containers or ())), resources)


def requests_any(containers: Iterable[Container], resources: Sequence[str]) -> bool:
    """Whether a container requests or limits one of some resources."""
    return any(
        name in resources
        for c in containers
        for amounts in (c.resources.requests, c.resources.limits)
        for name in amounts or ()
    )


def _field(answer: ExtenderAnswer | None, name: str, kind: type) -> Any:
    """A field of a response; None if there is no response, or it has no such field."""
    if answer is None or answer.error or not isinstance(answer.body, dict):
        return None
    value = answer.body.get(name)
    return value if isinstance(value, kind) else None


class _Filter:
    """Reject the nodes that the extender rejects. The decision depends on more than the pod's class: labels,
    annotations, the namespace."""

    name = "extender"
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, plugin: Extender, session: Session) -> None:
        self.reasons: list[Reason] = []
        self._plugin = plugin
        self._count = len(session.table)
        self._codes: dict[str, Codes] = {}

    def applies(self, task: Task) -> bool:
        return self._plugin.is_interested(task)

    def filter(self, task: Task) -> Codes:
        key = about(task)
        codes = self._codes.get(key)
        if codes is None:
            waits = Reason(_WAITING) if self._plugin.waits_for_scores(task) else None
            found = [self._number(self._plugin.reject(task, node) or waits) for node in range(self._count)]
            codes = self._codes[key] = np.array(found, dtype=np.int32)
        return codes

    def _number(self, reason: Reason | None) -> int:
        if reason is None:
            return 0
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


class _Score:
    """Add the extender's scores."""

    name = "extender"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, plugin: Extender, session: Session) -> None:
        self._plugin = plugin
        self._scores: dict[str, Floats] = {}

    def applies(self, task: Task) -> bool:
        return self._plugin.is_interested(task)

    def _all(self, task: Task) -> Floats:
        key = about(task)
        scores = self._scores.get(key)
        if scores is None:
            scores = self._scores[key] = self._plugin.scores(task)
        return scores

    def score(self, task: Task, candidates: Indices) -> Floats:
        found: Floats = self._all(task)[candidates]
        return found

    def constant(self, task: Task) -> float | None:
        """The score if all nodes have the same, so that an extender without a response costs no pass over the nodes."""
        scores = self._all(task)
        return float(scores[0]) if len(scores) and (scores == scores[0]).all() else None
