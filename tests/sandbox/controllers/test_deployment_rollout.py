"""The sizes of ReplicaSets step by step."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.sandbox.controllers.apps import deployment_rollout as rollout
from volcano_py.sandbox.controllers.apps.deployment_status import seconds_to_deadline, status_of

Object = dict[str, Any]
NOW = 1_800_000_000.0


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Object:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    spec = {"replicas": replicas, "strategy": rolling, "progressDeadlineSeconds": 60}
    return {"metadata": {"name": "web", "namespace": "default", "generation": 1}, "spec": spec}


def replica_set(name: str, replicas: int, available: int | None = None, desired: int = 0, maximum: int = 0) -> Object:
    notes = {rollout.DESIRED: str(desired), rollout.MAXIMUM: str(maximum)} if desired else {}
    counts = {"replicas": replicas, "availableReplicas": replicas if available is None else available}
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"replicas": replicas}, "status": counts}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),  # rounded up, rounded down
        (1, "25%", "25%", (1, 0)),
        (3, 0, 0, (0, 1)),  # something has to move
        (3, 0, "10%", (0, 1)),
        (2, 5, 5, (5, 2)),
        (0, 1, 1, (1, 0)),
    ],
)
def test_surge_and_unavailable(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    wanted = deployment(replicas, surge, unavailable)
    assert (rollout.max_surge(wanted), rollout.max_unavailable(wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "new", "olds", "expected"),
    [
        (deployment(10), replica_set("new", 0), [replica_set("old", 10)], 3),
        (deployment(10), replica_set("new", 3), [replica_set("old", 8)], 5),
        (deployment(10), replica_set("new", 3), [replica_set("old", 10)], 3),  # no surge left
        (deployment(10), replica_set("new", 12), [], 10),  # too many
        (deployment(4, 0, 1), replica_set("new", 0), [replica_set("old", 4)], 0),
    ],
)
def test_the_new_one_grows(wanted: Object, new: Object, olds: list[Object], expected: int) -> None:
    assert rollout.new_size(wanted, new, olds) == expected


@pytest.mark.parametrize(
    ("wanted", "new", "olds", "expected"),
    [
        (deployment(10), replica_set("new", 3, 0), [replica_set("old", 10)], {"old": 8}),
        (deployment(10), replica_set("new", 3, 3), [replica_set("old", 10)], {"old": 5}),
        (deployment(10), replica_set("new", 3, 0), [replica_set("old", 8)], {}),  # at the minimum
        # what is broken goes first, and does not count as missed
        (deployment(10), replica_set("new", 3, 0), [replica_set("old", 10, 6)], {"old": 8}),
        (deployment(4, 1, 0), replica_set("new", 1, 1), [replica_set("old", 4)], {"old": 3}),
        (deployment(2, 1, 0), replica_set("new", 2), [replica_set("a", 1, 0), replica_set("b", 1)], {"a": 0, "b": 0}),
    ],
)
def test_old_ones_shrink(wanted: Object, new: Object, olds: list[Object], expected: Object) -> None:
    assert rollout.shrink_old(wanted, new, olds) == expected


@pytest.mark.parametrize("surge", [0, 1, 2, "50%"])
@pytest.mark.parametrize("unavailable", [0, 1, "50%"])
@pytest.mark.parametrize("replicas", [1, 2, 5, 10])
def test_every_roll_out_ends_within_its_bounds(replicas: int, surge: int | str, unavailable: int | str) -> None:
    wanted = deployment(replicas, surge, unavailable)
    new, old = replica_set("new", 0), replica_set("old", replicas)
    for _ in range(50):
        new["spec"]["replicas"] = rollout.new_size(wanted, new, [old])
        sizes = rollout.shrink_old(wanted, new, [old])
        old["spec"]["replicas"] = sizes.get("old", rollout.size(old))
        old["status"]["availableReplicas"] = min(rollout.available(old), rollout.size(old))
        total = rollout.size(new) + rollout.size(old)
        assert total <= replicas + rollout.max_surge(wanted)
        assert rollout.available(new) + rollout.available(old) >= replicas - rollout.max_unavailable(wanted)
        new["status"]["availableReplicas"] = rollout.size(new)
        if (rollout.size(new), rollout.size(old)) == (replicas, 0):
            return
    raise AssertionError("the roll-out never ends")


@pytest.mark.parametrize(
    ("wanted", "new", "olds", "expected"),
    [
        (deployment(5), replica_set("new", 3, desired=3), [], {"new": 5}),
        (deployment(5), None, [replica_set("old", 3, desired=3)], {"old": 5}),
        (deployment(0), replica_set("new", 3, desired=3), [], {"new": 0}),
        # finished: what is left of old ones goes
        (deployment(5), replica_set("new", 5, desired=5), [replica_set("old", 2, desired=3)], {"old": 0}),
        # in the middle: in proportion, what is left over to the larger one
        (
            deployment(20, 0, 1),
            replica_set("new", 4, desired=10, maximum=10),
            [replica_set("old", 6, desired=10, maximum=10)],
            {"old": 12, "new": 8},
        ),
        (
            deployment(5, 0, 1),
            replica_set("new", 4, desired=10, maximum=10),
            [replica_set("old", 6, desired=10, maximum=10)],
            {"old": 3, "new": 2},
        ),
    ],
)
def test_scaling(wanted: Object, new: Object | None, olds: list[Object], expected: Object) -> None:
    everything = [*olds, *([new] if new else [])]
    assert rollout.is_scaling(wanted, everything)
    assert rollout.scale(wanted, new, olds) == expected


def conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {row["type"]: (row["status"], row["reason"]) for row in status["conditions"]}


def test_progress_is_reported_until_it_stops() -> None:
    wanted, new = deployment(2), replica_set("new", 2, 0)
    wanted["status"] = status_of(wanted, new, [], NOW)
    assert conditions(wanted["status"]) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    assert status_of(wanted, new, [], NOW + 30) == wanted["status"], "nothing happened, nothing is written"
    assert seconds_to_deadline(wanted, wanted["status"], NOW + 30) == 31
    wanted["status"] = status_of(wanted, new, [], NOW + 61)
    assert conditions(wanted["status"])["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert seconds_to_deadline(wanted, wanted["status"], NOW + 61) is None
    new["status"]["availableReplicas"] = 2
    wanted["status"] = status_of(wanted, new, [], NOW + 90)
    assert conditions(wanted["status"]) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert wanted["status"]["availableReplicas"] == 2 and "unavailableReplicas" not in wanted["status"]


def test_a_pause_is_no_failure() -> None:
    wanted, new = deployment(2), replica_set("new", 2, 0)
    wanted["spec"]["paused"] = True
    wanted["status"] = status_of(wanted, new, [], NOW)
    assert conditions(wanted["status"])["Progressing"] == ("Unknown", "DeploymentPaused")
    wanted["spec"]["paused"] = False
    wanted["status"] = {**status_of(wanted, new, [], NOW + 100)}
    assert conditions(wanted["status"])["Progressing"] == ("Unknown", "DeploymentResumed")
    assert conditions(status_of(wanted, new, [], NOW + 120))["Progressing"] == ("Unknown", "DeploymentResumed")
