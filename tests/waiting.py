"""Waiting in tests: one time budget for every wait, and the clusters' state in the message when it is used up.

A wait ends as soon as its condition holds, so the budget costs time only when a test fails. It is generous because a
busy machine is no reason to fail. `TEST_TIME_SCALE=5` makes every budget five times as long.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from volcano_py.sandbox.cluster import Sandbox

T = TypeVar("T")

BUDGET = 60.0
"""Seconds that one wait may take at scale 1."""
SCALE = float(os.environ.get("TEST_TIME_SCALE", "1"))
POLL = 0.02
"""Seconds between two looks at a condition."""
_EVENTS, _LOG_LINES = 15, 15

_observed: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def budget(times: float = 1.0) -> float:
    """Seconds for a wait, or for several in a row."""
    return BUDGET * times * SCALE


KUBECTL = f"--timeout={budget():g}s"
"""The budget as an option of `kubectl wait` and `kubectl rollout status`."""


def observe(sandbox: Sandbox) -> None:
    """Describe this cluster in the message of every wait that fails while it is up."""
    _observed.add(sandbox)


async def until(holds: Callable[[], Awaitable[T]], otherwise: str, times: float = 1.0) -> T:
    """Wait until a condition gives something true, and return that. AssertionError says what did not happen."""
    deadline = time.monotonic() + budget(times)
    while True:
        found = await holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise failure(otherwise, times)
        await asyncio.sleep(POLL)


async def within(awaitable: Awaitable[T], otherwise: str, times: float = 1.0) -> T:
    """The result of something that must end within the budget. AssertionError says what did not happen."""
    async with limit(otherwise, times):
        return await awaitable


@asynccontextmanager
async def limit(otherwise: str, times: float = 1.0) -> AsyncIterator[None]:
    """A block that must end within the budget. AssertionError says what did not happen."""
    scope = asyncio.timeout(budget(times))
    try:
        async with scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise failure(otherwise, times) from None


def failure(otherwise: str, times: float = 1.0) -> AssertionError:
    """The error of a wait whose budget is used up, with the state of all clusters that are up."""
    states = [describe(sandbox) for sandbox in _observed]
    return AssertionError("\n".join([f"{otherwise} within {budget(times):g} s", *states]))


def describe(sandbox: Sandbox) -> str:
    """What is in a cluster, and what its components have logged."""
    if not hasattr(sandbox, "api"):
        return "a cluster that has not started"
    lines = [f"cluster {sandbox.kubeconfig}:"]
    for collection in sandbox.api.store.collections.values():
        if collection.name.partition(".")[0] in _DESCRIBED:
            plural = collection.name.partition(".")[0]
            lines += [f"  {plural} {entry.key}: {_DESCRIBED[plural](entry.load())}" for entry in collection.select()]
    events = [entry.load() for entry in sandbox.api.store.collections["events"].select()]
    events.sort(key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")
    for event in events[-_EVENTS:]:
        about = event.get("involvedObject") or {}
        what = f"{about.get('kind')} {about.get('name')}"
        lines.append(f"  event {event.get('type')} {event.get('reason')} {what}: {event.get('message')}")
    for path in sorted(sandbox.logs.glob("*.log")) if sandbox.logs is not None and sandbox.logs.is_dir() else ():
        lines.append(f"  end of {path.name}:")
        lines += [f"    {line}" for line in path.read_text(errors="replace").splitlines()[-_LOG_LINES:]]
    return "\n".join(lines)


def _node(obj: dict[str, Any]) -> str:
    taints = [f"{row['key']}:{row['effect']}" for row in (obj.get("spec") or {}).get("taints") or ()]
    return f"Ready={_condition(obj, 'Ready')} taints={taints}"


def _pod(obj: dict[str, Any]) -> str:
    status = obj.get("status") or {}
    states = [row.get("state") for row in status.get("containerStatuses") or ()]
    going = " deleting" if obj["metadata"].get("deletionTimestamp") else ""
    on = (obj.get("spec") or {}).get("nodeName") or "no node"
    return f"{status.get('phase')} on {on} Ready={_condition(obj, 'Ready')}{going} {states}"


def _condition(obj: dict[str, Any], name: str) -> str:
    rows = (obj.get("status") or {}).get("conditions") or ()
    return next((f"{row['status']} ({row.get('reason', '')})" for row in rows if row.get("type") == name), "not set")


def _status(obj: dict[str, Any]) -> str:
    status = dict(obj.get("status") or {})
    status.pop("conditions", None)
    return str(status)


_DESCRIBED: dict[str, Callable[[dict[str, Any]], str]] = {
    "nodes": _node,
    "pods": _pod,
    "jobs": _status,
    "podgroups": _status,
    "queues": _status,
    "deployments": _status,
    "statefulsets": _status,
    "daemonsets": _status,
}
