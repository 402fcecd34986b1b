"""run_once: one cycle. Volcano: runOnce, OpenSession, CloseSession.

A pure function of its arguments: the live loop, the simulator, the conformance runner and the tests all call
it, and nothing else decides. It emits the plan while it runs; the model assumes it when the session is closed.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.actions.eviction.back_off import count_rounds
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.callbacks import Fault
from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.jobs.empty_groups import end_claims
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session, Shard
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.spec_class import PodKeys
from volcano_py.scheduler.model.nodes.sample_size import DEFAULT_SAMPLE, SampleSize
from volcano_py.scheduler.model.plan import Bind, Emit, Evict, Operation
from volcano_py.scheduler.model.verification import differences
from volcano_py.scheduler.plugins import PLUGINS
from volcano_py.scheduler.runtime.planner import Planner
from volcano_py.scheduler.session_close.close import Timer, close

if TYPE_CHECKING:  # the plugins of profiles, which only some programs need
    from volcano_py.scheduler.profiles.sessions.session_rules import SessionRules

REGISTRY = Registry(PLUGINS, ACTIONS)
"""The built-in plugins and actions. The live scheduler imports those of its configuration before a cycle runs; all of
them would take a seventh of the time of a start."""


class CycleReport(Struct):
    """The outcome of a cycle."""

    session: Session
    plan: list[Operation] = []
    """The emitted operations, in order."""
    bound: int = 0
    evicted: int = 0
    faults: list[Fault] = []
    warnings: list[str] = []
    unfinished: bool = False
    """The budget ran out: the next cycle should follow at once."""

    @property
    def counters(self) -> dict[str, int]:
        """Work done: vector passes, columns refreshed, jobs and tasks tried."""
        s = self.session
        return {
            "vector_passes": s.placement.passes,
            "columns_refreshed": s.placement.columns,
            "jobs_tried": s.work.jobs_tried,
            "tasks_tried": s.work.tasks_tried,
        }

    def pipelined(self) -> dict[str, str]:
        """The node of each pipelined task, by the task's key."""
        s = self.session
        return {
            key: s.table.names[s.moves.placed[task.slot]]
            for job in s.jobs.touched()
            if job.counts[st.PIPELINED]
            for key, task in job.tasks.items()
            if s.statuses[task.slot] == st.PIPELINED
        }


def run_once(
    model: Cluster,
    configuration: Configuration,
    now: float,
    seed: int = 0,
    budget: int | None = None,
    emit: Emit | None = None,
    *,
    registry: Registry = REGISTRY,
    shard: Shard | None = None,
    sample_size: SampleSize = DEFAULT_SAMPLE,
    timer: Timer | None = None,
    assume: bool = True,
    report_jobs: bool = True,
    profiles: SessionRules | None = None,
) -> CycleReport:
    """Run the configured actions once over the model.

    now     seconds since the epoch; the only source of time
    seed    decides among nodes of equal score
    budget  limit of tasks to try; None: no limit
    assume  whether the model counts the plan as done; False for trials, after which the model is as before
    report_jobs  whether statuses, conditions and Events are part of the plan; False for trials of a placement
    profiles  the profiles whose rules hold for the pods of their schedulerNames
    emit    is called with the operations of each statement
    """
    planner = Planner(model, emit)
    timed = timer or (lambda _kind, _name: nullcontext())
    with timed("session", "open"):
        rules = profiles if configuration.deviations.profile_rules else None
        keys = PodKeys(*registry.keys_of(configuration), rules.names if rules is not None else frozenset())
        begin_cycle(model, configuration, now, keys)
        session = Session(model, configuration, now, seed, planner.submit, budget, shard, sample_size)
    report = CycleReport(session, planner.operations)
    if model.check_states:
        session.callbacks.faults += [Fault("model", "verify-incremental", d.text, "") for d in differences(model)]
    try:
        end_claims(session)
        with timed("session", "plugins"):
            if rules is not None:
                rules.open(session)
            plugins = open_plugins(session, registry, report, timed)
        for name in configuration.actions:
            with timed("action", name):
                _execute(name, session, registry, report)
        if report_jobs:
            with timed("session", "close"):
                close(session, plugins, timed)
    finally:
        if rules is not None:
            rules.close()
        if assume:
            planner.assume(session.new_statuses)
            count_rounds(session, planner.operations)
    report.faults = session.callbacks.faults
    counts = planner.counts()
    report.bound, report.evicted = counts[Bind], counts[Evict]
    report.unfinished = session.work.exhausted
    model.dirty = report.unfinished
    model.jobs_moved = report.bound + report.evicted > 0 or bool(session.new_statuses)
    return report


def _execute(name: str, session: Session, registry: Registry, report: CycleReport) -> None:
    """Run one action; an exception is its fault, and the next action runs."""
    try:
        action = registry.actions[name](session.configuration.action_arguments.get(name, {}))
        report.warnings += action.warnings
        action.initialize()
    except Exception as e:
        session.callbacks.fault(name, "action", e)
        return
    try:
        action.execute(session)
    except Exception as e:
        session.callbacks.fault(name, "action", e)
    try:
        action.uninitialize()
    except Exception as e:
        session.callbacks.fault(name, "action", e)


def open_plugins(session: Session, registry: Registry, report: CycleReport, timed: Timer) -> list[Plugin]:
    """Construct the configured plugins and open them; unknown ones are a warning."""
    plugins: list[Plugin] = []
    for tier in session.configuration.tiers:
        for option in tier:
            builder = registry.plugins.get(option.name)
            if builder is None:
                report.warnings.append(f"plugin {option.name} is unknown and skipped")
                continue
            if option.closed:
                session.callbacks.fault(option.name, "closed", RuntimeError(option.closed))
                session.close_plugin(option.name)
                continue
            with timed("plugin-open", option.name):
                try:
                    plugin = builder(option.arguments)
                    with session.registration(option.name):
                        plugin.on_session_open(session)
                except Exception as e:
                    session.callbacks.fault(option.name, "on_session_open", e)
                    session.close_plugin(option.name)
                    continue
            plugins.append(plugin)
            report.warnings += plugin.warnings
    session.seal()
    return plugins
