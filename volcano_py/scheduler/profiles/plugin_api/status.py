"""The result of a plugin: a code and its reasons. Kubernetes: scheduling framework, Status."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Code(Enum):
    SUCCESS = "Success"
    ERROR = "Error"
    """The plugin failed; the pod is tried again after its back-off."""
    UNSCHEDULABLE = "Unschedulable"
    """Rejected; evictions may help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Rejected; evictions do not help."""
    WAIT = "Wait"
    """Permit only: hold the pod."""
    SKIP = "Skip"
    """The plugin does not apply to this pod."""
    PENDING = "Pending"
    """The plugin has called another program; the pod is tried again, or continues, when the response has arrived."""


class Status(NamedTuple):
    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    """The plugin that returned it; the framework sets it."""

    @property
    def ok(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the pod was rejected, as opposed to an error."""
        return self.code is Code.UNSCHEDULABLE or self.code is Code.UNRESOLVABLE

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status, attributed to a plugin unless it already names one."""
        return self if self.plugin else self._replace(plugin=plugin)


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


PENDING = Status(Code.PENDING)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    return Status(Code.ERROR, (reason,))
