"""Machine groups: which group a pod has, and which nodes accept it."""

from __future__ import annotations

import pytest

from volcano_py.api.core import Node
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.rules.machine_groups import GroupRejection, Membership, NodeOwners

PRIVATE, NOT_OWN = (int(code) for code in GroupRejection)
MEMBERSHIP = Membership("team", {"q": "of-queue"}, {"space": "of-space"})


@pytest.mark.parametrize(
    ("labels", "queue", "namespace", "group"),
    [
        ({"team": "own"}, "q", "space", "own"),
        ({"team": ""}, "q", "space", "of-queue"),
        ({}, "other", "space", "of-space"),
        ({}, "other", "other", ""),
    ],
)
def test_the_group_of_a_pod(labels: dict[str, str], queue: str, namespace: str, group: str) -> None:
    assert MEMBERSHIP.group_of(labels, queue, namespace) == group


@pytest.mark.parametrize(
    ("group", "spill", "codes"),
    [
        ("red", False, [0, PRIVATE, NOT_OWN, 0]),
        ("red", True, [0, PRIVATE, 0, 0]),
        ("", False, [PRIVATE, PRIVATE, 0, PRIVATE]),
        ("green", False, [PRIVATE, PRIVATE, NOT_OWN, PRIVATE]),
    ],
)
def test_the_codes_of_nodes(group: str, spill: bool, codes: list[int]) -> None:
    nodes = [Node(metadata=ObjectMeta(name="n", labels={"g": g} if g else None)) for g in ("red", "blue", "", "red")]
    assert NodeOwners(nodes, "g").codes(group, spill).tolist() == codes
