"""Calls to other programs, and their responses. Volcano: plugins/extender; Kubernetes: extender.go.

No plugin waits for a response: it starts a call, returns PENDING, and is called again when the response has arrived.
The caller of the core gets the calls as decisions, sends them, and returns the responses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.scheduler.profiles.decisions import Ask, Decision
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class Questions:
    """The open calls of all pods. A topic identifies a call for a pod: the plugin and the point."""

    def __init__(self, emit: Callable[[Decision], None]) -> None:
        self._emit = emit
        self._open: dict[str, dict[str, str]] = {}
        """The number of the open call by pod and topic."""
        self._answers: dict[str, dict[str, Answer]] = {}
        """The response by pod and topic."""
        self._about: dict[str, tuple[str, str, Any]] = {}
        """For each number of a call: its pod, its topic, and the context of the call."""
        self._count = 0

    def __contains__(self, key: str) -> bool:
        """Whether a call about a pod is open or has a response."""
        return key in self._open or key in self._answers

    def answer(self, pod: PodInfo, topic: str) -> Answer | None:
        """The response, if it has arrived; it is kept until `forget`."""
        return self._answers.get(pod.key, {}).get(topic)

    def ask(self, pod: PodInfo, topic: str, call: Call) -> None:
        """Start a call, unless it is in progress."""
        mine = self._open.setdefault(pod.key, {})
        if topic not in mine:
            self._count += 1
            mine[topic] = number = str(self._count)
            self._about[number] = pod.key, topic, call.about
            self._emit(Ask(pod, number, call))

    def notify(self, pod: PodInfo, call: Call) -> None:
        """Start a call whose response is not used."""
        self._emit(Ask(pod, "", call))

    def take(self, number: str, answer: Answer) -> str:
        """Store a response; returns the pod, or empty if its call is not open any more."""
        key, topic, about = self._about.pop(number, ("", "", None))
        if key:
            del self._open[key][topic]
            self._answers.setdefault(key, {})[topic] = answer._replace(about=about)
        return key

    def forget(self, key: str, topic: str = "") -> None:
        """Drop the responses for a pod, and ignore those of its open calls; `topic`: only this one."""
        for t, number in list(self._open.get(key, {}).items()):
            if topic in ("", t):
                del self._open[key][t]
                del self._about[number]
        for t in list(self._answers.get(key, {})):
            if topic in ("", t):
                del self._answers[key][t]
        for table in (self._open, self._answers):
            if not table.get(key):
                table.pop(key, None)
