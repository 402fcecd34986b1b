"""nodegroup: which groups a queue may use, how much of each, and which it prefers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.scheduler.trial import Manifest, Trial, opened, tasks

LABEL = "volcano.sh/nodegroup-name"
NODES: Manifest = {
    "gold": {"cpu": 4, "labels": {LABEL: "gold"}},
    "iron": {"cpu": 4, "labels": {LABEL: "iron"}},
    "none": {"cpu": 4},
}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def affinity(towards: Manifest | None = None, away: Manifest | None = None) -> Manifest:
    return {"affinity": {"nodeGroupAffinity": towards or {}, "nodeGroupAntiAffinity": away or {}}}


def plugins(**arguments: Any) -> list[list[Any]]:
    return [["gang"], ["predicates", {"nodegroup": arguments}]]


@pytest.mark.parametrize(
    ("queue", "strict", "nodes"),
    [
        ({}, True, set()),
        ({}, False, {"none"}),
        (affinity({REQUIRED: ["gold"]}), True, {"gold"}),
        (affinity({PREFERRED: ["gold", "iron"]}, {REQUIRED: ["iron"]}), True, {"gold"}),
        (affinity({PREFERRED: ["gold"]}, {PREFERRED: ["iron"]}), True, {"gold", "iron"}),
        (affinity({REQUIRED: ["gold"]}), False, {"gold"}),
        (
            {"annotations": {"volcano.sh/nodegroup-resource-limits": "no json"}, **affinity({REQUIRED: ["gold"]})},
            True,
            set(),
        ),
    ],
)
def test_groups_that_a_queue_may_use(queue: Manifest, strict: bool, nodes: set[str]) -> None:
    jobs = {"j": {"queue": "q", "min": 1, "pods": 12, "phase": "Inqueue", "each": {"cpu": 1}}}
    trial = Trial({"nodes": NODES, "queues": {"q": queue}, "jobs": jobs}, plugins(strict=strict))
    trial.cycle()
    placed = {t.node for t in tasks(trial.report.session, "j") if t.node}
    assert placed == nodes


def test_a_limit_of_a_group_counts_the_running_pods() -> None:
    limits = json.dumps({"gold": {"cpu": "3"}})
    queue = {"annotations": {"volcano.sh/nodegroup-resource-limits": limits}, **affinity({REQUIRED: ["gold"]})}
    jobs = {
        "old": {"queue": "q", "min": 1, "phase": "Running", "each": {"cpu": 1, "runsOn": "gold"}},
        "new": {"queue": "q", "min": 1, "pods": 3, "phase": "Inqueue", "each": {"cpu": 1}},
    }
    trial = Trial({"nodes": NODES, "queues": {"q": queue}, "jobs": jobs}, plugins())
    trial.cycle()
    assert len(trial.bound) == 2


@pytest.mark.parametrize(
    ("hierarchy", "bound"),
    [(True, 1), (False, 0)],
)
def test_a_queue_may_inherit_its_affinity(hierarchy: bool, bound: int) -> None:
    queues = {"root": {}, "top": {"parent": "root", **affinity({REQUIRED: ["gold"]})}, "q": {"parent": "top"}}
    jobs = {"j": {"queue": "q", "min": 1, "phase": "Inqueue", "each": {"cpu": 1}}}
    trial = Trial({"nodes": NODES, "queues": queues, "jobs": jobs}, plugins(enableHierarchy=hierarchy))
    trial.cycle()
    assert len(trial.bound) == bound


@pytest.mark.parametrize(
    ("spec", "ordered", "rates"),
    [
        ({}, False, [0, 0, 0]),
        (affinity({REQUIRED: ["gold"], PREFERRED: ["gold", "iron"]}), False, [150, 50, 0]),
        (affinity({PREFERRED: ["iron", "gold"]}), True, [25, 50, 0]),
        (affinity({PREFERRED: ["gold"]}, {PREFERRED: ["iron"]}), False, [50, -1, 0]),
    ],
)
def test_groups_that_a_queue_prefers(spec: Manifest, ordered: bool, rates: list[float]) -> None:
    jobs = {"j": {"queue": "q", "min": 1, "phase": "Inqueue", "each": {"cpu": 1}}}
    session = opened({"nodes": NODES, "queues": {"q": spec}, "jobs": jobs}, plugins(enablePreferredOrder=ordered))
    [*_, score] = session.rules.rules_of("nodegroup")
    [task] = tasks(session)
    assert score.applies(task) and score.constant(task) is None  # type: ignore[union-attr]
    assert score.score(task, np.arange(3, dtype=np.intp)).tolist() == rates  # type: ignore[union-attr]
