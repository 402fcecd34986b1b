"""Cycles of a trace without what only reports: conditions, Events, the reasons of waiting pods. They decide the same.

A configuration qualifies if all of its plugins and actions are built in and none of its actions evicts: then nothing
that the close of a session reports is read by a later decision except the phases of PodGroups, which the replay writes
itself. In such a cycle, gangs of equal pods for which the nodes have too little capacity are not tried.
"""

from __future__ import annotations

import msgspec
import numpy as np

from volcano_py.scheduler.actions.allocate import Allocate
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue
from volcano_py.scheduler.framework.config import Configuration, PluginOption
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

_FLAGS = frozenset({"enablePredicate"})
_ACTIONS = frozenset({"enqueue", "allocate", "backfill", "reserve"})
_CLOSES = frozenset({"numaaware", "numa-aware", "extender"})
"""Plugins whose close does more than report."""


def is_quick(configuration: Configuration, registry: Registry) -> bool:
    """Whether a configuration qualifies."""
    plugins = {option.name for tier in configuration.tiers for option in tier}
    return (
        _ACTIONS.issuperset(configuration.actions)
        and _CLOSES.isdisjoint(plugins)
        and all(registry.plugins.is_built_in(name) for name in plugins)
        and all(registry.actions.is_built_in(name) for name in configuration.actions)
    )


def quick_registry(registry: Registry) -> Registry:
    """The same plugins and actions, with an allocate that passes gangs without capacity."""
    found = Registry(registry.plugins, registry.actions)
    found.actions["allocate"] = _QuickAllocate
    return found


def with_plugin(configuration: Configuration, name: str) -> Configuration:
    """The configuration with a plugin in a tier of its own."""
    return msgspec.structs.replace(configuration, tiers=(*configuration.tiers, (PluginOption(name, _FLAGS),)))


class _QuickAllocate(Allocate):
    def may_start(self, session: Session, job: SessionJob, todo: TaskQueue) -> bool:
        tasks: list[Task] = list(todo)
        first = tasks[0]
        if job.ready_num or any(task.spec_class is not first.spec_class for task in tasks):
            return True
        if session.rules.pre_predicate(first) is not None:
            return True
        ok = session.placement.accepted(first)
        if not ok.any():
            return False
        numbers, needs = session.numbers, first.spec_class.vector(session.table)
        free = numbers.idle + numbers.releasing - numbers.pipelined
        rows = [row for row in first.spec_class.checked_rows(session.table) if needs[row] > 0]
        if not rows:
            return True
        room = np.floor((free[rows][:, ok] + EPS) / needs[rows][:, None]).min(axis=0)
        return bool(room.sum() >= min(job.min_available, len(tasks)))
