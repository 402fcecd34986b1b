"""Sub-jobs: their tasks, the constraints of their topology, and their counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import opened
from volcano_py.api.codec import from_manifest
from volcano_py.api.scheduling import NetworkTopology, SubGroupPolicy
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import (
    TierConstraint,
    constraint,
    match_index,
    match_values,
    sub_job_uid,
)
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st


def policy(**spec: Any) -> SubGroupPolicy:
    made: SubGroupPolicy = from_manifest(SubGroupPolicy, {"name": "p", **spec})
    return made


@pytest.mark.parametrize(
    ("topology", "found"),
    [
        (None, None),
        ({"mode": "soft", "highestTierAllowed": 1}, TierConstraint(9)),
        ({"mode": "hard", "highestTierAllowed": 1, "highestTierName": "row"}, TierConstraint(1)),
        ({"mode": "hard", "highestTierName": "row"}, TierConstraint(2)),
        ({"mode": "hard", "highestTierName": "unknown"}, TierConstraint(None)),
        ({"mode": "hard"}, TierConstraint(None)),
        ({"mode": "loose", "highestTierAllowed": 1}, TierConstraint(None)),
    ],
)
def test_constraints_of_a_topology(topology: dict[str, Any] | None, found: TierConstraint | None) -> None:
    given = None if topology is None else from_manifest(NetworkTopology, topology)
    assert constraint(given, {"row": 2}, 9) == found
    assert found is None or found.hard is (found.tier is not None)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"matchLabelKeys": ["rank"]}, ["1"]),
        ({"matchLabelKeys": ["rank", "kind"]}, ["1", "x"]),
        ({"matchLabelKeys": ["rank", "missing"]}, None),
        ({"matchLabelKeys": ["rank"], "labelSelector": {"matchLabels": {"kind": "x"}}}, ["1"]),
        ({"matchLabelKeys": ["rank"], "labelSelector": {"matchLabels": {"kind": "y"}}}, None),
        ({"matchLabelKeys": ["rank"], "labelSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}, None),
    ],
)
def test_pods_of_a_policy(spec: dict[str, Any], values: list[str] | None) -> None:
    assert match_values(policy(**spec), {"rank": "1", "kind": "x"}) == values


def test_names() -> None:
    assert sub_job_uid("d/j", "p", ["1", "x"]) == "d/j/p-1-x"
    long = sub_job_uid("d/j", "p", ["v" * 129])
    assert long == sub_job_uid("d/j", "p", ["v" * 129]) != sub_job_uid("d/j", "p", ["v" * 130])
    assert len(long) < 30 and not set(long.rpartition("-")[2]) & set("aeiou013")
    assert [match_index([text]) for text in ("7", "-2", "+3", "x1", "", "٣")] == [7, -2, 3, 0, 0, 0]


def session() -> tuple[Session, SessionJob]:
    """A job of two ranks, of which the first runs, and one pod without a rank."""
    ranks = {
        f"r{i}": {"pods": 2, "cpu": 1, "labels": {"rank": str(i)}, **({"runsOn": "n0"} if not i else {})}
        for i in range(2)
    }
    job = {"min": 4, "tasks": {**ranks, "lone": {"pods": 1}}, "subGroups": {"g": {"size": 2, "min": 2, "by": ["rank"]}}}
    scenario = {"nodes": {"n0": {}}, "hyperNodes": {"h": {"tier": 1, "nodes": ["n0"]}}, "jobs": {"j": job}}
    found = opened(scenario, [["gang"]])
    return found, found.jobs["default/j"]


def test_every_task_is_in_one_sub_job() -> None:
    _, job = session()
    assert {uid: len(sub.tasks) for uid, sub in job.sub_jobs.items()} == {
        "default/j": 1,
        "default/j/g-0": 2,
        "default/j/g-1": 2,
    }
    assert job.has_policies and job.min_sub_jobs == {"default/j/g": 2} and not job.has_topology
    assert not job.check_sub_jobs(lambda sub: sub.is_ready()) and job.check_sub_jobs(lambda _: True)


def test_counts_move_with_their_tasks() -> None:
    s, job = session()
    running, waiting = job.sub_jobs["default/j/g-0"], job.sub_jobs["default/j/g-1"]
    assert running.is_ready() and not running.is_starving() and running.ready_num == running.allocated_num == 2
    assert waiting.is_starving() and not waiting.is_pipelined() and not waiting.is_ready()
    assert waiting.pending_request(s.statuses).milli_cpu == 2000 and running.pending_request(s.statuses).is_empty()
    for task in waiting.tasks.values():
        s.moves.place(task, 0, st.PIPELINED)
    assert waiting.is_pipelined() and not waiting.is_starving() and not waiting.is_ready()
    lone = job.sub_jobs["default/j"]
    [nothing] = lone.tasks.values()
    assert lone.pending_best_effort == 1 and lone.is_ready()
    s.moves.place(nothing, 0, st.ALLOCATED)
    assert lone.pending_best_effort == 0 and lone.is_ready() and lone.ready_num == 1


def test_a_rejected_role_is_rejected_as_a_whole() -> None:
    _, job = session()
    sub = job.sub_jobs["default/j/g-1"]
    first, second = sub.tasks.values()
    assert not sub.task_has_fit_errors(second)
    sub.fit_failed_roles |= {first.role}
    assert sub.task_has_fit_errors(second)
    job.forget_fit_errors(sub)
    assert not sub.task_has_fit_errors(second)
