"""Bundles: which tasks a gang can lose alone, and which bundle covers a request best."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, names, opened, tasks
from volcano_py.scheduler.actions.eviction.victims.bundles import (
    Bundle,
    bundles_of,
    completed,
    enough,
    flattened,
    in_order,
    only_allowed,
    requests,
    serves,
    use,
)
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.resource import Resource


def session(**jobs: Manifest) -> Session:
    """A session with jobs whose tasks all run."""
    for job in jobs.values():
        job.setdefault("phase", "Running")
        for task in (job.get("tasks") or {"": job.setdefault("each", {"cpu": 1})}).values():
            task.setdefault("runsOn", "n1")
    return opened({"nodes": {"n1": {"cpu": 64}}, "jobs": jobs}, [["gang"]])


def split(found: Session, job: str = "j") -> dict[bool, list[str]]:
    """The tasks that are evicted only as a whole, and those that can be evicted alone."""
    of = found.jobs[f"default/{job}"]
    return {b.whole: names(b.tasks) for b in bundles_of(of, tasks(found, job), found.statuses)}


@pytest.mark.parametrize(
    ("minimum", "spared"),
    [(0, 3), (1, 2), (3, 0), (4, 3)],  # below its minimum no task is kept
)
def test_tasks_beyond_the_minimum_can_be_evicted_alone(minimum: int, spared: int) -> None:
    found = split(session(j={"min": minimum, "pods": 3}))
    assert len(found.get(False, [])) == spared and len(found.get(True, [])) == 3 - spared


def test_the_least_important_tasks_are_evicted_first() -> None:
    roles = {name: {"cpu": 1, "spec": {"priority": p}} for name, p in (("a", 5), ("b", 1), ("c", 3))}
    assert split(session(j={"min": 1, "tasks": roles})) == {False: ["j-b-0", "j-c-0"], True: ["j-a-0"]}


def test_every_role_keeps_its_minimum() -> None:
    roles = {"ps": {"pods": 2, "cpu": 1}, "w": {"pods": 2, "cpu": 1}}
    job = {"min": 2, "tasks": roles, "minTask": {"ps": 1, "w": 1}}
    assert split(session(j=job)) == {False: ["j-ps-0", "j-w-0"], True: ["j-ps-1", "j-w-1"]}
    job = {"min": 1, "tasks": roles, "minTask": {"ps": 1, "w": 1}}
    assert len(split(session(j=job))[False]) == 3, "minimums above that of the job are ignored"


def ranks(count: int, least: int) -> Manifest:
    tasks: dict[str, Any] = {f"r{i}": {"pods": 2, "cpu": 1, "labels": {"rank": str(i)}} for i in range(count)}
    return {"min": 2, "tasks": tasks, "subGroups": {"g": {"size": 2, "min": least, "by": ["rank"]}}}


def test_the_required_number_of_sub_jobs_is_kept_whole() -> None:
    """The first rank is partly evicted, since one of two is enough; then the second one is kept whole."""
    found = session(j=ranks(2, 1))
    for sub in found.jobs["default/j"].sub_jobs.values():
        assert sub.min_available == 2
    assert split(found) == {False: ["j-r0-0", "j-r0-1"], True: ["j-r1-0", "j-r1-1"]}
    assert split(session(j=ranks(2, 2))) == {True: ["j-r0-0", "j-r0-1", "j-r1-0", "j-r1-1"]}


def bundle(found: Session, job: str, whole: bool, count: int = 9) -> Bundle:
    of = tasks(found, job)[:count]
    all_of_it = requests(tasks(found, job)) if whole else Resource()
    return Bundle(found.jobs[f"default/{job}"], of, whole, requests(of), all_of_it)


def test_bundles_are_ordered_by_gang_policy_and_benefit() -> None:
    found = session(a={"pods": 1}, b={"pods": 2}, c={"pods": 1})
    safe, much, little = bundle(found, "a", False), bundle(found, "b", True), bundle(found, "b", True, 1)
    need = Resource(2000)
    assert in_order([little, much, safe], need, lambda *_: False) == [safe, much, little]
    assert in_order([much, little, safe], need, lambda *_: True) == [safe, much, little], "the order has no preference"
    need = Resource(1000)
    first, second = bundle(found, "b", True), bundle(found, "c", True)
    assert in_order([first, second], need, lambda a, b: a.name == "c" and b.name == "b") == [second, first]
    assert in_order([second, first], need, lambda *_: False) == [second, first], "a whole one that loses half as much"
    same = bundle(found, "a", True)
    assert in_order([second, same], need, lambda *_: False) == [same, second], "by name, if nothing else"
    assert in_order([same, same], need, lambda *_: False) == [same, same]


def test_which_part_of_a_request_a_bundle_covers() -> None:
    found = session(a={"pods": 2})
    assert serves(Resource(500, 3), Resource(1000, 1)) == 1.5 and serves(Resource(5), Resource()) == 0
    assert serves(Resource(500, 3), Resource(1000, 1), 9) == 3.5
    assert use(bundle(found, "a", False), Resource(1000)) == float("inf")
    assert use(bundle(found, "a", True, 1), Resource(1000)) == 0.5


def test_protected_pods_shrink_partial_bundles_and_remove_whole_ones() -> None:
    found = session(a={"pods": 2}, b={"pods": 2}, c={"pods": 2})
    bundles = [bundle(found, "a", False), bundle(found, "b", True), bundle(found, "c", False)]
    allowed = {t.uid for t in [*tasks(found, "a")[:1], *tasks(found, "b")[:1], *tasks(found, "c")]}
    [a, c] = only_allowed(bundles, allowed)
    assert names(a.tasks) == ["a-0"] and a.local == Resource(1000, 0, {"pods": 1}) and c is bundles[2]
    assert only_allowed(bundles, set()) == []


@pytest.mark.parametrize(
    ("cpus", "whole", "jobs"), [(1, True, "a"), (2, True, "ab"), (2, False, "ac"), (9, True, "abc")]
)
def test_bundles_are_added_until_the_request_is_covered(cpus: int, whole: bool, jobs: str) -> None:
    found = session(a={"pods": 1}, b={"pods": 1}, c={"pods": 1})
    bundles = [bundle(found, "a", False), bundle(found, "b", True), bundle(found, "c", False)]
    assert "".join(b.job.name for b in enough(bundles, Resource(cpus * 1000), whole)) == jobs
    assert names(flattened(bundles)) == ["a-0", "b-0", "c-0"]


@pytest.mark.parametrize(
    ("other", "whole"),
    [
        ({}, ["j-a-0", "j-b-0"]),
        ({"annotations": {"volcano.sh/preemptable": "false"}}, None),
    ],
)
def test_a_whole_bundle_includes_all_of_its_gang_or_is_left_out(other: Manifest, whole: list[str] | None) -> None:
    preemptable = {"annotations": {"volcano.sh/preemptable": "true"}}
    roles = {"a": {"cpu": 1, **preemptable}, "b": {"cpu": 1, **preemptable, **other}}
    found = session(j={"min": 2, "tasks": roles})
    [here, _] = tasks(found, "j")
    made = completed(found, bundle(found, "j", True)._replace(tasks=[here]))
    assert (names(made.tasks) if made else None) == whole


def test_members_that_are_being_bound_keep_the_gang_whole() -> None:
    found = session(j={"min": 2, "pods": 2})
    here, elsewhere = tasks(found, "j")
    found.statuses[elsewhere.slot] = st.BINDING
    assert completed(found, bundle(found, "j", True)._replace(tasks=[here])) is None
