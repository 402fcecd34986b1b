"""The rule about images: the images of nodes and of a pod to scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.scheduler.rules.images import NodeImages, scores

MIB = 1 << 20


def node(**sizes: int) -> Any:
    images = [{"names": [name], "sizeBytes": size * MIB} for name, size in sizes.items()]
    return from_manifest(Node, {"metadata": {"name": "n"}, "status": {"images": images}})


NODES = [node(a=400, b=100), node(), node(a=800), node(b=100, c=8)]


@pytest.mark.parametrize(
    ("images", "expected", "when_added"),
    [
        ([], [0, 0, 0, 0], [0, 0, 0, 0]),
        (["a"], [200, 0, 200, 0], [100, 0, 200, 0]),  # on 2 of 4 nodes, with the size that the first one states
        (["a", "b"], [250, 0, 200, 50], [125, 0, 200, 50]),
        (["c", "unknown"], [0, 0, 0, 2], [0, 0, 0, 2]),
    ],
)
def test_sums(images: list[str], expected: list[int], when_added: list[int]) -> None:
    found = NodeImages(NODES)
    assert (found.sums(images) // MIB).tolist() == expected
    assert (found.sums_when_added(images) // MIB).tolist() == when_added


def test_the_size_is_that_of_the_first_node_in_their_own_order() -> None:
    assert (NodeImages(NODES, NODES[::-1]).sums(["a"]) // MIB).tolist() == [400, 0, 400, 0]
    assert not NodeImages([node()]) and NodeImages(NODES)


@pytest.mark.parametrize(
    ("mib", "containers", "expected"),
    [(0, 1, 0), (23, 1, 0), (1000, 1, 100), (5000, 1, 100), (511, 1, 49), (512, 1, 50), (1000, 2, 49), (1000, 0, 100)],
)
def test_scores(mib: int, containers: int, expected: int) -> None:
    assert scores(np.array([mib * MIB]), containers).tolist() == [expected]
