"""Delayed actions: policies with a timeout. Volcano: job controller, delayed actions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from volcano_py.api import bus
from volcano_py.controllers.job.request import Decision, Request


class _Waiting(Struct):
    action: str
    level: str
    request: Request
    timer: asyncio.TimerHandle


class DelayedActions:
    """At most one delayed action of each kind per Job and pod. `due(job key, request)` is called when it is due."""

    def __init__(self, due: Callable[[str, Request], None]) -> None:
        self._due = due
        self._jobs: dict[str, dict[tuple[str, str], _Waiting]] = {}

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._jobs.values())

    def schedule(self, key: str, request: Request, decision: Decision) -> bool:
        """Delay the action; False if the same action is already delayed for this pod.

        A delayed action for an earlier pending pod with the same name is replaced.
        """
        waiting = self._jobs.setdefault(key, {})
        slot = (request.pod, decision.action)
        if slot in waiting:
            cause = waiting[slot].request
            if cause.event != bus.POD_PENDING or cause.pod_uid == request.pod_uid:
                return False
            self._cancel(key, slot)
        timer = asyncio.get_running_loop().call_later(decision.delay, self._fire, key, slot)
        waiting[slot] = _Waiting(decision.action, decision.level, request, timer)
        return True

    def on_event(self, key: str, request: Request) -> None:
        """Cancel the delayed actions of a pod that has left the state that caused them."""
        for slot, waiting in list(self._jobs.get(key, {}).items()):
            cause = waiting.request
            got_started = (
                cause.event == bus.POD_PENDING
                and cause.pod_uid == request.pod_uid
                and request.event in (bus.POD_RUNNING, bus.POD_FAILED, bus.POD_EVICTED)
            )
            recovered = (
                cause.event in (bus.POD_FAILED, bus.POD_EVICTED)
                and cause.pod == request.pod
                and request.event == bus.POD_RUNNING
            )
            if got_started or recovered:
                self._cancel(key, slot)

    def on_done(self, key: str, request: Request, decision: Decision) -> None:
        """Cancel the delayed actions of the same level after an action."""
        for slot, waiting in list(self._jobs.get(key, {}).items()):
            same = {
                "job": True,
                "task": waiting.request.task == request.task,
                "pod": waiting.request.pod == request.pod,
                "partition": waiting.request.partition == request.partition,
            }[decision.level]
            if waiting.level == decision.level and same:
                self._cancel(key, slot)

    def drop(self, key: str) -> None:
        """The Job was deleted."""
        for slot in list(self._jobs.get(key, {})):
            self._cancel(key, slot)
        self._jobs.pop(key, None)

    def _cancel(self, key: str, slot: tuple[str, str]) -> None:
        self._jobs[key].pop(slot).timer.cancel()

    def _fire(self, key: str, slot: tuple[str, str]) -> None:
        waiting = self._jobs[key].pop(slot)
        cause = waiting.request
        self._due(
            key,
            Request(
                event=cause.event,
                action=waiting.action,
                job_uid=cause.job_uid,
                job_version=cause.job_version,
                task=cause.task,
                pod=cause.pod,
                pod_uid=cause.pod_uid,
                partition=cause.partition,
                evicted=cause.evicted,
            ),
        )
