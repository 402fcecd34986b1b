"""What the scheduler's /healthz checks. Volcano: its /healthz answers ok for as long as the process runs.

An API server that is away fails none of them: informers and election repeat their requests, and the loop has no work.
"""

from __future__ import annotations

from volcano_py.kube.health import Check, Health, Progress
from volcano_py.scheduler.cache.feed import Feed
from volcano_py.scheduler.dispatch.handle import DispatcherHandle


def checks(progress: Progress, handle: DispatcherHandle) -> Health:
    """The checks that hold from the start on."""
    health = Health()
    health.add("ping", lambda: "")
    health.add("cycles", progress.check)
    health.add("dispatcher", handle.problem)
    health.add("election", handle.election_problem)
    return health


def add_informers(health: Health, feed: Feed) -> None:
    """One check for each watched kind."""
    for kind, informer in feed.informers.items():
        health.add(f"informer-{informer.rt.plural}", _runs(feed, kind))


def _runs(feed: Feed, kind: str) -> Check:
    return lambda: "the task has ended" if kind in feed.ended else feed.informers[kind].problem()
