"""What a valid or invalid object may cost: counted work and the size of responses, not time."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.webhooks import queues as rules
from volcano_py.webhooks.lookup import QueueIndex
from volcano_py.webhooks.paths import (
    LONGEST_PROBLEM,
    MOST_PROBLEMS,
    PATHS,
    AdmissionContext,
    AdmissionRequest,
    evaluate,
)


def queue(name: str, parent: str = "", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec | ({"parent": parent} if parent else {})}


def answer(path: str, obj: dict[str, Any], context: AdmissionContext | None = None) -> str:
    verdict = evaluate(PATHS[path], AdmissionRequest("CREATE", obj), context or AdmissionContext())
    return "; ".join(verdict.problems)


@pytest.mark.parametrize("changed", ["parent", "child"])
def test_the_amounts_of_each_queue_are_read_a_few_times(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """For each resource they were read again: 5,000 resources and 200 children took a minute."""
    read = 0
    original = rules.amounts

    def counted(resources: Any) -> Any:
        nonlocal read
        read += 1
        return original(resources)

    monkeypatch.setattr(rules, "amounts", counted)
    many = {f"example.com/r{number}": "1" for number in range(100)}
    children = [queue(f"c{number}", "parent", capability=many, deserved=many) for number in range(20)]
    parent = queue("parent", "above", capability=dict.fromkeys(many, "20"))
    around = AdmissionContext(
        queues=QueueIndex([queue("above", capability=dict.fromkeys(many, "99")), parent, *children])
    )
    obj = parent if changed == "parent" else children[0]
    assert answer("/queues/validate", obj, around) == ""
    assert read < 10 * (len(children) + 2), read


def test_capabilities_below_queues_without_one_still_count() -> None:
    tree = QueueIndex([queue("p"), queue("a", "p"), queue("b", "a", capability={"cpu": "4"}), queue("z", "a")])
    around = AdmissionContext(queues=tree)
    assert "descendants' max capability=4" in answer("/queues/validate", queue("p", capability={"cpu": "3"}), around)
    assert answer("/queues/validate", queue("p", capability={"cpu": "4"}), around) == ""
    looped = AdmissionContext(queues=QueueIndex([queue("a", "b"), queue("b", "a")]))
    assert "exceeds" not in answer("/queues/validate", queue("a", "b", capability={"cpu": "4"}), looped)


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        ("/jobs/validate", {"metadata": {"name": "a-" * 90_000}, "spec": {"tasks": [{"name": "t"}]}}),
        ("/jobs/validate", {"metadata": {"name": "a"}, "spec": {"plugins": {f"p{n}": [] for n in range(9_000)}}}),
        ("/jobs/validate", {"metadata": {"name": "a"}, "spec": {"tasks": [{"name": f"T{n}"} for n in range(2_000)]}}),
        (
            "/cronjobs/validate",
            {"metadata": {"name": "c"}, "spec": {"schedule": "x" * 100_000, "timeZone": "a/" * 9_000}},
        ),
        ("/queues/validate", queue("q", deserved={f"r{n}": "-1" for n in range(9_000)})),
    ],
    ids=["long name", "plugins", "tasks", "schedule", "amounts"],
)
def test_a_response_is_short(path: str, obj: dict[str, Any]) -> None:
    """The names of the valid plugins after each of 40,000 problems were five megabytes."""
    if "plugins" in obj["spec"]:
        obj["spec"]["tasks"] = [{"name": "t", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]
    text = answer(path, obj)
    assert 0 < len(text) <= (MOST_PROBLEMS + 1) * (LONGEST_PROBLEM + 10)
    assert len(text) < 120_000


def test_a_schedule_has_a_longest_length() -> None:
    every = ",".join(str(minute) for minute in range(60))
    assert answer("/cronjobs/validate", {"metadata": {"name": "c"}, "spec": {"schedule": f"{every} * * * *"}}) == ""
    long = {"metadata": {"name": "c"}, "spec": {"schedule": "@every " + "1h" * 600}}
    assert "must be no more than 1024" in answer("/cronjobs/validate", long)
