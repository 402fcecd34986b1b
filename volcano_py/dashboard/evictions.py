"""The page of evictions as data, from the Events `Evict` and `Preempted` of pods.

The Event's field `related` names the PodGroup that the capacity is for. Volcano's scheduler does not write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from volcano_py.cli.top_facts import job_name
from volcano_py.dashboard.jobs import seconds

Manifest = dict[str, Any]
MOST = 200
"""Evictions that are listed, the newest ones."""
_ACTION = re.compile(r"because of (\S+)")
_UID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Eviction(NamedTuple):
    """An eviction. `evictor`: namespace/name of the job that gets the capacity; empty: the Event names none."""

    time: float
    namespace: str
    pod: str
    action: str
    evictor: str


class Evictions(NamedTuple):
    """The newest evictions, and how many Events there are."""

    rows: tuple[Eviction, ...]
    total: int


def evictions(events: Iterable[Manifest], groups: Mapping[str, Manifest]) -> Evictions:
    """The evictions that Events report."""
    rows = sorted((_row(e, groups) for e in events if e["message"]), key=lambda row: -row.time)
    rows = [row for row in rows if row.pod]
    return Evictions(tuple(rows[:MOST]), len(rows))


def _row(event: Manifest, groups: Mapping[str, Manifest]) -> Eviction:
    namespace, pod = event["pod"]
    found = _ACTION.search(event["message"])
    action = found[1] if found else "a pod of higher priority"
    evictor = ""
    if event["evictor"] is not None:
        key = "/".join(event["evictor"])
        # the PodGroup of a Job is JOB-UID; it may be gone
        evictor = f"{event['evictor'][0]}/{job_name(groups[key])}" if key in groups else _UID.sub("", key)
    return Eviction(seconds(event["time"]), namespace, pod, action, evictor)
