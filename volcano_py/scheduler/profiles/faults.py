"""Faults of plugins: an exception or a return value of the invalid type becomes an error for one pod."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TypeVar

from volcano_py.scheduler.framework.source_line import line_of
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status, error

log = logging.getLogger(__name__)

T = TypeVar("T")
_MOST_LOGGED = 1_000
_logged: set[tuple[str, str, str]] = set()
"""Plugin, point and line of each exception in the log: a filter may raise for every pod and node."""


class Pending(Exception):
    """A plugin has called another program, and the pod's cycle cannot continue before the response."""


class PluginFault(Exception):
    """A plugin failed at a point; the message names both."""

    def __init__(self, plugin: str, point: str, text: str) -> None:
        super().__init__(f'running {point} plugin "{plugin}": {text}')
        self.plugin = plugin
        self.text = text

    @property
    def status(self) -> Status:
        return error(str(self)).by(self.plugin)


class contained:
    """Converts every exception of a block to a PluginFault, and logs where it was raised.

    A class, because a generator would cost several times as much, and there are twenty such blocks in an attempt.
    """

    __slots__ = ("_plugin", "_point")

    def __init__(self, plugin: str, point: str) -> None:
        self._plugin = plugin
        self._point = point

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(e, Exception) and not isinstance(e, PluginFault):
            raise raised(self._plugin, self._point, e) from e


def raised(plugin: str, point: str, e: Exception) -> PluginFault:
    """The fault of a plugin that raised."""
    if isinstance(e, PluginFault):
        return e
    where = line_of(e)
    if (plugin, point, where) not in _logged and len(_logged) < _MOST_LOGGED:
        _logged.add((plugin, point, where))
        log.error("profile plugin %s raised at %s; this line of the plugin is logged once", plugin, point, exc_info=e)
    return PluginFault(plugin, point, f"raised {type(e).__name__}: {e}{f' ({where})' if where else ''}")


def expect(value: T, kind: type[T], plugin: str, point: str) -> T:
    """The value, if it has the type that the point declares. Raises PluginFault."""
    if type(value) is not kind:
        raise PluginFault(plugin, point, f"returned {type(value).__name__}, not {kind.__name__}")
    return value


def stop(status: Status, point: str) -> None:
    """Raises Pending or PluginFault for a status that is neither success nor a rejection."""
    if status.code is Code.PENDING:
        raise Pending
    if not status.ok and not status.rejected:
        raise PluginFault(status.plugin, point, status.message)
