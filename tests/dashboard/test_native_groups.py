"""Native gangs in the dashboard: rows of jobs, and the tree of groups on the page of a job."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.dashboard.objects import metadata, node
from tests.dashboard.test_models import Watched
from volcano_py.api import core, gang
from volcano_py.dashboard import kept
from volcano_py.dashboard.jobs import Filter
from volcano_py.dashboard.models import Models
from volcano_py.dashboard.ui.draw_job import draw_groups

Manifest = dict[str, Any]
COMPOSITE, NATIVE = "compositepodgroup.scheduling.k8s.io", "podgroup.scheduling.k8s.io"
SINCE = "2026-01-01T00:01:00Z"


def composite(name: str, least: int, parent: str = "", **more: Any) -> gang.CompositePodGroup:
    spec = {
        "schedulingPolicy": {"gang": {"minGroupCount": least}},
        **({"parentCompositePodGroupName": parent} if parent else {}),
    }
    return msgspec.convert({"metadata": metadata(name, "lab", **more), "spec": spec}, gang.CompositePodGroup)


def native(name: str, least: int, parent: str = "", condition: tuple[str, str] | None = None) -> gang.PodGroup:
    spec: Manifest = {
        "schedulingPolicy": {"gang": {"minCount": least}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
    }
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    found = {"type": "PodGroupInitiallyScheduled", "lastTransitionTime": SINCE, "reason": "Unschedulable"}
    conditions = [found | {"status": condition[0], "message": condition[1]}] if condition else []
    whole = {"metadata": metadata(name, "lab"), "spec": spec, "status": {"conditions": conditions}}
    return msgspec.convert(whole, gang.PodGroup)


def member(name: str, group: str, node: str = "") -> Manifest:
    spec = {"nodeName": node, "schedulingGroup": {"podGroupName": group}, "containers": [{"name": "main"}]}
    return kept.pod(msgspec.convert({"metadata": metadata(name, "lab"), "spec": spec}, core.Pod))


def models(groups: list[Any], composites: list[Any], pods: list[Manifest]) -> Models:
    watched = Watched()
    watched.kinds = {
        "native": {g.metadata.key: g for g in groups},
        "composites": {g.metadata.key: g for g in composites},
        "pods": {f"lab/{p['metadata']['name']}": p for p in pods},
        "nodes": {"a1": node("a1", labels={"rack": "a"}, cpu="4")},
    }
    return Models(watched)  # type: ignore[arg-type]


def test_a_tree_is_one_job_with_its_queue_its_pods_and_its_groups() -> None:
    labels = {"volcano.sh/queue-name": "research"}
    found = models(
        [native("g", 2, "root"), native("h", 2, "mid")],
        [composite("root", 2, labels=labels), composite("mid", 1, "root")],
        [member("g-0", "g", "a1"), member("g-1", "g", "a1"), member("h-0", "h"), member("other-0", "other")],
    )
    [row] = found.jobs(Filter()).rows
    assert (row.key, row.queue, row.state) == (f"lab/{COMPOSITE}/root", "research", "waiting")
    assert (row.running, row.least) == (2, 4)
    page = found.job(row.key)
    assert page is not None and page.pods is not None
    assert sorted(p.name for p in page.pods) == ["g-0", "g-1", "h-0"]
    assert [(r.name, r.depth, r.counts, r.state, r.domain) for r in page.groups] == [
        ("root", 0, "1 of 2 groups, 1 exists", "incomplete", ""),
        ("g", 1, "2 of 2 pods", "placed", "a"),
        ("mid", 1, "0 of 1 group, 0 exist", "incomplete", ""),
        ("h", 2, "0 of 2 pods, 1 exists", "incomplete", ""),
    ]
    drawn = str(draw_groups(page.groups))
    assert "rack=a" in drawn and "0 of 2 pods, 1 exists" in drawn


def test_a_gang_alone_has_the_reason_of_its_condition_and_runs_when_that_is_true() -> None:
    waits = native("g", 2, condition=("False", "1 of the 2 pods that the gang needs fits"))
    [row] = models([waits], [], [member("g-0", "g")]).jobs(Filter()).rows
    assert (row.key, row.state, row.code) == (f"lab/{NATIVE}/g", "waiting", "Unschedulable")
    assert row.why == "1 of the 2 pods that the gang needs fits"
    found = models([native("g", 1, condition=("True", ""))], [], [member("g-0", "g", "a1")])
    [row] = found.jobs(Filter()).rows
    assert (row.state, row.phase, row.running) == ("running", "Running", 1)
    assert row.started > row.created


def test_groups_that_are_no_tree_state_why() -> None:
    found = models(
        [native("g", 1, "nowhere"), native("bad", 0), native("deep", 1, "x")],
        [composite("x", 1, "y"), composite("y", 1, "x")],
        [],
    )
    reasons = {row.name: row.why for row in found.jobs(Filter()).rows}
    assert reasons == {
        f"{NATIVE}/g": f"waiting for {COMPOSITE}/nowhere, which does not exist",
        f"{NATIVE}/bad": f"{NATIVE}/bad: spec.schedulingPolicy.gang.minCount: 0; use 1 or more",
        f"{NATIVE}/deep": "the parents form a circle",
        f"{COMPOSITE}/x": "the parents form a circle",
        f"{COMPOSITE}/y": "the parents form a circle",
    }


def test_a_row_follows_the_pods_and_the_groups_below_its_root() -> None:
    watched = Watched()
    root, group = composite("root", 1), native("g", 1, "root")
    watched.kinds = {
        "native": {"lab/g": group},
        "composites": {"lab/root": root},
        "pods": {"lab/g-0": member("g-0", "g")},
    }  # type: ignore[dict-item]
    clock = [0.0]
    found = Models(watched, lambda: clock[0])  # type: ignore[arg-type]
    [row] = found.jobs(Filter()).rows
    assert (row.running, row.least) == (0, 1)
    watched.kinds["pods"] = {"lab/g-0": member("g-0", "g", "a1")}
    watched.revision, clock[0] = 1, 2.0
    [row] = found.jobs(Filter()).rows
    assert row.running == 1
    larger = native("g", 3, "root")
    larger.metadata.resource_version = "2"
    watched.kinds["native"] = {"lab/g": larger}  # type: ignore[dict-item]
    watched.revision, clock[0] = 2, 4.0
    [row] = found.jobs(Filter()).rows
    assert row.least == 3
