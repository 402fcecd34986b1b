"""Which actions and plugins exist. One line each in `actions/__init__.py` and `plugins/__init__.py` adds one.

A plugin is a class with `name` and `on_session_open(session)`; its constructor takes the arguments map of the
configuration. An action is a function of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from volcano_py.scheduler.framework.session import Session


class Plugin(Protocol):
    """Constructed anew for every session. `on_session_close` is optional."""

    name: str

    def on_session_open(self, session: Session) -> None: ...


PluginBuilder = Callable[[Mapping[str, Any]], Plugin]
Action = Callable[["Session"], None]


class Registry:
    """The plugins and actions a configuration may name."""

    def __init__(self, plugins: Mapping[str, PluginBuilder], actions: Mapping[str, Action]) -> None:
        self.plugins = dict(plugins)
        self.actions = dict(actions)
