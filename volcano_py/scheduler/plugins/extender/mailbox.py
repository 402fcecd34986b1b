"""Calls to extenders and their responses, kept between sessions.

A session adds calls here and reads the responses to calls of earlier sessions; `scheduler.remote.extender_calls` sends
them. So no cycle waits for an extender.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Key = tuple[str, ...]
"""The URL prefix, the verb, and the objects of the call."""

REFRESH = 5.0
"""Seconds after which a call is sent again; the old response is valid until the new one arrives."""
EXPIRES = 60.0
"""Seconds after which a response that was not renewed is dropped."""
_MOST = 200_000
"""The largest number of responses that are kept."""
MOST_NOTICES = 10_000
"""The largest number of notices that wait; the oldest are dropped."""


class ExtenderRequest(NamedTuple):
    """One call: POST `body` as JSON to `url`. `timeout` in seconds. The body is created when it is sent, because the
    nodes of a large cluster make it large."""

    url: str
    body: Callable[[], Any]
    timeout: float


class ExtenderAnswer(NamedTuple):
    """The outcome of a call at a time (seconds since the epoch). `error` is empty if `body` is the response."""

    time: float
    body: Any = None
    error: str = ""


@dataclass
class Mailbox:
    """Pending calls, and responses."""

    outbox: dict[Key, ExtenderRequest] = field(default_factory=dict)
    notices: deque[ExtenderRequest] = field(default_factory=lambda: deque(maxlen=MOST_NOTICES))
    """Calls whose response is not used, in order."""
    answers: dict[Key, ExtenderAnswer] = field(default_factory=dict)
    carried: bool = False
    """Whether calls are sent, so that each gets a response or an error. A simulation sends none."""

    def answer(self, key: Key, request: ExtenderRequest, now: float) -> ExtenderAnswer | None:
        """The newest response; None if there is none yet. Adds the call again when the response grows old."""
        known = self.answers.get(key)
        if known is None or now - known.time > REFRESH:
            self.outbox[key] = request
        return known

    def forget_old(self, now: float) -> None:
        """Drop responses that were not renewed."""
        if len(self.answers) > _MOST:
            self.answers.clear()
        for key in [key for key, answer in self.answers.items() if now - answer.time > EXPIRES]:
            del self.answers[key]
