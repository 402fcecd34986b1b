"""Sessions and profiles answer alike about single pods: which nodes fit, and how each rule scores them.

They differ by intention in two points, which the clusters leave out: a session rejects every pod on a node whose pods
exceed its capacity, as Volcano does; and the score by pod affinity counts the required terms of other pods in a profile
(`hardPodAffinityWeight: 1`), but not in a session.
"""

from __future__ import annotations

import os
from datetime import date

import pytest

from tests.differential.clusters import cluster
from tests.differential.comparison import differences
from volcano_py.scheduler.noderules import image_locality, ports, taints

SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))
"""New clusters each day for the slow suite; set it to repeat a day."""


def found(seed: int, count: int) -> list[str]:
    return [f"{seed} {n}: {kind}: {text}" for n in range(count) for kind, text in differences(cluster(seed, n))]


def test_a_few_clusters() -> None:
    assert found(1, 40) == []


@pytest.mark.slow
def test_many_clusters() -> None:
    assert found(SEED, 600) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (ports.UsedPorts, "in_conflict", lambda *_: set()),
        (taints.TaintTolerationRule, "applies", lambda *_: False),
        (image_locality, "scores", lambda sums, _: sums % 101),
    ],
    ids=("filter by ports", "filter by taints", "score by images"),
)
def test_a_rule_that_is_wrong_in_one_of_them_is_found(
    owner: object, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    assert found(1, 100)
