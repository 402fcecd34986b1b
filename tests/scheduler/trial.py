"""Clusters in the short notation of scenarios, for tests that check more than the decisions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.config import Configuration, load
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, open_plugins, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

Manifest = dict[str, Any]
Plugins = list[list[Any]]


class Trial:
    """A cluster, and the decisions of its last cycle. A plugin that raises fails the test."""

    def __init__(
        self, scenario: Manifest, plugins: Plugins, actions: str = "allocate, backfill", **settings: Any
    ) -> None:
        self.simulation = Simulation(manifests(scenario))
        self.conf = configured(plugins, actions, **settings)
        self.report: CycleReport
        self.emitted: list[plan.Operation] = []

    def cycle(self, jump: float = 0.0) -> None:
        """One cycle, after the clock has jumped."""
        self.simulation.now += jump
        self.emitted = []
        cluster, now = self.simulation.cluster, self.simulation.now
        self.report = run_once(cluster, self.conf, now, emit=self.emitted.extend)
        assert self.report.faults == []
        self.simulation.react(self.emitted)

    @property
    def bound(self) -> set[str]:
        return {o.name for o in self.emitted if isinstance(o, plan.Bind)}

    @property
    def evicted(self) -> set[str]:
        return {o.name for o in self.emitted if isinstance(o, plan.Evict)}

    def messages(self, name: str) -> list[str]:
        """The messages of Events about an object."""
        return [o.message for o in self.emitted if isinstance(o, plan.Event) and o.name == name]

    def reason(self, pod: str) -> str:
        """Why a pod is pending, by its last message."""
        return self.simulation.cluster.reported.conditions[f"default/{pod}"][1]


def configured(plugins: Plugins, actions: str = "allocate", **settings: Any) -> Configuration:
    """A configuration in the scenarios' short form."""
    return load(configuration({"plugins": plugins, "actions": actions, **settings}), REGISTRY.actions)


def opened(scenario: Manifest, plugins: Plugins, **settings: Any) -> Session:
    """A session before its actions run."""
    simulation = Simulation(manifests(scenario))
    conf = configured(plugins, **settings)
    begin_cycle(simulation.cluster, conf, simulation.now)
    session = Session(simulation.cluster, conf, simulation.now, 0, lambda _: None)
    open_plugins(session, REGISTRY, CycleReport(session), lambda *_: nullcontext())
    assert not session.callbacks.faults, session.callbacks.faults
    return session


def tasks(session: Session, *jobs: str) -> list[Task]:
    """The tasks of some jobs, or of all, by name."""
    wanted = {f"default/{name}" for name in jobs}
    return [t for _, t in sorted(session.cluster.tasks.items()) if not jobs or t.job in wanted]


def names(of: Iterable[Task]) -> list[str]:
    return [t.name for t in of]
