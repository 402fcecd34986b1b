"""The actions a configuration may name, one line each."""

from __future__ import annotations

from volcano_py.scheduler.actions.allocate import allocate
from volcano_py.scheduler.actions.backfill import backfill
from volcano_py.scheduler.actions.enqueue import enqueue
from volcano_py.scheduler.actions.gangpreempt import gangpreempt
from volcano_py.scheduler.actions.gangreclaim import gangreclaim
from volcano_py.scheduler.actions.preempt import preempt
from volcano_py.scheduler.actions.reclaim import reclaim
from volcano_py.scheduler.actions.shuffle import shuffle
from volcano_py.scheduler.framework.registry import Action

ACTIONS: dict[str, Action] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "shuffle": shuffle,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
}
