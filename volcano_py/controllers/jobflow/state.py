"""The phase of a JobFlow. Volcano: the states of the jobflow controller.

A JobFlow is Running as soon as one of its Jobs is, Failed when one of them is, and Succeed when all are
Completed. Failed and Succeed are final.
"""

from __future__ import annotations

from volcano_py.api.flow import FAILED, PENDING, RUNNING, SUCCEED, TERMINATING, JobFlowStatus

ENDED = (SUCCEED, FAILED, TERMINATING)
"""Phases in which no Job is created."""


def next_phase(phase: str, members: JobFlowStatus, total: int) -> str | None:
    """The next phase, given the phases of the Jobs, `total` when complete; None without a change."""
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
