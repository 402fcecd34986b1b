"""Logging of failed attempts: denials each time, a server that does not respond once in a while.

During an outage every attempt fails repeatedly; a line for each would hide other messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from volcano_py.kube.errors import ApiError, Unreachable, in_terminating_namespace
from volcano_py.kube.remedies import for_denied

QUIET_SECONDS = 10.0


def from_outside(error: Exception) -> bool:
    """Whether an attempt failed for a reason outside the object: no response, no permission, an older CRD."""
    return not isinstance(error, ApiError) or error.status >= 500 or bool(for_denied(str(error)))


class FailureLog:
    """One instance per controller."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._reported = float("-inf")

    def report(self, subject: str, error: Exception) -> None:
        """Log a failed attempt that will be retried; `subject` is the object."""
        level = logging.WARNING
        if isinstance(error, Unreachable):
            if self._clock() - self._reported < QUIET_SECONDS:
                level = logging.DEBUG
            else:
                self._reported = self._clock()
        elif in_terminating_namespace(error):
            level = logging.DEBUG  # its objects are deleted, too; until then nothing can be created in it
        self._log.log(level, "%s: %s%s; retrying", subject, error, for_denied(str(error)))
