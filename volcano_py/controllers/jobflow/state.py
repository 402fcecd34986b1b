"""The phase of a JobFlow. Volcano: the states of the jobflow controller.

A flow runs as soon as one of its jobs does, has failed when one of them has, and has succeeded when all are
completed. What has failed or succeeded stays so.
"""

from __future__ import annotations

from volcano_py.api.flow import FAILED, PENDING, RUNNING, SUCCEED, TERMINATING, JobFlowStatus

ENDED = (SUCCEED, FAILED, TERMINATING)
"""Phases in which no job is made any more."""


def next_phase(phase: str, members: JobFlowStatus, total: int) -> str | None:
    """The phase after a look at the members' phases, of which there will be `total`; None where nothing is done."""
    failed = bool(members.failed_jobs or members.terminated_jobs)
    match phase:
        case "" | "Pending":
            if (members.running_jobs or members.completed_jobs) and not members.failed_jobs:
                return RUNNING
            return FAILED if failed else PENDING
        case "Running":
            if len(members.completed_jobs or ()) == total:
                return SUCCEED
            return FAILED if failed else RUNNING
        case "Succeed":
            return SUCCEED
    return None
