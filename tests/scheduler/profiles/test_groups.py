"""PodGroups of scheduling.k8s.io: attempts come to rest, and groups that change meanwhile."""

from __future__ import annotations

from tests.scheduler.profiles.trial import Trial
from volcano_py.api.codec import from_manifest
from volcano_py.api.gang import PodGroup

GATES = ("GangScheduling", "GenericWorkload", "SchedulerPopFromBackoffQ")


def group(count: int, uid: str = "1") -> PodGroup:
    metadata = {"name": "g", "namespace": "default", "uid": uid}
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    found = from_manifest(PodGroup, {"kind": "PodGroup", "metadata": metadata, "spec": spec})
    assert isinstance(found, PodGroup)
    return found


def trial() -> Trial:
    t = Trial(features=GATES)
    t.node("n1", cpu=2)
    t.scheduler.set_group(group(2), 0)
    return t


def test_a_group_that_does_not_fit_is_not_tried_forever() -> None:
    t = trial()
    for name in ("a", "b"):
        t.pod(name, cpu=2, schedulingGroup={"podGroupName": "g"})
    assert t.settle() == {}
    assert t.scheduler.attempt(0) is None
    t.node("n2", cpu=2)
    assert sorted(t.settle()) == ["a", "b"]
    t.check()


def test_members_that_come_back_follow_the_group_that_was_recreated() -> None:
    t = Trial(features=GATES)
    t.node("n1", cpu=2)
    t.scheduler.set_group(group(1), 0)
    t.pod("a", schedulingGroup={"podGroupName": "g"})
    said = t.run()
    t.scheduler.set_group(group(3, uid="2"), 0)
    t.scheduler.bind_result("default/a", "conflict", 0)
    assert t.scheduler.attempt(0) is None, "the new group waits for three members"
    assert said
    t.check()
