"""What the scheduler's /healthz checks. Volcano: its /healthz answers ok for as long as the process runs.

An outage of the API server fails none of them: informers and election retry, and the loop has no work.
"""

from __future__ import annotations

from volcano_py.kube.health import Check, Health, Progress
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.runtime.failed_cycles import FailedCycles


def checks(progress: Progress, handle: DispatcherHandle, failed: FailedCycles) -> Health:
    """The checks that exist from the start on."""
    health = Health()
    health.add("ping", lambda: "")
    health.add("cycles", lambda: progress.check() or failed.check())
    health.add("dispatcher", handle.problem)
    health.add("election", handle.election_problem)
    return health


def add_informers(health: Health, cache: Cache) -> None:
    """One check for each watched kind."""
    for kind in cache.informers:
        health.add(f"informer-{cache.plurals[kind]}", _runs(cache, kind))


def _runs(cache: Cache, kind: str) -> Check:
    return lambda: "the task has ended" if kind in cache.ended else cache.informers[kind].problem()
