"""The normalized scores of one plugin for the nodes that fit. Kubernetes: RunScorePlugins, for one plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from volcano_py.scheduler.profiles.columns import Columns, NodesAt
from volcano_py.scheduler.profiles.faults import PluginFault, contained, expect
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.rules.arrays import Indices, Ints


def normalized(plugin: Score, state: CycleState, pod: PodInfo, columns: Columns, nodes: Indices) -> Ints:
    """By the array form for the scope DOMAIN if the plugin has one, else node by node. Raises PluginFault."""
    with contained(plugin.name, "Score"):
        array = plugin.score_fitting(state, pod, columns, nodes)
    if array is not None:
        return in_range(array, plugin.name)
    infos = NodesAt(columns.infos, lambda: nodes, len(nodes))
    with contained(plugin.name, "Score"):
        scores = {n.name: plugin.score(state, pod, n) for n in infos}
        for value in scores.values():
            expect(value, int, plugin.name, "Score")
    return normalize(plugin, state, pod, infos, scores)


def normalize(
    plugin: Score, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo], scores: dict[str, int]
) -> Ints:
    """Raw scores by node, normalized and checked. Raises PluginFault."""
    with contained(plugin.name, "NormalizeScore"):
        plugin.normalize(state, pod, scores)
        _check(scores, nodes, plugin.name)
    return np.array([scores[n.name] for n in nodes], dtype=np.int64)


def in_range(scores: Ints, plugin: str) -> Ints:
    """The scores, which are from 0 to 100. Raises PluginFault."""
    invalid = scores[(scores < 0) | (scores > MAX_SCORE)]
    if len(invalid):
        raise PluginFault(plugin, "NormalizeScore", f"the score {invalid[0]} is outside of 0 to {MAX_SCORE}")
    return scores


def _check(scores: Mapping[str, int], nodes: Sequence[NodeInfo], plugin: str) -> None:
    """Check the normalized scores: whole numbers from 0 to 100 for exactly the nodes that fit."""
    for name in scores.keys() ^ {n.name for n in nodes}:
        raise PluginFault(plugin, "NormalizeScore", f"{name!r} was not in the nodes to score, or its score is missing")
    for value in scores.values():
        expect(value, int, plugin, "NormalizeScore")
        if not 0 <= value <= MAX_SCORE:
            raise PluginFault(plugin, "NormalizeScore", f"the score {value} is outside of 0 to {MAX_SCORE}")
