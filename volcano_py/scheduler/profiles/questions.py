"""Questions to other programs, and their answers. Volcano: plugins/extender; Kubernetes: extender.go.

No plugin waits for an answer: it starts a call, returns PENDING, and is called again when the answer has arrived.
The caller of the core gets the calls as decisions, makes them, and returns the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.scheduler.profiles.calls import Answer, Call
from volcano_py.scheduler.profiles.decisions import Ask, Decision
from volcano_py.scheduler.profiles.pod_info import PodInfo


class Questions:
    """The open questions of all pods. A topic identifies a call about a pod: the plugin and the point."""

    def __init__(self, emit: Callable[[Decision], None]) -> None:
        self._emit = emit
        self._open: dict[str, dict[str, str]] = {}
        """Pod to topic to the number of the question."""
        self._answers: dict[str, dict[str, Answer]] = {}
        """Pod to topic to answer."""
        self._about: dict[str, tuple[str, str, Any]] = {}
        """The number of a question to its pod, its topic, and what its call is about."""
        self._count = 0

    def answer(self, pod: PodInfo, topic: str) -> Answer | None:
        """The answer, if it has come; it stays until `forget`."""
        return self._answers.get(pod.key, {}).get(topic)

    def ask(self, pod: PodInfo, topic: str, call: Call) -> None:
        """Send a question, unless it is on its way."""
        mine = self._open.setdefault(pod.key, {})
        if topic not in mine:
            self._count += 1
            mine[topic] = number = str(self._count)
            self._about[number] = pod.key, topic, call.about
            self._emit(Ask(pod, number, call))

    def notify(self, pod: PodInfo, call: Call) -> None:
        """Send a call whose answer decides nothing."""
        self._emit(Ask(pod, "", call))

    def take(self, number: str, answer: Answer) -> str:
        """Store an answer; returns the pod, or empty if its question is not open any more."""
        key, topic, about = self._about.pop(number, ("", "", None))
        if key:
            del self._open[key][topic]
            self._answers.setdefault(key, {})[topic] = answer._replace(about=about)
        return key

    def forget(self, key: str, topic: str = "") -> None:
        """Drop the answers about a pod, and let its open questions go unanswered; `topic`: only this one."""
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
