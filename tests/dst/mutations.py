"""Safety code of the product made wrong, one rule at a time: the simulation finds each of them.

    python -m tests.dst.mutations [--name TEXT] [--most 2000]

Prints a table: the rule, the seed that shows it, the number of runs, and what was wrong. The first five are findings of
an attack from outside, put back.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.dst.mutations", *sys.argv[1:]])

from tests.dst import virtual

virtual.install()

import click  # noqa: E402
import re2  # type: ignore[import-untyped]  # noqa: E402

from tests.dst import claim_mutations  # noqa: E402
from tests.dst.forks import Runs  # noqa: E402
from tests.dst.run import Plan  # noqa: E402
from volcano_py.api import kinds  # noqa: E402
from volcano_py.controllers import executor  # noqa: E402
from volcano_py.controllers.job.controller import JobController  # noqa: E402
from volcano_py.controllers.mirror import Mirror  # noqa: E402
from volcano_py.controllers.podgroup.controller import PodGroupController  # noqa: E402
from volcano_py.controllers.queue import controller as queue_controller  # noqa: E402
from volcano_py.kube import leader, workqueue  # noqa: E402
from volcano_py.kube.errors import Conflict, Gone, KubeError, NotFound  # noqa: E402
from volcano_py.kube.informer import Informer, key_of, uid_of  # noqa: E402
from volcano_py.kube.workqueue import WorkQueue  # noqa: E402
from volcano_py.scheduler.cache import takeover  # noqa: E402
from volcano_py.scheduler.cache.audit.audit import Audit  # noqa: E402
from volcano_py.scheduler.cache.cache import Cache  # noqa: E402
from volcano_py.scheduler.cache.results import ResultHandler  # noqa: E402
from volcano_py.scheduler.cache.status_backoff import StatusBackoff  # noqa: E402
from volcano_py.scheduler.cache.takeover import Takeover  # noqa: E402
from volcano_py.scheduler.dispatch.handle import DispatcherHandle  # noqa: E402
from volcano_py.scheduler.dispatch.leadership import Leadership  # noqa: E402
from volcano_py.scheduler.dispatch.machine import Machine  # noqa: E402
from volcano_py.scheduler.dispatch.process import Process  # noqa: E402
from volcano_py.scheduler.dispatch.writes import Writer  # noqa: E402
from volcano_py.scheduler.framework.statement import Statement  # noqa: E402
from volcano_py.scheduler.model import cluster  # noqa: E402
from volcano_py.scheduler.model.jobs import status as st  # noqa: E402
from volcano_py.scheduler.model.nodes import hyper_nodes  # noqa: E402
from volcano_py.scheduler.model.plan import Bind, Evict, PodGroupStatus, QueueStatus  # noqa: E402
from volcano_py.scheduler.plugins.capacity.plugin import Capacity  # noqa: E402

MOST = 2000
"""Runs within which a mutation is found."""


def _nothing(*_: Any, **__: Any) -> None:
    pass


async def _nothing_later(*_: Any, **__: Any) -> None:
    pass


# ---- the findings of the attack -----------------------------------------------------------------------------------


def _without_audit() -> None:
    """The cache audit corrects within a minute what some faults leave behind."""

    async def run(self: Audit) -> None:
        await asyncio.Event().wait()

    Audit.run = run  # type: ignore[method-assign]


def conflict_on_eviction() -> None:
    _without_audit()
    original = Writer._announce

    async def evict(self: Writer, op: Evict) -> None:
        pod = await self._to_evict(op)
        if pod is None:
            return
        try:
            await original(self, op, pod)
        except (NotFound, Conflict):
            return
        await self._client.delete(kinds.POD, op.name, op.namespace, op.uid)

    Writer._evict = evict  # type: ignore[method-assign]


def conflict_on_status() -> None:
    original = StatusBackoff.rejected

    def rejected(self: StatusBackoff, op: Any, conflict: bool = False) -> None:
        if not conflict:
            original(self, op)

    StatusBackoff.rejected = rejected  # type: ignore[method-assign]


def stale_standby() -> None:
    def begin(self: Takeover) -> None:
        self.ready = True
        self._on_ready()

    Takeover.begin = begin  # type: ignore[method-assign]


def one_set_of_patterns() -> None:
    def matching(patterns: Any, names: Any) -> dict[str, list[str]]:
        ordered = list(patterns)
        together = re2.Set.SearchSet()
        for pattern in ordered:
            together.Add(pattern)
        together.Compile()
        found: dict[str, list[str]] = {pattern: [] for pattern in ordered}
        for name in names:
            for i in together.Match(name) or ():
                found[ordered[i]].append(name)
        return found

    hyper_nodes.matching = matching


def no_back_off() -> None:
    def rejected(self: StatusBackoff, op: Any, conflict: bool = False) -> None:
        self._retry(op)

    StatusBackoff.rejected = rejected  # type: ignore[method-assign]


# ---- controllers ---------------------------------------------------------------------------------------------------


def a_conflict_counts_as_deleted() -> None:
    async def exists(*_: Any) -> bool:
        return False

    executor.Executor._exists = exists  # type: ignore[method-assign]


def conflicts_have_no_back_off() -> None:
    workqueue.LONGEST_CONFLICT = workqueue.FIRST_CONFLICT


def pauses_by_the_time_of_day() -> None:
    queue_controller.time = SimpleNamespace(time=virtual.wall, monotonic=virtual.wall)  # type: ignore[assignment]


def failures_are_not_tried_again() -> None:
    WorkQueue.add_rate_limited = _nothing  # type: ignore[method-assign]


def jobs_miss_deleted_pods() -> None:
    JobController._pod_deleted = _nothing  # type: ignore[method-assign]


def jobs_miss_admitted_podgroups() -> None:
    JobController._podgroup_updated = _nothing  # type: ignore[method-assign]


def podgroup_errors_are_swallowed() -> None:
    original = PodGroupController.process

    async def process(self: PodGroupController, key: str) -> None:
        try:
            await original(self, key)
        except KubeError:
            self.queue.forget(key)

    PodGroupController.process = process  # type: ignore[method-assign]


def what_no_watch_returned_is_forgotten() -> None:
    original = Mirror.on

    def on(self: Mirror[Any], *handlers: Any, **named: Any) -> None:
        original(self, *handlers, **named)
        self._delete.clear()

    Mirror.on = on  # type: ignore[method-assign]


# ---- watches -------------------------------------------------------------------------------------------------------


def a_relist_keeps_what_is_gone() -> None:
    original = Informer._list

    async def list_(self: Informer[Any]) -> None:
        before = dict(self.store)
        drop, self._drop = self._drop, _nothing  # type: ignore[method-assign]
        try:
            await original(self)
        finally:
            self._drop = drop  # type: ignore[method-assign]
            self.store = {**before, **self.store}

    Informer._list = list_  # type: ignore[method-assign]


def a_resumed_watch_begins_now() -> None:
    original = Informer._watch

    async def watch(self: Informer[Any]) -> None:
        body = await self._client.raw("GET", self.rt.path(self._namespace), params={"limit": 1})
        _, _, rest = body.decode().partition('"resourceVersion":"')
        self.resource_version = rest.partition('"')[0] or self.resource_version
        await original(self)

    Informer._watch = watch  # type: ignore[method-assign]


def expired_watches_are_not_listed() -> None:
    original = Informer._after

    def after(self: Informer[Any], error: Exception) -> float:
        version = self.resource_version
        pause = original(self, error)
        if isinstance(error, Gone):
            self.resource_version = version
        return pause

    Informer._after = after  # type: ignore[method-assign]


def a_recreated_object_is_an_update() -> None:
    def put(self: Informer[Any], obj: Any) -> None:
        key = key_of(obj)
        old = self.store.get(key)
        if old is not None and uid_of(old) != uid_of(obj):
            return
        self.store[key] = self._prepare(obj) if self._prepare is not None else obj
        if old is None:
            self._call(self._add, self.store[key])
        else:
            self._call(self._update, old, self.store[key])

    Informer._put = put  # type: ignore[method-assign]


# ---- outcomes ------------------------------------------------------------------------------------------------------


def an_unknown_outcome_has_failed() -> None:
    original = ResultHandler.handle

    def handle(self: ResultHandler, op: Any, result: Any) -> None:
        if result.outcome == "unknown":
            self._forget(op)
        else:
            original(self, op, result)

    ResultHandler.handle = handle  # type: ignore[method-assign]


def an_unknown_outcome_has_succeeded() -> None:
    original = ResultHandler.handle

    def handle(self: ResultHandler, op: Any, result: Any) -> None:
        if result.outcome != "unknown":
            original(self, op, result)

    ResultHandler.handle = handle  # type: ignore[method-assign]


def a_rejected_bind_stays_assumed() -> None:
    original = ResultHandler.handle

    def handle(self: ResultHandler, op: Any, result: Any) -> None:
        if not (isinstance(op, Bind) and result.outcome == "failed"):
            original(self, op, result)

    ResultHandler.handle = handle  # type: ignore[method-assign]


def what_is_lost_stays_assumed() -> None:
    original = ResultHandler.handle

    def handle(self: ResultHandler, op: Any, result: Any) -> None:
        if result.outcome != "lost":
            original(self, op, result)

    ResultHandler.handle = handle  # type: ignore[method-assign]


def binds_are_not_assumed() -> None:
    cluster.Cluster.assume_binds = _nothing  # type: ignore[method-assign]
    original = cluster.Cluster.assume

    def assume(self: Any, operation: Any) -> None:
        if not isinstance(operation, Bind):
            original(self, operation)

    cluster.Cluster.assume = assume  # type: ignore[method-assign]


def an_older_event_withdraws_a_bind() -> None:
    cluster.status = _Unallocated()  # type: ignore[assignment]


class _Unallocated:
    """The module `status` with no status that is allocated, as the guard against older events reads it."""

    IS_ALLOCATED = [False] * len(st.IS_ALLOCATED)

    def __getattr__(self, name: str) -> Any:
        return getattr(st, name)


def a_withdrawn_bind_stays() -> None:
    cluster.is_newer = lambda old, new: False


def a_lost_dispatcher_answers_nothing() -> None:
    DispatcherHandle._answer = _nothing  # type: ignore[method-assign]


def the_end_of_leadership_answers_nothing() -> None:
    def lead(self: Machine, leading: bool, now: float) -> None:
        if self.leading and not leading:
            for item in self._waiting.all():
                if not item.in_flight:
                    self._waiting.remove(item)
        self.leading = leading

    Machine.lead = lead  # type: ignore[method-assign]


# ---- leaders -------------------------------------------------------------------------------------------------------


def writes_are_not_fenced() -> None:
    Process._gate = _nothing  # type: ignore[method-assign]
    Process._stop_writing = _nothing  # type: ignore[method-assign]


def a_leader_stays_one() -> None:
    def holds(self: Leadership) -> bool:
        self_ = self._election
        if self_ is not None and self_.leader:
            self.__dict__["ever"] = True
        return bool(self.__dict__.get("ever"))

    Leadership.holds = holds  # type: ignore[method-assign]
    Process._stop_writing = _nothing  # type: ignore[method-assign]


def a_lease_is_taken_before_it_expires() -> None:
    original = leader.LeaderElection._observe

    def observe(self: leader.LeaderElection, lease: dict[str, Any]) -> Any:
        spec = original(self, lease)
        self._observed_at = float("-inf")
        return spec

    leader.LeaderElection._observe = observe  # type: ignore[method-assign]


def a_new_leader_does_not_list_pods() -> None:
    takeover.CAPACITY = tuple(kind for kind in takeover.CAPACITY if kind != "Pod")


# ---- writes --------------------------------------------------------------------------------------------------------


def evictions_have_no_condition() -> None:
    async def announce(self: Writer, op: Evict, pod: Any) -> Any:
        return pod

    Writer._announce = announce  # type: ignore[method-assign]


def binds_name_no_uid() -> None:
    async def bind(self: Writer, op: Bind) -> None:
        metadata = {"namespace": op.namespace, "name": op.name}
        target = {"apiVersion": "v1", "kind": "Node", "name": op.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._client.create_subresource(kinds.POD, op.name, "binding", binding, op.namespace)

    Writer._bind = bind  # type: ignore[method-assign]


def a_failed_bind_is_done() -> None:
    original = Writer.write

    async def write(self: Writer, op: Any) -> Any:
        failure = await original(self, op)
        return None if isinstance(op, Bind) and failure is not None and failure.kind == "rejected" else failure

    Writer.write = write  # type: ignore[method-assign]


def a_failed_status_is_done() -> None:
    original = Writer.write

    async def write(self: Writer, op: Any) -> Any:
        failure = await original(self, op)
        mine = isinstance(op, PodGroupStatus | QueueStatus)
        return None if mine and failure is not None and failure.kind == "rejected" else failure

    Writer.write = write  # type: ignore[method-assign]


# ---- decisions -----------------------------------------------------------------------------------------------------


def gangs_are_bound_in_parts() -> None:
    def discard(self: Statement) -> None:
        if any(step.kind == "allocate" for step in self.steps):
            self.commit()
        else:
            original(self)

    original = Statement.discard
    Statement.discard = discard  # type: ignore[method-assign]


def queues_have_no_limit() -> None:
    Capacity._fits = lambda *_: True  # type: ignore[method-assign]
    Capacity._how_many = lambda self, queue, task, limit: limit  # type: ignore[method-assign]


def finished_pods_keep_their_node() -> None:
    from volcano_py.scheduler.model.jobs.task import Task

    Task.takes_capacity = property(lambda self: bool(self.node))  # type: ignore[assignment]


def deleted_pods_stay_in_the_model() -> None:
    original = Cache._remove

    def remove(self: Cache, kind: str, obj: Any) -> None:
        if kind != "Pod":
            original(self, kind, obj)

    Cache._remove = remove  # type: ignore[method-assign]


def changed_nodes_are_not_noticed() -> None:
    original = cluster.Cluster._put_node

    def put(self: Any, node: Any) -> None:
        if node.metadata.name not in self.nodes.index:
            original(self, node)

    cluster.Cluster._put_node = put  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    "a 409 on an eviction counts as done": conflict_on_eviction,
    "a 409 on a status waits for a newer version": conflict_on_status,
    "a standby decides with a stale watch": stale_standby,
    "patterns of all HyperNodes are one set": one_set_of_patterns,
    "rejected statuses have no back-off": no_back_off,
    "a 409 on a deletion counts as deleted": a_conflict_counts_as_deleted,
    "controllers have no back-off after conflicts": conflicts_have_no_back_off,
    "pauses of controllers follow the time of day": pauses_by_the_time_of_day,
    "controllers do not try again": failures_are_not_tried_again,
    "Jobs miss deleted pods": jobs_miss_deleted_pods,
    "Jobs miss admitted PodGroups": jobs_miss_admitted_podgroups,
    "errors of the PodGroup controller are swallowed": podgroup_errors_are_swallowed,
    "what no watch has returned is forgotten": what_no_watch_returned_is_forgotten,
    "a new list keeps what is gone": a_relist_keeps_what_is_gone,
    "a resumed watch begins now": a_resumed_watch_begins_now,
    "after a 410 nothing is listed": expired_watches_are_not_listed,
    "a recreated object is ignored": a_recreated_object_is_an_update,
    "an unknown outcome has failed": an_unknown_outcome_has_failed,
    "an unknown outcome has succeeded": an_unknown_outcome_has_succeeded,
    "a rejected bind stays assumed": a_rejected_bind_stays_assumed,
    "what is lost stays assumed": what_is_lost_stays_assumed,
    "binds are not assumed": binds_are_not_assumed,
    "an older event withdraws a bind": an_older_event_withdraws_a_bind,
    "a bind that the server has withdrawn stays": a_withdrawn_bind_stays,
    "a lost dispatcher answers nothing": a_lost_dispatcher_answers_nothing,
    "the end of leadership answers nothing": the_end_of_leadership_answers_nothing,
    "writes are not fenced": writes_are_not_fenced,
    "a leader stays one": a_leader_stays_one,
    "a Lease is taken before it expires": a_lease_is_taken_before_it_expires,
    "a new leader does not list pods": a_new_leader_does_not_list_pods,
    "evictions have no condition": evictions_have_no_condition,
    "binds name no UID": binds_name_no_uid,
    "a failed bind is done": a_failed_bind_is_done,
    "a failed status is done": a_failed_status_is_done,
    "a gang that is not ready is bound": gangs_are_bound_in_parts,
    "queues have no limit": queues_have_no_limit,
    "finished pods keep their node": finished_pods_keep_their_node,
    "deleted pods stay in the model": deleted_pods_stay_in_the_model,
    "changed nodes are not noticed": changed_nodes_are_not_noticed,
    **claim_mutations.MUTATIONS,
}
"""What becomes wrong, and how."""


def found(name: str, most: int, first: int = 1) -> tuple[str, int, str] | None:
    """The seed that shows a mutation, the number of runs, and the violation."""
    runs = Runs(partial(_apply, name))
    for number, outcome in enumerate(runs.all(Plan(str(first + i)) for i in range(most)), 1):
        if outcome.violations:
            return outcome.plan.seed, number, outcome.violations[0]
    return None


def _apply(name: str) -> None:
    MUTATIONS[name]()


@click.command()
@click.option("--name", "names", multiple=True, help="Only mutations with this text.")
@click.option("--most", default=MOST, help="Runs for each.")
@click.option("--first", default=1, help="Seed of the first run.")
@click.option("--skip", default=0, help="Number of mutations to leave out.")
def main(names: tuple[str, ...], most: int, first: int, skip: int) -> None:
    """Put each fault into the product, and run the simulation until it is found."""
    missed = []
    print("mutation | seed | runs | seconds | what was wrong", flush=True)
    for name in list(MUTATIONS)[skip:]:
        if names and not any(text in name for text in names):
            continue
        begun = virtual.real_seconds()
        shown = found(name, most, first)
        seconds = virtual.real_seconds() - begun
        if shown is None:
            missed.append(name)
            print(f"{name} | not found | {most} | {seconds:.0f} |", flush=True)
        else:
            print(f"{name} | {shown[0]} | {shown[1]} | {seconds:.0f} | {shown[2][:200]}", flush=True)
    print(f"missed: {', '.join(missed) or 'none'}")
    raise SystemExit(1 if missed else 0)


if __name__ == "__main__":
    main()
