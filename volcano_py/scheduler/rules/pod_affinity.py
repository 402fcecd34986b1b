"""Affinity and anti-affinity between pods. kube-scheduler: InterPodAffinity.

A front end counts the pods that terms select, by topology domain; the rule reads the counts around a node: as numbers
for one node, as arrays for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from volcano_py.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from volcano_py.api.selector import is_empty, matches
from volcano_py.scheduler.rules.arrays import Ints

NOT_NEAR, TOO_NEAR, UNWANTED = 1, 2, 3
"""Why a node is rejected: by the pod's affinity, its anti-affinity, or the anti-affinity of other pods."""


class AffinityTerm:
    """An affinity term of one pod, with its namespaces. Weights of anti-affinity are negative."""

    __slots__ = ("key", "namespaces", "selector", "spaces", "weight")

    def __init__(self, term: PodAffinityTerm, owner: str, weight: int = 0) -> None:
        named = term.namespaces or ()
        own = not named and term.namespace_selector is None
        self.namespaces = frozenset((owner,)) if own else frozenset(named)
        self.spaces = term.namespace_selector
        self.selector = term.label_selector
        self.key = term.topology_key
        self.weight = weight

    def selects(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None = None
    ) -> bool:
        """Whether the term selects a pod whose namespace has these labels. A term of an existing pod reads a namespace
        without an object as one without labels; the terms of the pod to be placed are `resolved` first."""
        if namespace in self.namespaces or matches(self.spaces, namespace_labels):
            return matches(self.selector, labels)
        return False

    @property
    def means(self) -> tuple[frozenset[str], bytes]:
        """A key that is equal for terms that select the same pods."""
        return self.namespaces, msgspec.msgpack.encode((self.selector, self.spaces))

    def resolved(self, namespaces: Mapping[str, Mapping[str, str]]) -> AffinityTerm:
        """The term with the names of the namespaces that its selector matches now. As in kube-scheduler, a selector
        without requirements also matches namespaces without an object."""
        if self.spaces is None or is_empty(self.spaces):
            return self
        other = object.__new__(AffinityTerm)
        other.spaces, other.selector, other.key, other.weight = None, self.selector, self.key, self.weight
        other.namespaces = self.namespaces | {n for n, labels in namespaces.items() if matches(self.spaces, labels)}
        return other


class PodTerms(NamedTuple):
    """The affinity terms between pods of a pod."""

    affinity: list[AffinityTerm]
    anti_affinity: list[AffinityTerm]
    preferred: list[AffinityTerm]

    def all(self) -> Iterator[AffinityTerm]:
        for terms in self:
            yield from terms

    def resolved(self, namespaces: Mapping[str, Mapping[str, str]]) -> PodTerms:
        """With the namespaces that their selectors match now."""
        return PodTerms(*([t.resolved(namespaces) for t in terms] for terms in self))

    def __bool__(self) -> bool:
        return any(self)


NO_TERMS = PodTerms([], [], [])


def terms_of(affinity: Affinity | None, owner: str) -> PodTerms:
    """The terms of a pod in the namespace `owner`."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return PodTerms(
        _required(near, owner), _required(far, owner), [*_preferred(near, owner, 1), *_preferred(far, owner, -1)]
    )


def _required(affinity: PodAffinity | None, owner: str) -> list[AffinityTerm]:
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return [AffinityTerm(t, owner) for t in terms or ()]


def _preferred(affinity: PodAffinity | None, owner: str, sign: int) -> list[AffinityTerm]:
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
    return [AffinityTerm(t.pod_affinity_term, owner, sign * t.weight) for t in terms or ()]


def is_near(required: Iterable[tuple[Any, Any]], first: bool) -> Any:
    """Whether a node has all topology keys, and the pods that all required terms select together are in its domains.

    `required`: for each term whether a node has the key, and the number of pods in its domain. `first`: the pod is the
    first of a group with affinity to itself: there are no such pods, and its terms select itself.
    """
    has_keys, near = True, True
    for has, count in required:
        has_keys, near = has & has_keys, (count > 0) & near
    return has_keys & (near | first)


def is_any(counts: Iterable[Any]) -> Any:
    """Whether there is a pod in one of the domains of a node: one that the pod's anti-affinity selects, or one whose
    anti-affinity selects the pod."""
    found: Any = False
    for count in counts:
        here = count > 0
        found = here if found is False else found | here
    return found


def scores(sums: Ints) -> Ints:
    """From 0 for the lowest sum of weights to 100 for the highest; 0 if all are equal."""
    low, high = (sums.min(), sums.max()) if len(sums) else (0, 0)
    if high == low:
        return np.zeros(len(sums), dtype=np.int64)
    return np.trunc(100.0 * ((sums - low) / (high - low))).astype(np.int64)
