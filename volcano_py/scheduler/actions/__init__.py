"""The actions that a configuration can name, one line each."""

from __future__ import annotations

from volcano_py.scheduler.actions.allocate import Allocate
from volcano_py.scheduler.actions.backfill import Backfill
from volcano_py.scheduler.actions.enqueue import Enqueue
from volcano_py.scheduler.actions.gangpreempt import GangPreempt
from volcano_py.scheduler.actions.gangreclaim import GangReclaim
from volcano_py.scheduler.actions.preempt import Preempt
from volcano_py.scheduler.actions.reclaim import Reclaim
from volcano_py.scheduler.actions.shuffle import Shuffle
from volcano_py.scheduler.framework.registry import ActionBuilder

ACTIONS: dict[str, ActionBuilder] = {
    "enqueue": Enqueue,
    "allocate": Allocate,
    "backfill": Backfill,
    "preempt": Preempt,
    "reclaim": Reclaim,
    "shuffle": Shuffle,
    "gangpreempt": GangPreempt,
    "gangreclaim": GangReclaim,
}
