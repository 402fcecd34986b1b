"""Faults in what concerns volumes, devices, shards, CronJobs and HyperNodes: see `mutations`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from volcano_py.controllers.cronjob import reconcile
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.kube.errors import Conflict
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.shards import Shards
from volcano_py.scheduler.cache.status_backoff import StatusBackoff
from volcano_py.scheduler.dispatch.pre_bind.barriers import Barrier
from volcano_py.scheduler.model.claims import resource_claims, storage
from volcano_py.scheduler.model.claims.resource_claims import ResourceClaims
from volcano_py.scheduler.model.claims.storage import Storage
from volcano_py.scheduler.noderules.volumes.volume_limits import NodeVolumeLimitsRule
from volcano_py.scheduler.noderules.volumes.volume_restrictions import VolumeRestrictionsRule


def _nothing(*_: Any, **__: Any) -> None:
    pass


def binds_wait_for_nothing() -> None:
    Barrier.passed = property(lambda self: True)  # type: ignore[assignment, method-assign]
    Barrier.start = lambda self: []  # type: ignore[method-assign]


def volumes_have_no_limit() -> None:
    def filter_all(self: NodeVolumeLimitsRule, task: Any, numbers: Any) -> Any:
        return np.zeros(len(getattr(numbers, "nodes", self._session.table)), dtype=np.int8)

    NodeVolumeLimitsRule.filter = filter_all  # type: ignore[method-assign]
    NodeVolumeLimitsRule.filter_node = lambda *_: 0  # type: ignore[method-assign]
    Storage.limits = lambda *_: {}  # type: ignore[method-assign]


def claims_for_one_pod_are_shared() -> None:
    VolumeRestrictionsRule.applies = lambda *_: False  # type: ignore[method-assign]


def reserved_volumes_are_not_assumed() -> None:
    Storage.assume = _nothing  # type: ignore[method-assign]


def allocated_devices_are_not_assumed() -> None:
    ResourceClaims.assume = _nothing  # type: ignore[method-assign]


def forgotten_devices_stay_assumed() -> None:
    ResourceClaims.forget = _nothing  # type: ignore[method-assign]


def the_second_pod_of_a_claim_shares_it_not() -> None:
    def share(users: set[str], pod: str, used: bool) -> set[str]:
        others = users - {pod}
        (users.add if used else users.discard)(pod)
        return others

    resource_claims.share = storage.share = share


def an_older_conflict_counts() -> None:
    original = StatusBackoff.rejected

    def rejected(self: StatusBackoff, op: Any, conflict: bool = False) -> None:
        for entry in self._entries.values():
            entry.decided_from.clear()
        original(self, op, conflict)

    StatusBackoff.rejected = rejected  # type: ignore[method-assign]


def nodes_of_other_shards_are_used() -> None:
    original = Shards.__init__

    def init(self: Shards, client: Any, name: str, hard: bool, *rest: Any) -> None:
        original(self, client, name, False, *rest)

    Shards.__init__ = init  # type: ignore[method-assign]


def forbidden_starts_are_made() -> None:
    original = reconcile._schedule

    def schedule(seen: Any, decision: Any, table: Any) -> None:
        active, decision.status.active = decision.status.active, None
        original(seen, decision, table)
        decision.status.active = active

    reconcile._schedule = schedule


def a_rejected_nomination_is_forgotten() -> None:
    Cache._is_unwritten = lambda *_: False  # type: ignore[method-assign]


def hypernodes_have_no_back_off() -> None:
    async def process(self: HyperNodeController, key: str) -> None:
        try:
            await self._process(key)
        except Conflict:
            self.queue.add_after(key, 0.05)
            return
        self.queue.forget(key)

    HyperNodeController.process = process  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    "binds wait for no volumes and devices": binds_wait_for_nothing,
    "the volumes of a node have no limit": volumes_have_no_limit,
    "a claim for one pod is shared": claims_for_one_pod_are_shared,
    "reserved volumes are not assumed": reserved_volumes_are_not_assumed,
    "allocated devices are not assumed": allocated_devices_are_not_assumed,
    "forgotten devices stay assumed": forgotten_devices_stay_assumed,
    "the second pod of a claim does not share it": the_second_pod_of_a_claim_shares_it_not,
    "the last conflict to arrive counts": an_older_conflict_counts,
    "nodes of other shards are used": nodes_of_other_shards_are_used,
    "a CronJob starts what it forbids": forbidden_starts_are_made,
    "a rejected nomination is forgotten": a_rejected_nomination_is_forgotten,
    "HyperNodes have no back-off after conflicts": hypernodes_have_no_back_off,
}
