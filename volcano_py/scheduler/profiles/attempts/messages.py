"""The texts of the condition PodScheduled. Kubernetes: framework.FitError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from volcano_py.scheduler.profiles.plugin_api.status import Status


def no_node_fits(rejected: Mapping[str, Status], nodes: int, pre_filter: str = "", post_filter: str = "") -> str:
    """Why none of `nodes` nodes fits: how often each reason occurs, or the reason that a PreFilter gave for all."""
    text = f"0/{nodes} nodes are available:"
    if pre_filter:
        text += f" {pre_filter}."
    else:
        counts: Counter[str] = Counter()
        for status, n in _counted(rejected):
            for reason in status.reasons:
                counts[reason] += n
        parts = sorted(f"{n} {reason}" for reason, n in counts.items())
        text += f" {', '.join(parts)}." if parts else ""
    return f"{text} {post_filter}" if post_filter else text


def _counted(rejected: Mapping[str, Status]) -> list[tuple[Status, int]]:
    """How often each status occurs. Counts by identity first: most nodes share a few objects, and comparisons are
    slow."""
    objects = {id(status): status for status in rejected.values()}
    return [(objects[key], n) for key, n in Counter(map(id, rejected.values())).items()]
