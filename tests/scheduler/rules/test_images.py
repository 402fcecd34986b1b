"""Images: what the images of a pod add on each node, and the score that follows."""

from __future__ import annotations

import numpy as np

from volcano_py.api.core import ContainerImage, Node, NodeStatus
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.rules.images import NodeImages, scores

MIB = 1024 * 1024


def node(name: str, **images: int) -> Node:
    held = [ContainerImage(names=[image], size_bytes=size * MIB) for image, size in images.items()]
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(images=held))


def test_an_image_counts_by_the_part_of_the_nodes_that_have_it() -> None:
    nodes = NodeImages([node("a", big=400), node("b", big=400, small=100), node("c"), node("d")])
    assert nodes.worth == {"big": 200 * MIB, "small": 25 * MIB}
    assert (nodes.sums(["big", "small", "unknown"]) // MIB).tolist() == [200, 225, 0, 0]


def test_an_image_has_the_size_that_the_first_node_states() -> None:
    first, second = node("a", i=300), node("b", i=100)
    assert NodeImages([second, first]).worth == {"i": 100 * MIB}
    assert NodeImages([second, first], as_they_came=[first, second]).worth == {"i": 300 * MIB}


def test_when_a_node_was_added_only_earlier_ones_count() -> None:
    nodes = NodeImages([node("a", i=400), node("b", i=400)])
    assert (nodes.sums_when_added(["i"]) // MIB).tolist() == [200, 400]


def test_scores_are_0_below_the_threshold_and_100_above_the_highest_for_each_container() -> None:
    sums = np.array([0, 23, 500, 1000, 5000], dtype=np.int64) * MIB
    assert scores(sums, 1).tolist() == [0, 0, 48, 100, 100]
    assert scores(sums, 2).tolist() == [0, 0, 24, 49, 100]


def test_no_images_and_no_nodes() -> None:
    assert not NodeImages([]) and not NodeImages([node("a")]) and NodeImages([node("a", i=1)])
    assert NodeImages([node("a")]).sums(["i"]).tolist() == [0]
