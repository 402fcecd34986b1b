"""Deviations: where we decide better than Volcano unless told not to.

Each is a switch in the configuration, under a key that Volcano ignores:

    deviations: parity            # all off: decide exactly as Volcano
    deviations: {live-affinity-lists: false}

Rule and reason of each stand in docs/deviations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

DEVIATIONS = {
    "live-affinity-lists": "a node's first pod with affinity between pods counts at once, not from the next cycle on",
    "quiet-events": "an Event about a waiting job is repeated only when its reason changes",
    "explain-queue-limits": "a job whose queue may not take more says so in its message, where Volcano is silent",
    "fair-admission": "queues are let in by weight, and what was let in counts as demand before its pods exist",
    "protections-hold": "whom conformance, pdb, cdp or gang spare is no victim, whichever tier answers",
    "sure-evictions": "nobody is evicted for a pod that the node would refuse all the same",
    "fewest-victims": "of the nodes that evictions could free, the one that costs the fewest; nobody goes for nothing",
    "whole-gangs": "a gang that falls below its minimum is evicted whole, wherever its pods are, or not at all",
    "rank-holds": "nobody takes from a more important job, nor from a queue within its share, nor without any reason",
    "kept-nominations": "room that was freed for a pod is kept for it, so that the evicted do not take it back",
    "stale-nominations": "a promise that came to nothing does not keep a pod from making room elsewhere",
    "heal-gangs": "a gang that has lost members and finds no room for them gives its room back after a while",
    "reclaim-admits": "a job that its queue is owed is let in although the cluster is full: reclaim makes the room",
    "idle-not-overused": "a queue that holds nothing is never overused",
    "capability-first": "a queue gets nothing above its capability, also where it is guaranteed more",
    "live-branch-shares": "the share of a queue with children follows the pods placed in this cycle, not the last one",
    "partial-hierarchy": "a queue whose parent is wrong stands below root, and holds up nobody",
    "whole-best-effort": "a gang is bound only if its best-effort members, where it needs them, have a place as well",
    "partial-topology": "a HyperNode that is wrong keeps only itself out, not every job with a topology",
    "topology-from-pods": "where in the network a job is is read off its pods, not remembered from when it was placed",
    "explain-topology": "a job for which no HyperNode is large enough says so, where Volcano is silent",
    "own-verdict": "a pod is judged by itself, not by what other pods of its role were refused for",
    "image-spread-now": "an image counts by the nodes that have it now, not by those known when a node came",
    "bare-pods": "a pod without a PodGroup is a job of one task at once, before the controller has made its group",
}
"""id → what is decided when it is on."""

PARITY: frozenset[str] = frozenset()
DEFAULT: frozenset[str] = frozenset(DEVIATIONS)


def read(setting: Any) -> tuple[frozenset[str], list[str]]:
    """The deviations that are on, and what is wrong with the setting."""
    if setting is None:
        return DEFAULT, []
    if setting == "parity":
        return PARITY, []
    if not isinstance(setting, Mapping):
        return DEFAULT, [f"deviations: {setting!r} is neither `parity` nor a map from id to true or false"]
    on = set(DEFAULT)
    wrong = []
    for name, value in setting.items():
        if name not in DEVIATIONS:
            near = get_close_matches(str(name), DEVIATIONS, 1)
            wrong.append(f"deviations: {name} is unknown" + (f"; did you mean {near[0]}?" if near else ""))
        elif not isinstance(value, bool):
            wrong.append(f"deviations: {name} is {value!r}, it must be true or false")
        elif value:
            on.add(name)
        else:
            on.discard(name)
    return frozenset(on), wrong
