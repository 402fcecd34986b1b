"""Questions to extenders and their answers, kept between sessions.

A session puts questions here and reads the answers to those of earlier sessions; `scheduler.remote.extender_calls`
carries them. So no cycle waits for an extender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Key = tuple[str, ...]
"""The URL prefix, the verb, and what the question is about."""

REFRESH = 5.0
"""Seconds after which an answer is requested again; it holds until the new one arrives."""
EXPIRES = 60.0
"""Seconds after which an answer that was not renewed is forgotten."""
_MOST = 200_000
"""Answers that are kept."""


class Question(NamedTuple):
    """One call: POST `body` as JSON to `url`. `timeout` in seconds. The body is made when it is sent, because the
    nodes of a large cluster are long."""

    url: str
    body: Callable[[], Any]
    timeout: float


class Answer(NamedTuple):
    """The outcome of a call at a time (seconds since the epoch). `error` is empty if `body` is the answer."""

    time: float
    body: Any = None
    error: str = ""


@dataclass
class Mailbox:
    """Questions that wait, and answers."""

    outbox: dict[Key, Question] = field(default_factory=dict)
    notices: list[Question] = field(default_factory=list)
    """Calls whose answer decides nothing, in order."""
    answers: dict[Key, Answer] = field(default_factory=dict)
    carried: bool = False
    """The calls are made, so that each gets an answer or an error. A simulation makes none."""

    def answer(self, key: Key, question: Question, now: float) -> Answer | None:
        """The newest answer; None: there is none yet. The call is repeated when the answer grows old."""
        known = self.answers.get(key)
        if known is None or now - known.time > REFRESH:
            self.outbox[key] = question
        return known

    def forget_old(self, now: float) -> None:
        """Drop answers that were not renewed."""
        if len(self.answers) > _MOST:
            self.answers.clear()
        for key in [key for key, answer in self.answers.items() if now - answer.time > EXPIRES]:
            del self.answers[key]
