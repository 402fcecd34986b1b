"""Back-off of jobs whose evictions had no effect (deviation eviction-back-off). Volcano has none.

Evictions free capacity for a job, but they do not guarantee that the job starts: another job with a higher rank can use
up the limit of a common parent queue, or no configured action places the pods. If such a job evicted again in each
cycle, its victims and their replacements would be evicted for as long as the job is pending.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.plan import Evict, Operation
from volcano_py.scheduler.model.reported import EvictionRounds, Rounds

FREE_ROUNDS = 2
"""Rounds of evictions without a lasting effect before a job backs off: the first failure can be chance."""
FIRST_DELAY = 60.0
MAX_DELAY = 3600.0
"""Seconds; the delay doubles with each further round."""
RESET = 600.0
"""Seconds without evictions, beyond the delay, after which the rounds of a job are forgotten."""


def waits_until(rounds: Rounds) -> float:
    """The earliest time of the next round, in seconds since the epoch."""
    if rounds.number < FREE_ROUNDS:
        return rounds.at
    return rounds.at + min(FIRST_DELAY * 2.0 ** min(rounds.number - FREE_ROUNDS, 16), MAX_DELAY)


def backs_off(session: Session, job: SessionJob) -> bool:
    """Whether a job must not evict now, because its last evictions had no lasting effect."""
    rounds = session.cluster.keep(EvictionRounds).of_job.get(job.uid)
    if rounds is None or not session.deviations.eviction_back_off:
        return False
    return job.ready_num <= rounds.ready and session.now < waits_until(rounds)


def count_rounds(session: Session, plan: Iterable[Operation]) -> None:
    """Count the evictions of a plan that is carried out, once for each job that evicts pods of other jobs.

    Forgets jobs that do not exist anymore, and rounds of long ago.
    """
    known = session.cluster.keep(EvictionRounds).of_job
    for uid, rounds in list(known.items()):
        if uid not in session.cluster.jobs or session.now > waits_until(rounds) + RESET:
            del known[uid]
    evictors = dict.fromkeys(op.evictor for op in plan if isinstance(op, Evict) and op.evictor != op.group)
    for uid in evictors:
        job = session.jobs.get(uid)
        if job is not None:
            before = known.get(uid)
            again = before is not None and job.ready_num <= before.ready
            count = before.number + 1 if before is not None and again else 1
            known[uid] = Rounds(count, job.ready_num, session.now)
