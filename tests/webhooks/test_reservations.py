"""Admission of Reservations: bad times, missing nodes and overlaps, in the webhook and in the policy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.webhooks.policies import denied_beside
from volcano_py.api.meta import parse_time
from volcano_py.webhooks.paths import PATHS, AdmissionContext, AdmissionRequest, evaluate

PATH = "/reservations/validate"
NOW = parse_time("2026-12-01T00:00:00Z")
OWNERS = [{"queue": "course"}]


def reservation(name: str = "new", nodes: Any = ("n1", "n2"), status: Any = None, **spec: Any) -> dict[str, Any]:
    spec = {"startTime": "2026-12-01T08:00:00Z", "owners": OWNERS, **spec}
    if nodes:
        spec["nodes"] = list(nodes)
    if not spec.keys() & {"endTime", "duration"}:
        spec["duration"] = "4h"
    stated = {key: value for key, value in spec.items() if value is not None}
    return {"metadata": {"name": name}, "spec": stated} | ({"status": status} if status else {})


def problems(obj: Any, *others: Any, old: Any = None) -> list[str]:
    around = AdmissionContext(reservations={o["metadata"]["name"]: o for o in others}, now=lambda: NOW)
    request = AdmissionRequest("CREATE" if old is None else "UPDATE", obj, old)
    return list(evaluate(PATHS[PATH], request, around).problems)


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (reservation(duration="0s"), "spec.duration is 0s: it must end after its start"),
        (reservation(duration="100000h"), "spec.duration is 100000h: it must end after its start, and after 366 days"),
        (reservation(duration="-1h"), "spec.duration is -1h"),
        (reservation(endTime="2026-12-01T08:00:00Z"), "spec.endTime is 2026-12-01T08:00:00Z: it must end after"),
        (reservation(endTime="2026-12-01T09:00:00Z", duration="1h"), "set either duration or endTime"),
        (reservation(startTime="tomorrow"), "spec.startTime: invalid time 'tomorrow': write RFC 3339"),
        (reservation(startTime="2026-11-30T08:00:00Z"), "it ended at 2026-11-30T12:00:00Z; set a later startTime"),
        (reservation(nodes=()), "spec names no node: set nodes, nodeSelector, nodeCount or resources"),
        (reservation(nodeCount=0), "spec.nodeCount is 0"),
    ],
)
def test_what_is_denied(obj: dict[str, Any], text: str) -> None:
    [problem] = problems(obj)
    assert problem.startswith("reservation new: ") and text in problem


def test_an_active_one_may_be_edited_and_one_that_ended_stays() -> None:
    past = reservation(startTime="2026-11-30T08:00:00Z")
    assert problems(past, old=past) == [], "its labels may change"
    assert problems(reservation(startTime="2026-11-30T08:00:00Z", duration="5h"), old=past) == []
    assert problems(reservation(duration="0s"), old=past)


CASES = [
    ("the same node at the same time", reservation("old"), True),
    ("another node", reservation("old", nodes=["n3"]), False),
    ("it ends when the new one starts", reservation("old", endTime="2026-12-01T08:00:00Z", startTime=None), False),
    ("it starts when the new one ends", reservation("old", startTime="2026-12-01T12:00:00Z"), False),
    ("it starts within", reservation("old", startTime="2026-12-01T11:59:00Z", endTime="2026-12-02T00:00:00Z"), True),
    ("maintenance", reservation("old", owners=None), False),
    ("itself", reservation("new"), False),
    ("by number, not chosen yet", reservation("old", nodes=(), nodeCount=1), False),
    ("by number, chosen", reservation("old", nodes=(), nodeCount=1, status={"nodes": ["n2"]}), True),
    ("by number, others chosen", reservation("old", nodes=["n1", "n4"], nodeCount=1, status={"nodes": ["n4"]}), False),
]
CASES[2][1]["spec"]["startTime"] = "2026-12-01T06:00:00Z"


@pytest.mark.parametrize(("what", "other", "denied"), CASES, ids=[case[0] for case in CASES])
def test_overlaps_are_denied_by_webhook_and_policy(what: str, other: dict[str, Any], denied: bool) -> None:
    found = problems(reservation(), other)
    assert bool(found) == denied, what
    if found:
        assert "is reserved by Reservation old from 2026-12-01T" in found[0] and "use other nodes" in found[0]
    assert bool(denied_beside(PATH, [other], reservation())) == denied, what
    unchanged = reservation()
    assert not problems(unchanged, other, old=unchanged)
    assert not denied_beside(PATH, [other], unchanged, old=unchanged)


def test_an_invalid_other_one_prevents_nothing() -> None:
    assert not problems(reservation(), {"metadata": {"name": "old"}, "spec": {"startTime": 5}})
    assert not problems(reservation(), reservation("old", duration="0s"))
