"""Actions by name: functions of a session."""

from tests.reference.actions.allocate import allocate
from tests.reference.actions.backfill import backfill
from tests.reference.actions.enqueue import enqueue

ACTIONS = {"enqueue": enqueue, "allocate": allocate, "backfill": backfill}
