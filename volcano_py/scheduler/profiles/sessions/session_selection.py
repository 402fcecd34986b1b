"""Which plugins of a profile take part when the session places a pod of that profile. Not in Kubernetes.

A session places gangs. The plugins of its own configuration evaluate what kube-scheduler's default plugins evaluate, so
those of a profile are called only if the profile configures more for them. All other filters and scores of the profile
are called. What remains are points that a session does not have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import msgspec

from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Filter,
    NodesFilter,
    PostBind,
    PreEnqueue,
    PreFilter,
    Score,
)
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.registry import Registration, Registry

FILTERS_WITH_MORE = ("NodeAffinity", "PodTopologySpread")
"""Default plugins whose arguments can make them reject more than the session does: `addedAffinity`,
`defaultConstraints`."""
SCORES_WITH_MORE = (
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
)
"""Default plugins whose arguments change their scores."""
_TAKE_PART = ("preEnqueue", "preFilter", "filter", "score", "postBind")
_NOT_FOR_GANGS = ("queueSort", "postFilter", "reserve", "permit", "preBind", "bind")


class Selection(NamedTuple):
    """The plugins that take part, in the order of the profile, and what does not."""

    pre_enqueue: list[PreEnqueue]
    pre_filter: list[PreFilter]
    filter: list[Filter]
    score: list[tuple[Score, int]]
    """With their weights."""
    post_bind: list[PostBind]
    left_out: list[tuple[str, str]]
    """(point, plugin) of rules that do not hold for pods that the session places."""

    def __bool__(self) -> bool:
        return bool(self.pre_enqueue or self.pre_filter or self.filter or self.score or self.post_bind)

    def without(self, names: Collection[str]) -> Selection:
        """The same without some plugins."""
        if not names:
            return self
        return Selection(
            [p for p in self.pre_enqueue if p.name not in names],
            [p for p in self.pre_filter if p.name not in names],
            [p for p in self.filter if p.name not in names],
            [(p, weight) for p, weight in self.score if p.name not in names],
            [p for p in self.post_bind if p.name not in names],
            self.left_out,
        )


def select(profile: Profile, registry: Registry) -> Selection:
    """The plugins of a profile that take part."""
    points = profile.config.points

    def at(point: str, with_more: tuple[str, ...] = ()) -> Iterator[Any]:
        for name in points[point]:
            if not registry[name].default or (name in with_more and _configures(profile, name, registry[name])):
                yield profile.plugins[name]

    filters = [p for p in at("filter", FILTERS_WITH_MORE) if not isinstance(p, NodesFilter)]
    # A plugin that holds pods, and filters no nodes, decides about gangs of its own at the points before.
    absent = {p.name for p in profile.plugins.values() if isinstance(p, NodesFilter)}
    absent |= {p.name for p in at("permit") if p not in filters}
    left_out = [(point, p.name) for point in _TAKE_PART for p in at(point) if p.name in absent]
    left_out += [(point, p.name) for point in _NOT_FOR_GANGS for p in at(point)]
    return Selection(
        [p for p in at("preEnqueue") if p.name not in absent],
        [p for p in at("preFilter", FILTERS_WITH_MORE) if p.name not in absent],
        filters,
        [(p, profile.config.weights.get(p.name, 1)) for p in at("score", SCORES_WITH_MORE) if p.name not in absent],
        [p for p in at("postBind") if p.name not in absent],
        left_out,
    )


def _configures(profile: Profile, name: str, registration: Registration) -> bool:
    """Whether a profile sets an argument of a default plugin to something else than the default."""
    return bool(profile.config.arguments[name] != msgspec.convert({}, registration.arguments))


def left_out_text(profile: str, selection: Selection) -> str:
    """What does not hold for gangs of a profile, as a sentence; empty: all rules hold."""
    if not selection.left_out:
        return ""
    listed = ", ".join(f"{point} of {plugin}" for point, plugin in selection.left_out)
    return (
        f"profile {profile}: not called for pods of gangs, which the session places: {listed}; the profile's other "
        "rules are"
    )
