"""Sticky placement: the stored node, and which nodes accept the pod."""

from __future__ import annotations

import pytest

from volcano_py.scheduler.rules.sticky import accepts, annotation_of, codes, stored

COLUMNS = {"a": 0, "b": 1, "c": 2}


def test_the_annotation_of_a_pod() -> None:
    assert annotation_of("x/node", "p-0", per_pod=True) == "x/node.p-0"
    assert annotation_of("x/node", "p-0", per_pod=False) == "x/node"


@pytest.mark.parametrize(
    ("annotations", "release", "node"),
    [({"k": "a"}, False, "a"), ({"k": "gone"}, False, "gone"), ({"k": "gone"}, True, ""), ({"other": "a"}, False, "")],
)
def test_the_stored_node(annotations: dict[str, str], release: bool, node: str) -> None:
    assert stored(annotations, "k", COLUMNS, release) == node


@pytest.mark.parametrize(("node", "expected"), [("", [0, 0, 0]), ("b", [1, 0, 1]), ("gone", [1, 1, 1])])
def test_the_codes_of_nodes(node: str, expected: list[int]) -> None:
    assert codes(node, COLUMNS).tolist() == expected
    assert [int(not accepts(node, name)) for name in COLUMNS] == expected
