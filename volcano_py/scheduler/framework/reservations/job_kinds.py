"""Which jobs are expected to run for similar times: those of an owner in a queue with similar names. Not in Volcano."""

from __future__ import annotations

import re

from volcano_py.scheduler.framework.jobs.owner import owner_of
from volcano_py.scheduler.model.jobs.job import Job

_LONGEST_NAME = 128
Kind = tuple[str, str, str]
"""Queue, owner, and the pattern of the name."""


def kind_of(job: Job) -> Kind:
    """The narrowest class of a job."""
    return job.queue, owner_of(job)[:_LONGEST_NAME], pattern_of(job.name)


def pattern_of(name: str) -> str:
    """The part of a name that jobs of the same purpose have in common: without numbers and random suffixes."""
    head, _, tail = name.rpartition("-")
    if head and len(tail) == 5 and tail.isalnum() and not tail.isalpha():
        name = head
    return re.sub(r"[0-9]+", "#", name)[:_LONGEST_NAME]
