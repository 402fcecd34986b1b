"""Both forms of node rules are equal, and updated arrays equal new ones."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from hypothesis import given, settings

from tests.scheduler.trial import configured, opened, tasks
from tests.strategies import Manifest, clusters, plugin_tiers
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.search.node_rules import LOCAL
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.nodes.some_nodes import SomeNodes
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests


class _Untimed:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def open_session(manifests: list[Manifest], tiers: list[list[str]]) -> Session:
    simulation = Simulation(manifests)
    conf = load(configuration({"plugins": tiers}), REGISTRY.actions)
    begin_cycle(simulation.cluster, conf, 0.0)
    session = Session(simulation.cluster, conf, 0.0, 7, lambda _: None)
    open_plugins(session, REGISTRY, CycleReport(session), lambda *_: _Untimed())
    assert not session.callbacks.faults
    return session


def fingerprint(session: Session) -> dict[str, object]:
    """All values that a statement may change, for a comparison before and after.

    A scalar of a job's sum that was added and removed stays as 0, as in Volcano.
    """
    n = session.numbers
    arrays = {"matrix": n.matrix.tobytes(), "foreign": n.foreign.tobytes()}
    jobs = {
        uid: (list(j.counts), list(j.best_effort_counts), {k: v for k, v in j.allocated.as_dict().items() if v})
        for uid, j in session.jobs.items()
    }
    return {"statuses": bytes(session.statuses), "placed": dict(session.moves.placed), "jobs": jobs, **arrays}


@settings(max_examples=30, deadline=None)
@given(clusters(), plugin_tiers())
def test_rules_for_one_node_equal_rules_for_all(manifests: list[Manifest], tiers: list[list[str]]) -> None:
    session = open_session(manifests, tiers)
    placement = session.placement
    tasks = {t.spec_class.id: t for j in session.jobs.values() for t in session.pending(j)}
    for task in tasks.values():
        for _, f in placement.filters:
            if f.scope is LOCAL and f.applies(task):
                codes = f.filter(task, session.numbers)
                assert [f.filter_node(task, n) for n in range(len(session.table))] == codes.tolist(), f.name
        for _, s in placement.scores:
            if s.scope is LOCAL and s.applies(task):
                rates = s.score(task, session.numbers)
                assert [s.score_node(task, n) for n in range(len(session.table))] == rates.tolist(), s.name
                some = np.arange(0, len(session.table), 2)
                assert s.score(task, SomeNodes(session.numbers, some)).tolist() == rates[some].tolist(), s.name


@settings(max_examples=30, deadline=None)
@given(clusters(), plugin_tiers())
def test_updated_views_equal_new_views_and_discard_restores(manifests: list[Manifest], tiers: list[list[str]]) -> None:
    session = open_session(manifests, tiers)
    placement = session.placement
    tasks = [t for j in session.jobs.values() for t in session.pending(j)]
    for t in tasks:
        placement.view(t)
    before = fingerprint(session)
    statement = Statement(session)
    for i, t in enumerate(tasks):
        node = i % len(session.table)
        if i % 3 == 2:
            statement.pipeline(t, node, evicted=bool(i % 2))
        else:
            statement.allocate(t, node)
    for job in session.jobs.values():
        for t in job.tasks.values():
            if session.status(t) == st.RUNNING:
                statement.evict(t, "test")
    for t in tasks:
        kept = placement.view(t)
        fresh = placement._make(t)
        for name in ("ok", "idle", "future"):
            assert getattr(kept, name).tolist() == getattr(fresh, name).tolist(), (t.key, name)
        if placement.up_to_date(kept, t):  # otherwise the sums are computed in every search
            assert kept.masked.tolist() == fresh.masked.tolist(), t.key
    statement.discard()
    assert fingerprint(session) == before


def places_of_many_classes(kept: int) -> list[int | None]:
    """The nodes of pods of twelve classes with a limit of kept arrays; each class is looked up twice."""
    term = {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    jobs = {
        f"j{i}": {"phase": "Inqueue", "each": {"cpu": 1 + i / 10, "spec": {"affinity": affinity}}} for i in range(12)
    }
    session = opened({"nodes": {f"n{i}": {"cpu": 8} for i in range(4)}, "jobs": jobs}, [["predicates", "nodeorder"]])
    placement = session.placement
    placement._kept = kept
    places = []
    for task in tasks(session):
        node = placement.best(task)
        assert node is not None
        Statement(session).allocate(task, node)
        places.append(node)
    again = [placement.best(task) for task in tasks(session)]
    assert len(placement._views) == min(12, kept // 2)
    assert len(placement._cache) <= kept
    return places + again


def test_the_number_of_kept_arrays_is_limited() -> None:
    assert places_of_many_classes(4) == places_of_many_classes(1000)


def test_a_new_weight_takes_effect_immediately() -> None:
    """Results of rules that are kept between cycles are dropped with the configuration."""
    scenario = {
        "nodes": {"n1": {"images": {"app:1": 900_000_000}}, "n2": {}},
        "jobs": {"j": {"phase": "Inqueue", "each": {"cpu": 1, "image": "app:1"}}},
    }
    simulation = Simulation(manifests(scenario))
    leads = []
    for weight in (1, 3):
        conf = configured([[{"nodeorder": {"imagelocality.weight": weight}}]])
        begin_cycle(simulation.cluster, conf, simulation.now)
        session = Session(simulation.cluster, conf, simulation.now, 0, lambda _: None)
        open_plugins(session, REGISTRY, CycleReport(session), lambda *_: nullcontext())
        [task] = tasks(session, "j")
        rates = session.placement.scores_of(task, np.array([0, 1]))
        leads.append(rates[0] - rates[1])
    assert leads[0] > 0 and leads[1] == 3 * leads[0]
