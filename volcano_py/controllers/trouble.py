"""Telling of failed attempts in the log: refusals each time, a server that does not answer once in a while.

While it is away every object that is worked on fails again and again; a line each would bury the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from volcano_py.kube.errors import ApiError, Unreachable, in_terminating_namespace
from volcano_py.kube.remedies import for_denied

QUIET_SECONDS = 10.0


def from_outside(error: Exception) -> bool:
    """Whether an attempt failed for a reason that no object can remedy: no answer, no permission, an older CRD."""
    return not isinstance(error, ApiError) or error.status >= 500 or bool(for_denied(str(error)))


class Trouble:
    """One a controller."""

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._told = float("-inf")

    def tell(self, subject: str, error: Exception) -> None:
        """An attempt failed and will be made again; `subject` names the object."""
        level = logging.WARNING
        if isinstance(error, Unreachable):
            if self._clock() - self._told < QUIET_SECONDS:
                level = logging.DEBUG
            else:
                self._told = self._clock()
        elif in_terminating_namespace(error):
            level = logging.DEBUG  # its objects go, too; until then nothing can be created there
        self._log.log(level, "%s: %s%s; trying again", subject, error, for_denied(str(error)))
