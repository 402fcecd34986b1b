"""Actions by name: functions of a session."""

from tests.reference.actions.allocate import allocate
from tests.reference.actions.backfill import backfill
from tests.reference.actions.enqueue import enqueue
from tests.reference.actions.gangs import gangpreempt, gangreclaim
from tests.reference.actions.preempt import preempt
from tests.reference.actions.reclaim import reclaim
from tests.reference.actions.shuffle import shuffle

ACTIONS = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "shuffle": shuffle,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
}
