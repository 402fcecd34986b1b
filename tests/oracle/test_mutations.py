"""Each rule behind the promises, made wrong: the oracle finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.oracle.families import drawn
from tests.oracle.playing import play
from tests.oracle.verdicts import judge
from volcano_py.scheduler.actions.eviction import commit_evictions, entitled_attempt
from volcano_py.scheduler.actions.eviction.victims import units
from volcano_py.scheduler.actions.placing import allocate_job, arrangement, place_tasks, sub_job_arrangement
from volcano_py.scheduler.actions.placing.arrangement import Lacking
from volcano_py.scheduler.framework.extension_points.queues import Loan
from volcano_py.scheduler.model.jobs.shadow_groups import ShadowGroups
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins import proportion
from volcano_py.scheduler.plugins.capacity import queue_tree, victims
from volcano_py.scheduler.plugins.queue_shares import lending

MOST = 1_000
"""Clusters within which a mutation is found."""
Patch = pytest.MonkeyPatch


def without_guarantees(patch: Patch) -> None:
    original = victims.CapacityVictims.lends

    def lends(self: victims.CapacityVictims, loan: Loan) -> float | None:
        branch = self.tree.nodes[loan.lender.name].branch
        kept = [q.guarantee for q in branch]
        for q in branch:
            q.guarantee = Resource()
        try:
            return original(self, loan)
        finally:
            for q, guarantee in zip(branch, kept, strict=True):
                q.guarantee = guarantee

    patch.setattr(victims.CapacityVictims, "lends", lends)


def single_pods_only(patch: Patch) -> None:
    original = units.units_of

    def units_of(*args: Any) -> list[units.Unit]:
        return [unit for unit in original(*args) if len(unit.tasks) == 1]

    patch.setattr(entitled_attempt, "units_of", units_of)


def without_roles(patch: Patch) -> None:
    original = arrangement.lacking
    patch.setattr(place_tasks, "lacking", lambda *args: Lacking(original(*args).members, {}))


def all_resources_are_short(patch: Patch) -> None:
    def requested(_: Any, tasks: list[Task], __: Any) -> frozenset[str]:
        return frozenset(d for task in tasks for d in task.request.names())

    patch.setattr(entitled_attempt, "short_resources", requested)


def every_pod_is_above_the_minimum(patch: Patch) -> None:
    for module in (units, entitled_attempt):
        patch.setattr(module, "above_minimum", lambda *_: True)


MUTATIONS: dict[str, tuple[str, Callable[[Patch], None]]] = {
    "a queue is entitled to everything": (
        "capacity", lambda p: p.setattr(victims, "stays_within", lambda *_: True)),
    "every queue holds more than it deserves": (
        "capacity in a tree", lambda p: p.setattr(lending, "is_above", lambda *_: True)),
    "all requested resources are short": ("capacity", all_resources_are_short),
    "a guarantee holds nothing": ("capacity", without_guarantees),
    "resources that no queue deserves are reclaimed": (
        "capacity", lambda p: p.setattr(
            victims.CapacityVictims, "_named", lambda *_: frozenset({"cpu", "memory", "example.com/gpu"}))),
    "whole jobs are never evicted": ("capacity", single_pods_only),
    "every pod is above the minimum": ("capacity", every_pod_is_above_the_minimum),
    "leaves of a tree are compared": (
        "capacity in a tree", lambda p: p.setattr(queue_tree.QueueTree, "below_common", lambda _, a, b: (a, b))),
    "a parent deserves nothing of its own": (
        "capacity in a tree", lambda p: p.setattr(queue_tree, "_sum_up", lambda _: None)),
    "shares afterwards do not count": ("proportion", lambda p: p.setattr(proportion, "_ROUNDING", float("inf"))),
    "shares are never exceeded": ("proportion", lambda p: p.setattr(proportion, "_may_round_up", lambda *_: False)),
    "no other arrangement is tried": ("fits", lambda p: p.setattr(place_tasks, "arranged", lambda *_: None)),
    "roles do not count": ("fits", without_roles),
    "the search ends after the first descent": ("fits", lambda p: p.setattr(arrangement, "MOST_MEMBERS", 0)),
    "no other arrangement in a rack": ("racks", lambda p: p.setattr(place_tasks, "arranged", lambda *_: None)),
    "sub-groups get their racks one after the other": (
        "sub-groups", lambda p: p.setattr(allocate_job, "arranged_sub_jobs", lambda *_: None)),
    "one combination of racks is tried": (
        "sub-groups", lambda p: p.setattr(sub_job_arrangement, "MOST_COMBINATIONS", 1)),
    "no other arrangement on cards": ("devices", lambda p: p.setattr(place_tasks, "arranged", lambda *_: None)),
    "no pod waits for the PodGroup of its owner": (
        "groups by controllers", lambda p: p.setattr(ShadowGroups, "awaits_group", lambda *_: False)),
    "no gang falls below its minimum": ("preempt", lambda p: p.setattr(commit_evictions, "_falls", lambda *_: False)),
}  # fmt: skip
"""What becomes wrong → the family of clusters that shows it, and how."""


def found(family: str) -> Iterator[dict[str, str]]:
    for number in range(MOST):
        wrong = judge(family, play(drawn(family, 1, number)))
        if wrong:
            yield wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_oracle_finds_a_mutation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, mutate = MUTATIONS[name]
    mutate(monkeypatch)
    assert next(found(family), None) is not None, f"{MOST} clusters do not show it"
