"""What a change of the copy becomes at the foreign server."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED
from volcano_py.sandbox.foreign.mirror import Mirror
from volcano_py.sandbox.foreign.writes import difference, requests

MIRROR = Mirror(Client(Credentials("http://127.0.0.1:1")))


def changed(plural: str, type_: str = MODIFIED, **change: Any) -> list[tuple[str, str, Any]]:
    """(method, subresource, body) of the requests for a change of an object's metadata, spec or status."""
    before = {
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "finalizers": ["f"], "labels": {"x": "1"}},
        "spec": {"finalizers": ["kubernetes"], "size": 1},
        "status": {"phase": "Running", "reason": "r"},
    }
    after = {key: {**value, **change.get(key, {})} for key, value in before.items()}
    for part in after.values():
        for key in [key for key, value in part.items() if value is None]:
            del part[key]
    rows = requests(MIRROR.resource("", plural), type_, before, after)
    return [(row.method, row.subresource, row.body) for row in rows]


@pytest.mark.parametrize(
    ("plural", "type_", "change", "wanted"),
    [
        ("pods", MODIFIED, {}, []),
        (
            "pods",
            MODIFIED,
            {"status": {"phase": "Failed", "reason": None}},
            [("PATCH", "status", {"metadata": {"uid": "u"}, "status": {"phase": "Failed", "reason": None}})],
        ),
        (
            "nodes",
            MODIFIED,
            {"metadata": {"labels": {"x": "2"}}},
            [("PATCH", "", {"metadata": {"labels": {"x": "2"}, "uid": "u"}})],
        ),
        (
            "configmaps",
            DELETED,
            {"metadata": {"finalizers": None}},
            [("PATCH", "", {"metadata": {"finalizers": None, "uid": "u", "resourceVersion": "7"}})],
        ),
        ("pods", DELETED, {}, [("DELETE", "", {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}})]),
        (
            "pods",
            MODIFIED,
            {"metadata": {"deletionGracePeriodSeconds": 0}},
            [("DELETE", "", {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}})],
        ),
        (
            "namespaces",
            DELETED,
            {"spec": {"finalizers": None}},
            [
                (
                    "PUT",
                    "finalize",
                    {
                        "kind": "Namespace",
                        "apiVersion": "v1",
                        "metadata": {"name": "a", "uid": "u"},
                        "spec": {"finalizers": []},
                    },
                )
            ],
        ),
    ],
)
def test_a_change_is_the_smallest_request(plural: str, type_: str, change: Any, wanted: Any) -> None:
    assert changed(plural, type_, **change) == wanted


def test_a_difference_is_a_merge_patch() -> None:
    old = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "g": {"h": 1}}
    new = {"a": 1, "b": {"c": 3}, "e": [1, 2], "f": None, "g": {"h": 1}}
    assert difference(old, new) == {"b": {"c": 3, "d": None}, "e": [1, 2], "f": None}
