"""The page models, from objects to what a page shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.objects import CREATED, UID, eviction, group, hyper_node, job, node, pod, queue
from volcano_py.dashboard import actions
from volcano_py.dashboard.cycles import History, MetricsError, read
from volcano_py.dashboard.evictions import evictions
from volcano_py.dashboard.job_page import job_page
from volcano_py.dashboard.jobs import PAGE, STATES, Filter, JobTable, job_list, seconds
from volcano_py.dashboard.models import Models
from volcano_py.dashboard.nodes import MOST_CELLS, heat_map, node_page, node_table
from volcano_py.dashboard.queues import queue_page

Manifest = dict[str, Any]
START = seconds(CREATED)


def rows(groups: list[Manifest], jobs: list[Manifest] = []) -> JobTable:  # noqa: B006
    table = JobTable()
    table.update(keyed(groups), keyed(jobs))
    return table


def keyed(found: list[Manifest]) -> dict[str, Manifest]:
    return {f"{o['metadata']['namespace']}/{o['metadata']['name']}": o for o in found}


def test_queues_come_after_their_parents_with_bars_on_the_scale_of_the_cluster() -> None:
    page = queue_page(
        [
            queue("root"),
            queue("vision", "research", {"cpu": "20"}, deserved={"cpu": "16"}, capability={"cpu": "48"}),
            queue("research", "root", guarantee={"resource": {"cpu": "8"}}),
        ],
        [group("a", "Running"), group("b", "Pending"), group("c", "Inqueue")],
        [node("n-1"), node("n-2")],
    )
    assert [(row.name, row.depth) for row in page.rows] == [("root", 0), ("research", 1), ("vision", 2)]
    assert page.total == {"cpu": "64", "memory": "256Gi"}
    vision = page.rows[2]
    assert (vision.running, vision.waiting) == (1, 2)
    cpu = vision.bars[0]
    assert (cpu.held.text, cpu.held.share, cpu.over) == ("20", 20 / 64, True)
    assert (cpu.inqueue.text, cpu.limit and cpu.limit.text, cpu.by_weight) == ("4", "48", False)
    assert page.rows[1].bars[0].guarantee is not None
    assert page.rows[1].bars[0].deserved is not None and page.rows[1].bars[0].by_weight


def test_a_queue_whose_parent_does_not_exist_is_shown_with_the_remedy() -> None:
    page = queue_page([queue("root"), queue("lost", "nowhere")], [], [])
    assert [row.name for row in page.rows] == ["root", "lost"]
    assert page.problems == ("Queue lost: its parent nowhere does not exist; create it, or change spec.parent.",)


def test_a_job_has_the_name_of_its_job_and_the_reason_of_its_podgroup() -> None:
    table = rows([group("", "Inqueue", why="2 nodes are full", job="train")], [job("train", "Pending")])
    [row] = table.rows.values()
    assert (row.key, row.group, row.phase, row.state) == ("lab/train", f"lab/train-{UID}", "Inqueue", "waiting")
    assert (row.code, row.why, row.least, row.pods) == ("NodeResources", "2 nodes are full", 3, 4)


def test_a_podgroup_without_a_job_and_a_job_without_a_podgroup_are_jobs() -> None:
    table = rows([group("bare", "Running", running=4)], [job("new", "")])
    assert {row.key: row.phase for row in table.rows.values()} == {"lab/bare": "Running", "lab/new": "Pending"}


def test_times_of_a_job_come_from_its_conditions() -> None:
    history = (("Running", "2026-01-01T00:01:00Z"), ("Completed", "2026-01-01T00:03:00Z"))
    [row] = rows([], [job("done", "Completed", *history)]).rows.values()
    assert (row.created, row.started, row.ended) == (START, START + 60, START + 180)
    scheduled = {"type": "Scheduled", "status": "True", "reason": "", "message": "", "lastTransitionTime": CREATED}
    [bare] = rows([group("bare", "Running", conditions=[scheduled])]).rows.values()
    assert (bare.started, bare.ended) == (START, 0)


@pytest.mark.parametrize(
    ("phase", "state"),
    [("Running", "running"), ("Restarting", "waiting"), ("Aborted", "suspended"), ("Failed", "ended")],
)
def test_every_phase_is_in_one_state(phase: str, state: str) -> None:
    [row] = rows([], [job("a", phase)]).rows.values()
    assert row.state == state


def test_only_changed_jobs_are_made_again() -> None:
    groups = keyed([group("a", "Pending"), group("b", "Pending")])
    table = JobTable()
    table.update(groups, {})
    before = dict(table.rows)
    changed = group("b", "Running")
    changed["metadata"]["resourceVersion"] = "2"
    table.update(groups | {"lab/b": changed}, {})
    assert table.rows["lab/a"] is before["lab/a"]
    assert (before["lab/b"].phase, table.rows["lab/b"].phase) == ("Pending", "Running")


def test_a_filter_looks_into_name_queue_and_reason_and_keeps_within_the_pages() -> None:
    table = rows(
        [group("a", "Pending", why="too little cpu"), group("b", "Running"), group("c", "Pending", queue="audio")]
    ).rows.values()
    assert [r.name for r in job_list(table, Filter("CPU lab")).rows] == ["a"]
    assert [r.name for r in job_list(table, Filter(queue="audio")).rows] == ["c"]
    assert [r.name for r in job_list(table, Filter(state="running")).rows] == ["b"]
    assert job_list(table, Filter()).counts == dict(zip(STATES, (2, 1, 0, 0), strict=True))
    assert [r.name for r in job_list(table, Filter(order="no such order")).rows] == ["a", "c", "b"]
    many = rows([group(f"j-{i:03}", "Pending") for i in range(120)]).rows.values()
    last = job_list(many, Filter(order="name", page=99))
    assert (last.page, last.pages, len(last.rows), last.rows[-1].name) == (2, 3, 120 - 2 * PAGE, "j-119")
    assert job_list([], Filter(page=-1)).pages == 1


def test_the_page_of_a_job_has_its_pods_those_that_wait_first() -> None:
    mine = f"train-{UID}"
    pods = [
        pod("train-worker-0", "n-1", group=mine, role="worker", cpu="2"),
        pod("train-worker-1", group=mine, role="worker", phase="Pending"),
        pod("other-0", "n-1", group="other"),
        pod("bare", "n-1"),
    ]
    g, j = group("", "Inqueue", why="2 nodes are full", job="train"), job("train", "Pending", ("Pending", CREATED))
    [row] = rows([g], [j]).rows.values()
    page = job_page(row, g, j, pods)
    assert page.pods is not None
    assert [(p.name, p.node, p.why) for p in page.pods] == [
        ("train-worker-1", "", "2 nodes are full"),
        ("train-worker-0", "n-1", ""),
    ]
    assert [(r.name, r.replicas, dict(r.phases)) for r in page.roles] == [
        ("worker", 3, {"Running": 1, "Pending": 1}),
        ("chief", 1, {}),
    ]
    assert page.remedy
    assert [m.what for m in page.timeline][:2] == ["Job created", "Job is Pending"]
    assert job_page(row, g, j, None).pods is None


def test_a_bare_podgroup_without_a_name_for_pods_lists_none() -> None:
    j = job("new", "Pending")
    [row] = rows([], [j]).rows.values()
    assert job_page(row, None, j, [pod("bare", "n-1")]).pods == ()


def heat_of(**options: Any) -> Any:
    nodes = [node("a-1", cpu="4"), node("a-2", cpu="4"), node("b-1", ready=False, cpu="4")]
    pods = [pod("p", "a-1", cpu="3"), pod("done", "a-2", phase="Succeeded", cpu="4"), pod("waits", phase="Pending")]
    forest = [hyper_node("rack", 1, "Node", "a-1", "a-2", "gone"), hyper_node("hall", 2, "HyperNode", "rack")]
    return node_table(nodes, options.get("pods", pods), forest)


def test_the_heat_map_groups_nodes_by_hypernode_with_the_share_of_each() -> None:
    found = heat_map(heat_of())
    assert [(d.path, d.tier, [c.name for c in d.cells]) for d in found.domains] == [
        (("hall", "rack"), 1, ["a-1", "a-2"]),
        ((), 0, ["b-1"]),
    ]
    assert [c.share for d in found.domains for c in d.cells] == [0.75, 0.0, 0.0]
    assert (found.domains[0].share, found.ready, found.nodes) == (0.375, 2, 3)
    assert heat_map(heat_of(), "memory").resource == "memory"
    assert [c.name for d in heat_map(heat_of(), "no such resource", "B-").domains for c in d.cells] == ["b-1"]


def test_without_the_right_to_list_pods_shares_are_unknown() -> None:
    table = heat_of(pods=None)
    assert {c.share for d in heat_map(table).domains for c in d.cells} == {None}
    page = node_page(table, "a-1", None)
    assert page is not None and page.pods is None and page.amounts[0] == ("cpu", "", "4", None)


def test_a_node_shows_its_amounts_and_the_pods_that_hold_something() -> None:
    page = node_page(heat_of(), "a-1", [pod("p", "a-1", cpu="3"), pod("done", "a-1", phase="Succeeded")])
    assert page is not None
    assert page.amounts[0] == ("cpu", "3", "4", 0.75)
    assert page.domain == ("hall", "rack")
    assert [(namespace, p.name) for namespace, p in page.pods or ()] == [("lab", "p")]
    assert node_page(heat_of(), "gone", []) is None


def test_a_huge_cluster_shows_its_first_nodes_and_counts_the_others() -> None:
    found = heat_map(node_table([node(f"n-{i:05}") for i in range(MOST_CELLS + 7)], [], []))
    assert (found.hidden, sum(len(d.cells) for d in found.domains)) == (7, MOST_CELLS)


def test_evictions_name_the_job_that_they_are_for() -> None:
    groups = keyed([group("", "Running", job="train")])
    found = evictions(
        [
            eviction("old", "2026-01-01T00:00:00Z"),
            eviction("new", "2026-01-01T00:01:00Z", f"train-{UID}", "preempt"),
            eviction("gone", "2026-01-01T00:00:30Z", f"ended-{UID}"),
        ],
        groups,
    )
    assert [(e.pod, e.action, e.evictor) for e in found.rows] == [
        ("new", "preempt", "lab/train"),
        ("gone", "reclaim", "lab/ended"),
        ("old", "reclaim", ""),
    ]


METRICS = """# TYPE volcano_e2e_scheduling_latency_milliseconds histogram
volcano_e2e_scheduling_latency_milliseconds_bucket{{le="10.0"}} {low}
volcano_e2e_scheduling_latency_milliseconds_bucket{{le="+Inf"}} {cycles}
volcano_e2e_scheduling_latency_milliseconds_count {cycles}
volcano_e2e_scheduling_latency_milliseconds_sum {spent}
# TYPE volcano_action_scheduling_latency_milliseconds histogram
volcano_action_scheduling_latency_milliseconds_count{{action="allocate"}} {cycles}
volcano_action_scheduling_latency_milliseconds_sum{{action="allocate"}} {spent}
"""


def metrics(cycles: float, spent: float, low: float = 0.0) -> str:
    return METRICS.format(cycles=cycles, spent=spent, low=low)


def test_cycle_times_are_those_between_two_samples() -> None:
    history = History()
    assert history.page() is None
    for at, cycles, spent in ((0.0, 10.0, 100.0), (5.0, 12.0, 160.0), (10.0, 12.0, 160.0)):
        history.add(read(metrics(cycles, spent, low=8.0), at))
    page = history.page()
    assert page is not None
    assert [(p.cycles, p.mean) for p in page.points] == [(2, 30.0), (0, None)]
    assert (page.cycles, page.median, page.slow) == (12, 10.0, float("inf"))
    assert page.actions == (("allocate", 12, 160.0 / 12),)
    history.add(read(metrics(1.0, 5.0), 15.0))  # the scheduler has started again
    page = history.page()
    assert page is not None and page.points == ()


@pytest.mark.parametrize("text", ["", "<html>", "other_metric 1\n", "a b c {\n"])
def test_what_is_no_metrics_of_a_scheduler_is_one_error(text: str) -> None:
    with pytest.raises(MetricsError):
        read(text, 0.0)


class Watched:
    """What Models read, without an API server."""

    def __init__(self) -> None:
        self.revision = 0
        self.kinds: dict[str, dict[str, Manifest]] = {"podgroups": keyed([group("a", "Pending")])}

    def objects(self, name: str) -> dict[str, Manifest]:
        return self.kinds.get(name, {})

    def may_list(self, name: str) -> bool:
        return True


def test_viewers_share_a_model_until_something_changes_and_for_at_least_a_second() -> None:
    watched, now = Watched(), [0.0]
    models = Models(watched, lambda: now[0])  # type: ignore[arg-type]
    first, revision = models.drawn(lambda: models.queues())
    assert models.queues() is first and revision == 0
    watched.revision = 1
    now[0] = 0.5
    again, revision = models.drawn(lambda: models.queues())
    assert again is first and revision == 0, "a page must know that it shows an old model"
    now[0] = 1.5
    later, revision = models.drawn(lambda: models.queues())
    assert later is not first and revision == 1


def test_a_job_is_found_by_its_podgroup_too() -> None:
    watched = Watched()
    watched.kinds = {"podgroups": keyed([group("", "Running", job="train")]), "jobs": keyed([job("train", "Running")])}
    models = Models(watched)  # type: ignore[arg-type]
    by_name, by_group = models.job("lab/train"), models.job(f"lab/train-{UID}")
    assert by_name is not None and by_group is not None and by_name.row == by_group.row
    assert models.job("lab/none") is None


def test_actions_follow_the_state() -> None:
    assert actions.of_job("suspended") is actions.RESUME
    assert actions.of_job("ended") is None
    assert actions.of_queue("vision", "Open") is actions.CLOSE
    assert actions.of_queue("root", "Open") is None
