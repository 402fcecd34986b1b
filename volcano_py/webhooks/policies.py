"""Validation of lifecycle policies of Jobs and tasks. Volcano: policies in /jobs/validate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.api import bus

EVENTS = (
    bus.ANY_EVENT,
    bus.JOB_UPDATED,
    bus.POD_EVICTED,
    bus.POD_FAILED,
    bus.POD_PENDING,
    bus.TASK_COMPLETED,
    bus.TASK_FAILED,
    bus.JOB_UNKNOWN,
)
"""Events that users may set; the others are internal."""

ACTIONS = (
    bus.ABORT_JOB,
    bus.COMPLETE_JOB,
    bus.RESTART_JOB,
    bus.RESTART_PARTITION,
    bus.RESTART_POD,
    bus.RESTART_TASK,
    bus.RESUME_JOB,
    bus.TERMINATE_JOB,
)


def check_policies(policies: Sequence[Mapping[str, Any]] | None, path: str) -> str:
    """The first problem, or an empty string. The action of a policy for an exit code is not validated."""
    problem = _first_problem(policies or ())
    if not problem:
        return ""
    return f"{path}: {problem}; valid events are {', '.join(EVENTS)}; valid actions are {', '.join(ACTIONS)}"


def _first_problem(policies: Sequence[Mapping[str, Any]]) -> str:
    events = set[str]()
    codes = set[int]()
    for policy in policies:
        named = [event for event in (policy.get("event"), *(policy.get("events") or ())) if event]
        code = policy.get("exitCode")
        if named and code is not None:
            return "must not specify event and exitCode simultaneously"
        if not named and code is None:
            return "either event and exitCode should be specified: set one of the two in each policy"
        if code is None:
            for event in dict.fromkeys(named):
                if event not in EVENTS:
                    return f"Invalid value: {event!r}: invalid policy event"
                if policy.get("action") not in ACTIONS:
                    return f"Invalid value: {policy.get('action')!r}: invalid policy action"
                if event in events:
                    return f"duplicate event {event} across different policies"
                events.add(event)
        else:
            if code == 0:
                return "0 is not a valid error code (exitCode)"
            if code in codes:
                return f"duplicate exitCode {code}"
            codes.add(code)
    if bus.ANY_EVENT in events and len(events) > 1:
        return "if there's * here, no other policy should be here: * matches every event"
    return ""
