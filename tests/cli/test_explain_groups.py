"""vcctl explain and simulate run --from for native groups: kinds, the tree, one reason, the pods of a tree."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.cli.test_explain import NOW, printed
from volcano_py.api.gang import V1BETA1
from volcano_py.api.meta import Condition
from volcano_py.cli.explain_answer import answer
from volcano_py.cli.explain_facts import Facts
from volcano_py.cli.vcctl_explain import _NAMES, _Kind
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate import what_if
from volcano_py.simulate.complete import complete
from volcano_py.simulate.manifests import as_struct, model_kind
from volcano_py.simulate.snapshot import NAMESPACE, Snapshot, Unread
from volcano_py.testing.table import configuration, manifests

TREE: dict[str, Any] = {
    "nodes": {"a1": {"cpu": 2, "labels": {"rack": "a"}}, "b1": {"cpu": 3, "labels": {"rack": "b"}}},
    "composites": {"root": {"min": 2}, "mid": {"parent": "root", "min": 1}},
    "jobs": {
        "g": {"native": {"parent": "root", "topology": "rack"}, "min": 2, "pods": 2, "each": {"cpu": 1}},
        "h": {"native": {"parent": "mid", "topology": "rack"}, "min": 4, "pods": 4, "each": {"cpu": 1}},
    },
    "conf": {"plugins": [["priority", "gang"], ["predicates", "nodeorder"]]},
}
ROOT = f"default/{COMPOSITE}/root"


def snapshot(scenario: dict[str, Any]) -> Snapshot:
    objects, _ = complete(manifests(scenario), frozenset(("volcano",)), NOW)
    by_kind: dict[str, list[Any]] = {}
    for o in objects:
        by_kind.setdefault(model_kind(o), []).append(as_struct(o))
    return Snapshot(NOW, by_kind, configuration(scenario["conf"]))


def facts(kind: str, name: str, scenario: dict[str, Any] = TREE, **spec: Any) -> Facts:
    subject = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    return Facts(kind, name, "default", subject, snapshot(scenario), group=f"default/{name}", group_kind=kind)


def changed(**change: Any) -> dict[str, Any]:
    """The tree with other fields: `h_pods=3` changes jobs.h.pods."""
    found = deepcopy(TREE)
    for path, value in change.items():
        of, _, field = path.partition("_")
        kind = "nodes" if of in found["nodes"] else "jobs"
        found[kind][of][field] = value
    return found


@pytest.mark.parametrize(("kind", "name"), [(COMPOSITE, "root"), (COMPOSITE, "mid"), (NATIVE, "h"), (NATIVE, "g")])
def test_each_group_of_a_tree_has_the_one_reason_of_the_tree(kind: str, name: str) -> None:
    found = answer(facts(kind, name), "volcano", kind == COMPOSITE)
    assert [b.code for b in found.blockers] == ["GroupDomainFull"]
    assert "holds group h: rack=b comes closest, 3 of 4 pods fit" in found.verdict
    assert found.verdict.startswith(
        f"{'PodGroup' if kind == NATIVE else 'CompositePodGroup'} default/{name} is pending"
    )
    assert [(row.name, row.depth, row.counts, row.state) for row in found.groups] == [
        ("root", 0, "0 of 2 groups", "waits"),
        ("g", 1, "0 of 2 pods", "waits"),
        ("mid", 1, "0 of 1 group", "waits"),
        ("h", 2, "0 of 4 pods", "waits"),
    ]
    assert (found.unblock[0].text if kind == COMPOSITE else "") in ("", "add 1 node like a1 (2 cpu, 8Gi memory)")


@pytest.mark.parametrize("width", [80, 120])
def test_the_tree_is_printed_with_the_domain_of_placed_groups(width: int) -> None:
    running = changed(b1_cpu=9)
    running["jobs"]["g"] = {
        "native": {"parent": "root", "topology": "rack"},
        "min": 2,
        "tasks": {"x": {"pods": 2, "cpu": 1, "runsOn": "a1"}},
    }
    running["jobs"]["h"] |= {"pods": 5, "each": {"cpu": 20}}
    text = printed(answer(facts(COMPOSITE, "root", running), "volcano", False), width)
    lines = [line.split() for line in text.splitlines()]
    assert ["└", "g", "2", "of", "2", "pods", "placed", "rack=a"] in lines
    assert ["└", "h", "0", "of", "4", "pods", "waits", "rack"] in lines
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_missing_pods_and_a_missing_parent_are_named() -> None:
    found = answer(facts(NATIVE, "g", changed(h_pods=3)), "volcano", False)
    assert found.blockers[0].code == "GroupsMissing" and "h has 3 of 4" in found.verdict
    assert [row.counts for row in found.groups if row.state == "incomplete"] == [
        "0 of 2 groups, 1 exists",
        "0 of 1 group, 0 exist",
        "0 of 4 pods, 3 exist",
    ]
    orphans = deepcopy(TREE)
    del orphans["composites"]["root"]
    found = answer(facts(NATIVE, "h", orphans), "volcano", True)
    assert found.blockers[0].code == "NativeGroupUnusable" and found.groups == []
    words = f"No cycle can try the 6 pods: waiting for {COMPOSITE}/root, which does not exist."
    assert found.verdict == words and found.blockers[0].remedy


def test_a_tree_that_the_next_cycle_starts_is_reported_so() -> None:
    found = answer(facts(COMPOSITE, "mid", changed(b1_cpu=4)), "volcano", True)
    assert (found.state, found.verdict) == (
        "starting",
        f"The next cycle starts {COMPOSITE} default/mid: 6 of 6 pods get a node.",
    )


def test_a_pod_of_a_tree_is_explained_with_its_tree() -> None:
    given = facts("pod", "h-0", schedulerName="volcano")
    given.group, given.group_kind = "default/h", NATIVE
    found = answer(given, "volcano", False)
    assert found.blockers[0].code == "GroupDomainFull" and len(found.groups) == 4


@pytest.mark.parametrize(("kind", "name", "pods"), [(NATIVE, "h", 4), (COMPOSITE, "root", 6), (COMPOSITE, "mid", 4)])
def test_the_scheduler_of_the_pods_of_a_tree_is_compared(kind: str, name: str, pods: int) -> None:
    given = facts(kind, name)
    for pod in given.snapshot.of("Pod"):
        pod.spec.scheduler_name = "other"
    (blocker,) = answer(given, "volcano", False).blockers
    assert (blocker.code, blocker.fields["pods"]) == ("WrongSchedulerName", pods)


def test_without_permission_to_read_nodes_the_condition_of_the_group_is_the_answer() -> None:
    given = facts(NATIVE, "h")
    (group,) = [g for g in given.snapshot.of(NATIVE) if g.metadata.name == "h"]
    message = "2 of the 4 pods fit."
    since = "2026-01-02T00:00:00Z"
    group.status.conditions = [
        Condition(type="PodGroupInitiallyScheduled", status="False", message=message, last_transition_time=since)
    ]
    given.snapshot.unread = (Unread("Node", "forbidden", NAMESPACE, True),)
    found = answer(given, "volcano", False)
    assert found.verdict == f"The scheduler reports for {NATIVE} default/h: {message}"
    assert (since, f"PodGroup PodGroupInitiallyScheduled is False: {message}") in [
        (m.time, m.what) for m in found.timeline
    ]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("compositepodgroups", f"{COMPOSITE}"),
        ("CompositePodGroup", f"{COMPOSITE}"),
        ("compositepodgroup.scheduling.k8s.io", COMPOSITE),
        ("podgroups.scheduling.k8s.io", NATIVE),
        ("podgroup.scheduling.volcano.sh", "podgroup"),
    ],
)
def test_kinds_have_the_names_of_kubectl(given: str, kind: str) -> None:
    assert _Kind(tuple(_NAMES)).convert(given, None, None) == kind


def test_a_tree_manifest_is_tried_on_a_snapshot() -> None:
    for scenario, pods in ((changed(b1_cpu=4), 6), (TREE, 0)):
        empty = snapshot({key: value for key, value in scenario.items() if key not in ("composites", "jobs")})
        conf = load(configuration(scenario["conf"]), REGISTRY.actions)
        added = [m for m in manifests(scenario) if m["kind"] != "Node"]
        before = what_if.run(what_if.simulation_of(empty), conf)
        after = what_if.run(what_if.simulation_of(empty, added), conf)
        assert after.bound.get(ROOT, 0) == pods
        (difference,) = what_if.differences(before, after)
        assert difference.job == ROOT and difference.change == ("starts" if pods else "waits")
        assert pods or after.reasons[ROOT].code == "GroupDomainFull"


def test_a_native_group_may_have_the_name_of_a_podgroup_of_volcano() -> None:
    known = {
        "nodes": {"n1": {"cpu": 4}},
        "jobs": {"g": {"min": 1, "pods": 1, "each": {"cpu": 1}}},
        "conf": TREE["conf"],
    }
    new = [
        {
            "apiVersion": V1BETA1,
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "new", "namespace": "default"},
            "spec": {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c"}]},
        },
    ]
    conf = load(configuration(known["conf"]), REGISTRY.actions)
    outcome = what_if.run(what_if.simulation_of(snapshot(known), new), conf)
    assert outcome.bound == {"default/g": 1, f"default/{NATIVE}/g": 1}
