"""Reservations in sessions: phases over time, edits, clocks that jump, statuses, and what is kept between sessions."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.meta import format_time, parse_time
from volcano_py.api.reservation import ReservationStatus
from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.framework.advance.advance_book import KeptWindows, advance_book_of
from volcano_py.scheduler.framework.advance.windows import ReservedWindow
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.plugins.advance_reservation import AdvanceReservation
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.simulate.manifests import as_struct
from volcano_py.testing.table import configuration, manifests

START = parse_time("2026-01-01T02:00:00Z")
HOUR = 3600.0
CONF = load(
    configuration(
        {"actions": "enqueue, allocate", "plugins": [["gang"], ["predicates", "nodeorder", "advance-reservation"]]}
    ),
    REGISTRY.actions,
)


def simulated(spec: dict[str, Any], **more: Any) -> Simulation:
    spec = {"startTime": format_time(START), "duration": "1h", **spec}
    return Simulation(manifests({"nodes": {"n1": {}, "n2": {}}, "reservations": {"r": spec}, **more}))


def cycle(simulation: Simulation, now: float) -> tuple[CycleReport, ReservationStatus]:
    report = run_once(simulation.cluster, CONF, now, assume=False)
    return report, simulation.cluster.keep(KeptWindows).statuses["r"]


def edit(simulation: Simulation, **spec: Any) -> None:
    """Replace the spec, as an update of the object does."""
    metadata = {"name": "r", "uid": "uid-r", "creationTimestamp": "2026-01-01T00:00:00Z"}
    manifest = {"kind": "Reservation", "metadata": metadata, "spec": {"startTime": format_time(START), **spec}}
    simulation.cluster.upsert("Reservation", as_struct(manifest))


def test_phases_follow_the_clock_in_both_directions() -> None:
    simulation = simulated({"nodes": ["n1"]})
    for now, phase in ((-1.0, "Pending"), (0.0, "Active"), (HOUR - 1, "Active"), (HOUR, "Ended"), (-9.0, "Pending")):
        _, status = cycle(simulation, START + now)
        assert status.phase == phase, now
        assert status.nodes == ["n1"] and status.node_count == 1
        assert (status.start_time, status.end_time) == ("2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z")


def test_cycles_run_at_start_and_end() -> None:
    simulation = simulated({"nodes": ["n1"]})
    assert cycle(simulation, START - HOUR)[0].session.next_wake == START
    assert cycle(simulation, START)[0].session.next_wake == START + HOUR


def test_an_edit_while_it_is_active_counts_at_once() -> None:
    simulation = simulated({"nodes": ["n1"]}, jobs={"any": {"pods": 5, "min": 1, "each": {"cpu": 1}}})
    report, _ = cycle(simulation, START)
    assert {op.node for op in report.plan if hasattr(op, "node")} == {"n2"}
    edit(simulation, duration="1h", nodes=["n2"])
    report, status = cycle(simulation, START + 1)
    assert {op.node for op in report.plan if hasattr(op, "node")} == {"n1"} and status.nodes == ["n2"]
    edit(simulation, duration="1s", nodes=["n2"])
    _, status = cycle(simulation, START + 2)
    assert status.phase == "Ended"
    edit(simulation, duration="1h")
    report, status = cycle(simulation, START + 3)
    assert (status.phase, status.nodes) == ("Invalid", None)
    assert status.message == "spec names no node: set nodes, nodeSelector, nodeCount or resources"
    edit(simulation, duration="1h", nodes=["n1"])
    assert cycle(simulation, START + 4)[1].phase == "Active"


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"endTime": "2026-01-01T09:00:00Z", "nodes": ["n1"]}, "spec: set either duration or endTime"),
        ({"duration": "0s", "nodes": ["n1"]}, "spec.duration is 0s: it must end after its start"),
        ({"duration": "876000h", "nodes": ["n1"]}, "after 366 days at most"),
        ({"duration": "soon", "nodes": ["n1"]}, "spec.duration: invalid duration 'soon'"),
        ({"startTime": "", "nodes": ["n1"]}, "spec.startTime is missing"),
        ({"startTime": "noon", "nodes": ["n1"]}, "spec.startTime: invalid time 'noon'"),
        ({"nodeCount": -1}, "spec.nodeCount is -1"),
        ({"resources": {"cpu": "many"}}, "spec.resources: cpu"),
        ({"nodes": ["n1"], "owners": [{}]}, "spec.owners[0]: set queue, namespace, owner or labelSelector"),
        (
            {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "spec.nodeSelector: label selector",
        ),
    ],
)
def test_an_invalid_reservation_states_why(spec: dict[str, Any], text: str) -> None:
    _, status = cycle(simulated(spec), START)
    assert status.phase == "Invalid" and text in status.message


@pytest.mark.parametrize(
    ("spec", "count", "text"),
    [
        ({"nodes": ["n1", "n7"]}, 1, "spec.nodes: node n7 does not exist"),
        ({"nodeCount": 5}, 2, "only 2 of 5 nodes can be reserved"),
        ({"resources": {"cpu": "99"}}, 2, "the nodes that can be reserved have too little cpu"),
        ({"nodeSelector": {"matchLabels": {"a": "b"}}}, 0, "no node has the labels of spec.nodeSelector"),
    ],
)
def test_nodes_that_are_missing_are_stated(spec: dict[str, Any], count: int, text: str) -> None:
    _, status = cycle(simulated(spec), START - 1)
    assert (status.phase, status.node_count, status.message) == ("Pending", count, text)


def test_the_overlap_of_two_is_stated_at_the_later_one() -> None:
    spec = {"startTime": "2026-01-01T02:30:00Z", "duration": "1h", "nodes": ["n1"]}
    simulation = simulated({"nodes": ["n1"]}, reservations={"old": spec, "r": {**spec, "duration": "9h"}})
    _, status = cycle(simulation, START)
    assert "it overlaps Reservation old" in status.message
    assert not simulation.cluster.keep(KeptWindows).statuses["old"].message


def test_chosen_nodes_stay_and_one_that_is_gone_is_replaced() -> None:
    nodes = {f"n{i}": {} for i in range(4)}
    simulation = simulated({"nodeCount": 2}, nodes=nodes)
    assert cycle(simulation, START)[1].nodes == ["n0", "n1"]
    simulation.cluster.upsert("Node", as_struct(manifests({"nodes": {"a": {}}})[0]))
    assert cycle(simulation, START)[1].nodes == ["n0", "n1"], "a node that comes first by name changes nothing"
    simulation.cluster.remove("Node", "", "n0")
    assert cycle(simulation, START)[1].nodes == ["a", "n1"]


def test_a_restart_keeps_the_nodes_of_the_status() -> None:
    spec = {"nodeCount": 2, "status": {"nodes": ["n1", "n3"]}}
    simulation = simulated(spec, nodes={f"n{i}": {} for i in range(4)})
    assert cycle(simulation, START)[1].nodes == ["n1", "n3"]


def test_the_status_counts_what_users_use_and_who_else_runs() -> None:
    runs = {"phase": "Running", "tasks": {"x": {"pods": 2, "runsOn": "n1", "cpu": "500m", "memory": "1Gi"}}}
    simulation = simulated(
        {"nodes": ["n1"], "owners": [{"queue": "q"}]},
        queues={"q": {}},
        jobs={"mine": {**runs, "queue": "q"}, "other": runs},
    )
    _, status = cycle(simulation, START - 1)
    assert status.used is None and not status.message
    _, status = cycle(simulation, START)
    assert status.used == {"cpu": "1", "memory": "2Gi"}
    assert status.message == "2 pods of jobs that may not use its nodes still run there"


def test_owners_are_evaluated_once_for_equal_pods_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    selects = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}
    jobs = {
        "many": {"pods": 20, "each": {"cpu": 1}},
        "mixed": {
            "tasks": {
                "a": {"pods": 5, "cpu": 1, "labels": {"team": "a", "other": "x"}},
                "b": {"pods": 5, "cpu": 1, "labels": {"team": "b"}},
            }
        },
    }
    counted: list[tuple[str, str]] = []
    permits = ReservedWindow.permits

    def counting(window: ReservedWindow, job: Job, queues: list[str], labels: dict[str, str]) -> bool:
        counted.append((job.uid, labels.get("team", "")))
        return permits(window, job, queues, labels)

    simulation = simulated({"nodes": ["n1"], "owners": [{"labelSelector": selects}]}, jobs=jobs)
    cycle(simulation, START - 1)
    monkeypatch.setattr(ReservedWindow, "permits", counting)
    book = advance_book_of(cycle(simulation, START - 1)[0].session)
    assert book is not None
    book._against.clear()
    counted.clear()
    against = {key: book.against(task) for key, task in simulation.cluster.tasks.items()}
    assert sorted(counted) == [("default/many", ""), ("default/mixed", "a"), ("default/mixed", "b")]
    assert {key for key, found in against.items() if not found} == {f"default/mixed-a-{i}" for i in range(5)}


def test_a_pod_that_waits_for_it_is_explained() -> None:
    simulation = simulated({"nodes": ["n1", "n2"]}, jobs={"any": {"each": {"cpu": 1}}})
    report, _ = cycle(simulation, START)
    text = sentence_of(causes(report.session, report.session.jobs["default/any"])[0])
    assert text.startswith(
        "2 of 2 nodes are kept by a Reservation into which the pod may run (node(s) were reserved by "
    )
    assert "Reservation r from 2026-01-01T02:00:00Z to 2026-01-01T03:00:00Z for no one" in text


def test_what_plans_count_is_the_same_object_while_nothing_changes() -> None:
    simulation = simulated({"nodes": ["n1"]}, jobs={"any": {"each": {"cpu": 1}}})
    task = simulation.cluster.tasks["default/any-0"]
    first = advance_book_of(cycle(simulation, START - 2)[0].session)
    again = advance_book_of(cycle(simulation, START - 1)[0].session)
    assert first is not None and again is not None
    [held] = first.held_from(task)
    assert again.held_from(task)[0] is held and (held.start, held.until) == (START, START + HOUR)
    assert held.amounts[:, simulation.cluster.nodes.index["n1"]].any()
    assert not held.amounts[:, simulation.cluster.nodes.index["n2"]].any()


def test_a_bad_default_is_a_warning() -> None:
    for text in ("soon", "0s", "-1h"):
        plugin = AdvanceReservation({"default-run-time": text})
        assert "jobs without a limit are not expected to end" in plugin.warnings[0] and plugin.default_run_time is None


def test_a_model_that_is_built_again_has_the_same_nodes() -> None:
    simulation = simulated({"nodeCount": 1, "status": {"nodes": ["n2"]}})
    assert cycle(simulation, START)[1].nodes == ["n2"]
    cluster = simulation.cluster
    [found], nodes = cluster.others["Reservation"].values(), list(cluster.nodes.objects)
    cluster.reset()
    for node in nodes:
        cluster.upsert("Node", node)
    cluster.upsert("Reservation", found)
    assert cycle(simulation, START)[1].nodes == ["n2"]
