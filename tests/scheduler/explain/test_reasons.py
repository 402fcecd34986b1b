"""Reasons as data: the table, the sentences of causes, and when a reason is written again."""

from __future__ import annotations

import json
import string
from collections import Counter
from typing import Any

import pytest

from tests.scheduler.churn import CONF
from volcano_py.scheduler.explain.reasons import FieldKind, amount_text
from volcano_py.scheduler.explain.table import QUEUE_LIMIT, REASONS, meaning_of, means_the_same, sentence_of
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.scheduler.session_close.pod_groups import QUIET
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


def limit(queue: str, missing: float) -> Any:
    numbers = {"requested": 8000.0, "held": 6000.0, "limit": 10000.0, "missing": missing}
    return QUEUE_LIMIT.because(queue=queue, path=f"root/{queue}", resource="cpu", **numbers)


def test_there_are_at_least_thirty_reasons() -> None:
    assert len(REASONS) >= 30


@pytest.mark.parametrize("code", REASONS)
def test_a_sentence_uses_only_fields_that_are_declared(code: str) -> None:
    reason = REASONS[code]
    named = {name for _, name, _, _ in string.Formatter().parse(reason.sentence) if name}
    assert named <= set(reason.fields)
    assert reason.sentence[-1] == "." and reason.remedy[-1] == "."
    if FieldKind.AMOUNT in reason.fields.values():
        assert "resource" in reason.fields


def test_a_cause_is_one_sentence_with_its_numbers() -> None:
    text = "Queue a is at its limit: the job needs 8 cpu, the queue holds 6 of 10: 4 is missing."
    assert sentence_of(limit("a", 4000.0)) == text


def test_names_are_part_of_the_meaning_and_numbers_are_not() -> None:
    text = sentence_of(limit("a", 4000.0))
    assert meaning_of(limit("a", 4000.0)) == meaning_of(limit("a", 1.0)) != meaning_of(limit("b", 4000.0))
    assert means_the_same(limit("a", 1.0), "QueueLimit", text)
    assert not means_the_same(limit("b", 4000.0), "QueueLimit", text)
    assert not means_the_same(limit("a", 4000.0), "QueueShare", text)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500.0, "1.5"),
        ("cpu", 4000.0, "4"),
        ("cpu", 230_400.0, "230.4"),
        ("cpu", 10_005.0, "10.005"),
        ("memory", 1.5 * 2**30, "1.5Gi"),
        ("memory", 2.0**63, "unlimited"),
        ("pods", 3.0, "3"),
        ("nvidia.com/gpu", 8000.0, "8"),
    ],
)
def test_amounts_are_quantities(resource: str, amount: float, text: str) -> None:
    assert amount_text(resource, amount) == text


def churning(pending: int, cycles: int) -> tuple[Counter[str], int]:
    """Status writes of pending PodGroups while a small job comes and goes, and those without a change of meaning."""
    jobs = {f"w{i}": {"min": 1, "pods": 1, "phase": "Inqueue", "each": {"cpu": 3 + i % 3}} for i in range(pending)}
    simulation = Simulation(manifests({"nodes": {f"n{i}": {"cpu": 2 + i % 3} for i in range(20)}, "jobs": jobs}))
    conf = load(configuration({**CONF, "actions": "enqueue, allocate, backfill"}), REGISTRY.actions)
    writes: Counter[str] = Counter()
    last: dict[str, object] = {}
    needless = 0
    for cycle in range(cycles):
        for key in [key for key in simulation.objects if key[1].startswith("default/churn-")]:
            simulation.drop(*key)
        small = {f"churn-{cycle}-{i}": {"min": 1, "phase": "Inqueue", "each": {"cpu": 1}} for i in range(cycle % 4)}
        for o in manifests({"jobs": small}):
            simulation.put(o)
        emitted: list[plan.Operation] = []
        run_once(simulation.cluster, conf, simulation.now, emit=emitted.extend)
        for op in emitted:
            if isinstance(op, plan.PodGroupStatus) and op.name.startswith("w"):
                writes["status"] += 1
                waiting = next((c for c in op.status.get("conditions", ()) if c["type"] == "Waiting"), {})
                counts = {k: v for k, v in op.status.items() if k != "conditions"}
                now = json.dumps([counts, waiting.get("reason"), waiting.get("message")])
                needless += now == last.get(op.name)
                last[op.name] = now
            elif isinstance(op, plan.Event | plan.PodCondition) and op.name.startswith("w"):
                writes[type(op).__name__] += 1
        simulation.react(emitted)
    return writes, needless


def test_a_waiting_job_is_written_only_when_the_meaning_of_its_reason_changes() -> None:
    writes, needless = churning(pending=60, cycles=40)
    assert needless == 0
    assert 0 < writes["status"] < 3 * 60, writes
    assert writes["Event"] <= writes["status"], writes


if __name__ == "__main__":
    print(churning(1000, 200))


@pytest.mark.parametrize("exist", [1, 0])
def test_pods_that_cannot_be_created_come_before_missing_pods(exist: int) -> None:
    """The controllers write the condition; the reason of the group contains the message of the API server."""
    objects = manifests({"nodes": {"n1": {"cpu": 4}}, "jobs": {"g": {"min": 2, "phase": "Inqueue", "pods": 1}}})
    objects = [one for one in objects if exist or one["kind"] != "Pod"]
    simulation = Simulation(objects)
    conf = load(configuration({**CONF, "actions": "allocate, backfill"}), REGISTRY.actions)

    def reason() -> tuple[str, str]:
        simulation.cycle(conf)
        conditions = simulation.objects["PodGroup", "default/g"]["status"].get("conditions") or ()
        return next(((one["reason"], one["message"]) for one in conditions if one["type"] == "Waiting"), ("", ""))

    simulation.now += QUIET  # no pod was created for a while
    assert reason()[0] == ("PodsMissing" if exist else "")
    message = 'pods "g-0" is forbidden: no PriorityClass with name urgent was found'
    changed = simulation.objects["PodGroup", "default/g"]
    before = [one for one in changed["status"].get("conditions") or () if one["type"] != "Waiting"]
    conditions = [*before, {"type": "FailedCreate", "status": "True", "message": message}]
    simulation.put({**changed, "status": {**changed["status"], "conditions": conditions}})
    assert reason() == ("FailedCreate", f"The pods cannot be created: {message}.")
    changed = simulation.objects["PodGroup", "default/g"]
    conditions = [one for one in changed["status"]["conditions"] if one["type"] != "FailedCreate"]
    simulation.put({**changed, "status": {**changed["status"], "conditions": conditions}})
    assert reason()[0] == ("PodsMissing" if exist else "")
