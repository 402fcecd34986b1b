"""percentageOfNodesToScore: where the search begins and ends."""

from __future__ import annotations

import numpy as np
import pytest

from volcano_py.scheduler.profiles.attempts.node_sample import NodeSample
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError, load

ALL = np.arange(1000)


def test_without_a_percentage_all_nodes_are_used() -> None:
    assert NodeSample(0).take(ALL, 1000).tolist() == ALL.tolist()


def test_the_search_ends_when_enough_nodes_fit_and_continues_there() -> None:
    sample = NodeSample(40)
    assert sample.take(ALL, 1000).tolist() == list(range(400))
    assert sample.take(ALL, 1000, lambda i: i % 2 == 0).tolist() == [*range(400, 1000, 2), *range(0, 200, 2)]
    assert sample.take(ALL, 1000)[0] == 199


def test_the_minimum_of_a_hundred_nodes() -> None:
    assert len(NodeSample(5).take(ALL, 1000)) == 100
    assert len(NodeSample(5).take(ALL[:99], 99)) == 99


def test_when_too_few_fit_all_nodes_are_evaluated_and_the_start_is_kept() -> None:
    sample = NodeSample(50)
    assert sample.take(ALL[:300], 1000).tolist() == list(range(300))
    assert sample.take(ALL, 1000)[0] == 0


def test_a_profile_has_its_own_percentage_or_that_of_the_file() -> None:
    found = load(
        {"percentageOfNodesToScore": 30, "profiles": [{}, {"schedulerName": "b", "percentageOfNodesToScore": 0}]}
    )
    assert [p.percentage for p in found.profiles] == [30, 0]
    with pytest.raises(ProfilesConfigurationError, match="percentageOfNodesToScore 101 is out of range"):
        load({"percentageOfNodesToScore": 101})
