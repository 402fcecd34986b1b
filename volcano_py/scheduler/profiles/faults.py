"""Faults of plugins: an exception or an answer of the wrong type becomes an error for one pod."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from volcano_py.scheduler.profiles.status import Status, error

log = logging.getLogger(__name__)

T = TypeVar("T")


class PluginFault(Exception):
    """A plugin failed at a point; the message names both."""

    def __init__(self, plugin: str, point: str, text: str) -> None:
        super().__init__(f'running {point} plugin "{plugin}": {text}')
        self.plugin = plugin
        self.text = text

    @property
    def status(self) -> Status:
        return error(str(self)).by(self.plugin)


@contextmanager
def contained(plugin: str, point: str) -> Iterator[None]:
    """Turns every exception of the block into a PluginFault, and logs where it was raised."""
    try:
        yield
    except PluginFault:
        raise
    except Exception as e:
        raise raised(plugin, point, e) from e


def raised(plugin: str, point: str, e: Exception) -> PluginFault:
    """The fault of a plugin that raised."""
    if isinstance(e, PluginFault):
        return e
    log.error("profile plugin %s raised at %s", plugin, point, exc_info=e)
    return PluginFault(plugin, point, f"raised {type(e).__name__}: {e}")


def expect(value: T, kind: type[T], plugin: str, point: str) -> T:
    """The value, if it has the type that the point promises. Raises PluginFault."""
    if type(value) is not kind:
        raise PluginFault(plugin, point, f"answered {type(value).__name__}, not {kind.__name__}")
    return value
