"""The rule about affinity between pods: terms to selected pods, counts to results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano_py.api.affinity import Affinity, PodAffinityTerm
from volcano_py.api.codec import from_manifest
from volcano_py.scheduler.rules.pod_affinity import AffinityTerm, is_any, is_near, scores, terms_of

WEB = {"matchLabels": {"app": "web"}}
NAMESPACES = {"own": {}, "dev": {"env": "dev"}, "prod": {"env": "prod"}}
IN_DEV = {"matchLabels": {"env": "dev"}}
NOT_DEV = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}
TABLE: dict[str, tuple[dict[str, Any], str, str]] = {
    # the term of a pod in the namespace `own`: the namespaces whose pods with app=web it selects, as a term of the pod
    # to be placed, and as a term of an existing pod; `gone` has no object
    "its own namespace": ({}, "own", "own"),
    "named ones": ({"namespaces": ["dev", "gone"]}, "dev gone", "dev gone"),
    "by selector": ({"namespaceSelector": IN_DEV}, "dev", "dev"),
    "by selector or name": ({"namespaceSelector": IN_DEV, "namespaces": ["own"]}, "own dev", "own dev"),
    "all": ({"namespaceSelector": {}}, "own dev prod gone", "own dev prod gone"),
    # a namespace without an object is one without labels for existing pods only
    "by an absent label": ({"namespaceSelector": NOT_DEV}, "own prod", "own prod gone"),
}


@pytest.mark.parametrize(("fields", "to_place", "existing"), TABLE.values(), ids=TABLE)
def test_namespaces(fields: dict[str, Any], to_place: str, existing: str) -> None:
    term = AffinityTerm(from_manifest(PodAffinityTerm, {"labelSelector": WEB, "topologyKey": "zone", **fields}), "own")
    resolved = term.resolved(NAMESPACES)
    names = ("own", "dev", "prod", "gone")
    assert " ".join(n for n in names if resolved.selects(n, {"app": "web"})) == to_place
    assert " ".join(n for n in names if term.selects(n, {"app": "web"}, NAMESPACES.get(n))) == existing
    assert not any(resolved.selects(n, {"app": "db"}) for n in names)


def test_terms_of_a_pod() -> None:
    term = {"labelSelector": WEB, "topologyKey": "zone"}
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    affinity = from_manifest(
        Affinity,
        {
            "podAffinity": {required: [term], preferred: [{"weight": 5, "podAffinityTerm": term}]},
            "podAntiAffinity": {
                required: [{**term, "topologyKey": "host"}],
                preferred: [{"weight": 7, "podAffinityTerm": term}],
            },
        },
    )
    found = terms_of(affinity, "own")
    assert [[(t.key, t.weight) for t in terms] for terms in found] == [
        [("zone", 0)],
        [("host", 0)],
        [("zone", 5), ("zone", -7)],
    ]
    assert found and len(list(found.all())) == 4
    assert not terms_of(None, "own") and not terms_of(Affinity(), "own")


NEAR = {
    # for each term (has the key, pods in the domain), the pod is the first of its group: result
    "no terms": ([], False, True),
    "a pod in the domain": ([(True, 1)], False, True),
    "no pod": ([(True, 0)], False, False),
    "no key": ([(False, 1)], False, False),
    "the first pod": ([(True, 0)], True, True),
    "the first pod, without the key": ([(True, 0), (False, 0)], True, False),
    "one of two domains": ([(True, 3), (True, 0)], False, False),
    "both domains": ([(True, 3), (True, 1)], False, True),
}


@pytest.mark.parametrize(("required", "first", "expected"), NEAR.values(), ids=NEAR)
def test_affinity(required: list[tuple[bool, int]], first: bool, expected: bool) -> None:
    assert bool(is_near(required, first)) is expected
    arrays = [(np.array([has, False]), np.array([count, 1])) for has, count in required]
    found = is_near(arrays, first)
    assert np.broadcast_to(found, 2).tolist() == [expected, not required]


@pytest.mark.parametrize(
    ("counts", "expected"), [([], False), ([0], False), ([2], True), ([0, 1], True), ([0, 0], False)]
)
def test_anti_affinity(counts: list[int], expected: bool) -> None:
    assert bool(is_any(counts)) is expected
    found = is_any(np.array([count, 0]) for count in counts)
    assert np.broadcast_to(found, 2).tolist() == [expected, False]


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        ([], []),
        ([7], [0]),
        ([5, 5], [0, 0]),
        ([0, 10], [0, 100]),
        ([-10, 0, 20], [0, 33, 100]),
        ([1, 2, 4], [0, 33, 100]),
        ([3, 0, 1], [100, 0, 33]),
    ],
)
def test_scores(sums: list[int], expected: list[int]) -> None:
    assert scores(np.array(sums, dtype=np.int64)).tolist() == expected
