"""How long jobs run, learned from those that have ended. Not in Volcano.

A job belongs to three classes, from the narrowest to the widest: jobs with a similar name of its owner in its queue,
jobs of the owner in the queue, and jobs of the queue. The expected run time is a quantile of the run times in the
narrowest class that has enough of them. Only jobs whose pods have all succeeded count: a failure after five seconds
states nothing. Each class has its last `OBSERVATIONS`, and the classes that ended first are forgotten.

A class in which jobs outlive the limits that they state, again and again, is not believed any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any, NamedTuple

import msgspec

from volcano_py.api.run_time import LONGEST
from volcano_py.scheduler.framework.reservations.job_kinds import Kind, kind_of
from volcano_py.scheduler.framework.reservations.running_pods import start_of
from volcano_py.scheduler.framework.reservations.stated_limits import limit_of
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job

OBSERVATIONS = 32
CLASSES = 1024
LIES = 3
"""The number of jobs of a class that must have outlived their limits; also more than half of those that stated one."""
_TOLERATED = 1.1
"""A job that needs a little more does not lie: its end is seen only after some seconds."""
_ERRORS = 256


class Observed(NamedTuple):
    """A job that has ended, in seconds."""

    ran: float
    stated: float | None


class _Run(NamedTuple):
    kind: Kind
    started: float
    stated: float | None
    expected: float | None


class _StoredClass(msgspec.Struct):
    of: list[str]
    runs: list[tuple[float, float | None]]


class _Document(msgspec.Struct):
    classes: list[_StoredClass] = []


@dataclass
class LearnedRunTimes:
    """The state between sessions."""

    classes: dict[tuple[str, ...], deque[Observed]] = field(default_factory=dict)
    """In the order of their last observations."""
    running: dict[str, _Run] = field(default_factory=dict)
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=_ERRORS))
    """Of the last jobs for which a run time was expected: the difference as a share of the run time."""
    generation: int = 0
    """Grows with each observation."""
    quantile: float = 0.9
    least: int = 5
    """The number of observations that a class must have."""
    _position: int | None = None
    _answers: dict[Kind, tuple[float | None, bool]] = field(default_factory=dict)

    # ---- observing -----------------------------------------------------------------------------------------

    def observe(self, cluster: Cluster, now: float) -> None:
        """Look at the jobs that changed since the last time."""
        changed = cluster.job_changes.since(self._position) if self._position is not None else None
        self._position = cluster.job_changes.position
        if changed is None:
            changed = {*cluster.jobs, *self.running}
        for uid in sorted(changed):
            job = cluster.jobs.get(uid)
            if job is not None and any(task.takes_capacity for task in job.tasks.values()):
                if uid not in self.running and (run := self._run(job)) is not None:
                    self.running[uid] = run
            elif job is not None and uid in self.running and _succeeded(job):
                self.succeeded(job, now)
            else:
                self.running.pop(uid, None)

    def succeeded(self, job: Job, now: float) -> None:
        """A job has ended well."""
        run = self.running.pop(job.uid, None) or self._run(job)
        if run is not None and now > run.started:
            self.record(run.kind, Observed(min(now - run.started, LONGEST), run.stated), run.expected)

    def _run(self, job: Job) -> _Run | None:
        """What is known of a job that runs; None: no pod of it has started."""
        began = [start for task in job.tasks.values() if task.node and isfinite(start := start_of(task))]
        if not began:
            return None
        kind, stated = kind_of(job), limit_of(job)
        return _Run(kind, min(began), stated, self.limit(kind, stated))

    def record(self, kind: Kind, observed: Observed, expected: float | None = None) -> None:
        """Count a job that has ended."""
        if expected is not None:
            self.errors.append(abs(expected - observed.ran) / max(observed.ran, 1.0))
        for path in (kind, kind[:2], kind[:1]):
            known = self.classes.pop(path, None)
            known = deque(maxlen=OBSERVATIONS) if known is None else known
            known.append(observed)
            self.classes[path] = known
        while len(self.classes) > CLASSES:
            del self.classes[next(iter(self.classes))]
        self.generation += 1
        self._answers.clear()

    # ---- expecting -----------------------------------------------------------------------------------------

    def limit(self, kind: Kind, stated: float | None) -> float | None:
        """How long a job is expected to run at most; None: nothing is known. `stated`: what its user states."""
        learned, believed = self.expected(kind)
        return stated if stated is not None and believed else learned

    def expected(self, kind: Kind) -> tuple[float | None, bool]:
        """What is learned about a class, and whether the limits that its jobs state count."""
        found = self._answers.get(kind)
        if found is None:
            paths: list[tuple[str, ...]] = [kind, kind[:2], kind[:1]]
            enough = (known for p in paths if (known := self.classes.get(p)) is not None and len(known) >= self.least)
            runs = next(enough, None)
            learned = _quantile([run.ran for run in runs], self.quantile) if runs is not None else None
            found = self._answers[kind] = learned, _believed(self.classes.get(kind, ()))
        return found

    def set(self, quantile: float, least: int) -> None:
        """What the configuration states; both change the answers."""
        if (quantile, least) != (self.quantile, self.least):
            self.quantile, self.least = quantile, least
            self.generation += 1
            self._answers.clear()

    # ---- over restarts -------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """See `framework.reservations.history`."""
        return {
            "classes": [
                {"of": list(path), "runs": [[round(run.ran), run.stated and round(run.stated)] for run in runs]}
                for path, runs in self.classes.items()
            ]
        }

    def load(self, document: Any) -> str:
        """Replace what is known by a document; returns what is wrong with it, and nothing is learned then."""
        self.classes.clear()
        self._answers.clear()
        self.generation += 1
        try:
            read = msgspec.convert(document, _Document)
            for each in read.classes[-CLASSES:]:
                if not 1 <= len(each.of) <= 3:
                    raise ValueError(f"a class has the names {each.of}, and must have one to three")
                runs = [Observed(ran, stated) for ran, stated in each.runs[-OBSERVATIONS:]]
                if not all(isfinite(run.ran) and 0 <= run.ran <= LONGEST for run in runs):
                    raise ValueError(f"a run time of {'/'.join(each.of)} is not from 0 to {LONGEST:.0f} s")
                self.classes[tuple(each.of)] = deque(runs, maxlen=OBSERVATIONS)
        except (msgspec.ValidationError, ValueError) as error:
            self.classes.clear()
            return str(error)
        return ""


def _succeeded(job: Job) -> bool:
    return bool(job.tasks) and all(task.status == st.SUCCEEDED for task in job.tasks.values())


def _believed(runs: Sequence[Observed] | deque[Observed]) -> bool:
    stated = [run for run in runs if run.stated is not None]
    lies = sum(run.ran > _TOLERATED * run.stated for run in stated if run.stated is not None)
    return lies < LIES or 2 * lies <= len(stated)


def _quantile(values: list[float], quantile: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return max(1.0, sorted(values)[max(0, ceil(quantile * len(values)) - 1)])
