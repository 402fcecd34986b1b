"""The list of jobs as data: rows, which of them a filter shows, and one page of them.

A job is a Job with its PodGroup, or a PodGroup alone; its name is the Job's where there is one. Rows are kept until
their objects change, so that 10,000 jobs cost what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from volcano_py.api import batch, scheduling
from volcano_py.api.meta import parse_time
from volcano_py.cli.job_waits import why_pending
from volcano_py.cli.top_facts import job_name

Manifest = dict[str, Any]
PAGE = 50
"""Rows of one page."""
_WAITING = (scheduling.PENDING, scheduling.INQUEUE, scheduling.UNKNOWN, batch.RESTARTING)
_SUSPENDED = (batch.ABORTED, batch.ABORTING)
_ENDED = (batch.COMPLETED, batch.FAILED, batch.TERMINATED)
STATES = ("waiting", "running", "suspended", "ended")
ORDERS = ("waiting first", "newest", "oldest", "name", "queue")


class JobRow(NamedTuple):
    """A job. Times are seconds since the epoch, 0 where there is none; `state` is one of STATES."""

    key: str
    """namespace/name, of the Job or else of the PodGroup."""
    group: str
    """namespace/name of the PodGroup."""
    queue: str
    phase: str
    state: str
    running: int
    least: int
    pods: int
    created: float
    started: float
    ended: float
    code: str
    why: str
    has_job: bool
    words: str
    """What a search looks through, in lower case."""
    limit: float = 0.0
    """How long it may run in seconds; 0: it states no limit."""

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


class Filter(NamedTuple):
    """What is shown: `text` in any of name, namespace, queue or reason; empty means all."""

    text: str = ""
    state: str = ""
    queue: str = ""
    order: str = ORDERS[0]
    page: int = 0


class JobList(NamedTuple):
    """One page of jobs. `found`: how many the filter shows; `counts`: of all jobs, by state."""

    rows: tuple[JobRow, ...]
    found: int
    page: int
    pages: int
    counts: dict[str, int]
    queues: tuple[str, ...]


class JobTable:
    """The rows of all jobs. `update` makes those again whose objects have changed."""

    def __init__(self) -> None:
        self.rows: dict[str, JobRow] = {}
        self._made: dict[str, tuple[str, str, JobRow]] = {}

    def update(self, groups: Mapping[str, Manifest], jobs: Mapping[str, Manifest]) -> None:
        """Take PodGroups and Jobs, both by `namespace/name`."""
        made: dict[str, tuple[str, str, JobRow]] = {}
        used = set()
        for key, group in groups.items():
            own = f"{group['metadata']['namespace']}/{job_name(group)}"
            job = jobs.get(own) if own != key else None
            if job is not None:
                used.add(own)
            self._make(made, own, key, group, job)
        for key, job in jobs.items():
            if key not in used:
                self._make(made, key, "", None, job)
        self._made = made
        self.rows = {key: row for key, (_, _, row) in made.items()}

    def _make(
        self,
        made: dict[str, tuple[str, str, JobRow]],
        key: str,
        group_key: str,
        group: Manifest | None,
        job: Manifest | None,
    ) -> None:
        versions = (_version(group), _version(job))
        known = self._made.get(key)
        if known is not None and known[:2] == versions:
            made[key] = known
        else:
            made[key] = (*versions, job_row(key, group_key, group, job))


def job_row(key: str, group_key: str, group: Manifest | None, job: Manifest | None) -> JobRow:
    """The row of a Job and its PodGroup, of which one may be missing."""
    source = job or group
    assert source is not None
    spec = source["spec"]
    phase = phase_of(group, job)
    started, ended = _times(group, job, phase)
    code, why = reason_of(group) if phase in _WAITING else ("", "")
    queue = spec.get("queue") or scheduling.DEFAULT_QUEUE
    pods = sum(t["replicas"] for t in spec.get("tasks") or ()) if job is not None else spec.get("minMember", 0)
    return JobRow(
        key,
        group_key,
        queue,
        phase,
        state_of(phase),
        source["status"].get("running", 0),
        spec.get("minAvailable", 0) if job is not None else spec.get("minMember", 0),
        pods,
        seconds(source["metadata"].get("creationTimestamp")),
        started,
        ended,
        code,
        why,
        job is not None,
        f"{key} {queue} {phase} {code} {why}".lower(),
        max((o["metadata"].get("maxRunTime", 0.0) for o in (group, job) if o is not None), default=0.0),
    )


def phase_of(group: Manifest | None, job: Manifest | None) -> str:
    """The Job's phase; while it is Pending, that of its PodGroup, which contains more."""
    of_group = (group["status"].get("phase") if group is not None else "") or scheduling.PENDING
    if job is None:
        return str(of_group)
    phase = job["status"]["state"]["phase"] or batch.PENDING
    return str(of_group if phase == batch.PENDING and of_group in _WAITING else phase)


def state_of(phase: str) -> str:
    """Which of STATES a phase is."""
    if phase in _WAITING:
        return "waiting"
    if phase in _SUSPENDED:
        return "suspended"
    return "ended" if phase in _ENDED else "running"


def reason_of(group: Manifest | None) -> tuple[str, str]:
    """Code and sentence of the condition Waiting of a PodGroup, else what Volcano's scheduler reports."""
    if group is None:
        return "", ""
    waiting = next((c for c in group["status"]["conditions"] if c["type"] == "Waiting"), None)
    if waiting is not None:
        return waiting["reason"], " ".join(waiting["message"].split())
    return "", why_pending([group])


def _times(group: Manifest | None, job: Manifest | None, phase: str) -> tuple[float, float]:
    """When it began to run the last time, and when it ended."""
    started = ended = 0.0
    if phase not in _WAITING:
        scheduled = [c for c in group["status"]["conditions"] if c["type"] == "Scheduled"] if group is not None else ()
        started = max((seconds(c["lastTransitionTime"]) for c in scheduled), default=0.0)
        for c in job["status"]["conditions"] if job is not None else ():
            if c["status"] == batch.RUNNING:
                started = seconds(c["lastTransitionTime"])
            elif c["status"] in _ENDED and phase in _ENDED:
                ended = seconds(c["lastTransitionTime"])
    return started, ended


def count_states(rows: Iterable[JobRow]) -> dict[str, int]:
    """The number of jobs by state."""
    counts = dict.fromkeys(STATES, 0)
    for row in rows:
        counts[row.state] += 1
    return counts


def job_list(rows: Iterable[JobRow], chosen: Filter) -> JobList:
    """The page that a filter chooses."""
    rows = list(rows)
    words = chosen.text.lower().split()
    found = [
        row
        for row in rows
        if (not chosen.state or row.state == chosen.state)
        and (not chosen.queue or row.queue == chosen.queue)
        and all(word in row.words for word in words)
    ]
    found.sort(key=_ORDER_OF[chosen.order if chosen.order in _ORDER_OF else ORDERS[0]])
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(0, chosen.page), pages - 1)
    shown = tuple(found[page * PAGE : (page + 1) * PAGE])
    return JobList(shown, len(found), page, pages, count_states(rows), tuple(sorted({row.queue for row in rows})))


_PLACE = {state: place for place, state in enumerate(STATES)}
_ORDER_OF: dict[str, Any] = {
    "waiting first": lambda row: (_PLACE[row.state], row.created, row.key),
    "newest": lambda row: (-row.created, row.key),
    "oldest": lambda row: (row.created, row.key),
    "name": lambda row: row.key,
    "queue": lambda row: (row.queue, row.key),
}


def seconds(stamp: str | None) -> float:
    """A time of the API; 0 for none, or for one that is no time."""
    try:
        return parse_time(stamp) if stamp else 0.0
    except ValueError:
        return 0.0


def _version(found: Manifest | None) -> str:
    return str(found["metadata"]["resourceVersion"]) if found is not None else ""
